/* Random numbers: explicit draws from seed and offset, of an asked size or for each element of a tensor of parameters;
 * and of the operators that draw from a hidden generator, those that take other shapes than their first argument's. */
#include "shape_rules.h"

#include <aot/inline.h>

static void check_scalar(at_infer_t *c, const char *name) {
  aot_type_t t = at_tensor(c, name);
  if (c->status == AOT_OK && (t.rank != 0 || t.dtype != AOT_I64))
    at_fail(c, "%s is %s of rank %d; a draw needs i64 of rank 0", name, aot_dtype_name(t.dtype), t.rank);
}

static void check_key(at_infer_t *c) {
  check_scalar(c, "seed");
  check_scalar(c, "offset");
}

static void put_drawn(at_infer_t *c, int32_t dtype) {
  const int64_t *sizes;
  uint32_t n = at_ints(c, "size", &sizes);
  if (n > AOT_MAX_RANK) at_fail(c, "a tensor of rank %u, more than %d", n, AOT_MAX_RANK);
  for (uint32_t i = 0; i < n && c->status == AOT_OK; i++)
    if (at_below(c, sizes[i], 0)) at_fail(c, "size %lld", (long long)at_hint(c, sizes[i]));
  if (c->status == AOT_OK) at_put(c, dtype, sizes, (int32_t)n);
}

void at_shape_draw(at_infer_t *c) {
  int32_t dtype = at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : AOT_F32;
  check_key(c);
  if (!aot_dtype_is_float(dtype)) at_fail(c, "no random numbers of dtype %s, only floats", aot_dtype_name(dtype));
  put_drawn(c, dtype);
}

void at_shape_draw_bits(at_infer_t *c) {
  check_key(c);
  put_drawn(c, AOT_I64);
}

void at_shape_draw_int(at_infer_t *c) {
  int64_t low = at_hint(c, at_int(c, "low")), high = at_hint(c, at_int(c, "high"));
  int32_t dtype = at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : AOT_I64;
  check_key(c);
  if (low >= high) at_fail(c, "no integers from %lld up to, without, %lld", (long long)low, (long long)high);
  if (aot_dtype_is_complex(dtype)) at_fail(c, "no random integers of dtype %s", aot_dtype_name(dtype));
  put_drawn(c, dtype);
}

static void check_float(at_infer_t *c, const char *name) {
  aot_type_t t = at_tensor(c, name);
  if (c->status == AOT_OK && !aot_dtype_is_float(t.dtype))
    at_fail(c, "%s has dtype %s, where a float is needed", name, aot_dtype_name(t.dtype));
}

/* poisson, gamma: one variate for each element of the parameter */
void at_shape_draw_by(at_infer_t *c) {
  const char *name = at_has(c, "rate") ? "rate" : "alpha";
  aot_type_t t = at_tensor(c, name);
  check_key(c);
  check_float(c, name);
  at_put(c, t.dtype, t.sizes, t.rank);
}

void at_shape_draw_binomial(at_infer_t *c) {
  const aot_type_t operands[2] = {at_tensor(c, "count"), at_tensor(c, "prob")};
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  check_key(c);
  check_float(c, "count");
  check_float(c, "prob");
  int32_t rank = at_broadcast(c, operands, 2, sizes);
  at_put(c, operands[0].dtype, sizes, rank);
}

/* ---- from a hidden generator ---- */

/* normal of tensors: mean and std broadcast, in the dtype of the first tensor */
void at_shape_normal(at_infer_t *c) {
  const aot_type_t operands[2] = {at_operand(c, "mean"), at_operand(c, "std")};
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank = at_broadcast(c, operands, 2, sizes);
  at_put(c, operands[operands[0].kind == AOT_TYPE_TENSOR ? 0 : 1].dtype, sizes, rank);
}

void at_shape_binomial(at_infer_t *c) {
  aot_type_t count = at_tensor(c, "count"), prob = at_tensor(c, "prob");
  check_float(c, "count");
  if (count.dtype != prob.dtype)
    at_fail(c, "count has dtype %s, prob %s", aot_dtype_name(count.dtype), aot_dtype_name(prob.dtype));
  at_put(c, count.dtype, count.sizes, count.rank);
}

/* indices for each row of weights, or for the only one */
void at_shape_multinomial(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *sizes, n = at_int(c, "num_samples");
  check_float(c, "self");
  if (c->status != AOT_OK) return;
  if (t.rank < 1 || t.rank > 2) at_fail(c, "weights of rank %d; they must have 1 or 2 dimensions", t.rank);
  if (c->status != AOT_OK) return;
  if (at_at_most(c, n, 0)) at_fail(c, "%lld samples; at least one must be drawn", (long long)at_hint(c, n));
  if (!at_bool(c, "replacement") && at_below(c, t.sizes[t.rank - 1], n))
    at_fail(c, "%lld samples of %lld weights without replacement", (long long)at_hint(c, n),
            (long long)at_hint(c, t.sizes[t.rank - 1]));
  sizes = at_dims_copy(c, t.sizes, t.rank);
  sizes[t.rank - 1] = n;
  at_put(c, AOT_I64, sizes, t.rank);
}

void at_shape_fused_dropout(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_put_like(c, &t, t.dtype);
  at_put_like(c, &t, AOT_U8);
}

void at_shape_rrelu_noise(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), noise = at_tensor(c, "noise");
  at_put_like(c, &t, t.dtype);
  at_put_like(c, &noise, noise.dtype);
}
