/* invoke_subgraph: its body in its place, for who cannot call one. */
#include "rewrites.h"
#include "kit/emit/inline_body.h"

aot_status_t at_dc_invoke_subgraph(em_t *e, aot_value_t *out) {
  enum { FIRST = 2 };
  const aot_graph_t body = {(uint32_t)e->info.args[0].u.i};
  em_x_t *outputs = em_scratch(e, e->host->graph->n_outputs(e->prog, body), sizeof *outputs);
  em_inliner_t in;
  em_inline_open(&in, e);
  if (e->status == AOT_OK) em_inline(&in, body, e->info.n_args - FIRST, e->info.args + FIRST, outputs);
  for (uint32_t i = 0; e->status == AOT_OK && i < e->info.n_results; i++) out[i] = em_value(e, outputs[i]);
  em_inline_close(&in);
  return e->status;
}
