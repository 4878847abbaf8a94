/* One node replaced by what its opset makes of it: for backends that refuse an operator, and for formats that do not
 * know it. */
#include <compiler/decompose.h>
#include <sandbox/call.h>

#include <aot/inline.h>

typedef struct decomposition {
  aoth_session_t *s;
  aot_node_t node;
  aot_value_t *values; /* in place of its results */
  int has_none;
} decomposition_t;

static aot_status_t do_decompose(void *arg) {
  decomposition_t *d = arg;
  const uint32_t before = d->s->ctx.n_diags;
  const aot_status_t status = aoth_edit_decompose(d->s->now.prog, d->node, d->values);
  d->has_none = status == AOT_E_UNIMPLEMENTED && d->s->ctx.n_diags == before;
  return d->has_none ? AOT_OK : status;
}

/* The opset that knows the operator: it is the one to blame for what its decomposition does. */
static const aoth_unit_t *owner_of(aoth_session_t *s, aot_str_t op) {
  for (uint32_t i = 0; i < s->n_opsets; i++)
    for (uint64_t k = 0; k < s->opsets[i].table.opset.n_ops; k++)
      if (aot_str_eq(s->opsets[i].table.opset.ops[k]->name, op)) return s->opsets[i].unit;
  return NULL;
}

static int is_none(aot_prog_t *p, aot_value_t v) {
  aot_type_t t;
  return aoth_graph_value_type(p, v, &t) == AOT_OK && t.kind == AOT_TYPE_NONE;
}

static int same_encoding(aot_prog_t *p, aot_value_t a, aot_value_t b) {
  aot_type_t x, y;
  return aoth_graph_value_type(p, a, &x) == AOT_OK && aoth_graph_value_type(p, b, &y) == AOT_OK &&
         x.encoding.id == y.encoding.id && x.memory == y.memory;
}

aot_status_t aoth_decompose_node(aoth_session_t *s, const aoth_stage_t *stage, kit_arena_t *arena, aot_node_t node,
                                 int *out_done) {
  aot_prog_t *p = s->now.prog;
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(aoth_graph_node_info(p, node, &info));
  const uint32_t n = info.n_results, first = info.first_result.id;
  decomposition_t d = {.s = s, .node = node};
  d.values = kit_arena_alloc(arena, sizeof(uint32_t), (n + 1) * sizeof *d.values);
  if (!d.values) {
    aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, &stage->where, "lower.memory",
                     "no memory to decompose a node");
    s->outcome = AOTH_CALL_TOLD;
    return s->status = AOT_E_EXHAUSTED;
  }
  for (uint32_t i = 0; i < n; i++) d.values[i] = aot_no_value();
  const aot_op_desc_t *op = aoth_graph_op_desc(p, info.op);
  const aoth_unit_t *owner = op ? owner_of(s, op->name) : NULL;
  aoth_stage_t blamed = *stage;
  if (owner) {
    blamed.unit = owner;
    blamed.use = owner->id;
  }
  AOT_TRY(aoth_call(s, &blamed, "decompose", do_decompose, &d));
  *out_done = !d.has_none;
  if (!*out_done) return AOT_OK;
  for (uint32_t i = 0; i < n; i++) {
    const aot_value_t old = {first + i};
    if (aoth_graph_n_uses(p, old) == 0) continue;
    if (d.values[i].id == AOT_NO_ID && is_none(p, old)) {
      aoth_report_node(p, node, AOT_SEVERITY_ERROR, "decompose.none", NULL,
                       "result %u of %.*s is None here, and is used", i, (int)op->name.size, op->name.data);
      s->outcome = AOTH_CALL_TOLD;
      return s->status = AOT_E_UNIMPLEMENTED;
    }
    if (d.values[i].id == AOT_NO_ID)
      return aoth_contract_violation(s, &blamed, "decomposed %.*s but gave nothing for its result %u, which is used",
                                     (int)op->name.size, op->name.data, i);
    if (!same_encoding(p, old, d.values[i])) {
      aoth_report_node(p, node, AOT_SEVERITY_ERROR, "decompose.encoding", NULL,
                       "result %u of %.*s has an encoding that its decomposition does not make", i, (int)op->name.size,
                       op->name.data);
      s->outcome = AOTH_CALL_TOLD;
      return s->status = AOT_E_UNIMPLEMENTED;
    }
    AOT_TRY(aoth_edit_uses_replace(p, old, d.values[i]));
  }
  return aoth_edit_node_erase(p, node);
}

/* Nodes that a decomposition had added when it gave up. */
static aot_status_t erase_new(aot_prog_t *p, uint32_t n_before) {
  for (uint32_t k = aoth_graph_n_nodes(p); k-- > n_before;) AOT_TRY(aoth_edit_node_erase(p, (aot_node_t){k}));
  return AOT_OK;
}

aot_status_t aoth_try_decompose_node(aoth_session_t *s, const aoth_stage_t *stage, kit_arena_t *arena, aot_node_t node,
                                     int *out_done) {
  aoth_sink_t *const sink = s->config.sink, *quiet = aoth_sink_create(NULL);
  const uint32_t n_nodes = aoth_graph_n_nodes(s->now.prog), n_diags = s->ctx.n_diags;
  if (!quiet) return AOT_E_EXHAUSTED;
  s->config.sink = s->ctx.sink = quiet;
  aot_status_t status = aoth_decompose_node(s, stage, arena, node, out_done);
  s->config.sink = s->ctx.sink = sink;
  aoth_sink_destroy(quiet);
  if (status == AOT_E_UNIMPLEMENTED && s->outcome == AOTH_CALL_TOLD) {
    s->ctx.n_diags = n_diags;
    s->outcome = AOTH_CALL_OK;
    *out_done = 0;
    status = AOT_OK;
  }
  return status == AOT_OK && !*out_done ? erase_new(s->now.prog, n_nodes) : status;
}
