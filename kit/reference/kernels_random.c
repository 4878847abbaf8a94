/* Draws from (seed, offset): philox.h says which number each element gets. They read two 0-dim tensors, compute in
 * double or 64 bits and round once; the same call gives the same bits on every run. */
#include "rk_core.h"
#include "kit/random/philox.h"
#include "kit/random/samplers.h"
#include <aot/inline.h>
#include <math.h>

/* What every draw starts with: seed, offset, draw number. */
typedef struct key {
  uint64_t seed, counter;
} draw_key_t;

static aot_status_t read_key(rk_ctx_t *c, draw_key_t *out) {
  for (uint32_t k = 0; k < 2; k++) {
    const rk_tensor_t *t;
    AOT_TRY(rk_need_tensor(c, k, &t));
    RK_CHECK(c, t->rank == 0 && rk_is_int(t->dtype), "%s is no integer of rank 0", k == 0 ? "seed" : "offset");
  }
  out->seed = (uint64_t)rk_int(c, 0, 0);
  out->counter = (uint64_t)rk_int(c, 1, 0) + (uint64_t)rk_int(c, 2, 0);
  return AOT_OK;
}

static aot_status_t sized(rk_ctx_t *c, uint32_t arg, int32_t *out_rank, const int64_t **out_sizes) {
  *out_rank = (int32_t)rk_list(c, arg, out_sizes);
  RK_CHECK(c, *out_rank <= AOT_MAX_RANK, "%d sizes, more than %d", *out_rank, AOT_MAX_RANK);
  for (int32_t d = 0; d < *out_rank; d++) RK_CHECK(c, (*out_sizes)[d] >= 0, "size %lld", (long long)(*out_sizes)[d]);
  return rk_check_result(c, 0, *out_rank, *out_sizes);
}

/* Bits of a float dtype's fraction, the leading one counted; 0: no float. */
static uint32_t precision(int32_t dtype) {
  return dtype == AOT_F32 ? 24 : dtype == AOT_F64 ? 53 : dtype == AOT_F16 ? 11 : dtype == AOT_BF16 ? 8 : 0;
}

static aot_status_t floats(rk_ctx_t *c, int normal) {
  draw_key_t key;
  int32_t rank, dtype = rk_result_dtype(c, 0);
  const int64_t *sizes;
  rk_array_t a;
  AOT_TRY(read_key(c, &key));
  AOT_TRY(sized(c, 3, &rank, &sizes));
  RK_CHECK(c, precision(dtype), "no random numbers of dtype %s", aot_dtype_name(dtype));
  AOT_TRY(rk_new_f(c, rank, sizes, &a));
  if (normal) ph_fill_normal(key.seed, key.counter, 0, (uint64_t)a.numel, dtype == AOT_F64 ? 2 : 1, a.f);
  else ph_fill_uniform(key.seed, key.counter, 0, (uint64_t)a.numel, precision(dtype), a.f);
  return rk_put_f(c, 0, &a);
}
static aot_status_t uniform(rk_ctx_t *c) { return floats(c, 0); }
static aot_status_t normal(rk_ctx_t *c) { return floats(c, 1); }

static aot_status_t random_bits(rk_ctx_t *c, uint32_t size_arg, rk_array_t *out) {
  draw_key_t key;
  int32_t rank;
  const int64_t *sizes;
  uint64_t *bits = NULL;
  AOT_TRY(read_key(c, &key));
  AOT_TRY(sized(c, size_arg, &rank, &sizes));
  AOT_TRY(rk_new_i(c, rank, sizes, out));
  RK_SCRATCH(c, out->numel, bits);
  ph_fill_bits(key.seed, key.counter, 0, (uint64_t)out->numel, bits);
  for (int64_t k = 0; k < out->numel; k++) out->i[k] = (int64_t)bits[k];
  return AOT_OK;
}

static aot_status_t bits(rk_ctx_t *c) {
  rk_array_t a;
  AOT_TRY(random_bits(c, 3, &a));
  for (int64_t k = 0; k < a.numel; k++) a.i[k] = (int64_t)((uint64_t)a.i[k] >> 1);
  return rk_put_i(c, 0, &a);
}

static aot_status_t randint(rk_ctx_t *c) {
  int64_t low = rk_int(c, 3, 0), high = rk_int(c, 4, 0);
  rk_array_t a;
  RK_CHECK(c, low < high, "no integers from %lld up to, without, %lld", (long long)low, (long long)high);
  AOT_TRY(random_bits(c, 5, &a));
  for (int64_t k = 0; k < a.numel; k++)
    a.i[k] = (int64_t)((uint64_t)low + ph_below((uint64_t)a.i[k], (uint64_t)high - (uint64_t)low));
  return rk_put_i(c, 0, &a);
}

/* ---- variates of a tensor of parameters ---- */

static aot_status_t poisson(rk_ctx_t *c) {
  draw_key_t key;
  rk_array_t rate;
  AOT_TRY(read_key(c, &key));
  AOT_TRY(rk_need_f(c, 3, &rate));
  for (int64_t k = 0; k < rate.numel; k++) {
    RK_CHECK(c, !(rate.f[k] < 0), "the rate %g at element %lld is negative", rate.f[k], (long long)k);
    rate.f[k] = ph_poisson(key.seed, key.counter, (uint64_t)k, rate.f[k]);
  }
  return rk_put_f(c, 0, &rate);
}

/* The smallest normal number of a dtype: variates of a tiny shape would be 0, whose logarithm is no number. */
static double least_normal(int32_t dtype) {
  return dtype == AOT_F64 ? 0x1p-1022 : dtype == AOT_F16 ? 0x1p-14 : 0x1p-126;
}

static aot_status_t gamma_(rk_ctx_t *c) {
  draw_key_t key;
  rk_array_t alpha;
  double least = least_normal(rk_result_dtype(c, 0));
  AOT_TRY(read_key(c, &key));
  AOT_TRY(rk_need_f(c, 3, &alpha));
  for (int64_t k = 0; k < alpha.numel; k++) {
    double x = ph_gamma(key.seed, key.counter, (uint64_t)k, alpha.f[k]);
    alpha.f[k] = x < least ? least : x;
  }
  return rk_put_f(c, 0, &alpha);
}

static aot_status_t binomial(rk_ctx_t *c) {
  draw_key_t key;
  const rk_tensor_t *t, *r = rk_result(c, 0);
  rk_array_t count, p;
  AOT_TRY(read_key(c, &key));
  AOT_TRY(rk_need_tensor(c, 3, &t));
  AOT_TRY(rk_dense_expanded(c, t, r->rank, r->sizes, &count));
  AOT_TRY(rk_need_tensor(c, 4, &t));
  AOT_TRY(rk_dense_expanded(c, t, r->rank, r->sizes, &p));
  RK_CHECK(c, count.f && p.f, "count and prob have to be floats");
  for (int64_t k = 0; k < count.numel; k++)
    count.f[k] = ph_binomial(key.seed, key.counter, (uint64_t)k, count.f[k], p.f[k]);
  return rk_put_f(c, 0, &count);
}

#define DRAW(name, fn)                                                                                                 \
  { "aot.philox_" name ".default", fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    DRAW("uniform", uniform), DRAW("normal", normal), DRAW("randint", randint),   DRAW("bits", bits),
    DRAW("poisson", poisson), DRAW("gamma", gamma_),  DRAW("binomial", binomial),
};
const rk_family_t rk_family_random = RK_FAMILY(rows);
