#include <ir/ports_kept.h>

#include <aot/assert.h>
#include <aot/contract.h>
#include <ir/program_store.h>
#include <stdlib.h>

#define MAX_REPORTS 20u

typedef struct kept_port {
  uint32_t graph; /* id */
  int32_t graph_kind, role;
  int is_output;
  uint32_t index;
  aot_type_t type; /* arrays are interned; kind AOT_TYPE_NONE: the port has no value */
} kept_port_t;

struct aoth_ports {
  uint32_t n, n_leaves;
  kept_port_t *at; /* of one graph inputs first, each side in order */
};

static const struct {
  uint32_t property, inputs, outputs; /* roles, a bit each */
} excepted[] = {
    {AOTH_PROP_FUNCTIONAL, 1u << AOT_ROLE_USER_INPUT | 1u << AOT_ROLE_TOKEN,
     1u << AOT_ROLE_USER_OUTPUT | 1u << AOT_ROLE_LOSS | 1u << AOT_ROLE_UPDATE | 1u << AOT_ROLE_BASE |
         1u << AOT_ROLE_TOKEN},
    {AOTH_PROP_JOINT, 1u << AOT_ROLE_TANGENT | 1u << AOT_ROLE_TOKEN, 1u << AOT_ROLE_GRADIENT | 1u << AOT_ROLE_TOKEN},
    {AOTH_PROP_RNG_EXPLICIT, 1u << AOT_ROLE_SEED | 1u << AOT_ROLE_OFFSET, 1u << AOT_ROLE_OFFSET},
    {AOTH_PROP_HOOKED, 1u << AOT_ROLE_SAVED, 1u << AOT_ROLE_SAVED},
    {AOTH_PROP_SHARDED, 1u << AOT_ROLE_PARAMETER | 1u << AOT_ROLE_BUFFER | 1u << AOT_ROLE_STATE,
     1u << AOT_ROLE_GRADIENT | 1u << AOT_ROLE_UPDATE},
};

/* Which leaves the backward reads in place is its own affair; the verifier says which it may. */
static int is_excepted(uint32_t gives, int32_t graph_kind, int is_output, int32_t role) {
  uint32_t roles = 0;
  if (graph_kind == AOT_GRAPH_BACKWARD && !is_output && role <= AOT_ROLE_STATE) return 1;
  for (size_t i = 0; i < sizeof excepted / sizeof *excepted; i++)
    if (gives & excepted[i].property) roles |= is_output ? excepted[i].outputs : excepted[i].inputs;
  AOT_ASSERT(role >= 0 && role < 32);
  return (roles >> role) & 1u;
}

static kept_port_t port_of(const aot_prog_t *p, uint32_t graph, int is_output, const aot_port_t *port) {
  kept_port_t k = {.graph = graph, .graph_kind = p->graphs.at[graph].kind, .role = port->role, .index = port->index};
  k.is_output = is_output;
  k.type.kind = AOT_TYPE_NONE;
  if (port->value.id != NONE) k.type = *value_type_of(p, port->value.id);
  return k;
}

/* Calls may share a region's ports in any way: regions are the business of who makes them. */
static int is_kept(const aoth_graph_row_t *g) { return g->alive && g->kind != AOT_GRAPH_REGION; }

aoth_ports_t *aoth_ports_record(aot_prog_t *p) {
  aoth_ports_t *r = calloc(1, sizeof *r);
  size_t n = 0;
  for (uint32_t g = 1; g < p->graphs.n; g++)
    if (is_kept(&p->graphs.at[g])) n += (size_t)p->graphs.at[g].inputs.n + p->graphs.at[g].outputs.n;
  if (r) r->at = malloc((n + 1) * sizeof *r->at);
  if (!r || !r->at) {
    free(r);
    aoth_no_memory(p, "the ports of the program", n * sizeof *r->at);
    return NULL;
  }
  r->n_leaves = p->leaves.n;
  for (uint32_t g = 1; g < p->graphs.n; g++) {
    const aoth_graph_row_t *row = &p->graphs.at[g];
    for (uint32_t i = 0; is_kept(row) && i < row->inputs.n; i++) r->at[r->n++] = port_of(p, g, 0, &row->inputs.at[i]);
    for (uint32_t i = 0; is_kept(row) && i < row->outputs.n; i++) r->at[r->n++] = port_of(p, g, 1, &row->outputs.at[i]);
  }
  AOT_ASSERT(r->n == n);
  return r;
}

void aoth_ports_destroy(aoth_ports_t *r) {
  if (!r) return;
  free(r->at);
  free(r);
}

/* ---- afterwards ---- */

/* The graph itself, or what took its place: a graph of its kind, of a forward that was differentiated the joint one. */
static uint32_t successor(aot_prog_t *p, uint32_t graph, int32_t kind, uint32_t gives) {
  if (kind == AOT_GRAPH_FORWARD && (gives & AOTH_PROP_JOINT)) kind = AOT_GRAPH_JOINT;
  if (p->graphs.at[graph].alive && p->graphs.at[graph].kind == kind) return graph;
  return aoth_graph_graph_find(p, kind).id;
}

/* An output's memory order is its maker's: a decomposition in place of its node may lay it out in another. */
static int same_type(const aot_type_t *a, const aot_type_t *b, int is_output) {
  return a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank && a->device == b->device &&
         a->device_index == b->device_index && aoth_same_encoding(a, b) && a->sizes == b->sizes && a->expr == b->expr &&
         (is_output || (a->strides == b->strides && a->offset == b->offset));
}

static void tell(aot_prog_t *p, uint32_t *n_bad, const kept_port_t *port, uint32_t value, const char *what) {
  const aot_node_t node = {p->values.at[value].def};
  if ((*n_bad)++ >= MAX_REPORTS) return;
  aoth_report_node(p, node, AOT_SEVERITY_ERROR, "ir.ports", "only what the contract gives may change ports",
                   "%s graph, %s %s %u: %s", aoth_graph_kind_name(port->graph_kind),
                   port->is_output ? "output" : "input", aoth_role_name(port->role),
                   aoth_port_number(port->role, port->index), what);
}

/* Any pass may erase the input of a constant, which no node can then read, and add that of a constant leaf that it
 * created: inputs are bound by their leaf, never by their position. */
static int is_erased_constant(const kept_port_t *before, const aot_port_t *now) {
  return !before->is_output && before->role == AOT_ROLE_CONSTANT &&
         (!now || now->role != AOT_ROLE_CONSTANT || now->index != before->index);
}

static int is_added_constant(const aoth_ports_t *r, const aot_port_t *now, int is_output) {
  return !is_output && now->role == AOT_ROLE_CONSTANT && now->index >= r->n_leaves;
}

/* One side of one graph: the ports before, and those that are there now; both without the excepted ones. */
static uint32_t check_side(aot_prog_t *p, const aoth_ports_t *r, const kept_port_t *before, uint32_t n_before,
                           uint32_t graph, int is_output, uint32_t gives) {
  const aoth_graph_row_t *g = &p->graphs.at[graph];
  const aot_port_t *now = is_output ? g->outputs.at : g->inputs.at;
  const uint32_t n_now = is_output ? g->outputs.n : g->inputs.n;
  uint32_t n_bad = 0, i = 0, k = 0;
  for (;;) {
    while (i < n_before && is_excepted(gives, g->kind, is_output, before[i].role)) i++;
    while (k < n_now &&
           (is_excepted(gives, g->kind, is_output, now[k].role) || is_added_constant(r, &now[k], is_output)))
      k++;
    if (i < n_before && is_erased_constant(&before[i], k < n_now ? &now[k] : NULL)) {
      i++;
      continue;
    }
    if (i == n_before || k == n_now) break;
    const kept_port_t port = port_of(p, graph, is_output, &now[k]);
    if (port.role != before[i].role || port.index != before[i].index) {
      tell(p, &n_bad, &before[i], now[k].value.id, "another port stands in its place");
      return n_bad;
    }
    if (!same_type(&port.type, &before[i].type, is_output))
      tell(p, &n_bad, &before[i], now[k].value.id, "it is of another type than before");
    i++, k++;
  }
  if (i < n_before) tell(p, &n_bad, &before[i], NONE, "it is gone");
  if (k < n_now) {
    const kept_port_t port = port_of(p, graph, is_output, &now[k]);
    tell(p, &n_bad, &port, now[k].value.id, "it was not there before");
  }
  return n_bad;
}

aot_status_t aoth_ports_check(aot_prog_t *p, const aoth_ports_t *r, uint32_t gives) {
  uint32_t n_bad = 0;
  if (gives & (AOTH_PROP_PARTITIONED | AOTH_PROP_STITCHED)) return AOT_OK; /* new graphs, with verifiers of their own */
  for (uint32_t i = 0; i < r->n;) {
    const uint32_t g = r->at[i].graph, now = successor(p, g, r->at[i].graph_kind, gives), begin = i;
    uint32_t n_inputs = 0;
    for (; i < r->n && r->at[i].graph == g; i++) n_inputs += !r->at[i].is_output;
    AOT_ASSERT(begin + n_inputs == i || r->at[begin + n_inputs].is_output); /* inputs first */
    if (now == NONE) tell(p, &n_bad, &r->at[begin], NONE, "its graph is gone");
    if (now == NONE) continue;
    n_bad += check_side(p, r, &r->at[begin], n_inputs, now, 0, gives);
    n_bad += check_side(p, r, &r->at[begin + n_inputs], i - begin - n_inputs, now, 1, gives);
  }
  return n_bad ? AOT_E_CONTRACT : AOT_OK;
}
