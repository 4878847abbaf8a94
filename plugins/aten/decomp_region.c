/* Operators that stand around others. */
#include "rewrites.h"

/* with_effects(token, op, ..): op itself at the same place; the token is handed on. */
aot_status_t at_dc_with_effects(at_emit_t *e, aot_value_t *out) {
  const uint32_t n = e->info.n_results - 1;
  aot_node_spec_t s = {.struct_size = sizeof s, .flags = e->info.flags, .op = {(uint32_t)e->info.args[1].u.i},
                       .n_args = e->info.n_args - 2, .args = e->info.args + 2, .n_types = n, .region_tag = e->info.region_tag,
                       .origin = e->info.origin};
  aot_node_info_t made = {.struct_size = sizeof made};
  aot_node_t node;
  aot_type_t *types = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)n + 1) * sizeof *types);
  if (!types) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++) types[i] = at_result_type(e, i + 1);
  s.types = types;
  AOT_TRY(e->host->edit->node_create(e->prog, e->info.graph, &s, e->before, &node));
  AOT_TRY(e->host->graph->node_info(e->prog, node, &made));
  out[0].id = (uint32_t)e->info.args[0].u.i;
  for (uint32_t i = 0; i < n; i++) out[i + 1].id = made.first_result.id + i;
  return AOT_OK;
}
