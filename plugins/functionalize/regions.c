/* Resolves regions until none is left to inline, erases unreachable graphs, rewrites writes in the remaining ones. */
#include "regions.h"

#include "rewrite.h"
#include <aot/inline.h>

/* Which repeated bodies may stay whole; order: as fz_region_order has it. */
static aot_status_t find_plain(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const uint32_t *order,
                               uint32_t n, uint8_t *plain) {
  for (uint32_t i = 0; i + 1 < n; i++) { /* the last one is the graph itself */
    aot_status_t status = fz_region_is_plain(host, ctx, prog, (aot_graph_t){order[i]}, plain, &plain[order[i]]);
    if (status != AOT_OK)
      return status == AOT_E_EXHAUSTED ? fz_no_memory(host, ctx, aot_no_node(), "to look at regions") : status;
  }
  return AOT_OK;
}

/* What was reached before and is no more: a holder follows what it holds, and is erased first. */
static aot_status_t erase_unreached(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const uint32_t *before,
                                    uint32_t n, const uint32_t *now, uint32_t n_now) {
  uint8_t *reached = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)host->graph->n_graphs(prog) + 1);
  if (!reached) return fz_no_memory(host, ctx, aot_no_node(), "to look at regions");
  for (uint32_t i = 0; i < n_now; i++) reached[now[i]] = 1;
  for (uint32_t i = n; i-- > 0;)
    if (!reached[before[i]]) AOT_TRY(host->edit->graph_erase(prog, (aot_graph_t){before[i]}));
  return AOT_OK;
}

aot_status_t fz_resolve_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, int keep,
                                fz_regions_t *out) {
  uint32_t n, n_now, *order = fz_region_order(host, ctx, prog, graph, &n), *now;
  uint8_t *plain = host->alloc(host, ctx, AOT_ARENA_SCRATCH, 1, (uint64_t)host->graph->n_graphs(prog) + 1);
  *out = (fz_regions_t){0, 0};
  if (!order || !plain) return fz_no_memory(host, ctx, aot_no_node(), "to look at regions");
  if (keep) AOT_TRY(find_plain(host, ctx, prog, order, n, plain));
  for (uint32_t i = n; i-- > 0;)
    AOT_TRY(fz_inline_regions(host, ctx, prog, (aot_graph_t){order[i]}, plain, &out->n_inlined));
  now = fz_region_order(host, ctx, prog, graph, &n_now);
  if (!now) return fz_no_memory(host, ctx, aot_no_node(), "to look at regions");
  AOT_TRY(erase_unreached(host, ctx, prog, order, n, now, n_now));
  for (uint32_t i = 0; i + 1 < n_now; i++) out->n_kept += plain[now[i]];
  return AOT_OK;
}

static aot_status_t rewrite_region(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t region,
                                   uint32_t *n_writes, uint32_t *n_replays) {
  fz_rewrite_t w;
  AOT_TRY(fz_rewrite_init(&w, host, ctx, prog, region));
  w.is_region = 1;
  aot_status_t status = fz_rewrite_graph(&w);
  if (status == AOT_OK) status = fz_erase_dead(&w);
  *n_writes += w.n_writes;
  *n_replays += w.n_replays;
  fz_rewrite_deinit(&w);
  return status;
}

aot_status_t fz_rewrite_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *n_writes,
                                uint32_t *n_replays) {
  for (uint32_t g = 1; g < host->graph->n_graphs(prog); g++) {
    int32_t kind;
    aot_str_t name;
    if (host->graph->graph_info(prog, (aot_graph_t){g}, &kind, &name) != AOT_OK || kind != AOT_GRAPH_REGION) continue;
    AOT_TRY(rewrite_region(host, ctx, prog, (aot_graph_t){g}, n_writes, n_replays));
  }
  return AOT_OK;
}
