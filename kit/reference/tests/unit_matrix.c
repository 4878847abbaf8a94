/* Factorisations put together again: what a recording cannot check, because signs and bases are free. */
#include "kit/reference/rk_matrix.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define N 6

static double random_unit(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 33) / 2147483648.0 - 0.5;
}
static void fill(double *a, int64_t n, uint64_t seed) {
  for (int64_t i = 0; i < n; i++) a[i] = random_unit(&seed);
}
static void assert_same(const double *a, const double *b, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (fabs(a[i] - b[i]) > 1e-12) fail_msg("element %lld is %.17g, not %.17g", (long long)i, a[i], b[i]);
}
static void assert_orthonormal(const double *q, int64_t m, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      double dot = 0;
      for (int64_t k = 0; k < m; k++) dot += q[k * n + i] * q[k * n + j];
      assert_float_equal(dot, i == j, 1e-12);
    }
}

static void test_svd(void **state) {
  double a[N * 4], copy[N * 4], u[N * 4], s[4], vt[16], us[N * 4], v[16], back[N * 4];
  (void)state;
  for (int rank = 4; rank >= 2; rank -= 2) { /* full rank, then two equal columns and a zero one */
    fill(a, N * 4, 7);
    for (int i = 0; i < N && rank == 2; i++) {
      a[i * 4 + 1] = a[i * 4];
      a[i * 4 + 3] = 0;
    }
    memcpy(copy, a, sizeof a);
    assert_int_equal(rm_svd(copy, N, 4, 0, u, s, vt), 0);
    assert_orthonormal(u, N, 4);
    rm_transpose(vt, 4, 4, v);
    assert_orthonormal(v, 4, 4);
    for (int j = 0; j < 3; j++) assert_true(s[j] >= s[j + 1] && s[j + 1] >= 0);
    for (int i = 0; i < N * 4; i++) us[i] = u[i] * s[i % 4];
    rm_multiply(us, vt, back, N, 4, 4);
    assert_same(back, a, N * 4);
  }
}

/* The bases of a wide matrix and of one without elements, complete. */
static void test_full_svd(void **state) {
  double a[2 * N], u[4], s[2], vt[N * N], none[1];
  (void)state;
  fill(a, 2 * N, 5);
  assert_int_equal(rm_svd(a, 2, N, 1, u, s, vt), 0);
  assert_orthonormal(u, 2, 2);
  assert_orthonormal(vt, N, N);
  assert_int_equal(rm_svd(none, 0, 2, 1, none, s, u), 0);
  assert_same(u, (const double[]){1, 0, 0, 1}, 4);
}

static void test_eigh(void **state) {
  double a[N * N], w[N], v[N * N], vw[N * N], vt[N * N], back[N * N];
  (void)state;
  fill(a, N * N, 3);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < i; j++) a[j * N + i] = a[i * N + j];
  memcpy(v, a, sizeof a);
  assert_int_equal(rm_eigh(v, N, w, 1), 0);
  assert_orthonormal(v, N, N);
  for (int i = 0; i + 1 < N; i++) assert_true(w[i] <= w[i + 1]);
  for (int i = 0; i < N * N; i++) vw[i] = v[i] * w[i % N];
  rm_transpose(v, N, N, vt);
  rm_multiply(vw, vt, back, N, N, N);
  assert_same(back, a, N * N);
}

/* Q R is A again, whichever way Q is made. */
static void test_qr(void **state) {
  double a[N * 4], f[N * 4], tau[4], q[N * 4], r[16] = {0}, back[N * 4], applied[N * 4] = {0};
  (void)state;
  fill(a, N * 4, 9);
  memcpy(f, a, sizeof a);
  assert_int_equal(rm_qr(f, N, 4, tau), 0);
  memcpy(q, f, sizeof f);
  assert_int_equal(rm_form_q(q, N, 4, tau, 4), 0);
  assert_orthonormal(q, N, 4);
  for (int i = 0; i < 4; i++)
    for (int j = i; j < 4; j++) r[i * 4 + j] = applied[i * 4 + j] = f[i * 4 + j];
  rm_multiply(q, r, back, N, 4, 4);
  assert_same(back, a, N * 4);
  assert_int_equal(rm_apply_q(f, 4, tau, 4, applied, N, 4, 1, 0), 0);
  assert_same(applied, a, N * 4);
}

/* Every driver brings a full-rank problem to the same solution; two report the rank of one that is not. */
static void test_least_squares(void **state) {
  double a[N * 3], b[N * 2], x[3][6], s[3];
  int64_t rank;
  (void)state;
  fill(a, N * 3, 21);
  fill(b, N * 2, 22);
  for (int driver = RM_GELS; driver <= RM_GELSD; driver++) {
    assert_int_equal(rm_least_squares(driver, a, N, 3, b, 2, 1e-14, x[driver], &rank, s), 0);
    assert_int_equal(rank, 3);
  }
  assert_same(x[RM_GELSY], x[RM_GELS], 6);
  assert_same(x[RM_GELSD], x[RM_GELS], 6);
  for (int i = 0; i < N; i++) a[i * 3 + 2] = a[i * 3];
  for (int driver = RM_GELSY; driver <= RM_GELSD; driver++) {
    assert_int_equal(rm_least_squares(driver, a, N, 3, b, 2, 1e-12, x[driver], &rank, s), 0);
    assert_int_equal(rank, 2);
  }
  assert_same(x[RM_GELSY], x[RM_GELSD], 6);
}

/* Solving brings back what was multiplied, for matrices that need 1 x 1 and 2 x 2 pivots. */
static void test_ldl_solves(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed < 40; seed++) {
    double a[N * N], factors[N * N], x[N * 2], b[N * 2];
    int64_t pivots[N];
    fill(a, N * N, seed);
    for (int i = 0; i < N; i++) {
      if (seed % 2) a[i * N + i] = 0; /* a zero diagonal forces 2 x 2 blocks */
      for (int j = 0; j < i; j++) a[j * N + i] = a[i * N + j];
    }
    fill(x, N * 2, seed + 100);
    rm_multiply(a, x, b, N, N, 2);
    memcpy(factors, a, sizeof a);
    assert_int_equal(rm_ldl(factors, N, pivots), 0);
    rm_ldl_solve(factors, N, pivots, b, 2);
    for (int i = 0; i < N * 2; i++) assert_float_equal(b[i], x[i], 1e-9);
  }
}

static void test_lu_solves_both_ways(void **state) {
  double a[N * N], at[N * N], factors[N * N], x[N * 2], b[N * 2];
  int64_t pivots[N];
  (void)state;
  fill(a, N * N, 11);
  fill(x, N * 2, 12);
  rm_transpose(a, N, N, at);
  memcpy(factors, a, sizeof a);
  assert_int_equal(rm_lu(factors, N, N, pivots), 0);
  rm_multiply(a, x, b, N, N, 2);
  rm_lu_solve(factors, N, pivots, b, 2, 0);
  assert_same(b, x, N * 2);
  rm_multiply(at, x, b, N, N, 2);
  rm_lu_solve(factors, N, pivots, b, 2, 1);
  assert_same(b, x, N * 2);
}

static void test_singular_matrices_are_reported(void **state) {
  double a[4] = {1, 2, 2, 4}, spd[4] = {1, 2, 2, 1};
  int64_t pivots[2];
  (void)state;
  assert_int_equal(rm_lu(a, 2, 2, pivots), 2);
  assert_int_equal(rm_cholesky(spd, 2), 2);
}

/* exp of a rotation generator is the rotation */
static void test_exponential(void **state) {
  double a[4] = {0, -2, 2, 0}, e[4], work[12];
  (void)state;
  rm_exp(a, 2, e, work);
  assert_float_equal(e[0], cos(2), 1e-14);
  assert_float_equal(e[2], sin(2), 1e-14);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_svd),
      cmocka_unit_test(test_full_svd),
      cmocka_unit_test(test_eigh),
      cmocka_unit_test(test_qr),
      cmocka_unit_test(test_least_squares),
      cmocka_unit_test(test_ldl_solves),
      cmocka_unit_test(test_lu_solves_both_ways),
      cmocka_unit_test(test_singular_matrices_are_reported),
      cmocka_unit_test(test_exponential),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
