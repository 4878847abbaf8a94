/* Helper functions of generated C. Written without branches, so that a compiler vectorises the loops that call them.
 * exp, tanh, log, erf below 1: range reduction and polynomials after Cephes (S. Moshier, expf.c, tanhf.c, logf.c,
 * ndtrf.c), within 2 ulp; erf for GELU and above 1: Abramowitz and Stegun 7.1.26, absolute error below 2e-7. In double,
 * libm is called. */
#include "loop_print.h"

#include <string.h>

static const char head[] = "#include <math.h>\n"
                           "#include <stdint.h>\n"
                           "#define LP static inline __attribute__((always_inline, unused))\n";

/* ---- on a CPU: what a compiler makes vector instructions of ---- */

static const char functions[] =
    "LP float lp_reciprocal_f32(float x) { return 1.0f / x; }\n"
    "LP float lp_power_of_two(int32_t n) { union { int32_t i; float f; } u; u.i = (n + 127) << 23; return u.f; }\n"
    /* of what is masked zero by choice: a product that underflows takes a processor a hundred cycles */
    "LP float lp_exp_f32(float x) {\n"
    "  float c = x < -104.0f ? 0.0f : x > 89.0f ? 89.0f : x;\n"
    "  float k = rintf(c * 1.44269504088896341f), r = (c - k * 0.693359375f) + k * 2.12194440e-4f;\n"
    "  float p = 1.9875691500e-4f;\n"
    "  p = p * r + 1.3981999507e-3f; p = p * r + 8.3334519073e-3f; p = p * r + 4.1665795894e-2f;\n"
    "  p = p * r + 1.6666665459e-1f; p = p * r + 5.0000001201e-1f; p = p * (r * r) + r + 1.0f;\n"
    "  int32_t n = (int32_t)(k == k ? k : 0.0f), h = n >> 1;\n"
    "  p = p * lp_power_of_two(h) * lp_power_of_two(n - h);\n"
    "  return x < -104.0f ? 0.0f : p;\n"
    "}\n"
    "LP float lp_tanh_f32(float x) {\n"
    "  float a = fabsf(x), z = x * x, p = -5.70498872745e-3f;\n"
    "  p = p * z + 2.06390887954e-2f; p = p * z - 5.37397155531e-2f; p = p * z + 1.33314422036e-1f;\n"
    "  p = p * z - 3.33332819422e-1f; p = p * z * x + x;\n"
    "  float big = 1.0f - 2.0f / (lp_exp_f32(2.0f * a) + 1.0f);\n"
    "  return copysignf(a < 0.625f ? p : big, x);\n"
    "}\n"
    /* 0.5 * erfc(-x / sqrt 2) */
    "LP float lp_normal_f32(float x) {\n"
    "  float a = fabsf(x) * 0.70710678118654752f, t = 1.0f / (1.0f + 0.3275911f * a), p = 1.061405429f;\n"
    "  p = p * t - 1.453152027f; p = p * t + 1.421413741f; p = p * t - 0.284496736f; p = p * t + 0.254829592f;\n"
    "  float tail = 0.5f * (p * t * lp_exp_f32(-a * a));\n"
    "  return x < 0.0f ? tail : 1.0f - tail;\n"
    "}\n"
    /* the gate of GELU, which PyTorch's float32 kernel has NaN for inf */
    "LP float lp_normal_or_nan_f32(float x) { return lp_normal_f32(x) + (x - x); }\n"
    "LP float lp_erf_of(float x) {\n"
    "  float a = fabsf(x), z = x * x, p = 7.853861353153693e-5f;\n"
    "  p = p * z - 8.010193625184903e-4f; p = p * z + 5.188327685732524e-3f; p = p * z - 2.685381193529856e-2f;\n"
    "  p = p * z + 1.128358514861418e-1f; p = p * z - 3.761262582423300e-1f; p = p * z + 1.128379165726710f;\n"
    "  float big = 1.0f - 2.0f * lp_normal_f32(-1.41421356237309505f * a);\n"
    "  return a < 1.0f ? p * x : copysignf(big, x);\n"
    "}\n"
    "LP float lp_log_of(float x) {\n"
    "  float tiny = x < 0x1p-126f ? 23.0f : 0.0f;\n"
    "  uint32_t u = lp_bits_of(x < 0x1p-126f ? x * 0x1p23f : x);\n"
    "  float m = lp_float_of((u & 0x7fffffu) | 0x3f800000u), e = (float)((int32_t)(u >> 23) - 127) - tiny;\n"
    "  e = m > 1.41421356f ? e + 1.0f : e;\n"
    "  m = (m > 1.41421356f ? 0.5f * m : m) - 1.0f;\n"
    "  float z = m * m, p = 7.0376836292e-2f;\n"
    "  p = p * m - 1.1514610310e-1f; p = p * m + 1.1676998740e-1f; p = p * m - 1.2420140846e-1f;\n"
    "  p = p * m + 1.4249322787e-1f; p = p * m - 1.6668057665e-1f; p = p * m + 2.0000714765e-1f;\n"
    "  p = p * m - 2.4999993993e-1f; p = p * m + 3.3333331174e-1f;\n"
    "  float r = m + (p * m * z - 2.12194440e-4f * e - 0.5f * z) + 0.693359375f * e;\n"
    "  return x > 0.0f ? (x < INFINITY ? r : x) : x == 0.0f ? -INFINITY : NAN;\n"
    "}\n"
    /* by the error that 1 + x, and exp(x), were rounded with (W. Kahan) */
    "LP float lp_log1p_of(float x) {\n"
    "  float u = 1.0f + x, r = lp_log_of(u) * (x / (u - 1.0f));\n"
    "  return u == 1.0f ? x : u < INFINITY ? r : u;\n"
    "}\n"
    "LP float lp_expm1_of(float x) {\n"
    "  float u = lp_exp_f32(x), d = u - 1.0f, r = d * (x / lp_log_of(u));\n"
    "  return u == 1.0f ? x : x < -17.0f ? -1.0f : x > 88.0f ? u : r;\n"
    "}\n"
    "#define LP_LOGF lp_log_of\n#define LP_LOG1PF lp_log1p_of\n#define LP_EXPM1F lp_expm1_of\n"
    "#define LP_ERFF lp_erf_of\n";

/* Random words: their upper bits as a number in [0, 1); the upper half of a product of 64 bits. */
static const char draws[] =
    "typedef struct lp_draw {\n"
    "  void (*fill)(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out);\n"
    "  uint64_t draw;\n"
    "} lp_draw_t;\n"
    "LP uint64_t lp_below_i64(uint64_t bits, uint64_t range) { return (uint64_t)((unsigned __int128)bits * range >> "
    "64); "
    "}\n";

/* Halves: in registers they are floats that a half can hold, rounded to the nearest, to even. */
static const char halves[] =
    "LP float lp_float_of(uint32_t u) { union { uint32_t u; float f; } c; c.u = u; return c.f; }\n"
    "LP uint32_t lp_bits_of(float f) { union { uint32_t u; float f; } c; c.f = f; return c.u; }\n"
    "LP float lp_from_bf16(uint16_t h) { return lp_float_of((uint32_t)h << 16); }\n"
    "LP uint16_t lp_to_bf16(float f) { return (uint16_t)(lp_bits_of(f) >> 16); }\n"
    "LP float lp_round_bf16(float f) {\n"
    "  uint32_t u = lp_bits_of(f), r = u + 0x7fffu + (u >> 16 & 1u);\n"
    "  return lp_float_of((f == f ? r : 0x7fc00000u) & 0xffff0000u);\n"
    "}\n"
    "LP float lp_from_f16(uint16_t h) {\n"
    "  uint32_t m = (uint32_t)(h & 0x7fffu) << 13, u = lp_bits_of(lp_float_of(m) * 0x1p112f);\n"
    "  u = m >= 0x0f800000u ? m | 0x7f800000u : u;\n"
    "  return lp_float_of(u | (uint32_t)(h & 0x8000u) << 16);\n"
    "}\n"
    "LP float lp_round_f16(float f) {\n"
    "  float a = fabsf(f), small = (a + 0.5f) - 0.5f;\n"
    "  uint32_t u = lp_bits_of(a), r = (u + 0xfffu + (u >> 13 & 1u)) & 0xffffe000u;\n"
    "  float large = a >= 65520.0f ? INFINITY : lp_float_of(r);\n"
    "  return f == f ? copysignf(a < 0x1p-14f ? small : large, f) : f;\n"
    "}\n"
    "LP uint16_t lp_to_f16(float f) {\n"
    "  uint32_t u = lp_bits_of(f), a = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;\n"
    "  uint32_t small = (uint32_t)(int32_t)((a < 0x38800000u ? lp_float_of(a) : 0.0f) * 0x1p24f);\n"
    "  uint32_t large = a < 0x7f800000u ? (a >> 13) - 0x1c000u : a > 0x7f800000u ? 0x7e00u : 0x7c00u;\n"
    "  return (uint16_t)(sign | (a < 0x38800000u ? small : large));\n"
    "}\n";

/* Reductions: values go to lanes in turn, piece after piece, and lanes are joined in one fixed order. Pieces are
 * multiples of the lanes, but for a row's last one, whose rest goes to the first lane. */
static const char reductions[] =
    "enum { LP_LANES = 16 };\n"
    "#define LP_REDUCE(name, S, T, L, first, join) \\\n"
    "static __attribute__((unused)) void lp_row_##name##_begin_##S(L *a) { for (int k = 0; k < LP_LANES; k++) a[k] = "
    "first; } \\\n"
    "static __attribute__((noinline, unused)) void lp_row_##name##_##S(L *a, const T *x, int64_t n) { \\\n"
    "  L l[LP_LANES]; int64_t i = 0; \\\n"
    "  for (int k = 0; k < LP_LANES; k++) l[k] = a[k]; \\\n"
    "  for (; i + LP_LANES <= n; i += LP_LANES) \\\n"
    "    for (int k = 0; k < LP_LANES; k++) l[k] = join(l[k], (L)x[i + k]); \\\n"
    "  for (; i < n; i++) l[0] = join(l[0], (L)x[i]); \\\n"
    "  for (int k = 0; k < LP_LANES; k++) a[k] = l[k]; } \\\n"
    "static __attribute__((unused)) L lp_row_##name##_end_##S(L *a) { \\\n"
    "  for (int h = LP_LANES / 2; h > 0; h /= 2) for (int k = 0; k < h; k++) a[k] = join(a[k], a[k + h]); \\\n"
    "  return a[0]; }\n"
    "LP_REDUCE(sum, f32, float, double, 0, LP_ADD) LP_REDUCE(sum, f64, double, double, 0, LP_ADD)\n"
    "LP_REDUCE(sum, i64, int64_t, int64_t, 0, LP_ADD) LP_REDUCE(prod, f32, float, double, 1, LP_TIMES)\n"
    "LP_REDUCE(prod, f64, double, double, 1, LP_TIMES) LP_REDUCE(prod, i64, int64_t, int64_t, 1, LP_TIMES)\n"
    "LP_REDUCE(max, i64, int64_t, int64_t, INT64_MIN, LP_LARGER) LP_REDUCE(min, i64, int64_t, int64_t, INT64_MAX, "
    "LP_SMALLER)\n"
    /* Of floats as vectors: compilers do not make them of a choice in lanes. */
    "typedef float lp_v_f32 __attribute__((vector_size(64))); typedef int32_t lp_m_f32 "
    "__attribute__((vector_size(64)));\n"
    "typedef double lp_v_f64 __attribute__((vector_size(128))); typedef int64_t lp_m_f64 "
    "__attribute__((vector_size(128)));\n"
    "#define LP_EXTREME(name, S, T, first, than, join) \\\n"
    "static __attribute__((unused)) void lp_row_##name##_begin_##S(T *a) { for (int k = 0; k < LP_LANES; k++) a[k] = "
    "first; } \\\n"
    "static __attribute__((noinline, unused)) void lp_row_##name##_##S(T *a, const T *x, int64_t n) { \\\n"
    "  lp_v_##S l, b; int64_t i = 0; \\\n"
    "  __builtin_memcpy(&l, a, sizeof l); \\\n"
    "  for (; i + LP_LANES <= n; i += LP_LANES) { \\\n"
    "    __builtin_memcpy(&b, x + i, sizeof b); \\\n"
    "    const lp_m_##S m = (b than l) | (b != b); \\\n"
    "    l = (lp_v_##S)(((lp_m_##S)b & m) | ((lp_m_##S)l & ~m)); } \\\n"
    "  __builtin_memcpy(a, &l, sizeof l); \\\n"
    "  for (; i < n; i++) a[0] = join(a[0], x[i]); } \\\n"
    "static __attribute__((unused)) T lp_row_##name##_end_##S(T *a) { \\\n"
    "  for (int h = LP_LANES / 2; h > 0; h /= 2) for (int k = 0; k < h; k++) a[k] = join(a[k], a[k + h]); \\\n"
    "  return a[0]; }\n"
    "LP_EXTREME(max, f32, float, -INFINITY, >, LP_LARGER) LP_EXTREME(max, f64, double, -INFINITY, >, LP_LARGER)\n"
    "LP_EXTREME(min, f32, float, INFINITY, <, LP_SMALLER) LP_EXTREME(min, f64, double, INFINITY, <, LP_SMALLER)\n";

/* ---- on CPUs and GPUs ---- */

/* Places by indices. One that is wrong is told: as a flag, where the target tells no more. */
static const char places[] =
    "#ifndef LP_TELL\n#define LP_TELL(wrong, is_right, i) *wrong |= !is_right\n#endif\n"
    /* 0 for one that is out of range */
    "LP int64_t lp_place(int64_t i, int64_t size, int64_t *wrong) {\n"
    "  const int is_right = (uint64_t)i < (uint64_t)size;\n"
    "  LP_TELL(wrong, is_right, i);\n"
    "  return is_right ? i : 0;\n"
    "}\n"
    "LP int64_t lp_wrap(int64_t i, int64_t size) { return i < 0 && i >= -size ? i + size : i; }\n";

static const char formulas[] =
    /* a target with vector functions of its own has named them before */
    "#ifndef LP_LOGF\n#define LP_LOGF logf\n#define LP_LOG1PF log1pf\n#define LP_EXPM1F expm1f\n"
    "#define LP_ERFF erff\n#endif\n"
    "LP int64_t lp_to_i64(double v) {\n"
    "  return v != v ? INT64_MIN : v >= 9223372036854775808.0 ? INT64_MAX : v < -9223372036854775808.0 ? INT64_MIN : "
    "(int64_t)v;\n"
    "}\n"
    "LP double lp_exp_f64(double x) { return exp(x); }\n"
    "LP double lp_reciprocal_f64(double x) { return 1.0 / x; }\n"
    "LP double lp_tanh_f64(double x) { return tanh(x); }\n"
    "LP double lp_normal_f64(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }\n"
    "LP double lp_normal_or_nan_f64(double x) { return lp_normal_f64(x); }\n"
    "#define LP_BOTH(T, S) \\\n"
    "LP T lp_sigmoid_##S(T x) { return lp_reciprocal_##S((T)1 + lp_exp_##S(-x)); } \\\n"
    "LP T lp_gelu_gate_##S(T x) { return lp_sigmoid_##S((T)1.59576912160573071176 * (x + (T)0.044715 * x * x * x)); } "
    "\\\n"
    "LP T lp_gelu_tanh_backward_##S(T g, T x) { \\\n"
    "  T s = lp_gelu_gate_##S(x); \\\n"
    "  return g * (s + x * s * ((T)1 - s) * (T)1.59576912160573071176 * ((T)1 + (T)0.134145 * x * x)); } \\\n"
    "LP T lp_gelu_backward_##S(T g, T x) { \\\n"
    "  return g * (lp_normal_##S(x) + x * (T)0.39894228040143267794 * lp_exp_##S((T)-0.5 * x * x)); } \\\n"
    "LP T lp_larger_##S(T a, T b) { return a != a ? a : b != b ? b : a < b ? b : a; } \\\n"
    "LP T lp_lesser_##S(T a, T b) { return a != a ? a : b != b ? b : a > b ? b : a; }\n"
    "LP_BOTH(float, f32)\n"
    "LP_BOTH(double, f64)\n"
    "LP int64_t lp_larger_i64(int64_t a, int64_t b) { return a > b ? a : b; }\n"
    "LP int64_t lp_lesser_i64(int64_t a, int64_t b) { return a < b ? a : b; }\n"
    "#define LP_LIBM(name, f, d) \\\n"
    "LP float lp_##name##_f32(float x) { return f(x); } LP double lp_##name##_f64(double x) { return d(x); }\n"
    "LP_LIBM(sqrt, sqrtf, sqrt) LP_LIBM(log, LP_LOGF, log) LP_LIBM(log2, log2f, log2) LP_LIBM(log10, log10f, log10)\n"
    "LP_LIBM(log1p, LP_LOG1PF, log1p) LP_LIBM(expm1, LP_EXPM1F, expm1) LP_LIBM(exp2, exp2f, exp2)\n"
    "LP_LIBM(sin, sinf, sin) LP_LIBM(cos, cosf, cos) LP_LIBM(tan, tanf, tan) LP_LIBM(asin, asinf, asin) LP_LIBM(acos, "
    "acosf, acos)\n"
    "LP_LIBM(atan, atanf, atan) LP_LIBM(sinh, sinhf, sinh) LP_LIBM(cosh, coshf, cosh) LP_LIBM(asinh, asinhf, asinh)\n"
    "LP_LIBM(acosh, acoshf, acosh) LP_LIBM(atanh, atanhf, atanh) LP_LIBM(erf, LP_ERFF, erf) LP_LIBM(erfc, erfcf, "
    "erfc)\n"
    "LP_LIBM(fabs, fabsf, fabs) LP_LIBM(ceil, ceilf, ceil) LP_LIBM(floor, floorf, floor) LP_LIBM(trunc, truncf, "
    "trunc)\n"
    "LP_LIBM(round, rintf, rint)\n"
    "LP float lp_pow_f32(float a, float b) { return powf(a, b); }\n"
    "LP double lp_pow_f64(double a, double b) { return pow(a, b); }\n"
    /* the exponents that PyTorch's kernel has products and roots for, and 4; one half is a square root: of -inf NaN,
     * of -0 -0 */
    "#define LP_POW_NUMBER(T, S, root, power) \\\n"
    "LP T lp_pow_number_##S(T a, T b) { \\\n"
    "  return b == (T)0.5 ? root(a) : b == (T)-0.5 ? (T)1 / root(a) : b == 2 ? a * a : b == 3 ? a * a * a \\\n"
    "       : b == 4 ? (a * a) * (a * a) : b == -1 ? (T)1 / a : b == -2 ? (T)1 / (a * a) : power(a, b); }\n"
    "LP_POW_NUMBER(float, f32, sqrtf, powf)\n"
    "LP_POW_NUMBER(double, f64, sqrt, pow)\n"
    "#define LP_LIBM2(name, f, d) \\\n"
    "LP float lp_##name##_f32(float a, float b) { return f(a, b); } \\\n"
    "LP double lp_##name##_f64(double a, double b) { return d(a, b); }\n"
    "LP_LIBM2(atan2, atan2f, atan2) LP_LIBM2(copysign, copysignf, copysign) LP_LIBM2(hypot, hypotf, hypot)\n"
    "LP_LIBM(lgamma, lgammaf, lgamma)\n"
    "LP float lp_softplus_f32(float a) { return (a > 0 ? a : 0.0f) + LP_LOG1PF(lp_exp_f32(-fabsf(a))); }\n"
    "LP double lp_softplus_f64(double a) { return (a > 0 ? a : 0.0) + log1p(exp(-fabs(a))); }\n"
    "LP float lp_unit_f32(uint32_t w) { return (float)(w >> 8) * 0x1p-24f; }\n"
    "LP double lp_unit_f64(uint64_t w) { return (double)(w >> 11) * 0x1p-53; }\n"
    /* log(exp(a) + exp(b)); -inf is none, and inf stays */
    "LP double lp_log_add(double a, double b) {\n"
    "  const double high = a != a || a > b ? a : b, low = high == a ? b : a;\n"
    "  return high != high || fabs(high) == INFINITY ? high : high + log1p(exp(low - high));\n"
    "}\n"
    "#define LP_ADD(a, b) ((a) + (b))\n"
    "#define LP_TIMES(a, b) ((a) * (b))\n"
    "#ifndef LP_LARGER\n"
    "#define LP_LARGER(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))\n"
    "#define LP_SMALLER(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))\n"
    "#endif\n";

void lp_formulas_add(lp_text_t *t) {
  lp_text_add(t, places, strlen(places));
  lp_text_add(t, formulas, strlen(formulas));
}
void lp_halves_add(lp_text_t *t) { lp_text_add(t, halves, strlen(halves)); }

void lp_prelude_add(lp_text_t *t) {
  lp_text_add(t, head, strlen(head));
  lp_halves_add(t);
  lp_text_add(t, functions, strlen(functions));
  lp_formulas_add(t);
  lp_text_add(t, draws, strlen(draws));
  lp_text_add(t, reductions, strlen(reductions));
}
