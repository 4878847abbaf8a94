/* Inlines regions that only control differentiation: no_grad regions, whose nodes get the mark AOT_NODE_NO_GRAD, and
 * repeated regions that are not stored. */
#ifndef FZ_REGIONS_H
#define FZ_REGIONS_H

#include <aot/host.h>

typedef struct fz_regions {
  uint32_t n_inlined, n_kept; /* nodes that owned a body; repeated bodies that stay whole */
} fz_regions_t;

/* regions.c: in the graph and in every region that stays, until none of them is left to put in place; then erases the
 * graphs that no node reaches any more.
 *
 * With keep, a repeated body stays whole if it is a function: it writes nothing, and no result shares memory with an
 * operand or with another result. Others are put in place, as the program would not mean the same (PyTorch refuses
 * them). O(nodes made + nodes of all regions). */
aot_status_t fz_resolve_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, int keep,
                                fz_regions_t *out);

/* Writes inside the regions that are there become new values; one of an operand of the region is an error. Adds to
 * the counts. */
aot_status_t fz_rewrite_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *n_writes,
                                uint32_t *n_replays);

/* inline_region.c: the nodes of one graph; stays, by graph: a repeated body to leave alone (NULL: none). Adds to
 * *n_inlined. */
aot_status_t fz_inline_regions(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               const uint8_t *stays, uint32_t *n_inlined);

/* region_order.c: the graphs that nodes reach from `root`, each after those that it reaches itself. out: room for
 * n_graphs + 1; NULL without memory. O(nodes). */
uint32_t *fz_region_order(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t root, uint32_t *out_n);

/* region_memory.c: is the region a function of its operands, with results in memory of their own? plain: the answers
 * for the regions that it reaches. */
aot_status_t fz_region_is_plain(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t region,
                                const uint8_t *plain, uint8_t *out);

#endif
