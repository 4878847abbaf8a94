/* Products by oneDNN and conversions of f16 or bf16, against sums in double. */
#include "naive.h"

#include "half_kernels.h"
#include "onednn_kernels.h"
#include "sparse_product.h"
#include "kit/reference/rk_core.h"
#include <aot/base.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 160 * 176 };

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
  bc_convert_to_f32(AOT_BF16, (const uint16_t *)from + at, 1, &f);
  return (double)f;
}

/* One rounding to bfloat16, at most half of its last digit, after sums in float of k products. */
static double allowed(int32_t dtype, double exact, double size, int64_t k) {
  return fabs(exact) * (dtype == AOT_BF16 ? 0x1p-8 : 0) + size * (double)(k + 2) * 0x1p-24;
}

/* A matrix whose lines have `more` further elements: a part of a larger one. */
static void describe(bc_matrix_t *x, int64_t rows, int64_t columns, int is_transposed, int64_t more) {
  const int64_t ld = (is_transposed ? rows : columns) + more;
  assert_true(bc_matrix(rows, columns, is_transposed ? 1 : ld, is_transposed ? ld : 1, x));
}

/* Where the whole has a kernel its parts have one, too. Of floats those whose right operand lies by columns are the
 * BLAS's. */
static void parts_have_a_kernel(const bc_product_t *part, int64_t more) {
  bc_product_t whole = *part;
  bc_matrix_t *const matrices[] = {&whole.a, &whole.b, &whole.c};
  for (int i = 0; i < 3; i++)
    if (matrices[i]->ld > more) matrices[i]->ld -= more;
  bc_dnn_t *kernel = bc_dnn_product(&whole, 1);
  assert_true(!kernel || (part->dtype == AOT_F32 && part->b.transposed));
  bc_dnn_destroy(kernel);
}

static void check_product(int32_t dtype, int64_t m, int64_t n, int64_t k, int form, int64_t more, double alpha,
                          double beta, int has_bias) {
  static uint16_t half[MOST];
  static double x[MOST], y[MOST], before[MOST], added[MOST];
  static float a[MOST], b[MOST], c[MOST], bias[MOST]; /* or halves */
  bc_product_t p = {.dtype = dtype, .alpha = alpha, .beta = beta, .has_bias = has_bias};
  describe(&p.a, m, k, form & 1, more);
  describe(&p.b, k, n, form >> 1 & 1, more);
  describe(&p.c, m, n, 0, more);
  bc_dnn_t *kernel = bc_dnn_product(&p, 2);
  if (!kernel) { /* its fallback is the BLAS */
    parts_have_a_kernel(&p, more);
    return;
  }
  double *const doubles[] = {x, y, before, added};
  void *const operands[] = {a, b, c, bias};
  const int ta = p.a.transposed, tb = p.b.transposed; /* one row, or column, is in both ways */
  const int64_t lines[] = {ta ? k : m, tb ? n : k, m, 1}, steps[] = {p.a.ld, p.b.ld, p.c.ld, n};
  for (int t = 0; t < 4; t++) {
    const int64_t size = lines[t] * steps[t];
    random_halves(half, size, (uint32_t)t + 1);
    for (int64_t i = 0; i < size; i++) {
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
        const double term = x[ta ? q * p.a.ld + i : i * p.a.ld + q] * y[tb ? j * p.b.ld + q : q * p.b.ld + j];
        sum += term;
        size += fabs(term);
      }
      const double further = has_bias ? added[j] : beta * before[i * p.c.ld + j];
      const double exact = alpha * sum + further, got = load(dtype, c, i * p.c.ld + j);
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
        for (int64_t more = 0; more <= 16; more += 16) {
          check_product(dtypes[d], sizes[s][0], sizes[s][1], sizes[s][2], form, more, 1, 0, 0);
          check_product(dtypes[d], sizes[s][0], sizes[s][1], sizes[s][2], form, more, 1, 0, 1);
          check_product(dtypes[d], sizes[s][0], sizes[s][1], sizes[s][2], form, more, 0.5, -2, 0);
        }
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
      bc_convert_to_f32(dtypes[d], &half, 1, &wide);
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

enum { SPARSE_M = 200, SPARSE_N = 96, SPARSE_K = 256 }; /* large enough to be looked at */

typedef struct sparse_case {
  bc_product_t product;
  float *a, *b, *c; /* or halves */
  void *work;
} sparse_case_t;

/* A left operand with no, one or two elements a row that are not zero; k, n and its lines are no whole vectors. */
static sparse_case_t sparse_case(int32_t dtype, int transposed, double beta) {
  const int64_t m = SPARSE_M, n = SPARSE_N - 1, k = SPARSE_K - 3;
  sparse_case_t s = {.product = {.dtype = dtype, .alpha = 0.5, .beta = beta}};
  bc_matrix(m, k, transposed ? 1 : k, transposed ? m : 1, &s.product.a);
  bc_matrix(k, n, n, 1, &s.product.b);
  bc_matrix(m, n, n, 1, &s.product.c);
  assert_true(bc_sparse_work(&s.product) > 0);
  s.a = calloc((size_t)(m * k), sizeof *s.a);
  s.b = calloc((size_t)(k * n), sizeof *s.b);
  s.c = calloc((size_t)(m * n), sizeof *s.c);
  s.work = malloc((size_t)bc_sparse_work(&s.product));
  for (int64_t i = 0; i < m; i++)
    for (int64_t e = 0; e < i % 3; e++) {
      const int64_t at = (i * 7 + e * 100) % k;
      store(dtype, s.a, transposed ? at * m + i : i * k + at, (double)(i % 8 + 1));
    }
  for (int64_t i = 0; i < k * n; i++) store(dtype, s.b, i, (double)(i % 11 - 5));
  for (int64_t i = 0; i < m * n; i++) store(dtype, s.c, i, (double)(i % 5));
  return s;
}

static void free_case(sparse_case_t *s) {
  free(s->a);
  free(s->b);
  free(s->c);
  free(s->work);
}

/* Small whole numbers: exact in both dtypes. */
static void elements_of_nearly_zero_operands_take_rows(void **state) {
  static const int32_t dtypes[] = {AOT_BF16, AOT_F32};
  (void)state;
  for (int form = 0; form < 8; form++) {
    const int32_t dtype = dtypes[form & 1];
    const double beta = form & 2 ? 2 : 0;
    sparse_case_t s = sparse_case(dtype, form >> 2, beta);
    const bc_product_t *p = &s.product;
    const int64_t m = p->a.rows, k = p->a.columns, n = p->c.columns;
    assert_true(bc_sparse_find(p, s.a, s.b, s.work));
    bc_sparse_rows(p, s.work, s.b, s.c, 0, 50);
    bc_sparse_rows(p, s.work, s.b, s.c, 50, m);
    for (int64_t i = 0; i < m; i++)
      for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t q = 0; q < k; q++)
          sum += load(dtype, s.a, p->a.transposed ? q * m + i : i * k + q) * load(dtype, s.b, q * n + j);
        assert_true(load(dtype, s.c, i * n + j) == 0.5 * sum + beta * (double)((i * n + j) % 5));
      }
    free_case(&s);
  }
}

/* A zero times infinity is no zero, and what is dense is a BLAS's, whether its first elements show it or not. */
static void other_operands_are_left_alone(void **state) {
  static const int32_t dtypes[] = {AOT_BF16, AOT_F32};
  (void)state;
  for (int form = 0; form < 4; form++) {
    const int32_t dtype = dtypes[form & 1];
    sparse_case_t s = sparse_case(dtype, form >> 1, 0);
    const bc_product_t *p = &s.product;
    const int64_t n_b = p->b.rows * p->b.columns, n_a = p->a.rows * p->a.columns;
    store(dtype, s.b, n_b - 1, (double)INFINITY);
    assert_false(bc_sparse_find(p, s.a, s.b, s.work));
    store(dtype, s.b, n_b - 1, (double)NAN);
    assert_false(bc_sparse_find(p, s.a, s.b, s.work));
    store(dtype, s.b, n_b - 1, 1);
    assert_true(bc_sparse_find(p, s.a, s.b, s.work));
    for (int64_t i = n_a / 40; i < n_a / 10; i++) store(dtype, s.a, i, 1);
    assert_false(bc_sparse_find(p, s.a, s.b, s.work));
    for (int64_t i = 0; i < n_a; i++) store(dtype, s.a, i, 1);
    assert_false(bc_sparse_find(p, s.a, s.b, s.work));
    free_case(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_are_rounded_once), cmocka_unit_test(halves_are_converted_as_by_the_reference),
      cmocka_unit_test(elements_of_nearly_zero_operands_take_rows), cmocka_unit_test(other_operands_are_left_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
