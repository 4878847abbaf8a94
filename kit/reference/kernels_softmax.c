/* Softmax, log-softmax, their derivatives, and running sums along one dimension (cumsum, cumprod, logcumsumexp).
 *
 * One driver calls a row function on every line along the dimension, gathered into a dense buffer. Softmax subtracts
 * the maximum; a line of all -inf is NaN, but 0 in _safe_softmax. Derivatives: operators.md section 4. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>

/* One line of n elements: x is the input (grad for derivatives), y the second input or NULL, out the result. */
typedef void (*line_f_t)(const double *x, const double *y, int64_t n, double *out);
typedef void (*line_i_t)(const int64_t *x, int64_t n, int64_t *out);

static double top_of(const double *x, int64_t n) {
  double top = -INFINITY;
  for (int64_t k = 0; k < n; k++)
    if (x[k] > top || x[k] != x[k]) top = x[k];
  return top;
}
static void softmax_line(const double *x, const double *y, int64_t n, double *out) {
  double top = top_of(x, n), sum = 0;
  (void)y;
  for (int64_t k = 0; k < n; k++) sum += out[k] = exp(x[k] - top);
  for (int64_t k = 0; k < n; k++) out[k] /= sum;
}
static void safe_softmax_line(const double *x, const double *y, int64_t n, double *out) {
  if (top_of(x, n) != -INFINITY) {
    softmax_line(x, y, n, out);
    return;
  }
  for (int64_t k = 0; k < n; k++) out[k] = 0;
}
static void log_softmax_line(const double *x, const double *y, int64_t n, double *out) {
  double top = top_of(x, n), sum = 0;
  (void)y;
  for (int64_t k = 0; k < n; k++) sum += exp(x[k] - top);
  sum = log(sum);
  for (int64_t k = 0; k < n; k++) out[k] = x[k] - top - sum;
}
/* g, y = softmax(x): y * (g - sum(g * y)) */
static void softmax_backward_line(const double *g, const double *y, int64_t n, double *out) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) sum += g[k] * y[k];
  for (int64_t k = 0; k < n; k++) out[k] = y[k] * (g[k] - sum);
}
static void log_softmax_backward_line(const double *g, const double *y, int64_t n, double *out) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) sum += g[k];
  for (int64_t k = 0; k < n; k++) out[k] = g[k] - exp(y[k]) * sum;
}
static void cumsum_line(const double *x, const double *y, int64_t n, double *out) {
  double sum = 0;
  (void)y;
  for (int64_t k = 0; k < n; k++) out[k] = sum += x[k];
}
static void cumsum_line_i(const int64_t *x, int64_t n, int64_t *out) {
  uint64_t sum = 0;
  for (int64_t k = 0; k < n; k++) out[k] = (int64_t)(sum += (uint64_t)x[k]);
}
static void cumprod_line(const double *x, const double *y, int64_t n, double *out) {
  double product = 1;
  (void)y;
  for (int64_t k = 0; k < n; k++) out[k] = product *= x[k];
}
static void cumprod_line_i(const int64_t *x, int64_t n, int64_t *out) {
  uint64_t product = 1;
  for (int64_t k = 0; k < n; k++) out[k] = (int64_t)(product *= (uint64_t)x[k]);
}
static void logcumsumexp_line(const double *x, const double *y, int64_t n, double *out) {
  double sum = -INFINITY;
  (void)y;
  for (int64_t k = 0; k < n; k++) {
    double high = x[k] > sum || x[k] != x[k] ? x[k] : sum, low = x[k] > sum ? sum : x[k];
    out[k] = sum = high == -INFINITY || high != high ? high
                   : low == high && isinf(high)      ? high
                                                     : high + log1p(exp(low - high));
  }
}

typedef struct line_row {
  line_f_t f;
  line_i_t i;
  int two; /* arguments: grad, output, dim instead of self, dim */
} line_row_t;

static aot_status_t lines(rk_ctx_t *c) {
  const line_row_t *row = c->kernel->row;
  rk_array_t x, y = {0};
  int32_t dim;
  int64_t outer, size, inner;
  double *line, *second, *out;
  AOT_TRY(rk_need_f(c, 0, &x));
  if (row->two) {
    AOT_TRY(rk_need_f(c, 1, &y));
    RK_CHECK(c, rk_same_sizes(&x, &y), "gradient and output differ in shape");
  }
  AOT_TRY(rk_dim(c, rk_int(c, row->two ? 2 : 1, -1), x.rank, &dim));
  rk_around(&x, dim, &outer, &size, &inner);
  RK_SCRATCH(c, size, line);
  RK_SCRATCH(c, size, second);
  RK_SCRATCH(c, size, out);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      double *at = x.f + o * size * inner + i;
      for (int64_t k = 0; k < size; k++) {
        line[k] = at[k * inner];
        if (row->two) second[k] = y.f[(o * size + k) * inner + i];
      }
      row->f(line, second, size, out);
      for (int64_t k = 0; k < size; k++) at[k * inner] = out[k];
    }
  return rk_put_f(c, 0, &x);
}

/* cumsum, cumprod: elements become the result's dtype first */
static aot_status_t scan(rk_ctx_t *c) {
  const line_row_t *row = c->kernel->row;
  rk_array_t x;
  int32_t dim;
  int64_t outer, size, inner, *line, *out;
  if (!rk_is_int(rk_result_dtype(c, 0))) return lines(c);
  AOT_TRY(rk_need_cast_i(c, 0, rk_result_dtype(c, 0), &x));
  AOT_TRY(rk_dim(c, rk_int(c, 1, -1), x.rank, &dim));
  rk_around(&x, dim, &outer, &size, &inner);
  RK_SCRATCH(c, size, line);
  RK_SCRATCH(c, size, out);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      int64_t *at = x.i + o * size * inner + i;
      for (int64_t k = 0; k < size; k++) line[k] = at[k * inner];
      row->i(line, size, out);
      for (int64_t k = 0; k < size; k++) at[k * inner] = out[k];
    }
  return rk_put_i(c, 0, &x);
}

#define LINE(name, fn, f, i, two)                                                                                      \
  { "aten." name, fn, NULL, &(const line_row_t){f, i, two}, 0 }
static const rk_kernel_t rows[] = {
    LINE("_softmax.default", lines, softmax_line, NULL, 0),
    LINE("softmax.int", lines, softmax_line, NULL, 0),
    LINE("special_softmax.default", lines, softmax_line, NULL, 0),
    LINE("_safe_softmax.default", lines, safe_softmax_line, NULL, 0),
    LINE("_log_softmax.default", lines, log_softmax_line, NULL, 0),
    LINE("log_softmax.int", lines, log_softmax_line, NULL, 0),
    LINE("special_log_softmax.default", lines, log_softmax_line, NULL, 0),
    LINE("_softmax_backward_data.default", lines, softmax_backward_line, NULL, 1),
    LINE("_log_softmax_backward_data.default", lines, log_softmax_backward_line, NULL, 1),
    LINE("cumsum.default", scan, cumsum_line, cumsum_line_i, 0),
    LINE("cumprod.default", scan, cumprod_line, cumprod_line_i, 0),
    LINE("logcumsumexp.default", lines, logcumsumexp_line, NULL, 0),
};
const rk_family_t rk_family_softmax = RK_FAMILY(rows);
