/* Reductions whose result every thread gets: of a team of n threads of a warp, a warp, or a team of n warps (barrier 0:
 * the whole block). Warps write their results to shared memory, which each reduction uses once. If there are few warps,
 * each thread reads them all. A reduction of two values splits the warp after the first step, so it takes no more steps
 * than one of one value. */
#define LP_TEAM(name, S, T, first, join) \
  LP T lp_team_##name##_##S(T a, int n) { \
    for (int way = n / 2; way > 0; way /= 2) { \
      const T b = lp_swap_##S(a, way); \
      a = join(a, b); \
    } \
    return a; \
  } \
  LP T lp_warp_##name##_##S(T a) { return lp_team_##name##_##S(a, 32); } \
  LP T lp_half_warp_##name##_##S(T a, T b) { \
    const int is_b = threadIdx.x & 16; \
    const T other = lp_swap_##S(is_b ? a : b, 16); \
    a = is_b ? b : a; \
    a = join(a, other); \
    for (int way = 8; way > 0; way /= 2) { \
      const T c = lp_swap_##S(a, way); \
      a = join(a, c); \
    } \
    return a; \
  } \
  LP void lp_warp_two_##name##_##S(T *a, T *b) { \
    const T half = lp_half_warp_##name##_##S(*a, *b); \
    *a = lp_lane_##S(half, 0); \
    *b = lp_lane_##S(half, 16); \
  } \
  LP void lp_leave_##name##_##S(T a, T *warps, int n) { \
    a = lp_warp_##name##_##S(a); \
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32 % n] = a; \
  } \
  LP void lp_leave_two_##name##_##S(T a, T b, T *warps, T *warps_of_b, int n) { \
    a = lp_half_warp_##name##_##S(a, b); \
    if (threadIdx.x % 16 == 0) (threadIdx.x & 16 ? warps_of_b : warps)[threadIdx.x / 32 % n] = a; \
  } \
  LP T lp_found_##name##_##S(const T *warps, int n) { \
    const int lane = threadIdx.x % 32; \
    T a = n <= 6 || lane < n ? warps[n <= 6 ? 0 : lane] : (T)(first); \
    if (n > 6) return lp_warp_##name##_##S(a); \
    for (int warp = 1; warp < n; warp++) { \
      const T b = warps[warp]; \
      a = join(a, b); \
    } \
    return a; \
  } \
  LP T lp_block_##name##_##S(T a, T *warps, int n, int barrier) { \
    lp_leave_##name##_##S(a, warps, n); \
    lp_sync(barrier, n * 32); \
    return lp_found_##name##_##S(warps, n); \
  }
#define LP_TEAMS(name, join, of_float, of_int) \
  LP_TEAM(name, f32, float, of_float, join) \
  LP_TEAM(name, f64, double, of_float, join) \
  LP_TEAM(name, i64, int64_t, of_int, join)
LP_TEAMS(sum, LP_ADD, 0, 0)
LP_TEAMS(prod, LP_TIMES, 1, 1)
LP_TEAMS(max, LP_LARGER, -INFINITY, INT64_MIN)
LP_TEAMS(min, LP_SMALLER, INFINITY, INT64_MAX)
