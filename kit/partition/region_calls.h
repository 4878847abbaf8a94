/* The calls of repeated regions in a joint graph, in pairs: the forward call NAME:fwK of a region, and the backward
 * call NAME:bwK of its joint graph, with the forward call's operands and then cotangents. A call is a node of a region
 * operator whose first argument is the body, whose second is the name, and whose others are operands. */
#ifndef PT_REGION_CALLS_H
#define PT_REGION_CALLS_H

#include <aot/host.h>

typedef struct pt_region_pair {
  aot_node_t forward, backward; /* both there, or AOT_NO_ID in both */
  uint32_t body, joint;         /* graph ids */
  uint32_t n_operands;          /* of the forward call */
} pt_region_pair_t;

typedef struct pt_region_pairs {
  pt_region_pair_t *at; /* by K */
  uint32_t n;
} pt_region_pairs_t;

/* Pairs of the graph, of regions whose name is among `only`: names with commas between, empty: all. A name of no region
 * is an error, as are two calls of one number. A call without its other half is left out: it computes everything
 * itself. O(nodes x names in only). */
aot_status_t pt_region_pairs_init(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                                  aot_str_t only, pt_region_pairs_t *out);
void pt_region_pairs_deinit(pt_region_pairs_t *p);

#endif
