/* bf16 in words of two: one instruction converts either to float, or computes two extremes. */
#if defined LP_ON_CPU || __CUDA_ARCH__ < 800
#define lp_bf16_at(w, j) lp_from_bf16((w)[j])
#define LP_EXTREME_OF_PAIRS(name, join) \
  LP float lp_##name##_of_bf16(const uint16_t *w, int n) { \
    float most = lp_from_bf16(w[0]); \
    for (int k = 1; k < n; k++) { \
      const float v = lp_from_bf16(w[k]); \
      most = join(most, v); \
    } \
    return most; \
  }
#else
LP float lp_bf16_at(const uint16_t *w, int j) {
  const uint32_t two = ((const uint32_t *)w)[j / 2];
  return __uint_as_float(j % 2 ? two & 0xffff0000u : two << 16);
}
#define LP_EXTREME_OF_PAIRS(name, join) \
  LP float lp_##name##_of_bf16(const uint16_t *w, int n) { \
    uint32_t most = ((const uint32_t *)w)[0]; \
    for (int k = 1; k < n / 2; k++) asm(#name ".NaN.bf16x2 %0, %0, %1;" : "+r"(most) : "r"(((const uint32_t *)w)[k])); \
    return join(__uint_as_float(most << 16), __uint_as_float(most & 0xffff0000u)); \
  }
#endif
LP_EXTREME_OF_PAIRS(max, LP_LARGER)
LP_EXTREME_OF_PAIRS(min, LP_SMALLER)
