/* Where the cells of a graph's parts are in the arenas of their lanes, under sizes. */
#ifndef AOTH_HETERO_LAYOUT_H
#define AOTH_HETERO_LAYOUT_H

#include <aot/backend.h>
#include <device/hetero/hetero.h>

#define AOTH_PARTS_ALIGNMENT 64u

typedef struct aoth_parts_layout {
  int64_t *exprs;
  uint64_t *at, *nbytes;        /* by cell; copies of leaves have no place */
  uint64_t end[AOTH_MAX_LANES]; /* of all cells of a lane */
} aoth_parts_layout_t;

/* O(cells + moves). AOT_OK, or reported and nothing to deinit. */
aot_status_t aoth_parts_layout_init(aoth_parts_layout_t *l, aot_ctx_t *ctx, aot_prog_t *prog,
                                    const aoth_part_graph_t *g, const aoth_multi_queue_t *lanes,
                                    const aot_graph_at_t *at);
void aoth_parts_layout_deinit(aoth_parts_layout_t *l);

/* The number after a dimension. */
int64_t aoth_parts_dim(const aoth_parts_layout_t *l, int64_t d);

#endif
