/* Questions about a node that only the opset which owns its operator can answer. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/ops_store.h>
#include <ir/program_store.h>
#include <stdlib.h>

#define FEW 32

static const aoth_opset_ref_t *owner_of(const aot_prog_t *p, uint32_t op, uint32_t *out_local) {
  return aoth_ops_owner(p->ops, op, out_local);
}

aot_status_t aoth_infer_complete(aot_prog_t *p, aot_op_t op, const aot_arg_t *args, uint32_t n_args,
                                 const aot_type_sink_t *sink) {
  uint32_t local;
  const aoth_opset_ref_t *o = owner_of(p, op.id, &local);
  if (o->table.infer) return o->table.infer(o->self, p->ctx, p, local, args, n_args, sink);
  return AOT_E_UNIMPLEMENTED;
}

/* While an opset works on a node, diagnostics that name none are about it. */
static uint32_t begin_about(aot_prog_t *p, uint32_t node) {
  const uint32_t outer = p->asked_about;
  p->asked_about = node;
  return outer;
}

static void end_about(aot_prog_t *p, uint32_t node, uint32_t outer) {
  AOT_ASSERT(p->asked_about == node); /* inner calls have ended */
  p->asked_about = outer;
}

aot_status_t aoth_edit_infer(aot_prog_t *p, aot_op_t op, const aot_arg_t *args, uint32_t n_args,
                             const aot_type_sink_t *sink) {
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, op);
  aot_arg_t few[FEW], *full = few;
  if (!d) return aoth_no_op(p, op);
  uint32_t n = aoth_args_full_count(d, n_args);
  if (n > FEW && !(full = malloc(n * sizeof *full))) return aoth_no_memory(p, "arguments", n * sizeof *full);
  aoth_node_row_t making = {.op = op.id, .args = full};
  const aoth_node_row_t *outer = p->making;
  p->making = &making;
  aot_status_t status = aoth_args_complete(p, d, args, n_args, full);
  if (status == AOT_OK) making.n_args = n;
  if (status == AOT_OK) status = aoth_infer_complete(p, op, full, n, sink);
  AOT_ASSERT(p->making == &making);
  p->making = outer;
  if (full != few) free(full);
  return status;
}

/* What an opset answered must exist in the node's graph (or be absent). */
static aot_status_t check_answer(aot_prog_t *p, uint32_t node, const char *what, const aot_value_t *values,
                                 uint32_t n) {
  const aoth_node_row_t *r = &p->nodes.at[node];
  for (uint32_t i = 0; i < n; i++) {
    if (values[i].id == NONE) continue;
    if (value_is_alive(p, values[i].id) && p->values.at[values[i].id].graph == r->graph) continue;
    return aoth_diagnose(p, AOT_E_INTERNAL, "ir.bad-answer",
                         "%s of %.*s (node %u) answered value %u, which is not in its graph", what,
                         STR_ARGS(op_name(p, r->op)), node, values[i].id);
  }
  return AOT_OK;
}

#define CHECKPOINT_TAGS                                                                                                \
  (AOT_NODE_MUST_SAVE | AOT_NODE_PREFER_SAVE | AOT_NODE_MUST_RECOMPUTE | AOT_NODE_PREFER_RECOMPUTE)

/* What an opset put in a node's place is in its checkpoint region: nodes from `first` on, made by this call. Their
 * making is in the journal, which undoes all of them. */
static void pass_tags_on(aot_prog_t *p, uint32_t node, uint32_t first) {
  const aoth_node_row_t *r = &p->nodes.at[node];
  if (!r->region_tag && !(r->flags & CHECKPOINT_TAGS)) return;
  for (uint32_t i = first; i < p->nodes.n; i++) {
    aoth_node_row_t *made = &p->nodes.at[i];
    if (made->graph != r->graph || !made->alive) continue;
    if (!made->region_tag) made->region_tag = r->region_tag;
    if (!(made->flags & CHECKPOINT_TAGS)) made->flags |= r->flags & CHECKPOINT_TAGS;
  }
}

aot_status_t aoth_edit_decompose(aot_prog_t *p, aot_node_t n, aot_value_t *out_values) {
  uint32_t local;
  AOT_TRY(aoth_need_node(p, n));
  const aoth_opset_ref_t *o = owner_of(p, p->nodes.at[n.id].op, &local);
  if (!o->table.decompose) return AOT_E_UNIMPLEMENTED;
  const uint32_t first = p->nodes.n, outer = begin_about(p, n.id);
  const aot_status_t status = o->table.decompose(o->self, p->ctx, p, local, n, out_values);
  end_about(p, n.id, outer);
  AOT_TRY(status);
  pass_tags_on(p, n.id, first);
  return check_answer(p, n.id, "decompose", out_values, p->nodes.at[n.id].n_results);
}

/* Operands that the node writes, with effective write_if. */
static uint32_t n_written(const aot_prog_t *p, uint32_t node) {
  const aoth_node_row_t *r = &p->nodes.at[node];
  aot_op_t op = {r->op};
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, op);
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n_args; i++)
    if (aoth_arg_is_written(d, r->args, r->n_args, i)) n += aoth_arg_n_operands(&r->args[i]);
  return n;
}

static aot_status_t unfilled(aot_prog_t *p, uint32_t node, const aoth_opset_ref_t *o, const char *what,
                             uint32_t place) {
  return aoth_diagnose(p, AOT_E_INTERNAL, "ir.bad-answer",
                       "functional_form of %.*s (node %u) left %s[%u] unfilled; opset %s is at fault",
                       STR_ARGS(op_name(p, p->nodes.at[node].op)), node, what, place, o->name);
}

aot_status_t aoth_edit_functional_form(aot_prog_t *p, aot_node_t n, aot_value_t *out_results,
                                       aot_value_t *out_written) {
  uint32_t local;
  AOT_TRY(aoth_need_node(p, n));
  const aoth_opset_ref_t *o = owner_of(p, p->nodes.at[n.id].op, &local);
  if (!o->table.functional_form) return AOT_E_NOT_FOUND;
  const uint32_t n_told = p->ctx->n_diags, first = p->nodes.n, n_out = n_written(p, n.id);
  const uint32_t n_results = p->nodes.at[n.id].n_results;
  if (n_results) memset(out_results, 0, n_results * sizeof *out_results);
  if (n_out) memset(out_written, 0, n_out * sizeof *out_written);
  const uint32_t outer = begin_about(p, n.id);
  const aot_status_t status = o->table.functional_form(o->self, p->ctx, p, local, n, out_results, out_written);
  end_about(p, n.id, outer);
  /* else: there is one, not for this node */
  if (status == AOT_E_UNIMPLEMENTED && p->ctx->n_diags == n_told) return AOT_E_NOT_FOUND;
  AOT_TRY(status);
  pass_tags_on(p, n.id, first);
  AOT_TRY(check_answer(p, n.id, "functional_form", out_results, n_results));
  AOT_TRY(check_answer(p, n.id, "functional_form", out_written, n_out));
  for (uint32_t i = 0; i < n_out; i++)
    if (out_written[i].id == NONE) return unfilled(p, n.id, o, "out_written", i);
  for (uint32_t i = 0; i < n_results; i++)
    if (out_results[i].id == NONE && p->values.at[p->nodes.at[n.id].first_result + i].n_uses)
      return unfilled(p, n.id, o, "out_results", i);
  return AOT_OK;
}

aot_status_t aoth_edit_view_inverse(aot_prog_t *p, aot_node_t view, uint32_t index, aot_value_t base,
                                    aot_value_t updated, aot_node_t before, aot_value_t *out_base) {
  uint32_t local;
  AOT_TRY(aoth_need_node(p, view));
  AOT_TRY(aoth_need_value(p, base));
  AOT_TRY(aoth_need_value(p, updated));
  if (before.id != NONE) AOT_TRY(aoth_need_node(p, before));
  if (index >= p->nodes.at[view.id].n_results)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "node %u has %u results, there is no result %u", view.id,
                         p->nodes.at[view.id].n_results, index);
  touch(p, view.id);
  const aoth_opset_ref_t *o = owner_of(p, p->nodes.at[view.id].op, &local);
  if (!o->table.view_inverse) return AOT_E_UNIMPLEMENTED;
  const uint32_t outer = begin_about(p, view.id);
  const aot_status_t status =
      o->table.view_inverse(o->self, p->ctx, p, local, view, index, base, updated, before, out_base);
  end_about(p, view.id, outer);
  AOT_TRY(status);
  return check_answer(p, view.id, "view_inverse", out_base, 1);
}

/* Fills in what the marks say, and lets the opset change it. */
static aot_status_t ask_aliases(aot_prog_t *p, aot_op_t op, const aot_op_desc_t *d, const aot_call_t *call,
                                uint32_t *out) {
  uint32_t local;
  const aoth_opset_ref_t *o = owner_of(p, op.id, &local);
  for (uint32_t i = 0; i < call->n_results; i++)
    out[i] = aot_marked_operand(d, call->args, call->n_args, call->n_results, i);
  if (!o->table.aliases) return AOT_OK;
  AOT_TRY(o->table.aliases(o->self, p->ctx, p, local, call, out));
  for (uint32_t i = 0; i < call->n_results; i++)
    if (out[i] > call->n_operands)
      return aoth_diagnose(p, AOT_E_INTERNAL, "ir.bad-answer", "aliases of %.*s answered operand %u of %u",
                           STR_ARGS(d->name), out[i], call->n_operands);
  return AOT_OK;
}

aot_status_t aoth_edit_aliases(aot_prog_t *p, aot_op_t op, const aot_call_t *call, uint32_t *out_operands) {
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, op);
  aot_arg_t few[FEW], *full = few;
  aot_call_t whole;
  if (!d) return aoth_no_op(p, op);
  AOT_TRY(aot_import(&whole, sizeof whole, call));
  const uint32_t n = aoth_args_full_count(d, whole.n_args);
  if (n > FEW && !(full = malloc(n * sizeof *full))) return aoth_no_memory(p, "arguments", n * sizeof *full);
  aot_status_t status = aoth_args_complete(p, d, whole.args, whole.n_args, full);
  whole.args = full;
  whole.n_args = n;
  if (status == AOT_OK) status = ask_aliases(p, op, d, &whole, out_operands);
  if (full != few) free(full);
  return status;
}
