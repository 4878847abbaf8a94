/* New tensors from numbers: full and its kin, ranges, identity matrices, index triangles. The result's declared shape
 * and dtype say nearly everything; what is left is checked against the arguments. Memory that PyTorch leaves
 * uninitialised (empty) is zero here, so that runs are repeatable. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>

/* A number argument of either kind, stored exactly. */
static void fill_with(rk_ctx_t *c, uint32_t arg) {
  rk_tensor_t *r = rk_result(c, 0);
  int is_float = c->call->args[arg].kind == AOT_ARG_FLOAT ||
                 (c->call->args[arg].kind == AOT_ARG_VALUE && !rk_is_int(c->call->args[arg].u.tensor->dtype));
  if (is_float) rk_fill_f(r, rk_float(c, arg, 0));
  else rk_fill_i(r, rk_int(c, arg, 0));
}

static aot_status_t check_size(rk_ctx_t *c, uint32_t arg) {
  const int64_t *sizes;
  uint32_t n = rk_list(c, arg, &sizes);
  return rk_check_result(c, 0, (int32_t)n, sizes);
}

static aot_status_t zeros(rk_ctx_t *c) {
  AOT_TRY(check_size(c, 0));
  rk_fill_i(rk_result(c, 0), 0);
  return AOT_OK;
}
static aot_status_t ones(rk_ctx_t *c) {
  AOT_TRY(check_size(c, 0));
  rk_fill_i(rk_result(c, 0), 1);
  return AOT_OK;
}
static aot_status_t full(rk_ctx_t *c) {
  AOT_TRY(check_size(c, 0));
  fill_with(c, 1);
  return AOT_OK;
}
static aot_status_t new_zeros(rk_ctx_t *c) {
  AOT_TRY(check_size(c, 1));
  rk_fill_i(rk_result(c, 0), 0);
  return AOT_OK;
}
static aot_status_t new_ones(rk_ctx_t *c) {
  AOT_TRY(check_size(c, 1));
  rk_fill_i(rk_result(c, 0), 1);
  return AOT_OK;
}
static aot_status_t new_full(rk_ctx_t *c) {
  AOT_TRY(check_size(c, 1));
  fill_with(c, 2);
  return AOT_OK;
}
static aot_status_t check_like(rk_ctx_t *c) {
  const rk_tensor_t *t;
  AOT_TRY(rk_need_tensor(c, 0, &t));
  return rk_check_result(c, 0, t->rank, t->sizes);
}
static aot_status_t zeros_like(rk_ctx_t *c) {
  AOT_TRY(check_like(c));
  rk_fill_i(rk_result(c, 0), 0);
  return AOT_OK;
}
static aot_status_t ones_like(rk_ctx_t *c) {
  AOT_TRY(check_like(c));
  rk_fill_i(rk_result(c, 0), 1);
  return AOT_OK;
}
static aot_status_t full_like(rk_ctx_t *c) {
  AOT_TRY(check_like(c));
  fill_with(c, 1);
  return AOT_OK;
}
static aot_status_t scalar_tensor(rk_ctx_t *c) {
  AOT_TRY(rk_check_result(c, 0, 0, NULL));
  fill_with(c, 0);
  return AOT_OK;
}

/* start + k * step, in double or, in an integer dtype, of whole numbers. Only int64 counts its elements by those, the
 * other integers by the numbers as they are given, as PyTorch does. */
static aot_status_t range(rk_ctx_t *c, int start_arg, int end_arg, int step_arg) {
  rk_tensor_t *r = rk_result(c, 0);
  rk_array_t a;
  const int is_int = rk_is_int(r->dtype);
  double start = start_arg < 0 ? 0 : rk_float(c, (uint32_t)start_arg, 0),
         step = step_arg < 0 ? 1 : rk_float(c, (uint32_t)step_arg, 1);
  int64_t whole_start = start_arg < 0 ? 0 : rk_int(c, (uint32_t)start_arg, 0);
  int64_t whole_step = step_arg < 0 ? 1 : rk_int(c, (uint32_t)step_arg, 1), end = rk_int(c, (uint32_t)end_arg, 0), n;
  RK_CHECK(c, is_int ? whole_step != 0 : step != 0, "step is zero");
  if (r->dtype == AOT_I64) {
    int64_t away = whole_step > 0 ? end - whole_start : whole_start - end,
            by = whole_step > 0 ? whole_step : -whole_step;
    n = away > 0 ? (away + by - 1) / by : 0;
  } else {
    double length = ceil((rk_float(c, (uint32_t)end_arg, 0) - start) / step);
    RK_CHECK(c, length < 4611686018427387904.0, "the range is too long");
    n = length > 0 ? (int64_t)length : 0;
  }
  AOT_TRY(is_int ? rk_new_i(c, 1, &n, &a) : rk_new_f(c, 1, &n, &a));
  for (int64_t k = 0; k < n; k++) {
    if (is_int) a.i[k] = whole_start + k * whole_step;
    else a.f[k] = start + (double)k * step;
  }
  return is_int ? rk_put_i(c, 0, &a) : rk_put_f(c, 0, &a);
}
static aot_status_t arange(rk_ctx_t *c) { return range(c, -1, 0, -1); }
static aot_status_t arange_start(rk_ctx_t *c) { return range(c, 0, 1, -1); }
static aot_status_t arange_step(rk_ctx_t *c) { return range(c, 0, 1, 2); }

/* linspace(start, end, steps): both halves count from their own end, as PyTorch's does; logspace raises a base to
 * them */
static aot_status_t spaced(rk_ctx_t *c, int base_arg) {
  rk_array_t a;
  int64_t n = rk_int(c, 2, 0);
  double start = rk_float(c, 0, 0), end = rk_float(c, 1, 0), step;
  int is_int = rk_is_int(rk_result_dtype(c, 0));
  RK_CHECK(c, n >= 0, "%lld steps are not possible", (long long)n);
  if (is_int && base_arg < 0) {
    start = trunc(start);
    end = trunc(end);
  }
  step = n > 1 ? (end - start) / (double)(n - 1) : 0;
  AOT_TRY(rk_new_f(c, 1, &n, &a));
  for (int64_t k = 0; k < n; k++) {
    a.f[k] = k < n / 2 || n == 1 ? start + (double)k * step : end - (double)(n - 1 - k) * step;
    if (base_arg >= 0) a.f[k] = pow(rk_float(c, (uint32_t)base_arg, 10), a.f[k]);
  }
  return rk_put_f(c, 0, &a);
}
static aot_status_t linspace(rk_ctx_t *c) { return spaced(c, -1); }
static aot_status_t logspace(rk_ctx_t *c) { return spaced(c, 3); }

static aot_status_t eye(rk_ctx_t *c, int64_t rows_n, int64_t columns) {
  rk_array_t a;
  int64_t sizes[2] = {rows_n, columns};
  AOT_TRY(rk_new_i(c, 2, sizes, &a));
  for (int64_t k = 0; k < rows_n && k < columns; k++) a.i[k * columns + k] = 1;
  return rk_put_i(c, 0, &a);
}
static aot_status_t eye_n(rk_ctx_t *c) { return eye(c, rk_int(c, 0, 0), rk_int(c, 0, 0)); }
static aot_status_t eye_nm(rk_ctx_t *c) { return eye(c, rk_int(c, 0, 0), rk_int(c, 1, 0)); }

/* tril_indices(row, col, offset), triu_indices: coordinates in row order */
static aot_status_t triangle(rk_ctx_t *c, int lower) {
  const int64_t h = rk_int(c, 0, 0), w = rk_int(c, 1, 0), offset = rk_int(c, 2, 0);
  const int64_t total = c->call->results[0].rank == 2 ? c->call->results[0].sizes[1] : 0;
  const int64_t sizes[2] = {2, total};
  rk_array_t a;
  AOT_TRY(rk_new_i(c, 2, sizes, &a));
  for (int64_t n = 0, i = 0; i < h && n < total; i++)
    for (int64_t j = 0; j < w; j++) {
      if ((lower ? j - i > offset : j - i < offset) || n == total) continue;
      a.i[n] = i;
      a.i[total + n++] = j;
    }
  return rk_put_i(c, 0, &a);
}
static aot_status_t tril_indices(rk_ctx_t *c) { return triangle(c, 1); }
static aot_status_t triu_indices(rk_ctx_t *c) { return triangle(c, 0); }

#define NEW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, RK_FILL }
static const rk_kernel_t rows[] = {
    NEW("zeros.default", zeros),
    NEW("ones.default", ones),
    NEW("full.default", full),
    NEW("empty.memory_format", zeros),
    NEW("empty_strided.default", zeros),
    NEW("empty_permuted.default", zeros),
    NEW("new_zeros.default", new_zeros),
    NEW("new_empty.default", new_zeros),
    NEW("new_empty_strided.default", new_zeros),
    NEW("new_ones.default", new_ones),
    NEW("new_full.default", new_full),
    NEW("zeros_like.default", zeros_like),
    NEW("empty_like.default", zeros_like),
    NEW("zero.default", zeros_like),
    NEW("ones_like.default", ones_like),
    NEW("full_like.default", full_like),
    NEW("scalar_tensor.default", scalar_tensor),
    NEW("arange.default", arange),
    NEW("arange.start", arange_start),
    NEW("arange.start_step", arange_step),
    NEW("linspace.default", linspace),
    NEW("linspace.Scalar_Tensor", linspace),
    NEW("linspace.Tensor_Scalar", linspace),
    NEW("linspace.Tensor_Tensor", linspace),
    NEW("logspace.default", logspace),
    NEW("logspace.Scalar_Tensor", logspace),
    NEW("logspace.Tensor_Scalar", logspace),
    NEW("logspace.Tensor_Tensor", logspace),
    NEW("eye.default", eye_n),
    NEW("eye.m", eye_nm),
    NEW("tril_indices.default", tril_indices),
    NEW("triu_indices.default", triu_indices),
};
const rk_family_t rk_family_creation = RK_FAMILY(rows);
