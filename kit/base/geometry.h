/* The arithmetic of where a tensor's elements lie: sizes, strides and an offset, all in elements.
 *
 * Element (i0, i1, ..) is at offset + i0 * strides[0] + i1 * strides[1] + .. ; a rank of 0 is one element. Each
 * function is O(rank). Sizes are 0 or more. */
#ifndef PLUGINS_COMMON_GEOMETRY_H
#define PLUGINS_COMMON_GEOMETRY_H

#include <stdint.h>

int64_t tn_numel(int32_t rank, const int64_t *sizes); /* INT64_MAX: more than an integer can count */

/* Row-major strides, the last dimension next to itself; a dimension of 0 counts as one of 1, as in PyTorch.
 * 0: they are more than an integer can count. */
int tn_row_major(int32_t rank, const int64_t *sizes, int64_t *out_strides);

/* Are the elements in row-major order without gaps? Strides of dimensions of 1 do not matter; without elements: yes. */
int tn_is_row_major(int32_t rank, const int64_t *sizes, const int64_t *strides);

/* The first and last element in memory of a tensor that has some. 0: it has none, or one of them is more than an
 * integer can count; *out_first and *out_last are then undefined. */
int tn_reach(int32_t rank, const int64_t *sizes, const int64_t *strides, int64_t offset, int64_t *out_first,
             int64_t *out_last);

/* The next element in row-major order of tensors that are read together: `index` becomes its index, and each at[k] its
 * place by strides[k]. 0: there is none; `index` is that of the first again, and so are the places. There are
 * elements. */
static inline int tn_next(int32_t rank, const int64_t *sizes, int64_t *index, int32_t n, const int64_t *const *strides,
                          int64_t *at) {
  for (int32_t d = rank - 1; d >= 0; d--) {
    for (int32_t k = 0; k < n; k++) at[k] += strides[k][d];
    if (++index[d] < sizes[d]) return 1;
    for (int32_t k = 0; k < n; k++) at[k] -= strides[k][d] * index[d];
    index[d] = 0;
  }
  return 0;
}

#endif
