/* Medians and bootstrap intervals, against sorting, against every resample there is, and against the promise of their level. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <runtime/random.h>
#include <runtime/statistics.h>
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

/* n = 4 has 256 resamples. The interval's ends are quantiles of the ratio over all of them, as far as so many draws can tell:
 * the share of resamples below the low end is (1 - level) / 2, but for the steps of the discrete distribution. */
static void test_interval_against_every_resample(void **state) {
  (void)state;
  const double a[] = {10, 11, 13, 17}, b[] = {9, 12, 12.5, 20};
  const aoth_interval_t got = aoth_ratio_interval(a, b, 4, (aoth_bootstrap_t){0.8, 200000, 7});
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
  close_to(got.low, all[25], 1e-12);   /* 25.6 of 256 lie below the 10 % point */
  close_to(got.high, all[230], 1e-12);
}

typedef struct noise {
  aoth_random_t r;
} noise_t;

/* n rounds: a common disturbance of a tenth, each series' own of `own`, and b `factor` times a. */
static void measure(noise_t *w, double *a, double *b, uint32_t n, double factor, double own) {
  for (uint32_t i = 0; i < n; i++) {
    const double common = 1 + 0.1 * fabs(aoth_random_normal(&w->r));
    a[i] = common * exp(own * aoth_random_normal(&w->r));
    b[i] = factor * common * exp(own * aoth_random_normal(&w->r));
  }
}

/* Of 400 experiments the interval of 95 % covers the truth in 95 %, give or take: between 90 and 99. And where there is no
 * difference, few verdicts are given. */
static void test_interval_covers(void **state) {
  (void)state;
  noise_t w;
  double a[40], b[40];
  uint32_t covered = 0, verdicts = 0;
  aoth_random_seed(&w.r, 3);
  for (uint32_t k = 0; k < 400; k++) {
    measure(&w, a, b, 40, 1.07, 0.03);
    const aoth_interval_t i = aoth_ratio_interval(a, b, 40, (aoth_bootstrap_t){0.95, 500, k});
    covered += i.low <= 1.07 && 1.07 <= i.high;
    measure(&w, a, b, 40, 1, 0.03);
    verdicts += aoth_ratio_verdict(aoth_ratio_interval(a, b, 40, (aoth_bootstrap_t){0.95, 500, k}), 40) != 0;
  }
  assert_in_range(covered, 360, 396);
  assert_in_range(verdicts, 0, 40);
}

static void test_median_interval_covers(void **state) {
  (void)state;
  noise_t w;
  uint32_t covered = 0;
  aoth_random_seed(&w.r, 4);
  for (uint32_t k = 0; k < 400; k++) {
    double x[25];
    for (uint32_t i = 0; i < 25; i++) x[i] = exp(aoth_random_normal(&w.r)); /* skewed; its median is 1 */
    const aoth_interval_t i = aoth_median_interval(x, 25, (aoth_bootstrap_t){0.95, 500, k});
    assert_true(i.low <= i.value && i.value <= i.high);
    covered += i.low <= 1 && 1 <= i.high;
  }
  assert_in_range(covered, 360, 398);
}

static void test_verdicts(void **state) {
  (void)state;
  noise_t w;
  double a[40], b[40];
  aoth_random_seed(&w.r, 5);
  measure(&w, a, b, 40, 1.2, 0.02);
  assert_int_equal(aoth_ratio_verdict(aoth_ratio_interval(a, b, 40, (aoth_bootstrap_t){0.95, 2000, 1}), 40), 1);
  measure(&w, a, b, 40, 0.8, 0.02);
  assert_int_equal(aoth_ratio_verdict(aoth_ratio_interval(a, b, 40, (aoth_bootstrap_t){0.95, 2000, 1}), 40), -1);
  /* a series against itself: the ratio is one, whatever is drawn */
  const aoth_interval_t self = aoth_ratio_interval(a, a, 40, (aoth_bootstrap_t){0.95, 2000, 1});
  close_to(self.low, 1, 0);
  close_to(self.high, 1, 0);
  assert_int_equal(aoth_ratio_verdict(self, 40), 0);
  /* too few rounds, whatever they say */
  assert_int_equal(aoth_ratio_verdict((aoth_interval_t){2, 1.9, 2.1}, AOTH_LEAST_ROUNDS - 1), 0);
  assert_int_equal(aoth_ratio_verdict((aoth_interval_t){2, 1.9, 2.1}, AOTH_LEAST_ROUNDS), 1);
  assert_int_equal(aoth_ratio_verdict((aoth_interval_t){NAN, NAN, NAN}, 100), 0);
}

static void test_seeds_and_nothing(void **state) {
  (void)state;
  const double a[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b[] = {2, 3, 1, 5, 4, 7, 6, 9, 8};
  const aoth_interval_t one = aoth_ratio_interval(a, b, 9, (aoth_bootstrap_t){0.95, 300, 9}),
                        again = aoth_ratio_interval(a, b, 9, (aoth_bootstrap_t){0.95, 300, 9});
  assert_memory_equal(&one, &again, sizeof one);
  assert_true(isnan(aoth_median_interval(a, 0, (aoth_bootstrap_t){0.95, 300, 9}).value));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_median_is_the_sorted_middle), cmocka_unit_test(test_quantiles),
      cmocka_unit_test(test_interval_against_every_resample), cmocka_unit_test(test_interval_covers),
      cmocka_unit_test(test_median_interval_covers), cmocka_unit_test(test_verdicts), cmocka_unit_test(test_seeds_and_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
