/* Operators that stand around others. */
#include "rewrites.h"

/* with_effects(token, op, ..): op itself at the same place; the token is handed on. */
aot_status_t at_dc_with_effects(em_t *e, aot_value_t *out) {
  const uint32_t n = e->info.n_results - 1;
  const aot_op_t op = {(uint32_t)e->info.args[1].u.i};
  aot_node_info_t made;
  aot_type_t *types = em_scratch(e, n, sizeof *types);
  if (!types) return e->status;
  em_types(e, (aot_value_t){e->info.first_result.id + 1}, n, types);
  em_put(e, op, e->info.n_args - 2, e->info.args + 2, n, types, &made);
  AOT_TRY(e->status);
  out[0].id = (uint32_t)e->info.args[0].u.i;
  for (uint32_t i = 0; i < n; i++) out[i + 1].id = made.first_result.id + i;
  return AOT_OK;
}
