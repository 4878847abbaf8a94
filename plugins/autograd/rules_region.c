/* cond: the gradient is a cond over the gradients of its branches. invoke_subgraph: a call of its joint graph. */
#include "joint.h"

#include <stdio.h>

/* cond(pred, true, false, operands) -> cond(pred, true', false', operands + cotangents), whose results are the
 * gradients of the operands that want one. */
void ag_rule_cond(em_t *a) {
  em_x_t operands = ag_arg(a, "operands"), out[64];
  uint32_t at = ag_at(a, "operands"), n = operands.n, i, n_given = 0, n_wanted = 0;
  uint8_t *needs = em_scratch(a, n, 1), *given = em_scratch(a, a->info.n_results, 1);
  uint32_t *ids = em_scratch(a, (uint64_t)n + a->info.n_results, sizeof *ids);
  em_x_t args[4];
  if (!needs || !given || !ids) return;
  for (i = 0; i < n; i++) {
    ids[i] = operands.u.ids[i];
    n_wanted += needs[i] = (uint8_t)ag_needs_at(a, at, i);
  }
  for (i = 0; i < a->info.n_results; i++) {
    em_x_t g = ag_g(a, i);
    given[i] = g.kind != AOT_ARG_NONE;
    if (given[i]) ids[n + n_given++] = (uint32_t)g.u.i;
  }
  if (n_wanted > sizeof out / sizeof *out) {
    em_fail(a, AOT_E_INVALID, "", "cond with %u operands that need a gradient: at most %u are supported", n_wanted,
            (uint32_t)(sizeof out / sizeof *out));
    return;
  }
  args[0] = ag_arg(a, "pred");
  for (i = 1; i < 3 && a->status == AOT_OK; i++) {
    aot_graph_t branch, made;
    branch.id = (uint32_t)a->info.args[i].u.i;
    a->status = ag_region_vjp(a, branch, needs, given, &made);
    args[i] = aot_arg_int_kind(AOT_ARG_GRAPH, made.id);
  }
  if (a->status != AOT_OK) return;
  args[3] = aot_arg_values(ids, n + n_given);
  ag_call_n(a, "higher_order.cond", 4, args, n_wanted, out);
  for (i = 0, n_wanted = 0; i < n; i++)
    if (needs[i]) ag_set_at(a, at, i, out[n_wanted++]);
}

/* The forward call K of region NAME is named NAME:fwK, its backward call NAME:bwK: a partition finds pairs by that. */
static aot_status_t name_pair(em_t *a, char *out_backward, size_t size) {
  char forward[160], name[128] = "";
  const aot_arg_t *given = &a->info.args[1];
  if (given->kind == AOT_ARG_STR)
    snprintf(name, sizeof name, "%.*s", (int)(given->n < 100 ? given->n : 100), given->u.chars);
  snprintf(forward, sizeof forward, "%s:fw%u", name, ag_of(a)->shared->n_calls);
  snprintf(out_backward, size, "%s:bw%u", name, ag_of(a)->shared->n_calls++);
  aot_arg_t renamed = aot_arg_str(aot_str(forward));
  return a->host->edit->arg_set(a->prog, a->node, 1, &renamed);
}

/* invoke_subgraph(body, name, operands..) -> invoke_subgraph(joint, name', operands.., cotangents..), whose results are
 * the gradients of the operands that want one, then the body's own results, which nothing reads. */
void ag_rule_invoke_subgraph(em_t *a) {
  enum { FIRST = 2 };
  uint32_t n = a->info.n_args - FIRST, n_results = a->info.n_results, i, n_args = FIRST, n_wanted = 0;
  uint8_t *needs = em_scratch(a, n, 1), *given = em_scratch(a, n_results, 1);
  em_x_t *args = em_scratch(a, (uint64_t)FIRST + n + n_results, sizeof *args);
  em_x_t *out = em_scratch(a, n, sizeof *out);
  aot_graph_t body, joint;
  char backward[160];
  if (!needs || !given || !args || !out) return;
  body.id = (uint32_t)a->info.args[0].u.i;
  for (i = 0; i < n; i++) {
    args[n_args++] = a->info.args[FIRST + i];
    n_wanted += needs[i] = (uint8_t)(args[FIRST + i].kind == AOT_ARG_VALUE && ag_needs_at(a, FIRST + i, 0));
  }
  for (i = 0; i < n_results; i++) {
    em_x_t g = ag_g(a, i);
    given[i] = g.kind != AOT_ARG_NONE;
    if (given[i]) args[n_args++] = ag_contiguous(a, g);
  }
  if (a->status == AOT_OK) a->status = ag_region_joint(a, body, needs, given, &joint);
  if (a->status == AOT_OK) a->status = name_pair(a, backward, sizeof backward);
  if (a->status != AOT_OK) return;
  args[0] = aot_arg_int_kind(AOT_ARG_GRAPH, joint.id);
  args[1] = aot_arg_str(aot_str(backward));
  ag_call_n(a, "higher_order.invoke_subgraph", n_args, args, n_wanted, out);
  for (i = 0, n_wanted = 0; i < n; i++)
    if (needs[i]) ag_set_at(a, FIRST + i, 0, out[n_wanted++]);
}
