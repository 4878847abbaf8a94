#include "reduce.h"

#include "kit/base/half.h"
#include <aot/communicator.h>
#include <aot/inline.h>
#include <string.h>

/* NaN passes through, as in PyTorch's amax. */
#define LARGER(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))
#define LESSER(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))

/* fmax, fmin */
#define LARGER_NUMBER(a, b) ((a) != (a) || (b) > (a) ? (b) : (a))
#define LESSER_NUMBER(a, b) ((a) != (a) || (b) < (a) ? (b) : (a))

#define STEP(acc, x)                                                                                                   \
  switch (reduce) {                                                                                                    \
    case AOT_REDUCE_MAX: acc = LARGER(acc, x); break;                                                                  \
    case AOT_REDUCE_MIN: acc = LESSER(acc, x); break;                                                                  \
    case AOT_REDUCE_MAX | RN_DROPS_NAN: acc = LARGER_NUMBER(acc, x); break;                                            \
    case AOT_REDUCE_MIN | RN_DROPS_NAN: acc = LESSER_NUMBER(acc, x); break;                                            \
    case AOT_REDUCE_PRODUCT: acc *= x; break;                                                                          \
    default: acc += x; break;                                                                                          \
  }

#define SAME(x) (x)
#define REDUCER(name, type, wide, load, store)                                                                         \
  static void name(int32_t reduce, uint32_t n_ranks, const void *const *in, void *out, uint64_t n) {                   \
    for (uint64_t i = 0; i < n; i++) {                                                                                 \
      wide acc = load(((const type *)in[0])[i]);                                                                       \
      for (uint32_t r = 1; r < n_ranks; r++) {                                                                         \
        const wide x = load(((const type *)in[r])[i]);                                                                 \
        STEP(acc, x)                                                                                                   \
      }                                                                                                                \
      if (reduce == AOT_REDUCE_AVG) acc /= (wide)n_ranks;                                                              \
      ((type *)out)[i] = store(acc);                                                                                   \
    }                                                                                                                  \
  }
REDUCER(reduce_f32, float, float, SAME, SAME)
REDUCER(reduce_f64, double, double, SAME, SAME)
REDUCER(reduce_i32, uint32_t, uint32_t, SAME, SAME)
REDUCER(reduce_i64, uint64_t, uint64_t, SAME, SAME)
REDUCER(reduce_bf16, uint16_t, float, kit_bf16_to_f32, kit_f32_to_bf16)
REDUCER(reduce_f16, uint16_t, float, kit_f16_to_f32, kit_f32_to_f16)

/* Integers: sums and products alone, which wrap around and are the same with and without sign. */
static const struct reducer {
  int32_t dtype;
  int is_float;
  void (*run)(int32_t reduce, uint32_t n_ranks, const void *const *in, void *out, uint64_t n);
} reducers[] = {
    {AOT_F32, 1, reduce_f32}, {AOT_F64, 1, reduce_f64}, {AOT_BF16, 1, reduce_bf16},
    {AOT_F16, 1, reduce_f16}, {AOT_I32, 0, reduce_i32}, {AOT_I64, 0, reduce_i64},
};

static const struct reducer *find(int32_t dtype) {
  for (size_t i = 0; i < sizeof reducers / sizeof *reducers; i++)
    if (reducers[i].dtype == dtype) return &reducers[i];
  return NULL;
}

int rn_can_reduce(int32_t dtype, int32_t reduce) {
  const struct reducer *r = find(dtype);
  if (!r || reduce < AOT_REDUCE_SUM || reduce > AOT_REDUCE_PRODUCT) return 0;
  return r->is_float || reduce == AOT_REDUCE_SUM || reduce == AOT_REDUCE_PRODUCT;
}

int32_t rn_reduction(int32_t reduce, uint64_t communicator_flags) {
  const int has_order = reduce == AOT_REDUCE_MAX || reduce == AOT_REDUCE_MIN;
  return has_order && (communicator_flags & AOT_COMMUNICATOR_DROPS_NAN) ? reduce | RN_DROPS_NAN : reduce;
}

void rn_reduce(int32_t dtype, int32_t reduce, uint32_t n_ranks, const void *const *in, void *out, uint64_t n) {
  find(dtype)->run(reduce, n_ranks, in, out, n);
}
