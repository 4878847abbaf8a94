/* Derivatives provided by opsets (aot/ext/derivative.h) for operators that rules.def does not have. Their nodes get the
 * form of other backward nodes: marked, counted, gradients of the operands' types. */
#include "outside.h"

void ag_bind_outside(em_t *a, ag_bound_t *out) {
  const aot_ext_derivative_lookup_t *lookup = aot_ext(&a->host->head, AOT_EXT_DERIVATIVE_LOOKUP);
  const aot_derivative_t *const *all = NULL;
  uint64_t n = 0;
  if (!lookup || a->status != AOT_OK) return;
  a->status = lookup->all(lookup, a->ctx, &all, &n);
  for (uint64_t i = 0; i < n && a->status == AOT_OK; i++) {
    const aot_op_t op = a->host->graph->op_find(a->prog, all[i]->op);
    if (op.id == AOT_NO_ID || ag_has_rule(&out[op.id])) continue;
    out[op.id].outside = all[i];
    out[op.id].covered = all[i]->covers;
  }
}

/* The nodes after `last` are part of the backward. */
static void mark_made(em_t *a, aot_node_t last) {
  const aot_graph_api_t *api = a->host->graph;
  aot_node_t n = last.id == AOT_NO_ID ? api->first(a->prog, a->graph) : api->next(a->prog, last);
  for (; n.id != AOT_NO_ID && a->status == AOT_OK; n = api->next(a->prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    a->status = api->node_info(a->prog, n, &info);
    if (a->status == AOT_OK) a->status = a->host->edit->flags_set(a->prog, n, info.flags | AOT_NODE_BACKWARD);
    ag_of(a)->n_made++;
  }
}

void ag_apply_outside(em_t *a, const aot_derivative_t *derivative) {
  const aot_node_t last = a->host->graph->last(a->prog, a->graph);
  const uint32_t n_operands = ag_of(a)->slot[a->info.n_args], n_results = a->info.n_results;
  aot_value_t *cotangents =
      a->host->alloc(a->host, a->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)n_results + 1) * sizeof *cotangents);
  aot_value_t *given =
      a->host->alloc(a->host, a->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)n_operands + 1) * sizeof *given);
  uint8_t *wanted = a->host->alloc(a->host, a->ctx, AOT_ARENA_SCRATCH, 8, (uint64_t)n_operands + 1);
  if (!cotangents || !given || !wanted) {
    a->status = AOT_E_EXHAUSTED;
    return;
  }
  for (uint32_t k = 0; k < n_results; k++) cotangents[k].id = ag_of(a)->cotangents[k];
  for (uint32_t i = 0; i < a->info.n_args; i++)
    for (uint32_t k = ag_of(a)->slot[i]; k < ag_of(a)->slot[i + 1]; k++) {
      given[k] = aot_no_value();
      wanted[k] = (uint8_t)ag_needs_at(a, i, k - ag_of(a)->slot[i]);
    }
  const aot_derivative_call_t call = {
      .struct_size = sizeof call,
      .prog = a->prog,
      .graph = a->graph,
      .node = a->node,
      .cotangents = cotangents,
      .wanted = wanted,
      .out = given,
      .n_results = n_results,
      .n_operands = n_operands,
  };
  a->status = derivative->put(derivative, a->ctx, &call);
  mark_made(a, last);
  for (uint32_t i = 0; i < a->info.n_args; i++)
    for (uint32_t k = ag_of(a)->slot[i]; k < ag_of(a)->slot[i + 1]; k++)
      ag_set_at(a, i, k - ag_of(a)->slot[i], ag_v(given[k].id));
}
