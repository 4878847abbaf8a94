/* cond: the gradient is a cond over the gradients of its branches. */
#include "joint.h"

/* cond(pred, true, false, operands) -> cond(pred, true', false', operands + cotangents), whose results are the gradients of
 * the operands that want one. */
void ag_rule_cond(ag_t *a) {
  ag_val_t operands = ag_arg(a, "operands"), out[64];
  uint32_t at = ag_at(a, "operands"), n = operands.n, i, n_given = 0, n_wanted = 0;
  uint8_t *needs = ag_scratch(a, n, 1), *given = ag_scratch(a, a->info.n_results, 1);
  uint32_t *ids = ag_scratch(a, (uint64_t)n + a->info.n_results, sizeof *ids);
  ag_val_t args[4];
  if (!needs || !given || !ids) return;
  for (i = 0; i < n; i++) {
    ids[i] = operands.u.ids[i];
    n_wanted += needs[i] = (uint8_t)ag_needs_at(a, at, i);
  }
  for (i = 0; i < a->info.n_results; i++) {
    ag_val_t g = ag_g(a, i);
    given[i] = g.kind != AOT_ARG_NONE;
    if (given[i]) ids[n + n_given++] = (uint32_t)g.u.i;
  }
  if (n_wanted > sizeof out / sizeof *out) {
    ag_fail(a, "", "cond with %u operands that need a gradient: at most %u are supported", n_wanted,
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
