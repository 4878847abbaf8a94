/* Where to cut a forward pass into segments that are run again one at a time.
 *
 * When nothing inside a stretch of layers is saved, running the last one again runs all of them, and all they make
 * lives at once. With what crosses K - 1 boundaries saved, only one of K segments lives at a time (T. Chen et al.,
 * "Training deep nets with sublinear memory cost", 2016). A boundary is a position of the forward's order; it stands
 * where the fewest bytes cross, near the point that divides the bytes made evenly: in a chain of layers, between two
 * of them. */
#ifndef MC_SEGMENTS_H
#define MC_SEGMENTS_H

#include "plan_memory.h"

typedef struct mc_segments {
  uint32_t n_early;   /* positions: nodes that forward outputs need, in order */
  uint32_t *position; /* by value made by such a node: where; JG_NONE: others. owned */
  uint32_t *last_use; /* by value: last position that reads it or a view of it. owned */
  uint64_t *made;     /* by position + 1: bytes made up to it. owned */
  uint64_t *crossing; /* by position: bytes made up to it and read after it. owned */
} mc_segments_t;

/* 0 or -2. O(nodes + operands). Deinit in any case. */
int mc_segments_init(mc_segments_t *s, const mc_model_t *m);
void mc_segments_deinit(mc_segments_t *s);

/* Boundaries of k segments, ascending; fewer where the graph has not as many places. Returns how many; out: room for
 * k. */
uint32_t mc_segments_place(const mc_segments_t *s, uint32_t k, uint32_t *out);

/* is_boundary[v] = 1 for values that cross one of the n boundaries, at positions [from, to). Ascending boundaries.
 * O(values). */
void mc_segments_mark(const mc_segments_t *s, const mc_model_t *m, const uint32_t *boundaries, uint32_t n,
                      uint32_t from, uint32_t to, uint8_t *is_boundary);

#endif
