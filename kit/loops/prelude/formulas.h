/* Formulas of C and CUDA C alike. */

/* Offsets by indices. LP_TELL reports one that is out of range: here as a flag. */
#ifndef LP_TELL
#define LP_TELL(wrong, is_right, i) *wrong |= !is_right
#endif
/* 0 if i is out of range. */
LP int64_t lp_place(int64_t i, int64_t size, int64_t *wrong) {
  const int is_right = (uint64_t)i < (uint64_t)size;
  LP_TELL(wrong, is_right, i);
  return is_right ? i : 0;
}
LP int64_t lp_wrap(int64_t i, int64_t size) { return i < 0 && i >= -size ? i + size : i; }

/* Defined before by a target with vector functions. */
#ifndef LP_LOGF
#define LP_LOGF logf
#define LP_LOG1PF log1pf
#define LP_EXPM1F expm1f
#define LP_ERFF erff
#endif
LP int64_t lp_to_i64(double v) {
  return v != v                       ? INT64_MIN
         : v >= 9223372036854775808.0 ? INT64_MAX
         : v < -9223372036854775808.0 ? INT64_MIN
                                      : (int64_t)v;
}
LP double lp_exp_f64(double x) { return exp(x); }
LP double lp_reciprocal_f64(double x) { return 1.0 / x; }
LP double lp_tanh_f64(double x) { return tanh(x); }
LP double lp_normal_f64(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
LP double lp_normal_or_nan_f64(double x) { return lp_normal_f64(x); }
#define LP_BOTH(T, S) \
  LP T lp_sigmoid_##S(T x) { return lp_reciprocal_##S((T)1 + lp_exp_##S(-x)); } \
  LP T lp_gelu_gate_##S(T x) { return lp_sigmoid_##S((T)1.59576912160573071176 * (x + (T)0.044715 * x * x * x)); } \
  LP T lp_gelu_tanh_backward_##S(T g, T x) { \
    T s = lp_gelu_gate_##S(x); \
    return g * (s + x * s * ((T)1 - s) * (T)1.59576912160573071176 * ((T)1 + (T)0.134145 * x * x)); \
  } \
  LP T lp_gelu_backward_##S(T g, T x) { \
    return g * (lp_normal_##S(x) + x * (T)0.39894228040143267794 * lp_exp_##S((T)-0.5 * x * x)); \
  } \
  LP T lp_larger_##S(T a, T b) { return a != a ? a : b != b ? b : a < b ? b : a; } \
  LP T lp_lesser_##S(T a, T b) { return a != a ? a : b != b ? b : a > b ? b : a; }
LP_BOTH(float, f32)
LP_BOTH(double, f64)
LP int64_t lp_larger_i64(int64_t a, int64_t b) { return a > b ? a : b; }
LP int64_t lp_lesser_i64(int64_t a, int64_t b) { return a < b ? a : b; }
#define LP_LIBM(name, f, d) \
  LP float lp_##name##_f32(float x) { return f(x); } \
  LP double lp_##name##_f64(double x) { return d(x); }
LP_LIBM(sqrt, sqrtf, sqrt)
LP_LIBM(log, LP_LOGF, log)
LP_LIBM(log2, log2f, log2)
LP_LIBM(log10, log10f, log10)
LP_LIBM(log1p, LP_LOG1PF, log1p)
LP_LIBM(expm1, LP_EXPM1F, expm1)
LP_LIBM(exp2, exp2f, exp2)
LP_LIBM(sin, sinf, sin)
LP_LIBM(cos, cosf, cos)
LP_LIBM(tan, tanf, tan)
LP_LIBM(asin, asinf, asin)
LP_LIBM(acos, acosf, acos)
LP_LIBM(atan, atanf, atan)
LP_LIBM(sinh, sinhf, sinh)
LP_LIBM(cosh, coshf, cosh)
LP_LIBM(asinh, asinhf, asinh)
LP_LIBM(acosh, acoshf, acosh)
LP_LIBM(atanh, atanhf, atanh)
LP_LIBM(erf, LP_ERFF, erf)
LP_LIBM(erfc, erfcf, erfc)
LP_LIBM(fabs, fabsf, fabs)
LP_LIBM(ceil, ceilf, ceil)
LP_LIBM(floor, floorf, floor)
LP_LIBM(trunc, truncf, trunc)
LP_LIBM(round, rintf, rint)
LP float lp_pow_f32(float a, float b) { return powf(a, b); }
LP double lp_pow_f64(double a, double b) { return pow(a, b); }
/* The exponents for which PyTorch's kernel has products and roots, and 4. 0.5 is a square root: NaN for -inf, -0 for
 * -0. */
#define LP_POW_NUMBER(T, S, root, power) \
  LP T lp_pow_number_##S(T a, T b) { \
    return b == (T)0.5    ? root(a) \
           : b == (T)-0.5 ? (T)1 / root(a) \
           : b == 2       ? a * a \
           : b == 3       ? a * a * a \
           : b == 4       ? (a * a) * (a * a) \
           : b == -1      ? (T)1 / a \
           : b == -2      ? (T)1 / (a * a) \
                          : power(a, b); \
  }
LP_POW_NUMBER(float, f32, sqrtf, powf)
LP_POW_NUMBER(double, f64, sqrt, pow)
#define LP_LIBM2(name, f, d) \
  LP float lp_##name##_f32(float a, float b) { return f(a, b); } \
  LP double lp_##name##_f64(double a, double b) { return d(a, b); }
LP_LIBM2(atan2, atan2f, atan2)
LP_LIBM2(copysign, copysignf, copysign)
LP_LIBM2(hypot, hypotf, hypot)
LP_LIBM(lgamma, lgammaf, lgamma)
LP float lp_softplus_f32(float a) { return (a > 0 ? a : 0.0f) + LP_LOG1PF(lp_exp_f32(-fabsf(a))); }
LP double lp_softplus_f64(double a) { return (a > 0 ? a : 0.0) + log1p(exp(-fabs(a))); }
LP float lp_unit_f32(uint32_t w) { return (float)(w >> 8) * 0x1p-24f; }
LP double lp_unit_f64(uint64_t w) { return (double)(w >> 11) * 0x1p-53; }
/* log(exp(a) + exp(b)); -inf is the neutral element. */
LP double lp_log_add(double a, double b) {
  const double high = a != a || a > b ? a : b, low = high == a ? b : a;
  return high != high || fabs(high) == INFINITY ? high : high + log1p(exp(low - high));
}
#define LP_ADD(a, b) ((a) + (b))
#define LP_TIMES(a, b) ((a) * (b))
#ifndef LP_LARGER
#define LP_LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define LP_SMALLER(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))
#endif
