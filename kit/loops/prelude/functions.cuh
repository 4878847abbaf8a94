/* Functions of float32. `coarse`: an exponential and a reciprocal are one instruction each; the exponential's
 * argument is a rounded product, error |x| * 2^-24. Normal probabilities by Abramowitz and Stegun 7.1.26, error
 * below 3e-7; the exponential is shared with GELU's derivative. `rounded`: a GELU whose only use is a bf16 store;
 * the logarithm of the smaller normal probability is a polynomial (minimax fit), error 1.3e-5 from -7 on, decreasing
 * below. */
LP float lp_exp_f32(float x) { return expf(x); }
#ifdef LP_ON_CPU
LP float lp_exp2_coarse(float x) { return exp2f(x); }
LP float lp_one_over_coarse(float x) { return 1.0f / x; }
#else
LP float lp_exp2_coarse(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
LP float lp_one_over_coarse(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
#endif
LP float lp_exp_coarse_f32(float x) { return lp_exp2_coarse(x * 1.44269504f); }
LP float lp_exp_between_coarse_f32(float a, float b) {
  return lp_exp2_coarse(fmaf(a, 1.44269504f, -(b * 1.44269504f)));
}
LP float lp_sigmoid_coarse_f32(float x) { return lp_one_over_coarse(1.0f + lp_exp2_coarse(x * -1.44269504f)); }
LP float lp_gelu_gate_coarse_f32(float x) { return lp_sigmoid_coarse_f32(x * (1.59576912f + 0.0713548162f * x * x)); }
LP float lp_gelu_tanh_backward_coarse_f32(float g, float x) {
  const float s = lp_gelu_gate_coarse_f32(x);
  return g * (s + x * s * (1.0f - s) * (1.59576912f + 0.214064449f * x * x));
}
LP float lp_bell_coarse(float x) { return lp_exp2_coarse(x * x * -0.72134752f); }
LP float lp_normal_of_bell(float x, float bell) {
  float t = lp_one_over_coarse(1.0f + 0.231641888f * fabsf(x)), p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  p *= 0.5f * t * bell;
  return x < 0.0f ? p : 1.0f - p;
}
LP float lp_normal_coarse_f32(float x) { return lp_normal_of_bell(x, lp_bell_coarse(x)); }
LP float lp_normal_or_nan_coarse_f32(float x) { return lp_normal_coarse_f32(x) + (x - x); }
LP float lp_gelu_rounded_f32(float x) {
  const float a = fabsf(x);
  float p = -1.58821649e-6f;
  p = p * a + 5.61533634e-5f;
  p = p * a - 8.83215456e-4f;
  p = p * a + 8.30321945e-3f;
  p = p * a - 5.35013191e-2f;
  p = p * a - 4.58964318e-1f;
  p = p * a - 1.15103567f;
  p = p * a - 1.00001395f;
  return fmaxf(x, 0.0f) - a * lp_exp2_coarse(p);
}
LP float lp_gelu_backward_coarse_f32(float g, float x) {
  const float bell = lp_bell_coarse(x);
  return g * (lp_normal_of_bell(x, bell) + x * 0.39894228f * bell);
}
LP float lp_tanh_f32(float x) { return tanhf(x); }
LP float lp_normal_f32(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
LP float lp_normal_or_nan_f32(float x) { return lp_normal_f32(x) + (x - x); }
