/* Elements of every dtype as double or int64: loading, rounding once when storing, promotion.
 *
 * Floats narrower than double round to nearest even. f16 and bf16 are rounded to float first: eager PyTorch computes
 * them in float, and one extra rounding is what distinguishes the two. Conversions of NaN or out-of-range floats to
 * integers saturate instead of being undefined. Promotion: c10/core/ScalarType (promoteTypes). */
#include "rk_core.h"

#include "kit/base/half.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

static int64_t float_to_int(double v) {
  if (v != v) return INT64_MIN;
  if (v >= 9223372036854775808.0) return INT64_MAX;
  if (v < -9223372036854775808.0) return INT64_MIN;
  return (int64_t)v;
}

double rk_load_f(const void *p, int32_t dtype) {
  float f;
  double d;
  uint16_t h;
  switch (dtype) {
    case AOT_F32: memcpy(&f, p, 4); return (double)f;
    case AOT_F64: memcpy(&d, p, 8); return d;
    case AOT_F16: memcpy(&h, p, 2); return (double)kit_f16_to_f32(h);
    case AOT_BF16: memcpy(&h, p, 2); return (double)kit_bf16_to_f32(h);
    case AOT_U64: {
      uint64_t u;
      memcpy(&u, p, 8);
      return (double)u;
    }
    case AOT_C64: return rk_load_f(p, AOT_F32); /* the real part, as a cast has it */
    case AOT_C128: return rk_load_f(p, AOT_F64);
    default: return (double)rk_load_i(p, dtype);
  }
}

int64_t rk_load_i(const void *p, int32_t dtype) {
  switch (dtype) {
    case AOT_U8: return *(const uint8_t *)p;
    case AOT_BOOL: return *(const uint8_t *)p != 0;
    case AOT_I8: return *(const int8_t *)p;
    case AOT_I16: {
      int16_t v;
      memcpy(&v, p, 2);
      return v;
    }
    case AOT_U16: {
      uint16_t v;
      memcpy(&v, p, 2);
      return v;
    }
    case AOT_I32: {
      int32_t v;
      memcpy(&v, p, 4);
      return v;
    }
    case AOT_U32: {
      uint32_t v;
      memcpy(&v, p, 4);
      return v;
    }
    case AOT_I64:
    case AOT_U64: {
      int64_t v;
      memcpy(&v, p, 8);
      return v;
    }
    default: return float_to_int(rk_load_f(p, dtype));
  }
}

void rk_store_f(void *p, int32_t dtype, double v) {
  float f = (float)v;
  uint16_t h;
  switch (dtype) {
    case AOT_F32: memcpy(p, &f, 4); return;
    case AOT_F64: memcpy(p, &v, 8); return;
    case AOT_F16:
      h = kit_f32_to_f16(f);
      memcpy(p, &h, 2);
      return;
    case AOT_BF16:
      h = kit_f32_to_bf16(f);
      memcpy(p, &h, 2);
      return;
    case AOT_BOOL: *(uint8_t *)p = v != 0; return;
    case AOT_C64:
    case AOT_C128: /* the real part, and no imaginary one */
      memset(p, 0, (size_t)aot_dtype_size(dtype));
      rk_store_f(p, aot_dtype_part(dtype), v);
      return;
    default: rk_store_i(p, dtype, float_to_int(v)); return;
  }
}

void rk_store_i(void *p, int32_t dtype, int64_t v) {
  uint64_t u = (uint64_t)v;
  switch (dtype) {
    case AOT_BOOL: *(uint8_t *)p = v != 0; return;
    case AOT_U8:
    case AOT_I8: {
      uint8_t w = (uint8_t)u;
      memcpy(p, &w, 1);
      return;
    }
    case AOT_I16:
    case AOT_U16: {
      uint16_t w = (uint16_t)u;
      memcpy(p, &w, 2);
      return;
    }
    case AOT_I32:
    case AOT_U32: {
      uint32_t w = (uint32_t)u;
      memcpy(p, &w, 4);
      return;
    }
    case AOT_I64:
    case AOT_U64: memcpy(p, &u, 8); return;
    case AOT_F32: {
      float f = (float)v;
      memcpy(p, &f, 4);
      return;
    }
    default: rk_store_f(p, dtype, (double)v); return;
  }
}

int rk_dtype_supported(int32_t dtype) { return aot_dtype_size(dtype) != 0; }

void rk_load_run_f(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, double *out) {
  int64_t width = (int64_t)aot_dtype_size(t->dtype), k;
  const char *p = (const char *)t->data + at * width;
  if (t->dtype == AOT_F32) {
    for (k = 0; k < n; k++) {
      float f;
      memcpy(&f, p + k * stride * 4, 4);
      out[k] = (double)f;
    }
    return;
  }
  for (k = 0; k < n; k++) out[k] = rk_load_f(p + k * stride * width, t->dtype);
}

void rk_load_run_i(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, int64_t *out) {
  int64_t width = (int64_t)aot_dtype_size(t->dtype), k;
  const char *p = (const char *)t->data + at * width;
  for (k = 0; k < n; k++) out[k] = rk_load_i(p + k * stride * width, t->dtype);
}

void rk_load_run_f_as(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, int32_t dtype, double *out) {
  rk_load_run_f(t, at, stride, n, out);
  for (int64_t k = 0; t->dtype != dtype && k < n; k++) out[k] = rk_round_to(out[k], dtype);
}

int64_t rk_int_of(double v, int32_t dtype) { return dtype == AOT_BOOL ? v != 0 : float_to_int(v); }

void rk_load_run_i_as(const rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, int32_t dtype, int64_t *out) {
  int64_t width = (int64_t)aot_dtype_size(t->dtype), k;
  const char *p = (const char *)t->data + at * width;
  if (dtype == AOT_BOOL && !rk_is_int(t->dtype)) {
    for (k = 0; k < n; k++) out[k] = rk_int_of(rk_load_f(p + k * stride * width, t->dtype), dtype);
    return;
  }
  rk_load_run_i(t, at, stride, n, out);
  for (k = 0; t->dtype != dtype && dtype != AOT_I64 && k < n; k++) out[k] = rk_wrap_to(out[k], dtype);
}

void rk_store_run_f(rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, const double *v) {
  int64_t width = (int64_t)aot_dtype_size(t->dtype), k;
  char *p = (char *)t->data + at * width;
  for (k = 0; k < n; k++) rk_store_f(p + k * stride * width, t->dtype, v[k]);
}

void rk_store_run_i(rk_tensor_t *t, int64_t at, int64_t stride, int64_t n, const int64_t *v) {
  int64_t width = (int64_t)aot_dtype_size(t->dtype), k;
  char *p = (char *)t->data + at * width;
  for (k = 0; k < n; k++) rk_store_i(p + k * stride * width, t->dtype, v[k]);
}

double rk_round_to(double v, int32_t dtype) {
  unsigned char bytes[8];
  if (!aot_dtype_is_float(dtype) || dtype == AOT_F64) return v;
  rk_store_f(bytes, dtype, v);
  return rk_load_f(bytes, dtype);
}

int64_t rk_wrap_to(int64_t v, int32_t dtype) {
  unsigned char bytes[8];
  rk_store_i(bytes, dtype, v);
  return rk_load_i(bytes, dtype);
}

int rk_is_int(int32_t dtype) { return !aot_dtype_is_float(dtype) && !aot_dtype_is_complex(dtype); }

/* Rank of integers by what holds them: bool < u8, i8 < i16 < i32 < i64. u8 with i8 needs i16. */
int32_t rk_promote(int32_t a, int32_t b) {
  static const int32_t order[] = {AOT_BOOL, AOT_U8,   AOT_I8,  AOT_I16, AOT_I32, AOT_I64,
                                  AOT_U64,  AOT_BF16, AOT_F16, AOT_F32, AOT_F64};
  int ra = 0, rb = 0, k;
  if (a == b) return a;
  if ((a == AOT_U8 && b == AOT_I8) || (a == AOT_I8 && b == AOT_U8)) return AOT_I16;
  if ((a == AOT_F16 && b == AOT_BF16) || (a == AOT_BF16 && b == AOT_F16)) return AOT_F32;
  for (k = 0; k < (int)(sizeof order / sizeof order[0]); k++) {
    if (order[k] == a) ra = k;
    if (order[k] == b) rb = k;
  }
  return ra > rb ? a : b;
}

double rk_dtype_lowest(int32_t dtype) {
  switch (dtype) {
    case AOT_BOOL:
    case AOT_U8:
    case AOT_U16:
    case AOT_U32:
    case AOT_U64: return 0;
    case AOT_I8: return INT8_MIN;
    case AOT_I16: return INT16_MIN;
    case AOT_I32: return INT32_MIN;
    case AOT_I64: return (double)INT64_MIN;
    default: return -INFINITY;
  }
}

double rk_dtype_eps(int32_t dtype) {
  switch (dtype) {
    case AOT_F64: return 2.220446049250313e-16;
    case AOT_F16: return 0.0009765625;
    case AOT_BF16: return 0.0078125;
    default: return 1.1920928955078125e-07;
  }
}
