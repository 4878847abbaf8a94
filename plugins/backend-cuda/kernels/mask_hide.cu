/* Rows of weight 0 see no key: their output is 0, and their logsumexp so large that recomputed probabilities are 0.
 * One thread per row. */
LP_KERNEL(mask_hide, 3, THREADS) {
  const float *weights = (const float *)LP_AT(0);
  element_t *o = (element_t *)LP_AT(1);
  float *sums = (float *)LP_AT(2);
  const int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (row >= ALL_ROWS) return;
#include "mask_row.cuh"
#include "mask_weight.cuh"
  if (weight != 0.0f) return;
  sums[row] = 3e38f;
  for (int64_t e = 0; e < COLUMNS; e++) o[first + e * COLUMN_STRIDE] = 0;
}
