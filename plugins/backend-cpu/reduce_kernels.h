/* Sums over contiguous float32. */
#ifndef BC_REDUCE_KERNELS_H
#define BC_REDUCE_KERNELS_H

#include <stdint.h>

/* y[o, i] = scale * sum over k of x[o, k, i]. Long sums are accumulated in double, blocks of short ones in float; the
 * order is fixed by the sizes. */
void bc_sum_middle(const float *x, int64_t outer, int64_t n, int64_t inner, float scale, float *y);

#endif
