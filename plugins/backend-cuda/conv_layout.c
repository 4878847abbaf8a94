#include "conv_layout.h"

int gc_is_channels_last(const lw_tensor_t *t) { return t->sizes[1] > 1 && t->strides[1] == 1; }

lw_tensor_t gc_laid_out(const lw_tensor_t *t, int channels_last) {
  lw_tensor_t out = *t;
  lw_make_contiguous(&out);
  if (!channels_last) return out;
  for (int32_t d = out.rank - 1; d >= 2; d--)
    out.strides[d] = d == out.rank - 1 ? out.sizes[1] : out.strides[d + 1] * out.sizes[d + 1];
  out.strides[1] = 1;
  return out;
}

/* The k-th dimension from the innermost one. */
static int32_t dimension_at(int32_t k, int32_t rank, int is_channels_last) {
  return !is_channels_last ? rank - 1 - k : k == 0 ? 1 : k == rank - 1 ? 0 : rank - k;
}

void gc_tidy_strides(const int64_t *sizes, int64_t *strides, int32_t rank, int is_channels_last) {
  int64_t n = 1;
  for (int32_t k = 0; k < rank; k++) {
    const int32_t d = dimension_at(k, rank, is_channels_last);
    if (sizes[d] == 1) strides[d] = n;
    n = strides[d] * sizes[d];
  }
}

/* Is dimension 0 outermost, and are channels where they are said to be? */
static int is_ordered(const int64_t *sizes, const int64_t *strides, int32_t rank, int is_channels_last) {
  int64_t least = 1;
  for (int32_t k = 0; k < rank; k++) {
    const int32_t d = dimension_at(k, rank, is_channels_last);
    if (sizes[d] == 1) continue;
    if (strides[d] < least) return 0;
    least = strides[d] * sizes[d];
  }
  return 1;
}

int gc_is_first_or_last(const int64_t *sizes, const int64_t *strides, int32_t rank) {
  return is_ordered(sizes, strides, rank, 0) || is_ordered(sizes, strides, rank, 1);
}
