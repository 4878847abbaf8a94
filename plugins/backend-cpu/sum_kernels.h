/* Sums over any dimensions of a tensor of float32 or float64, in double. */
#ifndef BC_SUM_KERNELS_H
#define BC_SUM_KERNELS_H

#include <aot/base.h>
#include <stdint.h>

typedef struct bc_sum {
  int32_t dtype;           /* AOT_F32, AOT_F64 */
  int32_t n_kept, n_added; /* dimensions */
  int64_t kept[AOT_MAX_RANK], from[AOT_MAX_RANK],
      to[AOT_MAX_RANK];                            /* sizes, strides of the operand and of the result */
  int64_t added[AOT_MAX_RANK], step[AOT_MAX_RANK]; /* sizes, strides; the innermost of the operand last */
  double divisor;                                  /* 1; of a mean, how many there are */
} bc_sum_t;

int64_t bc_sum_results(const bc_sum_t *s);
/* Results [begin, end), in the order of the kept dimensions: each is one sum in a fixed order. */
void bc_sum(const bc_sum_t *s, const void *x, void *y, int64_t begin, int64_t end);

#endif
