/* Reductions: a driver that walks the input once for every output element, and rows of (start, step, finish) functions.
 *
 * The state is a pair of doubles, an int64 and a count. Floats are summed in double; integers in int64, wrapping. Order
 * is the memory order of the logical tensor, so that the first of equal extremes wins (argmax, max.dim). NaN wins over
 * every number in extremes, as in PyTorch. Variance takes two passes: no cancellation. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

#define RED_RUN 256 /* elements converted at a time */

typedef struct state {
  double f, mean;
  int64_t i, n, at; /* at: position along the reduced dimensions of the element that was kept */
} state_t;

/* One input element into the state; the position counts from 0 along the reduced dimensions. */
typedef void (*step_f_t)(state_t *s, double v, int64_t position);
typedef void (*step_i_t)(state_t *s, int64_t v, int64_t position);

typedef struct red_row {
  state_t start;
  step_f_t f;
  step_i_t i;
  int mean;      /* divide by the count at the end */
  int needs_one; /* an empty reduction is an error */
  int cast;      /* elements become the result's dtype first: sum(0.5, dtype=int) is 0 */
} red_row_t;

static void sum_f(state_t *s, double v, int64_t k) {
  (void)k;
  s->f += v;
}
static void sum_i(state_t *s, int64_t v, int64_t k) {
  (void)k;
  s->i = (int64_t)((uint64_t)s->i + (uint64_t)v);
}
static void nansum_f(state_t *s, double v, int64_t k) {
  (void)k;
  if (v == v) s->f += v;
}
static void prod_f(state_t *s, double v, int64_t k) {
  (void)k;
  s->f *= v;
}
static void prod_i(state_t *s, int64_t v, int64_t k) {
  (void)k;
  s->i = (int64_t)((uint64_t)s->i * (uint64_t)v);
}
static void max_f(state_t *s, double v, int64_t k) {
  if (s->n == 1 || (s->f == s->f && (v > s->f || v != v))) {
    s->f = v;
    s->at = k;
  }
}
static void max_i(state_t *s, int64_t v, int64_t k) {
  if (s->n == 1 || v > s->i) {
    s->i = v;
    s->at = k;
  }
}
static void min_f(state_t *s, double v, int64_t k) {
  if (s->n == 1 || (s->f == s->f && (v < s->f || v != v))) {
    s->f = v;
    s->at = k;
  }
}
static void min_i(state_t *s, int64_t v, int64_t k) {
  if (s->n == 1 || v < s->i) {
    s->i = v;
    s->at = k;
  }
}
static void any_f(state_t *s, double v, int64_t k) {
  (void)k;
  if (v != 0) s->i = 1;
  s->f = (double)s->i;
}
static void any_i(state_t *s, int64_t v, int64_t k) {
  (void)k;
  if (v != 0) s->i = 1;
}
static void all_f(state_t *s, double v, int64_t k) {
  (void)k;
  if (v == 0) s->i = 0;
  s->f = (double)s->i;
}
static void all_i(state_t *s, int64_t v, int64_t k) {
  (void)k;
  if (v == 0) s->i = 0;
}
static void count_f(state_t *s, double v, int64_t k) {
  (void)k;
  s->i += v != 0;
  s->f = (double)s->i;
}
static void count_i(state_t *s, int64_t v, int64_t k) {
  (void)k;
  s->i += v != 0;
}

/* hash_tensor: exclusive or of the elements' bits, floats as doubles */
static void hash_f(state_t *s, double v, int64_t k) {
  int64_t bits;
  (void)k;
  memcpy(&bits, &v, sizeof bits);
  s->i ^= bits;
}
static void hash_i(state_t *s, int64_t v, int64_t k) {
  (void)k;
  s->i ^= v;
}

/* ---- the driver ---- */

/* Output sizes: reduced dimensions are 1 (keepdim) or gone. */
static int32_t reduced_sizes(const rk_tensor_t *t, const uint8_t *marks, int keepdim, int64_t *out) {
  int32_t rank = 0;
  for (int32_t d = 0; d < t->rank; d++)
    if (!marks[d] || keepdim) out[rank++] = marks[d] ? 1 : t->sizes[d];
  return rank;
}

/* States of every output element, in row-major order of the kept dimensions; elements are read as values of dtype. */
static aot_status_t reduce(rk_ctx_t *c, const rk_tensor_t *t, const uint8_t *marks, const red_row_t *row, int32_t dtype,
                           state_t **out, int64_t *out_n) {
  const int as_float = !rk_is_int(dtype);
  rk_tensor_t kept = *t, inner = *t;
  rk_iter_t outer_it;
  int64_t e = 0, n = 1;
  kept.rank = inner.rank = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    rk_tensor_t *side = marks[d] ? &inner : &kept;
    side->sizes[side->rank] = t->sizes[d];
    side->strides[side->rank++] = t->strides[d];
    if (!marks[d]) n *= t->sizes[d];
  }
  RK_CHECK(c, !row->needs_one || n == 0 || rk_numel(&inner) > 0, "an empty reduction has no result");
  RK_SCRATCH(c, n, *out);
  *out_n = n;
  rk_iter_over(&outer_it, &kept);
  for (; outer_it.more; rk_iter_next(&outer_it))
    for (int64_t k = 0; k < outer_it.run; k++, e++) {
      state_t s = row->start;
      rk_iter_t it;
      rk_tensor_t one = inner;
      int64_t position = 0;
      one.offset = outer_it.at[0] + k * outer_it.step[0];
      rk_iter_over(&it, &one);
      for (; it.more; rk_iter_next(&it))
        for (int64_t done = 0, many; done < it.run; done += many) {
          double v[RED_RUN];
          int64_t w[RED_RUN];
          many = it.run - done < RED_RUN ? it.run - done : RED_RUN;
          if (as_float) rk_load_run_f_as(t, it.at[0] + done * it.step[0], it.step[0], many, dtype, v);
          else rk_load_run_i_as(t, it.at[0] + done * it.step[0], it.step[0], many, dtype, w);
          for (int64_t r = 0; r < many; r++, position++) {
            s.n++;
            if (as_float) row->f(&s, v[r], position);
            else row->i(&s, w[r], position);
          }
        }
      (*out)[e] = s;
    }
  return AOT_OK;
}

typedef struct plan {
  const rk_tensor_t *t;
  uint8_t marks[AOT_MAX_RANK];
  int keepdim;
} plan_t;

/* Which arguments hold the dimensions and keepdim; -1: there is none (all dimensions, dropped). */
static aot_status_t make_plan(rk_ctx_t *c, int dim_arg, int keepdim_arg, plan_t *p) {
  AOT_TRY(rk_need_tensor(c, 0, &p->t));
  if (dim_arg < 0) memset(p->marks, 1, sizeof p->marks);
  else AOT_TRY(rk_dim_marks(c, (uint32_t)dim_arg, p->t->rank, 1, p->marks));
  p->keepdim = keepdim_arg >= 0 && rk_bool(c, (uint32_t)keepdim_arg, 0);
  return AOT_OK;
}

static aot_status_t run(rk_ctx_t *c, int dim_arg, int keepdim_arg) {
  const red_row_t *row = c->kernel->row;
  plan_t p;
  state_t *s;
  int64_t n, sizes[AOT_MAX_RANK];
  int32_t rank;
  rk_array_t out;
  AOT_TRY(make_plan(c, dim_arg, keepdim_arg, &p));
  const int32_t dtype = row->cast && rk_result_dtype(c, 0) ? rk_result_dtype(c, 0) : p.t->dtype;
  const int as_float = !rk_is_int(dtype);
  AOT_TRY(reduce(c, p.t, p.marks, row, dtype, &s, &n));
  rank = reduced_sizes(p.t, p.marks, p.keepdim, sizes);
  AOT_TRY(as_float ? rk_new_f(c, rank, sizes, &out) : rk_new_i(c, rank, sizes, &out));
  for (int64_t e = 0; e < n; e++) {
    if (as_float) out.f[e] = row->mean ? s[e].f / (double)s[e].n : s[e].f;
    else out.i[e] = s[e].i;
  }
  return as_float ? rk_put_f(c, 0, &out) : rk_put_i(c, 0, &out);
}
static aot_status_t all_dims(rk_ctx_t *c) { return run(c, -1, -1); }
static aot_status_t some_dims(rk_ctx_t *c) { return run(c, 1, 2); }
static aot_status_t some_dims_dropped(rk_ctx_t *c) { return run(c, 1, -1); }

/* hash_tensor(self, dim, *, keepdim, mode): the bits are stored as integers whatever the input is */
static aot_status_t hash_tensor(rk_ctx_t *c) {
  plan_t p;
  state_t *s;
  int64_t n, sizes[AOT_MAX_RANK];
  int32_t rank;
  rk_array_t out;
  AOT_TRY(make_plan(c, 1, 2, &p));
  RK_CHECK(c, rk_int(c, 3, 0) == 0, "mode %lld is not supported", (long long)rk_int(c, 3, 0));
  AOT_TRY(reduce(c, p.t, p.marks, c->kernel->row, p.t->dtype, &s, &n));
  rank = reduced_sizes(p.t, p.marks, p.keepdim, sizes);
  AOT_TRY(rk_new_i(c, rank, sizes, &out));
  for (int64_t e = 0; e < n; e++) out.i[e] = s[e].i;
  return rk_put_i(c, 0, &out);
}

/* max.dim, min.dim -> (values, indices); argmax(self, dim?, keepdim) -> indices */
static aot_status_t extreme(rk_ctx_t *c, int indices_only) {
  const red_row_t *row = c->kernel->row;
  plan_t p;
  state_t *s;
  int64_t n, sizes[AOT_MAX_RANK];
  int32_t rank, dim;
  rk_array_t at;
  int as_float;
  AOT_TRY(rk_need_tensor(c, 0, &p.t));
  p.keepdim = rk_bool(c, 2, 0);
  memset(p.marks, !rk_has(c, 1), sizeof p.marks);
  if (rk_has(c, 1)) {
    AOT_TRY(rk_dim(c, rk_int(c, 1, 0), p.t->rank, &dim));
    p.marks[dim] = 1;
  }
  as_float = !rk_is_int(p.t->dtype);
  AOT_TRY(reduce(c, p.t, p.marks, row, p.t->dtype, &s, &n));
  rank = reduced_sizes(p.t, p.marks, p.keepdim, sizes);
  AOT_TRY(rk_new_i(c, rank, sizes, &at));
  if (!indices_only) {
    rk_array_t v;
    AOT_TRY(as_float ? rk_new_f(c, rank, sizes, &v) : rk_new_i(c, rank, sizes, &v));
    for (int64_t e = 0; e < n; e++) {
      if (as_float) v.f[e] = s[e].f;
      else v.i[e] = s[e].i;
    }
    AOT_TRY(as_float ? rk_put_f(c, 0, &v) : rk_put_i(c, 0, &v));
  }
  for (int64_t e = 0; e < n; e++) at.i[e] = s[e].at;
  return rk_put_i(c, indices_only ? 0 : 1, &at);
}
static aot_status_t with_indices(rk_ctx_t *c) { return extreme(c, 0); }
static aot_status_t only_indices(rk_ctx_t *c) { return extreme(c, 1); }

/* aminmax(self, *, dim?, keepdim) -> (min, max) */
static const red_row_t row_min = {{0, 0, 0, 0, 0}, min_f, min_i, 0, 1, 0},
                       row_max = {{0, 0, 0, 0, 0}, max_f, max_i, 0, 1, 0};
static aot_status_t aminmax(rk_ctx_t *c) {
  plan_t p;
  state_t *s[2];
  int64_t n, sizes[AOT_MAX_RANK];
  int32_t rank, dim;
  AOT_TRY(rk_need_tensor(c, 0, &p.t));
  p.keepdim = rk_bool(c, 2, 0);
  memset(p.marks, !rk_has(c, 1), sizeof p.marks);
  if (rk_has(c, 1)) {
    AOT_TRY(rk_dim(c, rk_int(c, 1, 0), p.t->rank, &dim));
    p.marks[dim] = 1;
  }
  rank = reduced_sizes(p.t, p.marks, p.keepdim, sizes);
  for (uint32_t k = 0; k < 2; k++) {
    rk_array_t v;
    int as_float = !rk_is_int(p.t->dtype);
    AOT_TRY(reduce(c, p.t, p.marks, k ? &row_max : &row_min, p.t->dtype, &s[k], &n));
    AOT_TRY(as_float ? rk_new_f(c, rank, sizes, &v) : rk_new_i(c, rank, sizes, &v));
    for (int64_t e = 0; e < n; e++) {
      if (as_float) v.f[e] = s[k][e].f;
      else v.i[e] = s[k][e].i;
    }
    AOT_TRY(as_float ? rk_put_f(c, k, &v) : rk_put_i(c, k, &v));
  }
  return AOT_OK;
}

/* ---- variance, norms, logsumexp: passes over dense rows ---- */

/* Element numbers of one group: group g of the kept dimensions, in order. Returns [groups][size] of values. */
static aot_status_t grouped(rk_ctx_t *c, const plan_t *p, rk_array_t *out_values, int64_t *groups, int64_t *size) {
  rk_tensor_t order = *p->t;
  int32_t rank = 0;
  *groups = *size = 1;
  for (int pass = 0; pass < 2; pass++)
    for (int32_t d = 0; d < p->t->rank; d++) {
      if (p->marks[d] != pass) continue;
      order.sizes[rank] = p->t->sizes[d];
      order.strides[rank++] = p->t->strides[d];
      *(pass ? size : groups) *= p->t->sizes[d];
    }
  return rk_dense_f(c, &order, out_values);
}

static aot_status_t new_reduced(rk_ctx_t *c, const plan_t *p, rk_array_t *out) {
  int64_t sizes[AOT_MAX_RANK];
  int32_t rank = reduced_sizes(p->t, p->marks, p->keepdim, sizes);
  return rk_new_f(c, rank, sizes, out);
}

/* Running, so that what follows an infinite element is NaN, as in PyTorch (Welford 1962). */
static double running_mean(const double *v, int64_t n) {
  double mean = 0;
  for (int64_t k = 0; k < n; k++) mean += (v[k] - mean) / (double)(k + 1);
  return mean;
}

static void moments(const double *v, int64_t n, double *mean, double *sum_of_squares) {
  double sum = 0, squares = 0;
  for (int64_t k = 0; k < n; k++) sum += v[k];
  *mean = sum / (double)n;
  for (int64_t k = 0; k < n; k++) squares += (v[k] - *mean) * (v[k] - *mean);
  *sum_of_squares = squares;
}

/* what: 0 var, 1 std, 2 var_mean, 3 std_mean */
static aot_status_t variance(rk_ctx_t *c, plan_t *p, double correction, int what) {
  rk_array_t v, out, mean;
  int64_t groups, size;
  AOT_TRY(grouped(c, p, &v, &groups, &size));
  AOT_TRY(new_reduced(c, p, &out));
  AOT_TRY(new_reduced(c, p, &mean));
  for (int64_t g = 0; g < groups; g++) {
    double squares, rest = (double)size - correction;
    moments(v.f + g * size, size, &mean.f[g], &squares);
    out.f[g] = squares / (rest > 0 ? rest : 0);
    if (size == 0) out.f[g] = NAN;
    if (what & 1) out.f[g] = sqrt(out.f[g]);
    if (isinf(mean.f[g])) mean.f[g] = running_mean(v.f + g * size, size);
  }
  if (what >= 2) AOT_TRY(rk_put_f(c, 1, &mean));
  return rk_put_f(c, 0, &out);
}
static aot_status_t correction_form(rk_ctx_t *c, int what) {
  plan_t p;
  AOT_TRY(make_plan(c, 1, 3, &p));
  return variance(c, &p, rk_float(c, 2, 1), what);
}
static aot_status_t var_correction(rk_ctx_t *c) { return correction_form(c, 0); }
static aot_status_t std_correction(rk_ctx_t *c) { return correction_form(c, 1); }
static aot_status_t var_mean_correction(rk_ctx_t *c) { return correction_form(c, 2); }
static aot_status_t std_mean_correction(rk_ctx_t *c) { return correction_form(c, 3); }
static aot_status_t dim_form(rk_ctx_t *c, int what) {
  plan_t p;
  AOT_TRY(make_plan(c, 1, 3, &p));
  return variance(c, &p, rk_bool(c, 2, 1), what);
}
static aot_status_t var_dim(rk_ctx_t *c) { return dim_form(c, 0); }
static aot_status_t std_dim(rk_ctx_t *c) { return dim_form(c, 1); }
static aot_status_t var_mean_dim(rk_ctx_t *c) { return dim_form(c, 2); }
static aot_status_t default_form(rk_ctx_t *c, int what) {
  plan_t p;
  AOT_TRY(make_plan(c, -1, -1, &p));
  return variance(c, &p, rk_bool(c, 1, 1), what);
}
static aot_status_t var_all(rk_ctx_t *c) { return default_form(c, 0); }
static aot_status_t std_all(rk_ctx_t *c) { return default_form(c, 1); }

static double vector_norm(const double *v, int64_t n, double order) {
  double sum = order == -INFINITY ? INFINITY : 0;
  for (int64_t k = 0; k < n; k++) {
    double a = fabs(v[k]);
    if (a != a && order != 0) return NAN; /* of order 0 it counts, as what is not 0 */
    if (order == INFINITY) sum = a > sum ? a : sum;
    else if (order == -INFINITY) sum = a < sum ? a : sum;
    else if (order == 0) sum += a != 0;
    else sum += order == 2 ? a * a : pow(a, order);
  }
  if (order == 0 || isinf(order)) return sum;
  return order == 2 ? sqrt(sum) : pow(sum, 1 / order);
}

/* linalg_vector_norm(self, ord, dim?, keepdim), norm.ScalarOpt_dim(self, p?, dim, keepdim): one layout */
static aot_status_t norm_dims(rk_ctx_t *c) {
  plan_t p;
  rk_array_t v, out;
  int64_t groups, size;
  AOT_TRY(make_plan(c, 2, 3, &p));
  AOT_TRY(grouped(c, &p, &v, &groups, &size));
  AOT_TRY(new_reduced(c, &p, &out));
  for (int64_t g = 0; g < groups; g++) out.f[g] = vector_norm(v.f + g * size, size, rk_float(c, 1, 2));
  return rk_put_f(c, 0, &out);
}
static aot_status_t norm_all(rk_ctx_t *c) {
  plan_t p;
  rk_array_t v, out;
  AOT_TRY(make_plan(c, -1, -1, &p));
  AOT_TRY(rk_dense_f(c, p.t, &v));
  AOT_TRY(new_reduced(c, &p, &out));
  out.f[0] = vector_norm(v.f, v.numel, rk_float(c, 1, 2));
  return rk_put_f(c, 0, &out);
}

/* logsumexp(self, dim, keepdim) */
static aot_status_t logsumexp(rk_ctx_t *c) {
  plan_t p;
  rk_array_t v, out;
  int64_t groups, size;
  AOT_TRY(make_plan(c, 1, 2, &p));
  AOT_TRY(grouped(c, &p, &v, &groups, &size));
  AOT_TRY(new_reduced(c, &p, &out));
  for (int64_t g = 0; g < groups; g++) {
    double top = -INFINITY, sum = 0;
    const double *x = v.f + g * size;
    for (int64_t k = 0; k < size; k++) top = x[k] > top || isnan(x[k]) ? x[k] : top;
    for (int64_t k = 0; k < size; k++) sum += isinf(top) ? (x[k] == top ? 1 : 0) : exp(x[k] - top);
    out.f[g] = isinf(top) ? top : top + log(sum);
  }
  return rk_put_f(c, 0, &out);
}

/* trace(self) */
static aot_status_t trace(rk_ctx_t *c) {
  const rk_tensor_t *t;
  rk_array_t a, out;
  AOT_TRY(rk_need_tensor(c, 0, &t));
  RK_CHECK(c, t->rank == 2, "rank %d is not 2", t->rank);
  AOT_TRY(rk_dense_f(c, t, &a));
  AOT_TRY(rk_new_f(c, 0, NULL, &out));
  for (int64_t k = 0; k < a.sizes[0] && k < a.sizes[1]; k++) out.f[0] += a.f[k * a.sizes[1] + k];
  return rk_put_f(c, 0, &out);
}

static const red_row_t row_sum = {{0, 0, 0, 0, 0}, sum_f, sum_i, 0, 0, 1};
static const red_row_t row_nansum = {{0, 0, 0, 0, 0}, nansum_f, sum_i, 0, 0, 1};
static const red_row_t row_mean = {{0, 0, 0, 0, 0}, sum_f, sum_i, 1, 0, 1};
static const red_row_t row_prod = {{1, 0, 1, 0, 0}, prod_f, prod_i, 0, 0, 1};
static const red_row_t row_any = {{0, 0, 0, 0, 0}, any_f, any_i, 0, 0, 0},
                       row_all = {{1, 0, 1, 0, 0}, all_f, all_i, 0, 0, 0};
static const red_row_t row_count = {{0, 0, 0, 0, 0}, count_f, count_i, 0, 0, 0};

static const red_row_t row_hash = {{0, 0, 0, 0, 0}, hash_f, hash_i, 0, 0, 0};

#define RED(name, fn, row)                                                                                             \
  { "aten." name, fn, NULL, row, 0 }
static const rk_kernel_t rows[] = {
    RED("sum.default", all_dims, &row_sum),
    RED("sum.dim_IntList", some_dims, &row_sum),
    RED("nansum.default", some_dims, &row_nansum),
    RED("mean.default", all_dims, &row_mean),
    RED("mean.dim", some_dims, &row_mean),
    RED("prod.default", all_dims, &row_prod),
    RED("prod.dim_int", some_dims, &row_prod),
    RED("amax.default", some_dims, &row_max),
    RED("amin.default", some_dims, &row_min),
    RED("max.default", all_dims, &row_max),
    RED("min.default", all_dims, &row_min),
    RED("max.dim", with_indices, &row_max),
    RED("min.dim", with_indices, &row_min),
    RED("argmax.default", only_indices, &row_max),
    RED("argmin.default", only_indices, &row_min),
    RED("aminmax.default", aminmax, NULL),
    RED("any.default", all_dims, &row_any),
    RED("any.dim", some_dims, &row_any),
    RED("any.dims", some_dims, &row_any),
    RED("all.default", all_dims, &row_all),
    RED("all.dim", some_dims, &row_all),
    RED("all.dims", some_dims, &row_all),
    RED("count_nonzero.default", some_dims_dropped, &row_count),
    RED("count_nonzero.dim_IntList", some_dims_dropped, &row_count),
    RED("var.correction", var_correction, NULL),
    RED("std.correction", std_correction, NULL),
    RED("var_mean.correction", var_mean_correction, NULL),
    RED("std_mean.correction", std_mean_correction, NULL),
    RED("var.dim", var_dim, NULL),
    RED("std.dim", std_dim, NULL),
    RED("var_mean.dim", var_mean_dim, NULL),
    RED("var.default", var_all, NULL),
    RED("std.default", std_all, NULL),
    RED("linalg_vector_norm.default", norm_dims, NULL),
    RED("norm.ScalarOpt_dim", norm_dims, NULL),
    RED("norm.Scalar", norm_all, NULL),
    RED("special_logsumexp.default", logsumexp, NULL),
    RED("logsumexp.default", logsumexp, NULL),
    RED("hash_tensor.default", hash_tensor, &row_hash),
    RED("trace.default", trace, NULL),
};
const rk_family_t rk_family_reduce = RK_FAMILY(rows);
