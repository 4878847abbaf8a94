/* Regions that only say how their body is to be differentiated are put in place of their node: no_grad regions (their nodes get
 * the AOT_NODE_NO_GRAD mark) and repeated bodies. What is left of regions may not write: see plugin.c. O(nodes made). */
#ifndef FZ_REGIONS_H
#define FZ_REGIONS_H

#include <aot/host.h>

/* Until no such node is left in the graph; *out_n_inlined counts them. */
aot_status_t fz_inline_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               uint32_t *out_n_inlined);

/* Erases regions that no node reaches any more; an error for every node of the others that writes an argument. */
aot_status_t fz_check_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph);

#endif
