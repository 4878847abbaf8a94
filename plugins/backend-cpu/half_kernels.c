/* Without branches, for vectors of any width. The bounds are those of IEEE 754: 2^-14 is the least normal float16, from
 * 65520 on it rounds to infinity. */
#include "half_kernels.h"

#include "wide.h"
#include <aot/base.h>

typedef union word {
  float f;
  uint32_t u;
} word_t;

BC_INLINE float of_bits(uint32_t u) { return (word_t){.u = u}.f; }
BC_INLINE uint32_t bits_of(float f) { return (word_t){.f = f}.u; }

BC_INLINE uint16_t to_bf16(float f) {
  const uint32_t u = bits_of(f), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return (uint16_t)(f == f ? rounded : 0x7fc0u);
}

/* The exponent is moved by a product, which makes normal numbers of those below 2^-14. */
BC_INLINE float from_f16(uint16_t h) {
  const uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13, u = bits_of(of_bits(magnitude) * 0x1p112f);
  return of_bits((magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : u) | (uint32_t)(h & 0x8000u) << 16);
}

/* Below 2^-14 a float16 counts in 2^-24; adding 0.5 leaves no finer digits than that. */
BC_INLINE uint16_t to_f16(float f) {
  const uint32_t sign = bits_of(f) >> 16 & 0x8000u, u = bits_of(f) & 0x7fffffffu;
  const uint32_t small = bits_of(of_bits(u < 0x38800000u ? u : 0u) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (u + 0xfffu + (u >> 13 & 1u) - 0x38000000u) >> 13;
  const uint32_t large = u > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (uint16_t)(sign | (u < 0x38800000u ? small : u < 0x477ff000u ? normal : large));
}

BC_WIDE static void widen_bf16(const uint16_t *restrict x, int64_t n, float *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = of_bits((uint32_t)x[i] << 16);
}

BC_WIDE static void widen_f16(const uint16_t *restrict x, int64_t n, float *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = from_f16(x[i]);
}

BC_WIDE static void narrow_bf16(const float *restrict x, int64_t n, uint16_t *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = to_bf16(x[i]);
}

BC_WIDE static void narrow_f16(const float *restrict x, int64_t n, uint16_t *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = to_f16(x[i]);
}

void bc_widen(int32_t dtype, const uint16_t *x, int64_t n, float *y) {
  (dtype == AOT_BF16 ? widen_bf16 : widen_f16)(x, n, y);
}

void bc_narrow(int32_t dtype, const float *x, int64_t n, uint16_t *y) {
  (dtype == AOT_BF16 ? narrow_bf16 : narrow_f16)(x, n, y);
}
