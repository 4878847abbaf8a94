/* Fourier transforms: _fft_r2c, _fft_c2r and _fft_c2c, into which the others are decomposed. A transform of several
 * dimensions is one after another, in double throughout. Of a real signal of n points the first n/2 + 1 values report
 * the others: y[n - k] = conj(y[k]). */
#include "rk_fourier.h"
#include <aot/inline.h>
#include <math.h>

#define FORWARD (-1)
#define BACKWARD 1

static aot_status_t along(rk_ctx_t *c, rk_complex_array_t *a, int32_t dim, int sign) {
  int64_t outer, size, inner;
  rk_fourier_t f;
  rk_complex_t *line;
  rk_complex_around(a, dim, &outer, &size, &inner);
  if (a->numel == 0) return AOT_OK;
  AOT_TRY(rk_fourier_init(c, size, sign, &f));
  RK_SCRATCH(c, size, line);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      rk_complex_t *at = a->v + o * size * inner + i;
      for (int64_t k = 0; k < size; k++) line[k] = at[k * inner];
      rk_fourier_run(&f, line);
      for (int64_t k = 0; k < size; k++) at[k * inner] = line[k];
    }
  return AOT_OK;
}

static aot_status_t read_dims(rk_ctx_t *c, int32_t rank, int32_t *out, uint32_t *out_n) {
  const int64_t *dims;
  *out_n = rk_list(c, 1, &dims);
  RK_CHECK(c, *out_n <= AOT_MAX_RANK && rank > 0, "%u dimensions of a tensor of rank %d cannot be transformed", *out_n,
           rank);
  for (uint32_t k = 0; k < *out_n; k++) AOT_TRY(rk_dim(c, dims[k], rank, &out[k]));
  return AOT_OK;
}

/* normalization: 0 none, 1 divided by sqrt(n), 2 by n; n: the points of the real or complex signal */
static void normalize(const rk_ctx_t *c, rk_complex_array_t *a, int64_t n) {
  const int64_t how = rk_int(c, 2, 0);
  const double scale = how == 1 ? 1 / sqrt((double)n) : how == 2 ? 1 / (double)n : 1;
  for (int64_t e = 0; how && e < a->numel; e++) a->v[e] *= scale;
}

/* _fft_c2c(self, dim, normalization, forward) */
static aot_status_t c2c(rk_ctx_t *c) {
  rk_complex_array_t a;
  int32_t dims[AOT_MAX_RANK];
  uint32_t n_dims;
  int64_t points = 1;
  AOT_TRY(rk_complex_need(c, 0, &a));
  AOT_TRY(read_dims(c, a.rank, dims, &n_dims));
  for (uint32_t k = 0; k < n_dims; k++) {
    AOT_TRY(along(c, &a, dims[k], rk_bool(c, 3, 1) ? FORWARD : BACKWARD));
    points *= a.sizes[dims[k]];
  }
  normalize(c, &a, points);
  return rk_complex_put(c, 0, &a);
}

/* Element k of every line along dim of y is that of a, where a has one. */
static void copy_lines(const rk_complex_array_t *a, rk_complex_array_t *y, int32_t dim) {
  int64_t outer, from, to, inner;
  rk_complex_around(a, dim, &outer, &from, &inner);
  rk_complex_around(y, dim, &outer, &to, &inner);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < from && k < to; k++)
      for (int64_t i = 0; i < inner; i++) y->v[(o * to + k) * inner + i] = a->v[(o * from + k) * inner + i];
}

/* _fft_r2c(self, dim, normalization, onesided): the last of dim keeps its first half */
static aot_status_t r2c(rk_ctx_t *c) {
  rk_complex_array_t a, y;
  int32_t dims[AOT_MAX_RANK];
  uint32_t n_dims;
  int64_t points = 1, sizes[AOT_MAX_RANK];
  AOT_TRY(rk_complex_need(c, 0, &a));
  AOT_TRY(read_dims(c, a.rank, dims, &n_dims));
  for (uint32_t k = n_dims; k-- > 0;) {
    AOT_TRY(along(c, &a, dims[k], FORWARD));
    points *= a.sizes[dims[k]];
  }
  normalize(c, &a, points);
  if (!rk_bool(c, 3, 1) || !n_dims) return rk_complex_put(c, 0, &a);
  for (int32_t d = 0; d < a.rank; d++) sizes[d] = d == dims[n_dims - 1] ? a.sizes[d] / 2 + 1 : a.sizes[d];
  AOT_TRY(rk_complex_new(c, a.rank, sizes, &y));
  copy_lines(&a, &y, dims[n_dims - 1]);
  return rk_complex_put(c, 0, &y);
}

/* The second half of every line along dim from the first. What a real signal cannot have, imaginary parts at 0 and in
 * the middle, is not looked at. */
static void mirror(rk_complex_array_t *y, int32_t dim) {
  int64_t outer, n, inner;
  rk_complex_around(y, dim, &outer, &n, &inner);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t i = 0; i < inner; i++) {
      rk_complex_t *at = y->v + o * n * inner + i;
      for (int64_t k = 0; k <= n / 2; k++) {
        if (k == 0 || 2 * k == n) at[k * inner] = creal(at[k * inner]);
        else at[(n - k) * inner] = conj(at[k * inner]);
      }
    }
}

/* _fft_c2r(self, dim, normalization, last_dim_size) */
static aot_status_t c2r(rk_ctx_t *c) {
  rk_complex_array_t a, y;
  int32_t dims[AOT_MAX_RANK], last;
  uint32_t n_dims;
  int64_t points = 1, sizes[AOT_MAX_RANK];
  AOT_TRY(rk_complex_need(c, 0, &a));
  AOT_TRY(read_dims(c, a.rank, dims, &n_dims));
  RK_CHECK(c, n_dims > 0, "there is no dimension to transform");
  last = dims[n_dims - 1];
  for (uint32_t k = 0; k + 1 < n_dims; k++) {
    AOT_TRY(along(c, &a, dims[k], BACKWARD));
    points *= a.sizes[dims[k]];
  }
  for (int32_t d = 0; d < a.rank; d++) sizes[d] = d == last ? rk_int(c, 3, 0) : a.sizes[d];
  RK_CHECK(c, sizes[last] > 0 && a.sizes[last] > sizes[last] / 2, "%lld values do not give %lld points",
           (long long)a.sizes[last], (long long)sizes[last]);
  AOT_TRY(rk_complex_new(c, a.rank, sizes, &y));
  copy_lines(&a, &y, last);
  mirror(&y, last);
  AOT_TRY(along(c, &y, last, BACKWARD));
  normalize(c, &y, points * sizes[last]);
  return rk_complex_put(c, 0, &y);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("_fft_c2c.default", c2c),
    ROW("_fft_r2c.default", r2c),
    ROW("_fft_c2r.default", c2r),
};
const rk_family_t rk_family_fourier = RK_FAMILY(rows);
