/* Products by oneDNN and conversions of halves, against sums in double. */
#include "naive.h"

#include "half_kernels.h"
#include "onednn_kernels.h"
#include "common/kernels/rk_core.h"
#include <aot/base.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 160 * 160 };

/* Of what a bfloat16 holds exactly, so that only the product rounds. */
static void random_halves(uint16_t *x, int64_t n, uint32_t seed) {
  float wide[MOST];
  naive_random(wide, n, seed);
  bc_narrow(AOT_BF16, wide, n, x);
}

static void store(int32_t dtype, void *to, int64_t at, double value) {
  const float f = (float)value;
  if (dtype == AOT_F32) ((float *)to)[at] = f;
  else bc_narrow(AOT_BF16, &f, 1, (uint16_t *)to + at);
}

static double load(int32_t dtype, const void *from, int64_t at) {
  float f;
  if (dtype == AOT_F32) return (double)((const float *)from)[at];
  bc_widen(AOT_BF16, (const uint16_t *)from + at, 1, &f);
  return (double)f;
}

/* One rounding to bfloat16, at most half of its last digit, after sums in float of k products. */
static double allowed(int32_t dtype, double exact, double size, int64_t k) {
  return fabs(exact) * (dtype == AOT_BF16 ? 0x1p-8 : 0) + size * (double)(k + 2) * 0x1p-24;
}

static void check_product(int32_t dtype, int64_t m, int64_t n, int64_t k, int form, double alpha, double beta) {
  static uint16_t half[MOST];
  static double x[MOST], y[MOST], before[MOST];
  static float a[MOST], b[MOST], c[MOST]; /* or halves */
  const int ta = form & 1, tb = form >> 1 & 1;
  bc_product_t p = {.dtype = dtype, .alpha = alpha, .beta = beta};
  bc_matrix(m, k, ta ? 1 : k, ta ? m : 1, &p.a);
  bc_matrix(k, n, tb ? 1 : n, tb ? k : 1, &p.b);
  bc_matrix(m, n, n, 1, &p.c);
  bc_dnn_t *kernel = bc_dnn_product(&p, 2);
  if (!kernel) return; /* its fallback is the BLAS */
  double *const doubles[] = {x, y, before};
  void *const operands[] = {a, b, c};
  const int64_t sizes[] = {m * k, k * n, m * n};
  for (int t = 0; t < 3; t++) {
    random_halves(half, sizes[t], (uint32_t)t + 1);
    for (int64_t i = 0; i < sizes[t]; i++) {
      doubles[t][i] = load(AOT_BF16, half, i);
      store(dtype, operands[t], i, doubles[t][i]);
    }
  }
  void *work = aligned_alloc(64, (size_t)bc_dnn_work(kernel) + 64);
  assert_int_equal(bc_dnn_run(kernel, 1, operands, work), 0);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      double sum = 0, size = 0;
      for (int64_t q = 0; q < k; q++) {
        const double term = x[ta ? q * m + i : i * k + q] * y[tb ? j * k + q : q * n + j];
        sum += term;
        size += fabs(term);
      }
      const double exact = alpha * sum + beta * before[i * n + j], got = load(dtype, c, i * n + j);
      if (!(fabs(got - exact) <= allowed(dtype, exact, fabs(alpha) * size + fabs(exact), k)))
        fail_msg("%lld x %lld x %lld, form %d: %.9g, not %.9g", (long long)m, (long long)n, (long long)k, form, got,
                 exact);
    }
  free(work);
  bc_dnn_destroy(kernel);
}

static void products_are_rounded_once(void **state) {
  static const int64_t sizes[][3] = {{1, 1, 1},    {1, 40, 33},  {7, 5, 3},      {16, 16, 16},
                                     {33, 17, 65}, {64, 32, 48}, {100, 37, 150}, {150, 130, 160}};
  static const int32_t dtypes[] = {AOT_BF16, AOT_F32};
  (void)state;
  for (int d = 0; d < 2; d++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (int form = 0; form < 4; form++) {
        check_product(dtypes[d], sizes[s][0], sizes[s][1], sizes[s][2], form, 1, 0);
        check_product(dtypes[d], sizes[s][0], sizes[s][1], sizes[s][2], form, 0.5, -2);
      }
}

/* Every half, and floats around every half, as the reference kernels convert them. */
static void halves_are_converted_as_by_the_reference(void **state) {
  static const int32_t dtypes[] = {AOT_BF16, AOT_F16};
  (void)state;
  for (int d = 0; d < 2; d++)
    for (uint32_t h = 0; h < 65536; h++) {
      const uint16_t half = (uint16_t)h;
      float wide;
      bc_widen(dtypes[d], &half, 1, &wide);
      const double expected = rk_load_f(&half, dtypes[d]);
      if (expected != expected) {
        assert_true(wide != wide);
        continue;
      }
      assert_true((double)wide == expected);
      for (int off = -2; off <= 2; off++)
        for (int middle = 0; middle < 2; middle++) {
          uint32_t bits;
          float near;
          uint16_t got, right;
          memcpy(&bits, &wide, sizeof bits);
          bits += (uint32_t)off + (middle ? dtypes[d] == AOT_BF16 ? 0x8000u : 0x1000u : 0);
          memcpy(&near, &bits, sizeof near);
          bc_narrow(dtypes[d], &near, 1, &got);
          rk_store_f(&right, dtypes[d], (double)near);
          if (near == near ? got != right : (got & 0x7fff) <= 0x7c00)
            fail_msg("dtype %d: %a to %04x, not %04x", dtypes[d], (double)near, got, right);
        }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_rounded_once),
                                     cmocka_unit_test(halves_are_converted_as_by_the_reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
