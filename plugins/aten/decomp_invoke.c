/* invoke_subgraph: its body in its place, for who cannot call one. */
#include "region_body.h"
#include "rewrites.h"

aot_status_t at_dc_invoke_subgraph(at_emit_t *e, aot_value_t *out) {
  enum { FIRST = 2 };
  at_body_t b;
  at_body_open(&b, e, (aot_graph_t){(uint32_t)e->info.args[0].u.i});
  at_x *outputs = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, ((uint64_t)b.n_outputs + 1) * sizeof *outputs);
  if (!outputs) e->status = AOT_E_EXHAUSTED;
  else at_body_copy(&b, e->info.args + FIRST, e->info.n_args - FIRST, outputs);
  for (uint32_t i = 0; e->status == AOT_OK && i < e->info.n_results; i++) out[i] = at_value(e, outputs[i]);
  at_body_close(&b);
  return e->status;
}
