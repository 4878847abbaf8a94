/* Elements written, or added, where index tensors say: scatter, index_put, index_add and their kin, as one loop over a
 * space of dimensions. In it an element comes from `from` by strides, and goes to the place in `to` that strides and
 * indices report:
 *
 *     to[sum_d i_d to_strides[d] + sum_k index_k[i] step_k] (+)= from[sum_d i_d from_strides[d]]
 *
 * Elements are used in order along all dimensions that an index varies along, so sums repeat, and the last of several
 * that are written stays. The other dimensions are slices: their elements go to places of their own, and so the
 * innermost of them divides among threads. */
#ifndef BC_SCATTER_KERNELS_H
#define BC_SCATTER_KERNELS_H

#include <aot/base.h>
#include <stdint.h>

#define BC_SCATTER_INDICES 4

typedef struct bc_scatter_index {
  const void *data; /* set when run */
  int32_t dtype;    /* AOT_I64, AOT_I32 */
  int64_t strides[AOT_MAX_RANK], size, step;
} bc_scatter_index_t;

typedef struct bc_scatter {
  int32_t dtype, adds;   /* adds: f32, f64, i64, i32; halves, rounded after each sum */
  int32_t wraps;         /* an index below 0 counts from the end */
  int64_t skipped;       /* this index, counted from 1, reports no place: nothing is written; 0: none */
  int32_t rank, n_outer; /* dimensions; those that an index varies along, which come first */
  int32_t n_indices;
  int64_t sizes[AOT_MAX_RANK], to_strides[AOT_MAX_RANK], from_strides[AOT_MAX_RANK];
  bc_scatter_index_t index[BC_SCATTER_INDICES];
} bc_scatter_t;

/* Brings dimensions into their order, slices that follow each other through memory together; sets n_outer. */
void bc_scatter_arrange(bc_scatter_t *s);
int64_t bc_scatter_slice(const bc_scatter_t *s); /* elements of the innermost slice; 1: there are none */

typedef struct bc_bad_index {
  int64_t index, size;
} bc_bad_index_t;
/* Elements [begin, end) of the innermost slices. 0: an index is out of range, *wrong says which. */
int bc_scatter(const bc_scatter_t *s, const void *from, void *to, int64_t begin, int64_t end, bc_bad_index_t *wrong);

#endif
