/* Functions of float32 that a compiler vectorises. exp, tanh, log, erf below 1: range reduction and polynomials after
 * Cephes (S. Moshier, expf.c, tanhf.c, logf.c, ndtrf.c), within 2 ulp; erf for GELU and above 1: Abramowitz and Stegun
 * 7.1.26, absolute error below 2e-7. In double, libm is called. */
LP float lp_reciprocal_f32(float x) { return 1.0f / x; }
LP float lp_power_of_two(int32_t n) {
  union {
    int32_t i;
    float f;
  } u;
  u.i = (n + 127) << 23;
  return u.f;
}
/* 0 by a choice if x < -104: a product that underflows takes a hundred cycles. */
LP float lp_exp_f32(float x) {
  float c = x < -104.0f ? 0.0f : x > 89.0f ? 89.0f : x;
  float k = rintf(c * 1.44269504088896341f), r = (c - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  int32_t n = (int32_t)(k == k ? k : 0.0f), h = n >> 1;
  p = p * lp_power_of_two(h) * lp_power_of_two(n - h);
  return x < -104.0f ? 0.0f : p;
}
LP float lp_tanh_f32(float x) {
  float a = fabsf(x), z = x * x, p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  p = p * z * x + x;
  float big = 1.0f - 2.0f / (lp_exp_f32(2.0f * a) + 1.0f);
  return copysignf(a < 0.625f ? p : big, x);
}
/* 0.5 * erfc(-x / sqrt 2) */
LP float lp_normal_f32(float x) {
  float a = fabsf(x) * 0.70710678118654752f, t = 1.0f / (1.0f + 0.3275911f * a), p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  float tail = 0.5f * (p * t * lp_exp_f32(-a * a));
  return x < 0.0f ? tail : 1.0f - tail;
}
/* The gate of GELU: NaN for inf, as in PyTorch's float32 kernel. */
LP float lp_normal_or_nan_f32(float x) { return lp_normal_f32(x) + (x - x); }
LP float lp_erf_of(float x) {
  float a = fabsf(x), z = x * x, p = 7.853861353153693e-5f;
  p = p * z - 8.010193625184903e-4f;
  p = p * z + 5.188327685732524e-3f;
  p = p * z - 2.685381193529856e-2f;
  p = p * z + 1.128358514861418e-1f;
  p = p * z - 3.761262582423300e-1f;
  p = p * z + 1.128379165726710f;
  float big = 1.0f - 2.0f * lp_normal_f32(-1.41421356237309505f * a);
  return a < 1.0f ? p * x : copysignf(big, x);
}
LP float lp_log_of(float x) {
  float tiny = x < 0x1p-126f ? 23.0f : 0.0f;
  uint32_t u = lp_bits_of(x < 0x1p-126f ? x * 0x1p23f : x);
  float m = lp_float_of((u & 0x7fffffu) | 0x3f800000u), e = (float)((int32_t)(u >> 23) - 127) - tiny;
  e = m > 1.41421356f ? e + 1.0f : e;
  m = (m > 1.41421356f ? 0.5f * m : m) - 1.0f;
  float z = m * m, p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float r = m + (p * m * z - 2.12194440e-4f * e - 0.5f * z) + 0.693359375f * e;
  return x > 0.0f ? (x < INFINITY ? r : x) : x == 0.0f ? -INFINITY : NAN;
}
/* Corrected by the rounding error of 1 + x, and of exp(x) (W. Kahan). */
LP float lp_log1p_of(float x) {
  float u = 1.0f + x, r = lp_log_of(u) * (x / (u - 1.0f));
  return u == 1.0f ? x : u < INFINITY ? r : u;
}
LP float lp_expm1_of(float x) {
  float u = lp_exp_f32(x), d = u - 1.0f, r = d * (x / lp_log_of(u));
  return u == 1.0f ? x : x < -17.0f ? -1.0f : x > 88.0f ? u : r;
}
#define LP_LOGF lp_log_of
#define LP_LOG1PF lp_log1p_of
#define LP_EXPM1F lp_expm1_of
#define LP_ERFF lp_erf_of
