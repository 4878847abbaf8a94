/* Minimum and maximum of floats by one instruction that propagates NaN. */
#ifndef LP_ON_CPU
#if __CUDA_ARCH__ >= 800
#define LP_EXTREME_OF(name, T, relation) \
  LP T name(T a, T b) { return b relation a || b != b ? b : a; }
LP_EXTREME_OF(lp_larger, double, >)
LP_EXTREME_OF(lp_larger, int64_t, >)
LP_EXTREME_OF(lp_smaller, double, <)
LP_EXTREME_OF(lp_smaller, int64_t, <)
LP float lp_larger(float a, float b) {
  asm("max.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
}
LP float lp_smaller(float a, float b) {
  asm("min.NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b));
  return a;
}
#define LP_LARGER(a, b) lp_larger(a, b)
#define LP_SMALLER(a, b) lp_smaller(a, b)
#endif
#endif
