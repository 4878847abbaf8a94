/* Reductions in 16 lanes, which are joined in a fixed order. Pieces of a row are multiples of the lanes; the rest of
 * the last one goes to the first lane. */
enum { LP_LANES = 16 };
#define LP_REDUCE(name, S, T, L, first, join) \
  static __attribute__((unused)) void lp_row_##name##_begin_##S(L *a) { \
    for (int k = 0; k < LP_LANES; k++) a[k] = first; \
  } \
  static __attribute__((noinline, unused)) void lp_row_##name##_##S(L *a, const T *x, int64_t n) { \
    L l[LP_LANES]; \
    int64_t i = 0; \
    for (int k = 0; k < LP_LANES; k++) l[k] = a[k]; \
    for (; i + LP_LANES <= n; i += LP_LANES) \
      for (int k = 0; k < LP_LANES; k++) l[k] = join(l[k], (L)x[i + k]); \
    for (; i < n; i++) l[0] = join(l[0], (L)x[i]); \
    for (int k = 0; k < LP_LANES; k++) a[k] = l[k]; \
  } \
  static __attribute__((unused)) L lp_row_##name##_end_##S(L *a) { \
    for (int h = LP_LANES / 2; h > 0; h /= 2) \
      for (int k = 0; k < h; k++) a[k] = join(a[k], a[k + h]); \
    return a[0]; \
  }
LP_REDUCE(sum, f32, float, double, 0, LP_ADD)
LP_REDUCE(sum, f64, double, double, 0, LP_ADD)
LP_REDUCE(sum, i64, int64_t, int64_t, 0, LP_ADD)
LP_REDUCE(prod, f32, float, double, 1, LP_TIMES)
LP_REDUCE(prod, f64, double, double, 1, LP_TIMES)
LP_REDUCE(prod, i64, int64_t, int64_t, 1, LP_TIMES)
LP_REDUCE(max, i64, int64_t, int64_t, INT64_MIN, LP_LARGER)
LP_REDUCE(min, i64, int64_t, int64_t, INT64_MAX, LP_SMALLER)
/* Extremes of floats by vector types: compilers do not vectorise a choice in lanes. */
typedef float lp_v_f32 __attribute__((vector_size(64)));
typedef int32_t lp_m_f32 __attribute__((vector_size(64)));
typedef double lp_v_f64 __attribute__((vector_size(128)));
typedef int64_t lp_m_f64 __attribute__((vector_size(128)));
#define LP_EXTREME(name, S, T, first, than, join) \
  static __attribute__((unused)) void lp_row_##name##_begin_##S(T *a) { \
    for (int k = 0; k < LP_LANES; k++) a[k] = first; \
  } \
  static __attribute__((noinline, unused)) void lp_row_##name##_##S(T *a, const T *x, int64_t n) { \
    lp_v_##S l, b; \
    int64_t i = 0; \
    __builtin_memcpy(&l, a, sizeof l); \
    for (; i + LP_LANES <= n; i += LP_LANES) { \
      __builtin_memcpy(&b, x + i, sizeof b); \
      const lp_m_##S m = (b than l) | (b != b); \
      l = (lp_v_##S)(((lp_m_##S)b & m) | ((lp_m_##S)l & ~m)); \
    } \
    __builtin_memcpy(a, &l, sizeof l); \
    for (; i < n; i++) a[0] = join(a[0], x[i]); \
  } \
  static __attribute__((unused)) T lp_row_##name##_end_##S(T *a) { \
    for (int h = LP_LANES / 2; h > 0; h /= 2) \
      for (int k = 0; k < h; k++) a[k] = join(a[k], a[k + h]); \
    return a[0]; \
  }
LP_EXTREME(max, f32, float, -INFINITY, >, LP_LARGER)
LP_EXTREME(max, f64, double, -INFINITY, >, LP_LARGER)
LP_EXTREME(min, f32, float, INFINITY, <, LP_SMALLER)
LP_EXTREME(min, f64, double, INFINITY, <, LP_SMALLER)
