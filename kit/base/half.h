/* f16 (IEEE 754 binary16) and bf16 from and to float, rounded to nearest, ties to even, as PyTorch rounds. A NaN stays
 * a NaN; its payload is not stored on the way down. Without branches, so that loops over them become vectors of any
 * width; always inlined, so that they take the width of the function that calls them. */
#ifndef KIT_HALF_H
#define KIT_HALF_H

#include <stdint.h>
#include <string.h>

#define KIT_HALF_INLINE static inline __attribute__((always_inline))

KIT_HALF_INLINE float kit_float_of_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

KIT_HALF_INLINE uint32_t kit_bits_of_float(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

KIT_HALF_INLINE float kit_bf16_to_f32(uint16_t h) { return kit_float_of_bits((uint32_t)h << 16); }

KIT_HALF_INLINE uint16_t kit_f32_to_bf16(float f) {
  const uint32_t u = kit_bits_of_float(f), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  return (uint16_t)(f == f ? rounded : 0x7fc0u);
}

/* The exponent is moved by a product, which makes normal numbers of those below 2^-14. */
KIT_HALF_INLINE float kit_f16_to_f32(uint16_t h) {
  const uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13;
  const uint32_t u = kit_bits_of_float(kit_float_of_bits(magnitude) * 0x1p112f);
  return kit_float_of_bits((magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : u) | (uint32_t)(h & 0x8000u) << 16);
}

/* 2^-14 is the least normal number, 65520 the first that rounds to infinity. Below 2^-14 a float16 counts in 2^-24;
 * adding
 * 0.5 leaves no finer digits than that. */
KIT_HALF_INLINE uint16_t kit_f32_to_f16(float f) {
  const uint32_t sign = kit_bits_of_float(f) >> 16 & 0x8000u, u = kit_bits_of_float(f) & 0x7fffffffu;
  const uint32_t small = kit_bits_of_float(kit_float_of_bits(u < 0x38800000u ? u : 0u) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (u + 0xfffu + (u >> 13 & 1u) - 0x38000000u) >> 13;
  const uint32_t large = u > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return (uint16_t)(sign | (u < 0x38800000u ? small : u < 0x477ff000u ? normal : large));
}

#endif
