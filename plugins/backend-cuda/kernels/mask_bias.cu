/* A mask as an additive bias, and a weight for each row of it; one block per row.
 *
 * Keys that add -inf get -2^124, others at least -2^123: if all scores of a row are that low, the latter share the row.
 * Powers of two have exact products with log2(e): engines compute exp2 of that minus the logsumexp of such numbers. */
LP_KERNEL(mask_bias, 3, THREADS) {
  const mask_t *mask = (const mask_t *)LP_AT(0);
  element_t *bias = (element_t *)LP_AT(1);
  float *weights = (float *)LP_AT(2);
  const float least = -0x1p123f, hidden = -1e30f;
  /* upper half: visible keys; lower half: keys with a finite bias that is as low as a hidden one's */
  __shared__ uint64_t keys[THREADS];
  const int64_t row = blockIdx.x;
  uint64_t seen = 0;
#include "mask_row.cuh"
  for (int64_t k = threadIdx.x; k < COLUMNS; k += THREADS) {
    const float x = LP_MASK(mask[first + k * COLUMN_STRIDE]);
    const float added = x == -INFINITY ? 2 * least : x < least ? least : x;
    seen += !(x <= hidden) ? (uint64_t)1 << 32 : x > -INFINITY;
    bias[row * COLUMNS + k] = LP_ELEMENT(added);
  }
  keys[threadIdx.x] = seen;
  __syncthreads();
  for (uint32_t half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) keys[threadIdx.x] += keys[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) weights[row] = keys[0] >> 32 ? 1.0f : keys[0] ? 1.0f / keys[0] : 0.0f;
}
