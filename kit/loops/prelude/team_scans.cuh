/* Inclusive scans: each thread's value joined with those before it in its warp, those of the warps before, and the
 * carry of earlier elements, which is updated. */
#define LP_SCAN(name, S, T, join) \
  LP T lp_scan_##name##_##S(T t, T *carried, T *warps, int n) { \
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32; \
    T before = *carried, all = *carried; \
    for (int way = 1; way < 32; way *= 2) { \
      const T b = lp_lane_##S(t, lane < way ? lane : lane - way); \
      if (lane >= way) t = join(b, t); \
    } \
    if (n == 1) { \
      const T last = lp_lane_##S(t, 31); \
      all = join(all, last); \
    } else { \
      if (lane == 31) warps[warp] = t; \
      __syncthreads(); \
      for (int w = 0; w < n; w++) { \
        const T other = warps[w]; \
        if (w == warp) before = all; \
        all = join(all, other); \
      } \
      __syncthreads(); \
    } \
    *carried = all; \
    return join(before, t); \
  }
#define LP_SCANS(name, join) \
  LP_SCAN(name, f32, float, join) \
  LP_SCAN(name, f64, double, join) \
  LP_SCAN(name, i64, int64_t, join)
LP_SCANS(sum, LP_ADD)
LP_SCANS(prod, LP_TIMES)
LP_SCANS(max, LP_LARGER)
LP_SCANS(min, LP_SMALLER)
LP_SCAN(log_add, f64, double, lp_log_add)
