/* exp of float32 for rows, as generated loops have it (kit/loops/loop_prelude.c), within 2 ulp. What is masked is zero
 * by choice, not by underflow, which takes a processor a hundred cycles. */
#ifndef BC_EXP_F32_H
#define BC_EXP_F32_H

#include "simd_dispatch.h"
#include <math.h>
#include <stdint.h>

BC_INLINE float power_of_two(int32_t n) {
  const union {
    int32_t i;
    float f;
  } u = {(n + 127) << 23};
  return u.f;
}

BC_INLINE float exp_f32(float x) {
  const float c = x < -104.0f ? 0.0f : x > 89.0f ? 89.0f : x, k = rintf(c * 1.44269504088896341f);
  const float r = (c - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const int32_t n = (int32_t)(k == k ? k : 0.0f), h = n >> 1;
  p = p * power_of_two(h) * power_of_two(n - h);
  return x < -104.0f ? 0.0f : p;
}

#endif
