#include <runtime/statistics.h>

#include <math.h>
#include <runtime/random.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void swap(double *a, double *b) {
  const double t = *a;
  *a = *b;
  *b = t;
}

/* Hoare's selection (1961), the middle of three as the pivot: afterwards x[k] is where sorting would put it, nothing greater before
 * it and nothing less after it. */
static double pick(double *x, uint32_t n, uint32_t k) {
  int64_t low = 0, high = (int64_t)n - 1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (x[middle] < x[low]) swap(&x[middle], &x[low]);
    if (x[high] < x[low]) swap(&x[high], &x[low]);
    if (x[high] < x[middle]) swap(&x[high], &x[middle]);
    const double pivot = x[middle];
    int64_t i = low, j = high;
    while (i <= j) {
      while (x[i] < pivot) i++;
      while (x[j] > pivot) j--;
      if (i <= j) swap(&x[i++], &x[j--]);
    }
    if ((int64_t)k <= j) high = j;
    else if ((int64_t)k >= i) low = i;
    else break;
  }
  return x[k];
}

double aoth_median(double *x, uint32_t n) {
  if (n == 0) return NAN;
  const double upper = pick(x, n, n / 2);
  if (n % 2) return upper;
  double lower = x[0];
  for (uint32_t i = 1; i < n / 2; i++)
    if (x[i] > lower) lower = x[i];
  return lower + (upper - lower) / 2;
}

double aoth_quantile(const double *x, uint32_t n, double p) {
  const double at = p * (n - 1);
  const uint32_t i = (uint32_t)at;
  return i + 1 < n ? x[i] + (at - i) * (x[i + 1] - x[i]) : x[n - 1];
}

/* One replicate: the same rounds of both series; b NULL: one series. */
static double replicate(const double *a, const double *b, uint32_t n, aoth_random_t *r, double *drawn_a, double *drawn_b) {
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t k = aoth_random_below(r, n);
    drawn_a[i] = a[k];
    if (b) drawn_b[i] = b[k];
  }
  const double median = aoth_median(drawn_a, n);
  return b ? aoth_median(drawn_b, n) / median : median;
}

static double statistic(const double *a, const double *b, uint32_t n, double *copy) {
  for (uint32_t i = 0; i < n; i++) copy[i] = a[i];
  const double median = aoth_median(copy, n);
  for (uint32_t i = 0; b && i < n; i++) copy[i] = b[i];
  return b ? aoth_median(copy, n) / median : median;
}

static aoth_interval_t interval(const double *a, const double *b, uint32_t n, aoth_bootstrap_t how) {
  aoth_interval_t out = {NAN, NAN, NAN};
  aoth_random_t random;
  double *work = n && how.n_draws ? malloc(((size_t)how.n_draws + 2 * (size_t)n) * sizeof *work) : NULL;
  if (!work) return out;
  double *drawn = work + how.n_draws;
  aoth_random_seed(&random, how.seed);
  out.value = statistic(a, b, n, drawn);
  for (uint32_t d = 0; d < how.n_draws; d++) work[d] = replicate(a, b, n, &random, drawn, drawn + n);
  qsort(work, how.n_draws, sizeof *work, by_size);
  out.low = aoth_quantile(work, how.n_draws, (1 - how.level) / 2);
  out.high = aoth_quantile(work, how.n_draws, (1 + how.level) / 2);
  free(work);
  return out;
}

aoth_interval_t aoth_median_interval(const double *x, uint32_t n, aoth_bootstrap_t how) { return interval(x, NULL, n, how); }

aoth_interval_t aoth_ratio_interval(const double *a, const double *b, uint32_t n, aoth_bootstrap_t how) {
  return interval(a, b, n, how);
}

int aoth_ratio_verdict(aoth_interval_t ratio, uint32_t n) {
  if (n < AOTH_LEAST_ROUNDS || !isfinite(ratio.low) || !isfinite(ratio.high)) return 0;
  return ratio.high < 1 ? -1 : ratio.low > 1 ? 1 : 0;
}
