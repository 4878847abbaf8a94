/* A stable radix sort of keys with their rows, by one block of LP_GPU_BEGIN_THREADS, 4 bits at a time. Each thread
 * counts the digits of its range; a scan of the counts gives the offsets. */
LP void lp_sort(uint32_t *keys, uint32_t *rows, uint32_t *to_keys, uint32_t *to_rows, int n, int bits) {
  __shared__ uint32_t counts[16 * 512];
  __shared__ int64_t warps[32];
  const int me = threadIdx.x, own = (n + 511) / 512, begin = me * own < n ? me * own : n;
  const int end = begin + own < n ? begin + own : n;
  for (int shift = 0; shift < bits; shift += 4) {
    for (int d = 0; d < 16; d++) counts[d * 512 + me] = 0;
    for (int k = begin; k < end; k++) counts[(keys[k] >> shift & 15) * 512 + me]++;
    __syncthreads();
    int64_t carried = 0, sum = 0;
    for (int k = 0; k < 16; k++) sum += counts[me * 16 + k];
    int64_t before = lp_scan_sum_i64(sum, &carried, warps, 16) - sum;
    for (int k = 0; k < 16; k++) {
      const uint32_t count = counts[me * 16 + k];
      counts[me * 16 + k] = (uint32_t)before;
      before += count;
    }
    __syncthreads();
    for (int k = begin; k < end; k++) {
      const uint32_t key = keys[k], to = counts[(key >> shift & 15) * 512 + me]++;
      to_keys[to] = key;
      to_rows[to] = rows[k];
    }
    __syncthreads();
    uint32_t *const swap_keys = keys, *const swap_rows = rows;
    keys = to_keys;
    rows = to_rows;
    to_keys = swap_keys;
    to_rows = swap_rows;
  }
}

/* A bitonic sorting network (Batcher, Sorting networks and their applications, 1968) of n numbers, a power of 2, in
 * shared memory. */
LP void lp_sort_piece(uint64_t *piece, int n, int threads) {
  for (int run = 2; run <= n; run *= 2)
    for (int half = run / 2; half; half /= 2) {
      __syncthreads();
      for (int k = threadIdx.x; k < n / 2; k += threads) {
        const int low = 2 * k - (k & (half - 1)), high = low + half;
        const uint64_t a = piece[low], b = piece[high];
        if ((a > b) == ((low & run) == 0)) piece[low] = b, piece[high] = a;
      }
    }
  __syncthreads();
}

/* How many of n numbers, in sorted pieces, come before number `own` at `me`; each thread counts a quarter of the
 * pieces. In an earlier piece equal numbers count, in a later one only smaller ones. */
LP uint32_t lp_rank(const uint32_t *keys, int n, int piece, int me, uint32_t own) {
  const int mine = me / piece;
  uint32_t rank = threadIdx.x % 4 ? 0 : me % piece;
#pragma unroll 4
  for (int k = threadIdx.x % 4; k < (n + piece - 1) / piece; k += 4) {
    const uint32_t bound = own + (k < mine);
    const int size = k == mine ? 0 : n - k * piece < piece ? n - k * piece : piece;
    int before = 0;
    for (int step = piece; step; step /= 2)
      if (before + step <= size && keys[k * piece + before + step - 1] < bound) before += step;
    rank += before;
  }
  return rank;
}
