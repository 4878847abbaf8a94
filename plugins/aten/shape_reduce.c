/* Reductions, scans, and what works along one dimension: softmax, sort, topk. Results are contiguous. */
#include "shape_rules.h"

#include <aot/inline.h>

/* Dimensions named by `dim`: None and the empty list are all. */
static uint32_t reduced(at_infer_t *c, const aot_type_t *t) {
  const int64_t *dims;
  uint32_t n = at_ints(c, "dim", &dims);
  return n == 0 ? ~0u : at_dim_mask(c, dims, n, t->rank);
}

static int32_t reduce(at_infer_t *c, const aot_type_t *t, uint32_t mask, int keep, int64_t *out) {
  int32_t d, rank = 0;
  (void)c;
  for (d = 0; d < t->rank; d++) {
    if (!(mask >> d & 1)) out[rank++] = t->sizes[d];
    else if (keep) out[rank++] = 1;
  }
  return rank;
}

static void put_reduced(at_infer_t *c, const aot_type_t *t, int32_t dtype) {
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank = reduce(c, t, reduced(c, t), at_bool(c, "keepdim"), sizes);
  at_put(c, dtype, sizes, rank);
}

static int32_t asked_dtype(at_infer_t *c, int32_t otherwise) {
  return at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : otherwise;
}

/* sum, prod, nansum: integers and bool add up in int64. */
void at_shape_sum(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, asked_dtype(c, at_is_integral(t.dtype) ? AOT_I64 : t.dtype));
}

void at_shape_mean(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t dtype = asked_dtype(c, t.dtype);
  if (at_is_integral(dtype)) at_fail(c, "mean takes floating dtypes, not %s; give dtype=", aot_dtype_name(dtype));
  put_reduced(c, &t, dtype);
}

void at_shape_amax(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, t.dtype);
}

void at_shape_any(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, t.dtype == AOT_U8 ? AOT_U8 : AOT_BOOL);
}

void at_shape_count(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, AOT_I64);
}

void at_shape_max_dim(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, t.dtype);
  put_reduced(c, &t, AOT_I64);
}

void at_shape_aminmax(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, t.dtype);
  put_reduced(c, &t, t.dtype);
}

void at_shape_var(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  if (at_is_integral(t.dtype)) at_fail(c, "%s takes floating dtypes, not %s", c->row->name, aot_dtype_name(t.dtype));
  put_reduced(c, &t, aot_dtype_part(t.dtype));
}

void at_shape_var_mean(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, aot_dtype_part(t.dtype));
  put_reduced(c, &t, t.dtype);
}

void at_shape_logsumexp(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, at_is_integral(t.dtype) ? AOT_F32 : t.dtype);
}

void at_shape_vector_norm(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_reduced(c, &t, aot_dtype_part(asked_dtype(c, t.dtype)));
}

/* softmax and log_softmax with their dtype conversions */
void at_shape_softmax(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t dtype = asked_dtype(c, t.dtype);
  at_wrap(c, at_int(c, "dim"), t.rank);
  if (at_bool(c, "half_to_float")) dtype = AOT_F32;
  if (at_is_integral(dtype)) at_fail(c, "%s takes floating dtypes, not %s", c->row->name, aot_dtype_name(dtype));
  at_put(c, dtype, t.sizes, t.rank);
}

void at_shape_softmax_backward(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "grad_output");
  at_put(c, (int32_t)at_int(c, "input_dtype"), t.sizes, t.rank);
}

void at_shape_cumsum(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_wrap(c, at_int(c, "dim"), t.rank);
  at_put(c, asked_dtype(c, at_is_integral(t.dtype) ? AOT_I64 : t.dtype), t.sizes, t.rank);
}

void at_shape_scan(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_wrap(c, at_int(c, "dim"), t.rank);
  at_put(c, t.dtype, t.sizes, t.rank);
}

void at_shape_cummax(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_wrap(c, at_int(c, "dim"), t.rank);
  at_put(c, t.dtype, t.sizes, t.rank);
  at_put(c, AOT_I64, t.sizes, t.rank);
}

void at_shape_sort(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_wrap(c, at_int(c, "dim"), t.rank);
  at_put_like(c, &t, t.dtype);
  at_put_like(c, &t, AOT_I64);
}

void at_shape_argsort(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_wrap(c, at_int(c, "dim"), t.rank);
  at_put_like(c, &t, AOT_I64);
}

void at_shape_topk(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), t.rank);
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), k = at_int(c, "k");
  if (at_below(c, k, 0) || at_below(c, t.rank ? sizes[dim] : 1, k))
    at_fail(c, "k = %lld is out of range for dim %d", (long long)at_hint(c, k), (int)dim);
  if (t.rank) sizes[dim] = k;
  at_put(c, t.dtype, sizes, t.rank);
  at_put(c, AOT_I64, sizes, t.rank);
}

void at_shape_dist(at_infer_t *c) {
  aot_type_t t[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  t[0] = at_tensor(c, "self");
  t[1] = at_tensor(c, "other");
  at_broadcast(c, t, 2, sizes);
  at_put(c, aot_dtype_part(at_promote(c, t, 2)), NULL, 0);
}

void at_shape_trace(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  if (t.rank != 2) at_fail(c, "trace of a tensor of rank %d", (int)t.rank);
  at_put(c, at_is_integral(t.dtype) ? AOT_I64 : t.dtype, NULL, 0);
}

/* hash_tensor: 64 bits whatever the elements are */
void at_shape_hash(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  if (at_int(c, "mode") != 0)
    at_fail(c, "hash_tensor in mode %lld; only 0 (exclusive or) exists", (long long)at_int(c, "mode"));
  put_reduced(c, &t, AOT_U64);
}
