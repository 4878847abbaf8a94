/* Medians and bootstrap intervals, against sorting, against every resample there is, and against the promise of
 * their level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <trainer/tensors/random.h>
#include <cli/base/statistics.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double sorted_median(const double *x, uint32_t n) {
  double copy[64];
  memcpy(copy, x, n * sizeof *x);
  qsort(copy, n, sizeof *copy, by_size);
  return n % 2 ? copy[n / 2] : (copy[n / 2 - 1] + copy[n / 2]) / 2;
}

static void close_to(double a, double b, double tolerance) {
  if (!(fabs(a - b) <= tolerance)) fail_msg("%.17g is not %.17g", a, b);
}

/* Every length to 64, with many equal numbers and with none. */
static void test_median_is_the_sorted_middle(void **state) {
  (void)state;
  aoth_random_t r;
  aoth_random_seed(&r, 1);
  for (uint32_t n = 1; n <= 64; n++) {
    for (uint32_t spread = 1; spread <= 1000; spread *= 10) {
      double x[64], copy[64];
      for (uint32_t i = 0; i < n; i++) x[i] = (double)aoth_random_below(&r, spread);
      memcpy(copy, x, sizeof copy);
      close_to(aoth_median(copy, n), sorted_median(x, n), 0);
    }
  }
  assert_true(isnan(aoth_median(NULL, 0)));
}

static void test_quantiles(void **state) {
  (void)state;
  const double x[] = {1, 2, 4, 8};
  close_to(aoth_quantile(x, 4, 0), 1, 0);
  close_to(aoth_quantile(x, 4, 1), 8, 0);
  close_to(aoth_quantile(x, 4, 0.5), 3, 0);
  close_to(aoth_quantile(x, 4, 0.25), 1.75, 1e-15);
  close_to(aoth_quantile(x, 1, 0.7), 1, 0);
}

static aoth_sample_t one_group(const double *x, uint32_t n) { return (aoth_sample_t){x, 1, n}; }

/* n = 4 has 256 resamples. The interval's ends are quantiles of the ratio over all of them, as far as so many draws
 * can determine. */
static void test_interval_against_every_resample(void **state) {
  (void)state;
  const double a[] = {10, 11, 13, 17}, b[] = {9, 12, 12.5, 20};
  const aoth_sample_t sa = one_group(a, 4), sb = one_group(b, 4);
  const aoth_interval_t got = aoth_ratio_interval(&sa, &sb, (aoth_bootstrap_t){0.8, 200000, 7});
  double all[256];
  for (uint32_t code = 0; code < 256; code++) {
    double x[4], y[4];
    for (uint32_t i = 0; i < 4; i++) {
      x[i] = a[code >> 2 * i & 3];
      y[i] = b[code >> 2 * i & 3];
    }
    all[code] = sorted_median(y, 4) / sorted_median(x, 4);
  }
  qsort(all, 256, sizeof *all, by_size);
  close_to(got.value, 12.25 / 12, 1e-15);
  close_to(got.low, all[25], 1e-12); /* 25.6 of 256 are below the 10 % point */
  close_to(got.high, all[230], 1e-12);
}

/* Three groups of one measurement: two of them are drawn, in nine ways, and the mean of two logarithms is used. */
static void test_groups_against_every_resample(void **state) {
  (void)state;
  const double a[] = {1, 1, 1}, b[] = {1, 2, 8};
  const aoth_sample_t sa = {a, 3, 1}, sb = {b, 3, 1};
  const aoth_interval_t got = aoth_ratio_interval(&sa, &sb, (aoth_bootstrap_t){0.5, 200000, 7});
  double all[9];
  for (uint32_t code = 0; code < 9; code++) all[code] = sqrt(b[code % 3] * b[code / 3]);
  qsort(all, 9, sizeof *all, by_size);
  close_to(got.value, cbrt(16), 1e-12);
  /* of nine equal steps the 25 % point is in the third, the 75 % point in the seventh */
  close_to(got.low, all[2], 1e-12);
  close_to(got.high, all[6], 1e-12);
}

/* Groups of rounds: each group has its own speed for either series, each round a disturbance that both share, and a
 * rest. */
static void measure(aoth_random_t *r, double *a, double *b, uint32_t n_groups, uint32_t n_each, double factor,
                    double between) {
  for (uint32_t g = 0; g < n_groups; g++) {
    const double speed_a = exp(between * aoth_random_normal(r)), speed_b = exp(between * aoth_random_normal(r));
    for (uint32_t i = g * n_each; i < (g + 1) * n_each; i++) {
      const double common = 1 + 0.1 * fabs(aoth_random_normal(r));
      a[i] = speed_a * common * exp(0.03 * aoth_random_normal(r));
      b[i] = speed_b * factor * common * exp(0.03 * aoth_random_normal(r));
    }
  }
}

#define MANY 400

/* How many of MANY experiments have the truth in their interval of 95 %. */
static uint32_t covered(uint32_t n_groups, uint32_t n_each, double between) {
  aoth_random_t r;
  double a[200], b[200];
  uint32_t n = 0;
  aoth_random_seed(&r, 3);
  for (uint32_t k = 0; k < MANY; k++) {
    measure(&r, a, b, n_groups, n_each, 1.07, between);
    const aoth_sample_t sa = {a, n_groups, n_each}, sb = {b, n_groups, n_each};
    const aoth_interval_t i = aoth_ratio_interval(&sa, &sb, (aoth_bootstrap_t){0.95, 300, k});
    n += i.low <= 1.07 && 1.07 <= i.high;
  }
  return n;
}

/* 95 % of 400 is 380. Rounds of one process that is like every other; many processes that differ; few of them, where
 * less is stored. */
static void test_ratio_interval_covers(void **state) {
  (void)state;
  assert_in_range(covered(1, 40, 0), 364, 396);
  assert_in_range(covered(20, 5, 0.05), 368, 396);
  assert_in_range(covered(4, 10, 0.05), 328, 396);
}

static void test_median_interval_covers(void **state) {
  (void)state;
  aoth_random_t r;
  uint32_t n = 0;
  aoth_random_seed(&r, 4);
  for (uint32_t k = 0; k < MANY; k++) {
    double x[25];
    for (uint32_t i = 0; i < 25; i++) x[i] = exp(aoth_random_normal(&r)); /* skewed; its median is 1 */
    const aoth_sample_t s = one_group(x, 25);
    const aoth_interval_t i = aoth_median_interval(&s, (aoth_bootstrap_t){0.95, 300, k});
    assert_true(i.low <= i.value && i.value <= i.high);
    n += i.low <= 1 && 1 <= i.high;
  }
  assert_in_range(n, 364, 396);
}

static uint32_t verdicts(uint32_t n_groups, double factor, double between, int wanted) {
  aoth_random_t r;
  double a[200], b[200];
  uint32_t n = 0;
  aoth_random_seed(&r, 5);
  for (uint32_t k = 0; k < MANY; k++) {
    measure(&r, a, b, n_groups, 10, factor, between);
    const aoth_sample_t sa = {a, n_groups, 10}, sb = {b, n_groups, 10};
    n += aoth_verdict(&sa, &sb, aoth_ratio_interval(&sa, &sb, (aoth_bootstrap_t){0.95, 300, k})) == wanted;
  }
  return n;
}

/* Where there is no difference a verdict is rare, however much processes differ; a clear one is found, in the right
 * direction. */
static void test_verdicts(void **state) {
  (void)state;
  assert_in_range(verdicts(4, 1, 0.05, 0), MANY * 95 / 100, MANY);
  assert_in_range(verdicts(4, 1, 0.3, 0), MANY * 95 / 100, MANY);
  assert_in_range(verdicts(8, 1, 0.05, 0), MANY * 95 / 100, MANY);
  assert_int_equal(verdicts(4, 1.3, 0.02, 1), MANY);
  assert_int_equal(verdicts(4, 0.75, 0.02, -1), MANY);
  assert_in_range(verdicts(6, 1, 0.05, 0), MANY * 95 / 100, MANY);
  assert_int_equal(verdicts(3, 2, 0.02, 0), MANY); /* too few processes, whatever they say */
}

/* A machine that is slower from process to process: pairs report what the whole does not, when there are six. */
static void test_pairs(void **state) {
  (void)state;
  const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1.1, 2.2, 3.3, 4.4, 5.5, 6.6};
  const aoth_interval_t above = {1.1, 1.05, 1.2}, across = {1.1, 0.95, 1.2};
  const aoth_sample_t a6 = {a, 6, 1}, b6 = {b, 6, 1}, a5 = {a, 5, 1}, b5 = {b, 5, 1};
  assert_int_equal(aoth_verdict(&a6, &b6, above), 1);
  assert_int_equal(aoth_verdict(&b6, &a6, (aoth_interval_t){0.9, 0.8, 0.95}), -1);
  assert_int_equal(aoth_verdict(&a6, &b6, across), 0);
  assert_int_equal(aoth_verdict(&a5, &b5, above), 0);
}

static void test_series_against_itself(void **state) {
  (void)state;
  const double a[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const aoth_sample_t s = {a, 4, 2};
  const aoth_interval_t i = aoth_ratio_interval(&s, &s, (aoth_bootstrap_t){0.95, 2000, 1});
  close_to(i.low, 1, 0);
  close_to(i.high, 1, 0);
  assert_int_equal(aoth_verdict(&s, &s, i), 0);
  assert_int_equal(aoth_verdict(&s, &s, (aoth_interval_t){NAN, NAN, NAN}), 0);
}

static void test_seeds_and_nothing(void **state) {
  (void)state;
  const double a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b[] = {2, 3, 1, 5, 4, 7, 6, 9, 8};
  const aoth_sample_t sa = {a, 3, 3}, sb = {b, 3, 3}, none = {a, 0, 3};
  const aoth_interval_t one = aoth_ratio_interval(&sa, &sb, (aoth_bootstrap_t){0.95, 300, 9}),
                        again = aoth_ratio_interval(&sa, &sb, (aoth_bootstrap_t){0.95, 300, 9});
  assert_memory_equal(&one, &again, sizeof one);
  assert_true(isnan(aoth_median_interval(&none, (aoth_bootstrap_t){0.95, 300, 9}).value));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_median_is_the_sorted_middle),
                                     cmocka_unit_test(test_quantiles),
                                     cmocka_unit_test(test_interval_against_every_resample),
                                     cmocka_unit_test(test_groups_against_every_resample),
                                     cmocka_unit_test(test_ratio_interval_covers),
                                     cmocka_unit_test(test_median_interval_covers),
                                     cmocka_unit_test(test_verdicts),
                                     cmocka_unit_test(test_pairs),
                                     cmocka_unit_test(test_series_against_itself),
                                     cmocka_unit_test(test_seeds_and_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
