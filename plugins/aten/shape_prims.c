/* Types of prims that are not another operator's word for word. Rules of torch/_prims/__init__.py (the *_meta
 * functions). */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

static void copy_dims(int64_t *to, const int64_t *from, int32_t n) {
  if (n > 0) memcpy(to, from, (size_t)n * sizeof *to);
}

static void put_shown(at_infer_t *c, const aot_type_t *base, const int64_t *sizes, const int64_t *strides,
                      int32_t rank) {
  if (c->status == AOT_OK) at_put_view(c, base, sizes, strides, rank, base->offset);
}

void at_shape_prims_alias(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  put_shown(c, &t, t.sizes, t.strides, t.rank);
}

/* Dimension i of a becomes dimension broadcast_dimensions[i]; the others are new. */
void at_shape_broadcast_in_dim(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  const int64_t *shape, *dims;
  uint32_t n = at_ints(c, "shape", &shape), m = at_ints(c, "broadcast_dimensions", &dims), i;
  int64_t *strides = at_dims(c, (int32_t)n);
  uint32_t at = 0;
  if (m != (uint32_t)t.rank || n > AOT_MAX_RANK)
    at_fail(c, "broadcast_in_dim names %u dimensions for a tensor of rank %d", m, (int)t.rank);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    if (at < m && dims[at] == (int64_t)i) {
      if (at_differs(c, t.sizes[at], shape[i]) && at_differs(c, t.sizes[at], 1))
        at_fail(c, "size %lld does not broadcast to %lld", (long long)at_hint(c, t.sizes[at]),
                (long long)at_hint(c, shape[i]));
      strides[i] = at_same(c, t.sizes[at], shape[i]) ? t.strides[at] : 0;
      at++;
    } else if (!at_same(c, shape[i], 1)) {
      strides[i] = 0;
    } else {
      strides[i] = at < m ? at_mul(c, t.strides[at], t.sizes[at]) : 1;
    }
  }
  if (at != m) at_fail(c, "broadcast_dimensions must rise and name dimensions of the result");
  put_shown(c, &t, shape, strides, (int32_t)n);
}

/* Sizes with dimensions start..end, both included, made one. */
static int32_t collapsed(at_infer_t *c, const aot_type_t *t, int64_t *out) {
  int64_t start = at_int(c, "start"), end = at_int(c, "end");
  int32_t rank = t->rank ? t->rank : 1;
  if (start < 0 || end < start || end >= rank) {
    at_fail(c, "collapse of dimensions %lld to %lld of a tensor of rank %d", (long long)start, (long long)end,
            (int)t->rank);
    return 0;
  }
  if (t->rank == 0) {
    out[0] = 1;
    return 1;
  }
  copy_dims(out, t->sizes, (int32_t)start);
  out[start] = at_numel(c, t->sizes + start, (int32_t)(end - start + 1));
  copy_dims(out + start + 1, t->sizes + end + 1, t->rank - (int32_t)end - 1);
  return t->rank - (int32_t)(end - start);
}

static void put_reshaped(at_infer_t *c, const aot_type_t *t, const int64_t *sizes, int32_t rank) {
  int64_t *strides = at_dims(c, rank);
  if (c->status != AOT_OK) return;
  if (!at_view_strides(c, t, sizes, rank, strides)) at_fail(c, "the layout of the tensor allows no such view");
  put_shown(c, t, sizes, strides, rank);
}

void at_shape_collapse_view(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  put_reshaped(c, &t, sizes, collapsed(c, &t, sizes));
}

void at_shape_collapse(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  at_put(c, t.dtype, sizes, collapsed(c, &t, sizes));
}

void at_shape_split_dim(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  int64_t dim = at_int(c, "dim"), outer = at_int(c, "outer_length"), *sizes = at_dims(c, AOT_MAX_RANK + 1);
  if (dim < 0 || dim >= t.rank || t.rank >= AOT_MAX_RANK || at_at_most(c, outer, 0) ||
      at_differs(c, at_mod(c, t.sizes[dim], outer), 0)) {
    at_fail(c, "split_dim of dimension %lld in %lld parts", (long long)dim, (long long)at_hint(c, outer));
    return;
  }
  copy_dims(sizes, t.sizes, (int32_t)dim);
  sizes[dim] = outer;
  sizes[dim + 1] = at_floordiv(c, t.sizes[dim], outer);
  copy_dims(sizes + dim + 2, t.sizes + dim + 1, t.rank - (int32_t)dim - 1);
  put_reshaped(c, &t, sizes, t.rank + 1);
}

void at_shape_prims_squeeze(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  const int64_t *dims;
  uint32_t n = at_ints(c, "dimensions", &dims), mask = at_dim_mask(c, dims, n, t.rank);
  int64_t *sizes = at_dims(c, t.rank), *strides = at_dims(c, t.rank);
  int32_t d, rank = 0;
  for (d = 0; d < t.rank && c->status == AOT_OK; d++) {
    if (mask >> d & 1 && at_same(c, t.sizes[d], 1)) continue;
    sizes[rank] = t.sizes[d];
    strides[rank++] = t.strides[d];
  }
  put_shown(c, &t, sizes, strides, rank);
}

void at_shape_prims_transpose(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  const int64_t *dims;
  uint32_t n = at_ints(c, "permutation", &dims), i;
  int64_t *sizes = at_dims(c, t.rank), *strides = at_dims(c, t.rank);
  if (n != (uint32_t)t.rank) at_fail(c, "the permutation has %u dimensions, the tensor %d", n, (int)t.rank);
  at_dim_mask(c, dims, n, t.rank);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    int32_t d = at_wrap(c, dims[i], t.rank);
    sizes[i] = t.sizes[d];
    strides[i] = t.strides[d];
  }
  put_shown(c, &t, sizes, strides, t.rank);
}

void at_shape_prims_view_dtype(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  int32_t dtype = (int32_t)at_int(c, "dtype");
  if (aot_dtype_size(dtype) != aot_dtype_size(t.dtype))
    at_fail(c, "a view of %s as %s: elements must have one size", aot_dtype_name(t.dtype), aot_dtype_name(dtype));
  t.dtype = dtype;
  put_shown(c, &t, t.sizes, t.strides, t.rank);
}

/* start <= limit <= size, step > 0: nothing wraps and nothing is clamped */
static void cut(at_infer_t *c, const aot_type_t *t, int32_t d, int64_t start, int64_t limit, int64_t step,
                int64_t *sizes, int64_t *strides, int64_t *offset) {
  char text[4][48];
  if (at_below(c, start, 0) || at_below(c, limit, start) || at_below(c, t->sizes[d], limit) || at_below(c, step, 1)) {
    at_fail(c, "slice of dimension %d of size %s from %s to %s by %s", (int)d,
            at_dims_text(c, &t->sizes[d], 1, text[0], 48), at_dims_text(c, &start, 1, text[1], 48),
            at_dims_text(c, &limit, 1, text[2], 48), at_dims_text(c, &step, 1, text[3], 48));
    return;
  }
  sizes[d] = at_floordiv(c, at_add(c, at_sub(c, limit, start), at_sub(c, step, 1)), step);
  strides[d] = at_mul(c, t->strides[d], step);
  *offset = at_add(c, *offset, at_mul(c, start, t->strides[d]));
}

void at_shape_slice_in_dim(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), *strides = at_dims_copy(c, t.strides, t.rank), offset = t.offset;
  int64_t axis = at_int(c, "axis");
  if (axis < 0 || axis >= t.rank) at_fail(c, "axis %lld of a tensor of rank %d", (long long)axis, (int)t.rank);
  else
    cut(c, &t, (int32_t)axis, at_int(c, "start_index"), at_int(c, "limit_index"), at_int(c, "stride"), sizes, strides,
        &offset);
  if (c->status == AOT_OK) at_put_view(c, &t, sizes, strides, t.rank, offset);
}

void at_shape_prims_slice(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  const int64_t *start, *limit, *step;
  uint32_t n = at_ints(c, "start_indices", &start), m = at_ints(c, "limit_indices", &limit),
           k = at_ints(c, "strides", &step);
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), *strides = at_dims_copy(c, t.strides, t.rank), offset = t.offset;
  int32_t d;
  if (n != (uint32_t)t.rank || m != n || (k != n && at_has(c, "strides")))
    at_fail(c, "a slice needs one start, limit and stride for each of %d dimensions", (int)t.rank);
  for (d = 0; d < t.rank && c->status == AOT_OK; d++)
    cut(c, &t, d, start[d], limit[d], k ? step[d] : 1, sizes, strides, &offset);
  if (c->status == AOT_OK) at_put_view(c, &t, sizes, strides, t.rank, offset);
}

/* ---- copies ---- */

void at_shape_convert_element_type(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  if (at_has(c, "device")) {
    c->device = aot_device_of(at_int(c, "device"));
    c->device_index = aot_device_index_of(at_int(c, "device"));
  }
  at_put_like(c, &t, at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : t.dtype);
}

void at_shape_prims_reshape(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  const int64_t *shape;
  uint32_t n = at_ints(c, "shape", &shape);
  int64_t from = at_numel(c, t.sizes, t.rank), to = at_numel(c, shape, (int32_t)n);
  if (at_differs(c, from, to))
    at_fail(c, "%lld elements as %lld", (long long)at_hint(c, from), (long long)at_hint(c, to));
  at_put(c, t.dtype, shape, (int32_t)n);
}

void at_shape_prims_where(at_infer_t *c) {
  aot_type_t t[3];
  t[0] = at_tensor(c, "pred");
  t[1] = at_tensor(c, "a");
  t[2] = at_tensor(c, "b");
  if (t[0].dtype != AOT_BOOL || t[1].dtype != t[2].dtype)
    at_fail(c, "where takes a bool and two tensors of one dtype, not %s, %s, %s", aot_dtype_name(t[0].dtype),
            aot_dtype_name(t[1].dtype), aot_dtype_name(t[2].dtype));
  at_put_pointwise(c, t[1].dtype, t, 3);
}

void at_shape_prims_copy_to(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  at_put_type(c, &t);
}

/* ---- reductions: dims None are all of them, and none reduces none ---- */

void at_shape_prims_reduce(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "inp");
  const int64_t *dims;
  uint32_t n = at_ints(c, "dims", &dims), mask = at_has(c, "dims") ? at_dim_mask(c, dims, n, t.rank) : ~0u;
  int64_t *sizes = at_dims(c, t.rank);
  int32_t d, rank = 0;
  for (d = 0; d < t.rank && c->status == AOT_OK; d++)
    if (!(mask >> d & 1)) sizes[rank++] = t.sizes[d];
  at_put(c, at_has(c, "output_dtype") ? (int32_t)at_int(c, "output_dtype") : t.dtype, sizes, rank);
}

/* ---- new tensors ---- */

static int32_t new_dtype(at_infer_t *c) {
  if (at_has(c, "device")) {
    c->device = aot_device_of(at_int(c, "device"));
    c->device_index = aot_device_index_of(at_int(c, "device"));
  }
  return (int32_t)at_int(c, "dtype");
}

void at_shape_prims_full(at_infer_t *c) {
  const int64_t *shape, *strides;
  uint32_t n = at_ints(c, "shape", &shape), m = at_ints(c, "strides", &strides);
  int32_t dtype = new_dtype(c);
  if (at_has(c, "strides") && m != n) at_fail(c, "%u sizes and %u strides", n, m);
  if (c->status != AOT_OK) return;
  if (at_has(c, "strides")) at_put_strided(c, dtype, shape, strides, (int32_t)n);
  else at_put(c, dtype, shape, (int32_t)n);
}

void at_shape_prims_empty_permuted(at_infer_t *c) { at_put_permuted(c, new_dtype(c), "shape"); }

void at_shape_prims_full_like(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "a");
  at_put_like(c, &t, new_dtype(c));
}

void at_shape_iota(at_infer_t *c) {
  int64_t *sizes = at_dims(c, 1);
  int32_t dtype = new_dtype(c);
  sizes[0] = at_int(c, "length");
  if (!at_is_integral(dtype) || at_below(c, sizes[0], 0) || at_same(c, at_int(c, "step"), 0))
    at_fail(c, "iota of length %lld, step %lld, %s", (long long)at_hint(c, sizes[0]),
            (long long)at_hint(c, at_int(c, "step")), aot_dtype_name(dtype));
  at_put(c, dtype, sizes, 1);
}
