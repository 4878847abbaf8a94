#include "geometry.h"

int64_t tn_numel(int32_t rank, const int64_t *sizes) {
  int64_t n = 1, is_too_many = 0;
  for (int32_t d = 0; d < rank; d++) {
    if (sizes[d] == 0) return 0;
    is_too_many |= __builtin_mul_overflow(n, sizes[d], &n);
  }
  return is_too_many ? INT64_MAX : n;
}

int tn_row_major(int32_t rank, const int64_t *sizes, int64_t *out_strides) {
  int64_t stride = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    out_strides[d] = stride;
    if (__builtin_mul_overflow(stride, sizes[d] ? sizes[d] : 1, &stride)) return 0;
  }
  return 1;
}

int tn_is_row_major(int32_t rank, const int64_t *sizes, const int64_t *strides) {
  int64_t stride = 1;
  for (int32_t d = rank - 1; d >= 0; d--) {
    if (sizes[d] != 1 && strides[d] != stride) return tn_numel(rank, sizes) == 0;
    if (__builtin_mul_overflow(stride, sizes[d], &stride)) return tn_numel(rank, sizes) == 0;
  }
  return 1;
}

int tn_reach(int32_t rank, const int64_t *sizes, const int64_t *strides, int64_t offset, int64_t *out_first,
             int64_t *out_last) {
  *out_first = *out_last = offset;
  for (int32_t d = 0; d < rank; d++)
    if (sizes[d] == 0) return 0;
  for (int32_t d = 0; d < rank; d++) {
    int64_t way;
    if (__builtin_mul_overflow(sizes[d] - 1, strides[d], &way)) return 0;
    if (__builtin_add_overflow(way < 0 ? *out_first : *out_last, way, way < 0 ? out_first : out_last)) return 0;
  }
  return 1;
}
