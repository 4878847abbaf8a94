/* Strides: what memory order results get, and what views are possible.
 *
 * The elementwise rule is that of PyTorch's TensorIterator (aten/src/ATen/TensorIterator.cpp): if all operands have the
 * result's shape and are all contiguous, all channels-last, or all equal in strides and dense, the result is so too;
 * otherwise the dimensions are sorted by the operands' strides, the first operand that can determine decides. The view
 * rule is computeStride of aten/src/ATen/TensorUtils.cpp. Hints of symbolic strides decide what nothing else does. Each
 * function is linear in the rank, the sort quadratic. */
#include "layout.h"

#include <string.h>

void at_strides_contiguous(at_infer_t *c, const int64_t *sizes, int32_t rank, int64_t *out) {
  int64_t step = 1;
  int32_t d;
  for (d = rank - 1; d >= 0; d--) {
    out[d] = step;
    if (sizes[d] != 0) step = at_mul(c, step, sizes[d]);
  }
}

/* Memory order of the channels-last formats: N, spatial dimensions, C. */
static void channels_last_order(int32_t rank, int32_t *order) { /* fastest first */
  int32_t i;
  order[0] = 1;
  for (i = 1; i < rank - 1; i++) order[i] = rank - i;
  order[rank - 1] = 0;
}

void at_strides_channels_last(at_infer_t *c, const int64_t *sizes, int32_t rank, int64_t *out) {
  int32_t order[AOT_MAX_RANK], i;
  int64_t step = 1;
  if (rank != 4 && rank != 5) {
    at_strides_contiguous(c, sizes, rank, out);
    return;
  }
  channels_last_order(rank, order);
  for (i = 0; i < rank; i++) {
    out[order[i]] = step;
    if (sizes[order[i]] != 0) step = at_mul(c, step, sizes[order[i]]);
  }
}

/* Dimensions of size 1 do not matter, tensors without elements are in any order. */
int at_is_contiguous(at_infer_t *c, const aot_type_t *t) {
  int64_t step = 1;
  int32_t d;
  for (d = 0; d < t->rank; d++)
    if (at_same(c, t->sizes[d], 0)) return 1;
  for (d = t->rank - 1; d >= 0; d--) {
    if (at_at_most(c, t->sizes[d], 1)) continue;
    if (!at_same_stride(c, t->strides[d], step)) return 0;
    step = at_mul(c, step, t->sizes[d]);
  }
  return 1;
}

int at_is_channels_last(at_infer_t *c, const aot_type_t *t) {
  int32_t order[AOT_MAX_RANK], i;
  int64_t step = 1;
  if (t->rank != 4 && t->rank != 5) return 0;
  channels_last_order(t->rank, order);
  for (i = 0; i < t->rank; i++) {
    int32_t d = order[i];
    if (at_at_most(c, t->sizes[d], 1)) continue;
    if (!at_same_stride(c, t->strides[d], step)) return 0;
    step = at_mul(c, step, t->sizes[d]);
  }
  return 1;
}

/* is_channels_last_strides of c10/core/MemoryFormat.h: sizes of 1 are ambiguous, and NCHW wins then. */
int at_suggests_channels_last(at_infer_t *c, const aot_type_t *t) {
  int32_t order[AOT_MAX_RANK], i;
  int64_t min = 0;
  if (t->rank != 4 && t->rank != 5) return 0;
  if (at_hint(c, t->strides[1]) == 0) return 0;
  channels_last_order(t->rank, order);
  for (i = 0; i < t->rank; i++) {
    int32_t d = order[i];
    int64_t size = at_hint(c, t->sizes[d]), stride = at_hint(c, t->strides[d]);
    if (size == 0 || stride < min) return 0;
    if (d == 0 && min == at_hint(c, t->strides[1])) return 0;
    min = stride;
    if (size > 1) min *= size;
  }
  return 1;
}

int at_is_dense(at_infer_t *c, const aot_type_t *t) {
  int32_t order[AOT_MAX_RANK], n = 0, d, i;
  int64_t step = 1;
  if (at_is_contiguous(c, t)) return 1;
  for (d = 0; d < t->rank; d++) { /* sort the dimensions that matter by stride */
    if (at_at_most(c, t->sizes[d], 1)) continue;
    for (i = n++; i > 0 && at_hint(c, t->strides[order[i - 1]]) > at_hint(c, t->strides[d]); i--)
      order[i] = order[i - 1];
    order[i] = d;
  }
  for (i = 0; i < n; i++) {
    if (at_hint(c, t->strides[order[i]]) != step) return 0;
    step *= at_hint(c, t->sizes[order[i]]);
  }
  return 1;
}

/* Stride of an operand along dimension d of the broadcast shape. */
static int64_t broadcast_stride(at_infer_t *c, const aot_type_t *t, const int64_t *sizes, int32_t rank, int32_t d) {
  int32_t own = d - (rank - t->rank);
  if (t->kind != AOT_TYPE_TENSOR || own < 0) return 0;
  if (at_same(c, t->sizes[own], 1) && !at_same(c, sizes[d], 1)) return 0;
  return at_hint(c, t->strides[own]);
}

/* Is dimension a to be faster than b (-1), slower (1), or can no operand report (0)? */
static int compare_dims(at_infer_t *c, const aot_type_t *operands, uint32_t n, const int64_t *sizes, int32_t rank,
                        int32_t a, int32_t b) {
  uint32_t i;
  for (i = 0; i < n; i++) {
    int64_t sa, sb;
    if (operands[i].kind == AOT_TYPE_NONE) continue;
    sa = broadcast_stride(c, &operands[i], sizes, rank, a);
    sb = broadcast_stride(c, &operands[i], sizes, rank, b);
    if (sa == 0 || sb == 0) continue;
    if (sa != sb) return sa < sb ? -1 : 1;
    if (at_hint(c, sizes[a]) > at_hint(c, sizes[b])) return 1;
  }
  return 0;
}

static void strides_sorted(at_infer_t *c, const aot_type_t *operands, uint32_t n, const int64_t *sizes, int32_t rank,
                           int64_t *out) {
  int32_t order[AOT_MAX_RANK], i, j, sorted = 1;
  int64_t step = 1;
  for (i = 0; i < rank; i++) order[i] = rank - 1 - i; /* fastest first */
  for (i = 1; i < rank; i++) {
    int32_t hole = i;
    for (j = i - 1; j >= 0; j--) {
      int order_of = compare_dims(c, operands, n, sizes, rank, order[j], order[hole]);
      if (order_of > 0) {
        int32_t swap = order[j];
        order[j] = order[hole];
        order[hole] = swap;
        hole = j;
      } else if (order_of < 0) {
        break;
      }
    }
  }
  for (i = 0; i < rank; i++) sorted &= order[i] == rank - 1 - i;
  if (sorted) {
    at_strides_contiguous(c, sizes, rank, out);
    return;
  }
  for (i = 0; i < rank; i++) {
    out[order[i]] = step;
    step = at_mul(c, step, sizes[order[i]]);
  }
}

typedef int layout_fn(at_infer_t *c, const aot_type_t *t);

static int all_are(at_infer_t *c, const aot_type_t *operands, uint32_t n, layout_fn *is) {
  uint32_t i;
  for (i = 0; i < n; i++)
    if (operands[i].kind == AOT_TYPE_TENSOR && !is(c, &operands[i])) return 0;
  return 1;
}

static int all_of_shape(at_infer_t *c, const aot_type_t *operands, uint32_t n, const int64_t *sizes, int32_t rank) {
  uint32_t i;
  int32_t d;
  for (i = 0; i < n; i++) {
    if (operands[i].kind == AOT_TYPE_NONE) continue;
    if (operands[i].rank != rank) return 0;
    for (d = 0; d < rank; d++)
      if (operands[i].sizes[d] != sizes[d] &&
          (at_differs(c, operands[i].sizes[d], sizes[d]) || at_same(c, operands[i].sizes[d], 1)))
        return 0;
  }
  return 1;
}

static const aot_type_t *equal_dense(at_infer_t *c, const aot_type_t *operands, uint32_t n) {
  const aot_type_t *first = NULL;
  uint32_t i;
  int32_t d;
  for (i = 0; i < n; i++) {
    if (operands[i].kind != AOT_TYPE_TENSOR) continue;
    if (!at_is_dense(c, &operands[i])) return NULL;
    if (first == NULL) first = &operands[i];
    for (d = 0; d < first->rank; d++)
      if (!at_same_stride(c, operands[i].strides[d], first->strides[d])) return NULL;
  }
  return first;
}

void at_strides_pointwise(at_infer_t *c, const aot_type_t *operands, uint32_t n, const int64_t *sizes, int32_t rank,
                          int64_t *out) {
  const aot_type_t *first;
  if (all_of_shape(c, operands, n, sizes, rank)) {
    if (all_are(c, operands, n, at_is_contiguous)) {
      at_strides_contiguous(c, sizes, rank, out);
      return;
    }
    if (rank == 4 && all_are(c, operands, n, at_is_channels_last)) {
      at_strides_channels_last(c, sizes, rank, out);
      return;
    }
    first = equal_dense(c, operands, n);
    if (first != NULL) {
      memcpy(out, first->strides, (size_t)rank * sizeof *out);
      return;
    }
  }
  strides_sorted(c, operands, n, sizes, rank, out);
}

void at_strides_for_format(at_infer_t *c, const aot_type_t *t, int64_t memory_format, int64_t *out) {
  if (memory_format == AOT_MEMORY_CHANNELS_LAST || memory_format == AOT_MEMORY_CHANNELS_LAST_3D)
    at_strides_channels_last(c, t->sizes, t->rank, out);
  else if (memory_format == AOT_MEMORY_CONTIGUOUS) at_strides_contiguous(c, t->sizes, t->rank, out);
  else if (at_is_dense(c, t)) memcpy(out, t->strides, (size_t)t->rank * sizeof *out);
  else strides_sorted(c, t, 1, t->sizes, t->rank, out);
}

int at_view_strides(at_infer_t *c, const aot_type_t *t, const int64_t *sizes, int32_t rank, int64_t *out) {
  int32_t view = rank - 1, d;
  int64_t base, old_numel = 1, new_numel = 1;
  for (d = 0; d < t->rank; d++)
    if (at_same(c, t->sizes[d], 0)) {
      int same = t->rank == rank && all_of_shape(c, t, 1, sizes, rank);
      if (same) memcpy(out, t->strides, (size_t)rank * sizeof *out);
      else at_strides_contiguous(c, sizes, rank, out);
      return 1;
    }
  if (t->rank == 0) {
    for (d = 0; d < rank; d++) out[d] = 1;
    return 1;
  }
  base = t->strides[t->rank - 1];
  for (d = t->rank - 1; d >= 0; d--) {
    old_numel = at_mul(c, old_numel, t->sizes[d]);
    if (d > 0 && (at_same(c, t->sizes[d - 1], 1) || at_same_stride(c, t->strides[d - 1], at_mul(c, old_numel, base))))
      continue;
    while (view >= 0 && (at_hint(c, new_numel) < at_hint(c, old_numel) || at_same(c, sizes[view], 1))) {
      out[view] = at_mul(c, new_numel, base);
      new_numel = at_mul(c, new_numel, sizes[view]);
      view--;
    }
    if (!at_same_stride(c, new_numel, old_numel)) return 0;
    if (d > 0) {
      base = t->strides[d - 1];
      old_numel = new_numel = 1;
    }
  }
  return view == -1;
}
