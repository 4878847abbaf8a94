/* bfloat16 and float16 to float and back, array by array: exact one way, to the nearest and to even the other. */
#ifndef BC_HALF_KERNELS_H
#define BC_HALF_KERNELS_H

#include <stdint.h>

/* dtype: AOT_BF16 or AOT_F16 */
void bc_convert_to_f32(int32_t dtype, const uint16_t *x, int64_t n, float *y);
void bc_narrow(int32_t dtype, const float *x, int64_t n, uint16_t *y);

#endif
