#include <ir/halves.h>

#include <aot/assert.h>
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPORTS 20u

typedef struct port_record {
  int32_t role;
  uint32_t index;
  aot_type_t type;            /* arrays are interned */
  aoth_value_number_t number; /* of outputs; 0: the port has no value */
} port_record_t;

struct aoth_joint_record {
  uint32_t n_inputs, n_outputs;
  port_record_t *inputs, *outputs;
};

/* ---- the joint graph ---- */

static void record_ports(const aoth_numbering_t *n, const aot_port_t *ports, uint32_t count, port_record_t *out) {
  for (uint32_t i = 0; i < count; i++) {
    out[i] = (port_record_t){.role = ports[i].role, .index = ports[i].index};
    if (ports[i].value.id == NONE) continue;
    out[i].type = *value_type_of(n->p, ports[i].value.id);
    out[i].number = n->of_value[ports[i].value.id];
  }
}

aoth_joint_record_t *aoth_joint_record_create(aot_prog_t *p, aot_graph_t joint) {
  const aoth_graph_row_t *g = &p->graphs.at[joint.id];
  AOT_ASSERT(g->alive && g->kind == AOT_GRAPH_JOINT);
  aoth_joint_record_t *r = calloc(1, sizeof *r);
  aoth_numbering_t n;
  const int ready = aoth_numbering_init(&n, p);
  if (r) r->inputs = calloc((size_t)g->inputs.n + 1, sizeof *r->inputs);
  if (r) r->outputs = calloc((size_t)g->outputs.n + 1, sizeof *r->outputs);
  if (ready && r && r->inputs && r->outputs) {
    aoth_number_graph(&n, joint.id);
    record_ports(&n, g->inputs.at, r->n_inputs = g->inputs.n, r->inputs);
    record_ports(&n, g->outputs.at, r->n_outputs = g->outputs.n, r->outputs);
  }
  const int made = ready && r && r->inputs && r->outputs && !n.failed;
  aoth_numbering_deinit(&n);
  if (made) return r;
  aoth_joint_record_destroy(r);
  aoth_no_memory(p, "the numbers of the joint graph", (uint64_t)p->values.n * sizeof(aoth_value_number_t));
  return NULL;
}

void aoth_joint_record_destroy(aoth_joint_record_t *r) {
  if (!r) return;
  free(r->inputs);
  free(r->outputs);
  free(r);
}

/* ---- the forward and backward graphs ---- */

typedef struct halves {
  aoth_numbering_t n;
  const aoth_joint_record_t *joint;
  uint32_t n_bad;
} halves_t;

static void tell(halves_t *c, uint32_t graph, const port_record_t *port, uint32_t value, const char *what) {
  aot_prog_t *p = c->n.p;
  const aot_node_t node = {p->values.at[value].def};
  if (c->n_bad++ >= MAX_REPORTS) return;
  const char *kind = aoth_graph_kind_name(graph == NONE ? AOT_GRAPH_JOINT : p->graphs.at[graph].kind);
  aoth_report_node(p, node, AOT_SEVERITY_ERROR, "verify.halves", NULL, "%s graph, %s %u: %s", kind,
                   aoth_role_name(port->role), aoth_port_number(port->role, port->index), what);
}

/* A forward or backward input, but a slot, is one of the joint's. `expected`: by role and index, sorted. */
static int compare_ports(const void *a, const void *b) {
  const port_record_t *x = a, *y = b;
  if (x->role != y->role) return x->role < y->role ? -1 : 1;
  return (x->index > y->index) - (x->index < y->index);
}

static void check_inputs(halves_t *c, uint32_t graph, const port_record_t *expected) {
  const aoth_graph_row_t *g = &c->n.p->graphs.at[graph];
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    const aot_port_t *port = &g->inputs.at[i];
    const port_record_t key = {.role = port->role, .index = port->index};
    if (port->role == AOT_ROLE_SAVED) continue;
    const port_record_t *found = bsearch(&key, expected, c->joint->n_inputs, sizeof key, compare_ports);
    if (!found) tell(c, graph, &key, NONE, "the joint graph has no such input");
    else if (!aoth_same_shape(&found->type, value_type_of(c->n.p, port->value.id)))
      tell(c, graph, &key, NONE, "the joint graph's input is of another type");
  }
}

static void check_output(halves_t *c, uint32_t graph, const aot_port_t *port, const port_record_t *wanted) {
  const uint32_t value = port->value.id;
  const aoth_value_number_t none = {0, 0}, number = value == NONE ? none : c->n.of_value[value];
  if (!aoth_same_number(number, wanted->number))
    tell(c, graph, wanted, value,
         value == NONE ? "it is none, the joint graph has it" : "this is not what the joint graph computes");
  else if (value != NONE && !aoth_same_shape(value_type_of(c->n.p, value), &wanted->type))
    tell(c, graph, wanted, value, "it has another type than the joint graph's");
}

static int is_next(const aoth_graph_row_t *g, uint32_t i, const port_record_t *wanted) {
  return i < g->outputs.n && g->outputs.at[i].role == wanted->role && g->outputs.at[i].index == wanted->index;
}

/* Forward outputs in the joint's order, then slots; the rest, in order, is the backward's. */
static void check_outputs(halves_t *c, uint32_t forward, uint32_t backward) {
  const aoth_graph_row_t *f = &c->n.p->graphs.at[forward], *b = &c->n.p->graphs.at[backward];
  uint32_t in_f = 0, in_b = 0;
  for (uint32_t i = 0; i < c->joint->n_outputs; i++) {
    const port_record_t *wanted = &c->joint->outputs[i];
    if (is_next(f, in_f, wanted)) check_output(c, forward, &f->outputs.at[in_f++], wanted);
    else if (is_next(b, in_b, wanted)) check_output(c, backward, &b->outputs.at[in_b++], wanted);
    else tell(c, NONE, wanted, NONE, "neither half gives this output in its turn");
  }
  for (; in_f < f->outputs.n; in_f++) {
    const port_record_t port = {.role = f->outputs.at[in_f].role, .index = f->outputs.at[in_f].index};
    if (port.role != AOT_ROLE_SAVED)
      tell(c, forward, &port, f->outputs.at[in_f].value.id, "the joint graph has no such output");
  }
  for (; in_b < b->outputs.n; in_b++) {
    const port_record_t port = {.role = b->outputs.at[in_b].role, .index = b->outputs.at[in_b].index};
    tell(c, backward, &port, b->outputs.at[in_b].value.id, "the joint graph has no such output");
  }
}

int aoth_halves_number(aoth_numbering_t *n, aot_graph_t forward, aot_graph_t backward) {
  const aoth_graph_row_t *f = &n->p->graphs.at[forward.id];
  AOT_ASSERT(!n->of_slot && !n->n_slots);
  aoth_number_graph(n, forward.id);
  n->of_slot = calloc((size_t)f->outputs.n + 1, sizeof *n->of_slot);
  if (!n->of_slot) return 0;
  for (uint32_t i = 0; i < f->outputs.n; i++) {
    const aot_port_t *port = &f->outputs.at[i];
    if (port->role == AOT_ROLE_SAVED && port->index < f->outputs.n && port->value.id != NONE)
      n->of_slot[port->index] = n->of_value[port->value.id];
  }
  n->n_slots = f->outputs.n;
  aoth_number_graph(n, backward.id);
  return !n->failed;
}

aot_status_t aoth_halves_check(aot_prog_t *p, const aoth_joint_record_t *r) {
  const aot_graph_t f = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD), b = aoth_graph_graph_find(p, AOT_GRAPH_BACKWARD);
  const uint32_t forward = f.id, backward = b.id;
  halves_t c = {.joint = r};
  if (forward == NONE || backward == NONE) return AOT_OK; /* the verifier says so */
  port_record_t *inputs = malloc(((size_t)r->n_inputs + 1) * sizeof *inputs);
  const int ready = aoth_numbering_init(&c.n, p) && inputs && aoth_halves_number(&c.n, f, b);
  if (ready) {
    memcpy(inputs, r->inputs, r->n_inputs * sizeof *inputs);
    qsort(inputs, r->n_inputs, sizeof *inputs, compare_ports);
    check_inputs(&c, forward, inputs);
    check_inputs(&c, backward, inputs);
    check_outputs(&c, forward, backward);
  }
  aoth_numbering_deinit(&c.n);
  free(inputs);
  if (!ready)
    return aoth_no_memory(p, "the numbers of forward and backward",
                          (uint64_t)p->values.n * sizeof(aoth_value_number_t));
  return c.n_bad ? AOT_E_INVALID : AOT_OK;
}
