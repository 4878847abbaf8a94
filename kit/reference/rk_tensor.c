/* A tensor of a call: how many elements it has, where they lie, and whether all are in its storage. */
#include "rk_core.h"
#include "kit/base/geometry.h"
#include <aot/inline.h>
#include <string.h>

int64_t rk_numel(const rk_tensor_t *t) { return tn_numel(t->rank, t->sizes); }

void rk_lay_dense(rk_tensor_t *t) {
  tn_row_major(t->rank, t->sizes, t->strides);
  t->offset = 0;
}

int rk_tensor_fits(const rk_tensor_t *t) {
  const int64_t width = (int64_t)aot_dtype_size(t->dtype);
  int64_t first, last;
  if (width == 0 || t->rank < 0 || t->rank > AOT_MAX_RANK) return 0;
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] < 0) return 0;
  if (tn_numel(t->rank, t->sizes) == 0) return 1;
  return tn_reach(t->rank, t->sizes, t->strides, t->offset, &first, &last) && first >= 0 &&
         (uint64_t)last < t->nbytes / (uint64_t)width;
}

int rk_same_shape(const rk_tensor_t *a, const rk_tensor_t *b) {
  return a->rank == b->rank && (a->rank == 0 || memcmp(a->sizes, b->sizes, (size_t)a->rank * sizeof a->sizes[0]) == 0);
}
