/* Rows of f16 or bf16: the conversions of kit/base/half.h as vectors of any width. */
#include "half_kernels.h"

#include "kit/base/half.h"
#include "simd_dispatch.h"
#include <aot/base.h>

BC_WIDE static void widen_bf16(const uint16_t *restrict x, int64_t n, float *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = kit_bf16_to_f32(x[i]);
}

BC_WIDE static void widen_f16(const uint16_t *restrict x, int64_t n, float *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = kit_f16_to_f32(x[i]);
}

BC_WIDE static void narrow_bf16(const float *restrict x, int64_t n, uint16_t *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = kit_f32_to_bf16(x[i]);
}

BC_WIDE static void narrow_f16(const float *restrict x, int64_t n, uint16_t *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = kit_f32_to_f16(x[i]);
}

void bc_convert_to_f32(int32_t dtype, const uint16_t *x, int64_t n, float *y) {
  (dtype == AOT_BF16 ? widen_bf16 : widen_f16)(x, n, y);
}

void bc_narrow(int32_t dtype, const float *x, int64_t n, uint16_t *y) {
  (dtype == AOT_BF16 ? narrow_bf16 : narrow_f16)(x, n, y);
}
