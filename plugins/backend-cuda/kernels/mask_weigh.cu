/* A dense gradient: each row times its weight. One thread per element. */
LP_KERNEL(mask_weigh, 3, THREADS) {
  const float *weights = (const float *)LP_AT(0);
  const element_t *from = (const element_t *)LP_AT(1);
  element_t *to = (element_t *)LP_AT(2);
  const int64_t at = (int64_t)blockIdx.x * THREADS + threadIdx.x, row = at / COLUMNS;
  if (row >= ALL_ROWS) return;
#include "mask_row.cuh"
#include "mask_weight.cuh"
  to[at] = LP_ELEMENT(weight * LP_VALUE(from[first + at % COLUMNS * COLUMN_STRIDE]));
}
