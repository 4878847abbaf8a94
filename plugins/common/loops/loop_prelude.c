/* Helper functions of generated C. Written without branches, so that a compiler vectorises the loops that call them.
 * exp, tanh: range reduction and polynomials after Cephes (S. Moshier, expf.c and tanhf.c), within 2 ulp; erf for GELU:
 * Abramowitz and Stegun 7.1.26, absolute error below 2e-7. In double, libm is called. */
#include "common/loops/loop.h"

#include <string.h>

static const char helpers[] =
    "#include <math.h>\n"
    "#include <stdint.h>\n"
    "#define LP static inline __attribute__((always_inline, unused))\n"
    "LP int64_t lp_to_i64(double v) {\n"
    "  return v != v ? INT64_MIN : v >= 9223372036854775808.0 ? INT64_MAX : v < -9223372036854775808.0 ? INT64_MIN : "
    "(int64_t)v;\n"
    "}\n"
    "LP float lp_power_of_two(int32_t n) { union { int32_t i; float f; } u; u.i = (n + 127) << 23; return u.f; }\n"
    "LP float lp_exp_f32(float x) {\n"
    "  float c = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;\n"
    "  float k = rintf(c * 1.44269504088896341f), r = (c - k * 0.693359375f) + k * 2.12194440e-4f;\n"
    "  float p = 1.9875691500e-4f;\n"
    "  p = p * r + 1.3981999507e-3f; p = p * r + 8.3334519073e-3f; p = p * r + 4.1665795894e-2f;\n"
    "  p = p * r + 1.6666665459e-1f; p = p * r + 5.0000001201e-1f; p = p * (r * r) + r + 1.0f;\n"
    "  int32_t n = (int32_t)(k == k ? k : 0.0f), h = n >> 1;\n"
    "  return p * lp_power_of_two(h) * lp_power_of_two(n - h);\n"
    "}\n"
    "LP double lp_exp_f64(double x) { return exp(x); }\n"
    "LP float lp_tanh_f32(float x) {\n"
    "  float a = fabsf(x), z = x * x, p = -5.70498872745e-3f;\n"
    "  p = p * z + 2.06390887954e-2f; p = p * z - 5.37397155531e-2f; p = p * z + 1.33314422036e-1f;\n"
    "  p = p * z - 3.33332819422e-1f; p = p * z * x + x;\n"
    "  float big = 1.0f - 2.0f / (lp_exp_f32(2.0f * a) + 1.0f);\n"
    "  return copysignf(a < 0.625f ? p : big, x);\n"
    "}\n"
    "LP double lp_tanh_f64(double x) { return tanh(x); }\n"
    /* 0.5 * erfc(-x / sqrt 2) */
    "LP float lp_normal_f32(float x) {\n"
    "  float a = fabsf(x) * 0.70710678118654752f, t = 1.0f / (1.0f + 0.3275911f * a), p = 1.061405429f;\n"
    "  p = p * t - 1.453152027f; p = p * t + 1.421413741f; p = p * t - 0.284496736f; p = p * t + 0.254829592f;\n"
    "  float tail = 0.5f * (p * t * lp_exp_f32(-a * a));\n"
    "  return x < 0.0f ? tail : 1.0f - tail;\n"
    "}\n"
    /* the gate of GELU, which PyTorch's float32 kernel has NaN for inf */
    "LP float lp_normal_or_nan_f32(float x) { return lp_normal_f32(x) + (x - x); }\n"
    "LP double lp_normal_f64(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }\n"
    "LP double lp_normal_or_nan_f64(double x) { return lp_normal_f64(x); }\n"
    "#define LP_BOTH(T, S) \\\n"
    "LP T lp_sigmoid_##S(T x) { return (T)1 / ((T)1 + lp_exp_##S(-x)); } \\\n"
    "LP T lp_gelu_gate_##S(T x) { return lp_sigmoid_##S((T)1.59576912160573071176 * (x + (T)0.044715 * x * x * x)); } "
    "\\\n"
    "LP T lp_gelu_tanh_backward_##S(T g, T x) { \\\n"
    "  T s = lp_gelu_gate_##S(x); \\\n"
    "  return g * (s + x * s * ((T)1 - s) * (T)1.59576912160573071176 * ((T)1 + (T)0.134145 * x * x)); } \\\n"
    "LP T lp_gelu_backward_##S(T g, T x) { \\\n"
    "  return g * (lp_normal_##S(x) + x * (T)0.39894228040143267794 * lp_exp_##S((T)-0.5 * x * x)); } \\\n"
    "LP T lp_silu_backward_##S(T g, T x) { T s = lp_sigmoid_##S(x); return g * s * ((T)1 + x * ((T)1 - s)); } \\\n"
    "LP T lp_max_##S(T a, T b) { return a != a ? a : b != b ? b : a < b ? b : a; } \\\n"
    "LP T lp_min_##S(T a, T b) { return a != a ? a : b != b ? b : a > b ? b : a; }\n"
    "LP_BOTH(float, f32)\n"
    "LP_BOTH(double, f64)\n"
    "LP int64_t lp_max_i64(int64_t a, int64_t b) { return a > b ? a : b; }\n"
    "LP int64_t lp_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }\n";

static const char libm[] =
    "#define LP_LIBM(name, f, d) \\\n"
    "LP float lp_##name##_f32(float x) { return f(x); } LP double lp_##name##_f64(double x) { return d(x); }\n"
    "LP_LIBM(sqrt, sqrtf, sqrt) LP_LIBM(log, logf, log) LP_LIBM(log2, log2f, log2) LP_LIBM(log10, log10f, log10)\n"
    "LP_LIBM(log1p, log1pf, log1p) LP_LIBM(expm1, expm1f, expm1) LP_LIBM(exp2, exp2f, exp2) LP_LIBM(sin, sinf, sin)\n"
    "LP_LIBM(cos, cosf, cos) LP_LIBM(tan, tanf, tan) LP_LIBM(asin, asinf, asin) LP_LIBM(acos, acosf, acos)\n"
    "LP_LIBM(atan, atanf, atan) LP_LIBM(sinh, sinhf, sinh) LP_LIBM(cosh, coshf, cosh) LP_LIBM(asinh, asinhf, asinh)\n"
    "LP_LIBM(acosh, acoshf, acosh) LP_LIBM(atanh, atanhf, atanh) LP_LIBM(erf, erff, erf) LP_LIBM(erfc, erfcf, erfc)\n"
    "LP_LIBM(abs, fabsf, fabs) LP_LIBM(ceil, ceilf, ceil) LP_LIBM(floor, floorf, floor) LP_LIBM(trunc, truncf, trunc)\n"
    "LP_LIBM(round, rintf, rint)\n"
    "LP float lp_pow_f32(float a, float b) { return powf(a, b); }\n"
    "LP double lp_pow_f64(double a, double b) { return pow(a, b); }\n"
    /* the exponents that PyTorch's kernel has products and roots for; one half is a square root: of -inf NaN, of -0
     * -0 */
    "#define LP_POW_NUMBER(T, S, root, power) \\\n"
    "LP T lp_pow_number_##S(T a, T b) { \\\n"
    "  return b == (T)0.5 ? root(a) : b == (T)-0.5 ? (T)1 / root(a) : b == 2 ? a * a : b == 3 ? a * a * a \\\n"
    "       : b == -1 ? (T)1 / a : b == -2 ? (T)1 / (a * a) : power(a, b); }\n"
    "LP_POW_NUMBER(float, f32, sqrtf, powf)\n"
    "LP_POW_NUMBER(double, f64, sqrt, pow)\n"
    "LP float lp_atan2_f32(float a, float b) { return atan2f(a, b); }\n"
    "LP double lp_atan2_f64(double a, double b) { return atan2(a, b); }\n";

/* Random words: their upper bits as a number in [0, 1); the upper half of a product of 64 bits. */
static const char draws[] =
    "typedef struct lp_draw {\n"
    "  void (*fill)(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);\n"
    "  uint64_t draw;\n"
    "} lp_draw_t;\n"
    "LP float lp_unit_f32(uint32_t w) { return (float)(w >> 8) * 0x1p-24f; }\n"
    "LP double lp_unit_f64(uint64_t w) { return (double)(w >> 11) * 0x1p-53; }\n"
    "LP uint64_t lp_below(uint64_t bits, uint64_t range) { return (uint64_t)((unsigned __int128)bits * range >> 64); "
    "}\n";

void lp_prelude_add(lp_text_t *t) {
  lp_text_add(t, helpers, strlen(helpers));
  lp_text_add(t, libm, strlen(libm));
  lp_text_add(t, draws, strlen(draws));
}
