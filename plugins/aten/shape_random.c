/* Explicit draws: numbers of an asked size, or one for each element of a tensor of parameters, from seed and offset. */
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
    if (at_hint(c, sizes[i]) < 0) at_fail(c, "size %lld", (long long)at_hint(c, sizes[i]));
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
  if (at_is_complex(dtype)) at_fail(c, "no random integers of dtype %s", aot_dtype_name(dtype));
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
