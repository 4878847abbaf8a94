/* Result types of operators that are others put together. Results are contiguous unless the rule says otherwise. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

static int32_t floating(int32_t dtype) { return at_is_integral(dtype) ? AOT_F32 : dtype; }

/* ---- joins ---- */

static aot_type_t raised(at_infer_t *c, aot_type_t t, int32_t least) {
  int64_t *sizes = at_dims(c, 3);
  int32_t lead;
  if (t.rank >= least) return t;
  sizes[0] = sizes[1] = sizes[2] = 1;
  lead = t.rank == 0 || least < 2 ? 0 : t.rank == 1 ? 1 : 0;
  memcpy(sizes + lead, t.sizes, (size_t)t.rank * sizeof *sizes);
  t.sizes = sizes;
  t.rank = least;
  return t;
}

static void put_raised(at_infer_t *c, const aot_type_t *t) {
  int32_t least = strstr(c->row->name, "_1d") ? 1 : strstr(c->row->name, "_2d") ? 2 : 3;
  aot_type_t up = raised(c, *t, least);
  if (t->rank >= least) at_put_type(c, t);
  else at_put(c, t->dtype, up.sizes, up.rank);
}

void at_shape_atleast(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_raised(c, &t);
}

void at_shape_atleast_each(at_infer_t *c) {
  uint32_t n = at_list_size(c, "tensors"), i;
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    put_raised(c, &t);
  }
}

/* dstack along dim 2, column_stack along dim 1 */
void at_shape_stack_deep(at_infer_t *c) {
  int columns = strcmp(c->row->name, "aten.column_stack.default") == 0;
  int32_t along = columns ? 1 : 2, dtype = 0, rank = 0, d;
  uint32_t n = at_list_size(c, "tensors"), i;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), total = 0;
  if (n == 0) at_fail(c, "%s of no tensors", c->row->name);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    uint32_t mark = c->n_pool;
    aot_type_t t = at_list_item(c, "tensors", i);
    int64_t column[2] = {1, 1};
    dtype = at_promote_pair(c, t.dtype, dtype);
    if (columns && t.rank <= 1) {
      if (t.rank) column[0] = t.sizes[0];
      t.sizes = column;
      t.rank = 2;
    } else {
      t = raised(c, t, along + 1);
    }
    if (i == 0) memcpy(sizes, t.sizes, (size_t)(rank = t.rank) * sizeof *sizes);
    for (d = 0; d < rank && t.rank == rank; d++)
      if (d != along && at_differs(c, sizes[d], t.sizes[d])) break;
    if (t.rank != rank || d < rank) at_fail(c, "%s: tensor %u does not fit the first", c->row->name, i);
    total = at_add(c, total, t.sizes[along]);
    c->n_pool = mark;
  }
  if (c->status != AOT_OK) return;
  sizes[along] = total;
  at_put(c, dtype, sizes, rank);
}

void at_shape_cartesian_prod(at_infer_t *c) {
  uint32_t n = at_list_size(c, "tensors"), i;
  int64_t *sizes = at_dims(c, 2);
  int32_t dtype = 0;
  if (n == 0 || n > AOT_MAX_RANK) at_fail(c, "cartesian_prod of %u tensors", n);
  sizes[0] = 1;
  sizes[1] = n;
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    if (t.rank != 1) at_fail(c, "cartesian_prod takes vectors; tensor %u has rank %d", i, (int)t.rank);
    else sizes[0] = at_mul(c, sizes[0], t.sizes[0]);
    dtype = at_promote_pair(c, t.dtype, dtype);
  }
  at_put(c, dtype, sizes, n == 1 ? 1 : 2);
}

/* n over r rows, with replacement n + r - 1 over r; none where there are fewer elements */
void at_shape_combinations(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t r = at_int(c, "r");
  int64_t *sizes = at_dims(c, 2), n, k;
  if (t.rank != 1 || AOT_DIM_IS_SYM(t.sizes[0])) at_fail(c, "combinations takes a vector of constant size");
  if (r < 1 || r > 8) at_fail(c, "combinations of %lld elements", (long long)r);
  if (c->status != AOT_OK) return;
  n = t.sizes[0] + (at_bool(c, "with_replacement") ? r - 1 : 0);
  sizes[0] = n >= r;
  for (k = 1; k <= r && sizes[0] > 0 && sizes[0] < INT32_MAX; k++) sizes[0] = sizes[0] * (n - r + k) / k;
  if (sizes[0] >= INT32_MAX) at_fail(c, "too many combinations");
  sizes[1] = r;
  at_put(c, t.dtype, sizes, 2);
}

void at_shape_pad_sequence(at_infer_t *c) {
  uint32_t n = at_list_size(c, "sequences"), i;
  aot_type_t first = at_list_item(c, "sequences", 0);
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 1), longest = 0;
  int32_t d, batch = at_bool(c, "batch_first") ? 0 : 1;
  if (n == 0 || first.rank == 0 || first.rank == AOT_MAX_RANK) at_fail(c, "pad_sequence takes sequences [length, ..]");
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "sequences", i);
    for (d = 1; d < t.rank && t.rank == first.rank; d++)
      if (at_differs(c, t.sizes[d], first.sizes[d])) break;
    if (t.rank != first.rank || d < t.rank) at_fail(c, "pad_sequence: sequence %u does not fit the first", i);
    longest = i == 0 ? t.sizes[0] : at_max(c, longest, t.sizes[0]);
  }
  if (c->status != AOT_OK) return;
  memcpy(sizes + 2, first.sizes + 1, (size_t)(first.rank - 1) * sizeof *sizes);
  sizes[batch] = n;
  sizes[!batch] = longest;
  at_put(c, first.dtype, sizes, first.rank + 1);
}

/* meshgrid: vectors along their own dimensions, expanded over all */
void at_shape_meshgrid(at_infer_t *c) {
  uint32_t n = at_list_size(c, "tensors"), i, k, columns_first = at_str_is(c, "indexing", "xy") && n > 1;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), *strides = at_dims(c, AOT_MAX_RANK);
  if (n == 0 || n > AOT_MAX_RANK) at_fail(c, "meshgrid of %u tensors", n);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    if (t.rank > 1) at_fail(c, "meshgrid of a tensor of rank %d", (int)t.rank);
    else sizes[columns_first && i < 2 ? 1 - i : i] = t.rank ? t.sizes[0] : 1;
  }
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    for (k = 0; k < n; k++) strides[k] = k == (columns_first && i < 2 ? 1 - i : i) && t.rank ? t.strides[0] : 0;
    at_put_view(c, &t, sizes, strides, (int32_t)n, t.offset);
  }
}

/* ---- along a dimension ---- */

void at_shape_diff(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), more;
  int32_t dim = at_wrap(c, at_int(c, "dim"), t.rank), i;
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), n = at_int(c, "n");
  if (t.rank == 0 || n < 0) at_fail(c, "diff of order %lld of a tensor of rank %d", (long long)n, (int)t.rank);
  if (c->status != AOT_OK) return;
  for (i = 0; i < 2 && n > 0; i++) {
    more = at_operand(c, i ? "append" : "prepend");
    if (more.kind != AOT_TYPE_TENSOR) continue;
    if (more.rank != t.rank) {
      at_fail(c, "diff: '%s' has rank %d, the tensor %d", i ? "append" : "prepend", (int)more.rank, (int)t.rank);
      return;
    }
    sizes[dim] = at_add(c, sizes[dim], more.sizes[dim]);
  }
  sizes[dim] = at_max(c, at_sub(c, sizes[dim], n), 0);
  at_put(c, t.dtype, sizes, t.rank);
}

/* y broadcast with x, when there is one; `dim` is summed, or loses an element when the sums are stored */
void at_shape_trapezoid(at_infer_t *c) {
  aot_type_t t[2];
  int cumulative = strstr(c->row->name, "cumulative") != NULL;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), *out = at_dims(c, AOT_MAX_RANK), *along = at_dims(c, AOT_MAX_RANK);
  int32_t rank, dim, d, k = 0, dtype;
  t[0] = at_tensor(c, "y");
  t[1] = at_operand(c, at_has(c, "x") ? "x" : "dx");
  dim = at_wrap(c, at_int(c, "dim"), t[0].rank);
  if (t[0].rank == 0) at_fail(c, "%s of a 0-dim tensor", c->row->name);
  if (at_has(c, "x") && t[1].rank == 0) at_fail(c, "%s at one point", c->row->name);
  if (c->status != AOT_OK) return;
  dtype = floating(at_promote(c, t, 2));
  if (t[1].kind == AOT_TYPE_TENSOR && t[1].rank == 1) {
    for (d = 0; d < t[0].rank; d++) along[d] = 1;
    along[dim] = t[1].sizes[0];
    t[1].sizes = along;
    t[1].rank = t[0].rank;
  }
  rank = at_broadcast(c, t, t[1].kind == AOT_TYPE_TENSOR ? 2 : 1, sizes);
  if (rank != t[0].rank) at_fail(c, "%s: x has more dimensions than y", c->row->name);
  for (d = 0; d < rank && c->status == AOT_OK; d++) {
    if (d != dim) out[k++] = sizes[d];
    else if (cumulative) out[k++] = at_max(c, at_sub(c, sizes[d], 1), 0);
  }
  at_put(c, dtype, out, k);
}

/* ---- statistics ---- */

/* gradient: a tensor like self for each of dim, or for each dimension */
void at_shape_gradient(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t *dims;
  uint32_t n = at_ints(c, "dim", &dims), k;
  const int64_t edge = at_int(c, "edge_order");
  if (edge != 1 && edge != 2) at_fail(c, "edge_order is 1 or 2, not %lld", (long long)edge);
  if (n == 0) n = (uint32_t)t.rank;
  for (k = 0; k < n && c->status == AOT_OK; k++) {
    const int32_t dim = at_has(c, "dim") ? at_wrap(c, dims[k], t.rank) : (int32_t)k;
    if (t.rank == 0 || at_at_most(c, t.sizes[dim], edge))
      at_fail(c, "gradient takes %lld elements or more of a dimension", (long long)edge + 1);
    else at_put(c, floating(t.dtype), t.sizes, t.rank);
  }
}

/* quantile: a vector of shares comes first, a dimension of which quantiles are taken goes; without one everything is
 * flat. */
void at_shape_quantile(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), q = at_operand(c, "q");
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 1);
  int32_t dim = at_has(c, "dim") ? at_wrap(c, at_int(c, "dim"), t.rank) : -1, rank = 0, d;
  int keep = at_bool(c, "keepdim");
  if (t.dtype != AOT_F32 && t.dtype != AOT_F64)
    at_fail(c, "%s takes float32 or float64, not %s", c->row->name, aot_dtype_name(t.dtype));
  if (q.kind == AOT_TYPE_TENSOR && (q.rank > 1 || q.dtype != t.dtype))
    at_fail(c, "%s takes a number or a vector q of self's dtype", c->row->name);
  if (q.kind == AOT_TYPE_TENSOR && q.rank == 1) sizes[rank++] = q.sizes[0];
  for (d = 0; d < t.rank; d++) {
    if (dim >= 0 && d != dim) sizes[rank++] = t.sizes[d];
    else if (keep) sizes[rank++] = 1;
  }
  if (rank > AOT_MAX_RANK) at_fail(c, "%s: the result has rank %d", c->row->name, (int)rank);
  at_put(c, t.dtype, sizes, rank);
}

void at_shape_cov(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), w = at_operand(c, "aweights");
  int64_t *sizes = at_dims(c, 2);
  if (t.rank > 2 || t.dtype == AOT_BOOL)
    at_fail(c, "%s takes a matrix of numbers, not %s of rank %d", c->row->name, aot_dtype_name(t.dtype), (int)t.rank);
  if (c->status != AOT_OK) return;
  sizes[0] = sizes[1] = t.rank == 2 ? t.sizes[0] : 1;
  at_put(c, floating(w.kind == AOT_TYPE_TENSOR ? at_promote_pair(c, t.dtype, w.dtype) : t.dtype), sizes,
         at_same(c, sizes[0], 1) ? 0 : 2);
}

/* ---- distances and their losses ---- */

/* The last dimension of the broadcast operands goes, or stays with size 1. */
void at_shape_pairwise_distance(at_infer_t *c) {
  aot_type_t t[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank;
  t[0] = at_tensor(c, "x1");
  t[1] = at_tensor(c, "x2");
  rank = at_broadcast(c, t, 2, sizes);
  if (rank == 0) {
    at_fail(c, "pairwise_distance of 0-dim tensors");
    return;
  }
  sizes[rank - 1] = 1;
  at_put(c, floating(at_promote(c, t, 2)), sizes, at_bool(c, "keepdim") ? rank : rank - 1);
}

/* One value a row of the first two arguments, or one number. */
static void put_row_loss(at_infer_t *c, const aot_type_t *t, uint32_t n) {
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank = at_broadcast(c, t, n, sizes), dtype = floating(at_promote(c, t, n));
  if (rank == 0) at_fail(c, "%s of 0-dim tensors", c->row->name);
  at_put(c, dtype, sizes, c->status == AOT_OK && at_int(c, "reduction") == 0 ? rank - 1 : 0);
}

void at_shape_triplet_margin_loss(at_infer_t *c) {
  aot_type_t t[3];
  t[0] = at_tensor(c, "anchor");
  t[1] = at_tensor(c, "positive");
  t[2] = at_tensor(c, "negative");
  if (t[0].rank != t[1].rank || t[0].rank != t[2].rank)
    at_fail(c, "triplet_margin_loss of tensors of rank %d, %d and %d", (int)t[0].rank, (int)t[1].rank, (int)t[2].rank);
  put_row_loss(c, t, 3);
}

void at_shape_cosine_embedding_loss(at_infer_t *c) {
  aot_type_t t[2], target = at_tensor(c, "target");
  t[0] = at_tensor(c, "input1");
  t[1] = at_tensor(c, "input2");
  if (target.rank > 1 || t[0].rank != target.rank + 1 || t[1].rank != target.rank + 1)
    at_fail(c, "cosine_embedding_loss takes [n, d], [n, d] and [n], or [d], [d] and a number; not rank %d, %d and %d",
            (int)t[0].rank, (int)t[1].rank, (int)target.rank);
  put_row_loss(c, t, 2);
}

/* ---- algebra ---- */

void at_shape_float_power(at_infer_t *c) {
  aot_type_t t[2];
  t[0] = at_operand(c, "self");
  t[1] = at_operand(c, "exponent");
  at_put_pointwise(c, AOT_F64, t, 2);
}

void at_shape_vander(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "x");
  int64_t *sizes = at_dims(c, 2);
  if (t.rank != 1) at_fail(c, "vander takes a vector, not a tensor of rank %d", (int)t.rank);
  if (c->status != AOT_OK) return;
  sizes[0] = t.sizes[0];
  sizes[1] = at_has(c, "N") ? at_int(c, "N") : t.sizes[0];
  at_put(c, at_is_integral(t.dtype) ? AOT_I64 : t.dtype, sizes, 2);
}

void at_shape_sum_to_size(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t *sizes;
  int32_t n = (int32_t)at_ints(c, "size", &sizes), d, same = n == t.rank && n > 0; /* a number is summed all the same */
  if (n > t.rank) at_fail(c, "sum_to_size to rank %d of a tensor of rank %d", (int)n, (int)t.rank);
  for (d = 0; d < n && c->status == AOT_OK; d++) {
    int64_t own = t.sizes[d + t.rank - n];
    if (!at_differs(c, own, sizes[d]) && !at_same(c, sizes[d], 1)) continue;
    same &= at_same(c, own, sizes[d]);
    if (!at_same(c, sizes[d], 1))
      at_fail(c, "sum_to_size: dim %d of size %lld does not come of one of size %lld", (int)d,
              (long long)at_hint(c, own), (long long)at_hint(c, sizes[d]));
  }
  if (same) at_put_type(c, &t);
  else at_put(c, at_is_integral(t.dtype) ? AOT_I64 : t.dtype, sizes, n);
}

void at_shape_mirror(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t least = strstr(c->row->name, "fliplr") ? 2 : 1;
  if (t.rank < least) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)t.rank);
  at_put_like(c, &t, t.dtype);
}

void at_shape_diagflat(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *sizes = at_dims(c, 2), offset = at_int(c, "offset");
  sizes[0] = sizes[1] = at_add(c, at_numel(c, t.sizes, t.rank), offset < 0 ? at_sub(c, 0, offset) : offset);
  at_put(c, t.dtype, sizes, 2);
}

/* ---- weight norm ---- */

static void put_norms(at_infer_t *c, const aot_type_t *v, int32_t dtype) {
  int64_t *sizes = at_dims(c, v->rank), dim = at_int(c, "dim");
  int32_t d, kept = dim == -1 ? -1 : at_wrap(c, dim, v->rank);
  for (d = 0; d < v->rank; d++) sizes[d] = d == kept ? v->sizes[d] : 1;
  at_put(c, dtype, sizes, kept < 0 && strstr(c->row->name, "norm_except_dim") ? 0 : v->rank);
}

void at_shape_norm_except_dim(at_infer_t *c) {
  aot_type_t v = at_tensor(c, "v");
  put_norms(c, &v, v.dtype);
}

/* ---- others ---- */
