/* Regions that draw: each call hands them the seed and an offset of its own, so that no two calls draw the same numbers
 * and a call that runs again (a branch's gradient, a repeated body recomputed) draws what it drew. */
#ifndef RG_RANDOM_REGIONS_H
#define RG_RANDOM_REGIONS_H

#include "draw_state.h"

/* What is known of a graph once its nodes are rewritten. */
typedef struct rg_graph {
  rg_stream_t stream; /* next: draws of the graph, those of the regions that it calls included */
  int64_t shift;      /* its draws begin there, after those of the other branch */
  uint8_t draws, is_called;
} rg_graph_t;

/* Every live graph, each after those that its nodes name. Scratch; NULL without memory. O(nodes). */
uint32_t *rg_call_order(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t *out_n);

/* 1: e->node names a region that draws. */
int rg_calls_random(const em_t *e, const rg_graph_t *graphs);

/* Puts a call that also hands over seed and offset in place of e->node, and counts its draws in rg_of(e)->stream.
 * Branches of one call get draws that are not each other's. Diagnoses. */
aot_status_t rg_extend_call(em_t *e, rg_graph_t *graphs);

#endif
