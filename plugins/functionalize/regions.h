/* Regions. Those that only say how their body is to be differentiated are put in place of their node: no_grad regions (their
 * nodes get the AOT_NODE_NO_GRAD mark) and repeated bodies. Those that stay (branches of cond) are rewritten as graphs of their
 * own. O(nodes made). */
#ifndef FZ_REGIONS_H
#define FZ_REGIONS_H

#include <aot/host.h>

/* Until no such node is left in the graph and in the regions that it reaches; *out_n_inlined counts them. Regions that no node
 * reaches any more are erased. */
aot_status_t fz_inline_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               uint32_t *out_n_inlined);

/* Writes inside the regions that are there become new values; one of an operand of the region is an error. Adds to the counts. */
aot_status_t fz_rewrite_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *n_writes, uint32_t *n_replays);

#endif
