#include "claims.h"

#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <string.h>

enum { SLOW = 8 }; /* operations, and bytes of memory, in a nanosecond: one core of a processor */

typedef struct query {
  as_stage_t *s;
  uint32_t backend;
} query_t;

static aot_status_t put_verdict(const aot_verdict_sink_t *sink, const aot_verdict_t *given) {
  const query_t *a = sink->head.self;
  aot_verdict_t v;
  if (aot_import(&v, sizeof v, given) != AOT_OK) return AOT_E_TOO_NEW;
  if (v.node.id >= a->s->n_nodes) return AOT_E_RANGE;
  a->s->is_claimed[as_row(a->s, a->backend, v.node.id)] = v.accepted != 0;
  return AOT_OK;
}

static aot_status_t put_cost(const aot_cost_sink_t *sink, const aot_node_cost_t *given) {
  const query_t *a = sink->head.self;
  aot_node_cost_t c;
  if (aot_import(&c, sizeof c, given) != AOT_OK) return AOT_E_TOO_NEW;
  if (c.node.id >= a->s->n_nodes) return AOT_E_RANGE;
  int is_view = c.n_results > 0 && c.view_of;
  for (uint32_t r = 0; is_view && r < c.n_results; r++) is_view = c.view_of[r] != 0;
  a->s->is_view[as_row(a->s, a->backend, c.node.id)] = (uint8_t)is_view;
  a->s->nanoseconds[as_row(a->s, a->backend, c.node.id)] = c.nanoseconds;
  a->s->at_most[as_row(a->s, a->backend, c.node.id)] =
      c.nanoseconds ? c.nanoseconds : (c.flops + c.read_nbytes + c.written_nbytes + SLOW - 1) / SLOW;
  return AOT_OK;
}

/* Who does not report costs makes views of what the operators call so. */
static void take_flags(as_stage_t *s, const aot_snapshot_t *snapshot, uint32_t backend) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(snapshot, aot_snap_node_t, nodes);
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(snapshot, aot_snap_op_t, ops);
  for (uint32_t n = 1; n < snapshot->nodes.count; n++)
    s->is_view[as_row(s, backend, nodes[n].id)] = (ops[nodes[n].op].flags & (AOT_OP_VIEW | AOT_OP_MULTI_VIEW)) != 0;
}

static aot_status_t ask(as_stage_t *s, const aot_snapshot_t *snapshot, uint32_t backend) {
  const aot_ext_backends_t *x = s->backends;
  query_t a = {s, backend};
  const aot_verdict_sink_t verdicts = {.head = {.struct_size = sizeof verdicts, .self = &a}, .put = put_verdict};
  const aot_cost_sink_t costs = {.head = {.struct_size = sizeof costs, .self = &a}, .put = put_cost};
  aot_cost_machine_t machine = {.struct_size = sizeof machine};
  AOT_TRY(x->query(x, s->ctx, backend, s->prog, &verdicts));
  aot_status_t status = x->costs(x, s->ctx, backend, s->prog, (aot_graph_t){AOT_NO_ID}, NULL, 0, &costs);
  if (status != AOT_OK) take_flags(s, snapshot, backend);
  if (x->machine(x, s->ctx, backend, &machine) == AOT_OK) s->launch[backend - 1] = machine.launch_nanoseconds;
  return AOT_OK;
}

/* ---- what is withheld: "NAME=OPERATOR,OPERATOR;NAME=.." ---- */

/* The text up to the first `mark`, which is removed it with that mark. */
static aot_str_t cut(aot_str_t *text, char mark) {
  const char *at = text->size ? memchr(text->data, mark, (size_t)text->size) : NULL;
  const aot_str_t first = {text->data, at ? (uint64_t)(at - text->data) : text->size};
  const uint64_t skip = first.size + (at != NULL);
  *text = (aot_str_t){text->data + skip, text->size - skip};
  return first;
}

static void withhold(as_stage_t *s, const aot_snapshot_t *p, uint32_t backend, aot_str_t operators,
                     uint8_t *is_listed) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(p, aot_snap_node_t, nodes);
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(p, aot_snap_op_t, ops);
  memset(is_listed, 0, p->ops.count);
  while (operators.size) {
    const aot_str_t name = cut(&operators, ',');
    for (uint32_t i = 0; i < p->ops.count; i++)
      is_listed[i] |= (uint8_t)aot_str_eq(aot_snap_text(p, ops[i].name), name);
  }
  for (uint32_t n = 1; n < p->nodes.count; n++)
    if (is_listed[nodes[n].op]) s->is_claimed[as_row(s, backend, nodes[n].id)] = 0;
}

static aot_status_t withhold_all(as_stage_t *s, const aot_snapshot_t *p) {
  aot_str_t text = s->withheld;
  uint8_t *is_listed = as_alloc(s, p->ops.count, 1);
  if (!is_listed) return AOT_E_EXHAUSTED;
  while (text.size) {
    aot_str_t operators = cut(&text, ';');
    const aot_str_t name = cut(&operators, '=');
    uint32_t b = 1;
    while (b <= s->n_backends && !aot_str_eq(s->backends->name(s->backends, s->ctx, b), name)) b++;
    if (b > s->n_backends)
      return as_fail(s, AOT_NO_ID, "assign.withhold", "write NAME=OPERATOR,OPERATOR;NAME=..",
                     "operators are to be withheld from '%.*s', but no backend is called so", (int)name.size,
                     name.data);
    withhold(s, p, b, operators, is_listed);
  }
  return AOT_OK;
}

/* ---- regions: a node runs where all runs that is in its regions ---- */

typedef struct owners { /* by graph row: the nodes that name it */
  uint32_t *begin, *nodes;
  uint32_t *stack;
  uint8_t *is_refused; /* by graph row */
} owners_t;

static aot_status_t find_owners(const as_stage_t *s, const aot_snapshot_t *p, owners_t *o) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(p, aot_snap_node_t, nodes);
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(p, aot_snap_arg_t, args);
  const uint32_t n_graphs = p->graphs.count;
  uint32_t n = 0;
  o->begin = as_alloc(s, n_graphs + 2u, sizeof *o->begin);
  o->stack = as_alloc(s, n_graphs + 1u, sizeof *o->stack);
  o->is_refused = as_alloc(s, n_graphs + 1u, 1);
  if (!o->begin || !o->stack || !o->is_refused) return AOT_E_EXHAUSTED;
  for (uint32_t a = 0; a < p->args.count; a++)
    if (args[a].kind == AOT_ARG_GRAPH) o->begin[args[a].i + 2]++, n++;
  o->nodes = as_alloc(s, n + 1u, sizeof *o->nodes);
  if (!o->nodes) return AOT_E_EXHAUSTED;
  for (uint32_t g = 2; g < n_graphs + 2; g++) o->begin[g] += o->begin[g - 1];
  for (uint32_t i = 1; i < p->nodes.count; i++)
    for (uint32_t a = nodes[i].arg_begin; a < nodes[i].arg_begin + nodes[i].n_args; a++)
      if (args[a].kind == AOT_ARG_GRAPH) o->nodes[o->begin[args[a].i + 1]++] = i;
  return AOT_OK;
}

static void refuse_owners(as_stage_t *s, const aot_snapshot_t *p, owners_t *o, uint32_t backend) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(p, aot_snap_node_t, nodes);
  uint32_t n = 0;
  for (uint32_t g = 0; g < p->graphs.count; g++) o->is_refused[g] = 0;
  for (uint32_t i = 1; i < p->nodes.count; i++) {
    if (s->is_claimed[as_row(s, backend, nodes[i].id)] || o->is_refused[nodes[i].graph]) continue;
    o->is_refused[nodes[i].graph] = 1;
    o->stack[n++] = nodes[i].graph;
  }
  while (n) {
    const uint32_t g = o->stack[--n];
    for (uint32_t k = o->begin[g]; k < o->begin[g + 1]; k++) {
      const aot_snap_node_t *owner = &nodes[o->nodes[k]];
      s->is_claimed[as_row(s, backend, owner->id)] = 0;
      if (o->is_refused[owner->graph]) continue;
      o->is_refused[owner->graph] = 1;
      o->stack[n++] = owner->graph;
    }
  }
}

aot_status_t as_ask(as_stage_t *s, const aot_snapshot_t *snapshot) {
  const uint64_t n = (uint64_t)s->n_backends * s->n_nodes;
  owners_t owners;
  s->is_claimed = as_alloc(s, n + 1, 1);
  s->is_view = as_alloc(s, n + 1, 1);
  s->nanoseconds = as_alloc(s, n + 1, sizeof *s->nanoseconds);
  s->at_most = as_alloc(s, n + 1, sizeof *s->at_most);
  s->launch = as_alloc(s, s->n_backends, sizeof *s->launch);
  if (!s->is_claimed || !s->is_view || !s->nanoseconds || !s->at_most || !s->launch) return AOT_E_EXHAUSTED;
  AOT_TRY(find_owners(s, snapshot, &owners));
  for (uint32_t b = 1; b <= s->n_backends; b++) AOT_TRY(ask(s, snapshot, b));
  AOT_TRY(withhold_all(s, snapshot));
  for (uint32_t b = 1; b <= s->n_backends; b++) refuse_owners(s, snapshot, &owners, b);
  return AOT_OK;
}
