#include <cli/base/statistics.h>

#include <math.h>
#include <trainer/tensors/random.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void swap(double *a, double *b) {
  const double t = *a;
  *a = *b;
  *b = t;
}

/* Hoare's selection (1961), the middle of three as the pivot: afterwards x[k] is where sorting would put it, nothing
 * greater before it and nothing less after it. */
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

/* ---- the bootstrap ---- */

/* A statistic of the groups drawn, and in each of the measurements drawn. */
typedef struct bootstrap {
  const aoth_sample_t *a, *b; /* b NULL: one series, whose median is used; else the ratio of the two */
  aoth_random_t random;
  double *drawn_a, *drawn_b; /* room for all measurements of a series */
  int is_drawing;            /* 0: everything once, as it was measured */
} bootstrap_t;

static uint64_t draw(bootstrap_t *r, uint64_t i, uint32_t n) {
  return r->is_drawing ? aoth_random_below(&r->random, n) : i;
}

/* Measurements of a drawn group, both series together, to place `at`. */
static void draw_group(bootstrap_t *r, uint64_t group, size_t at) {
  const uint32_t n = r->a->n_each;
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t from = group * n + draw(r, i, n);
    r->drawn_a[at + i] = r->a->x[from];
    if (r->b) r->drawn_b[at + i] = r->b->x[from];
  }
}

static double statistic(bootstrap_t *r) {
  const uint32_t n = r->a->n_each, all = r->a->n_groups;
  const uint32_t n_groups = r->is_drawing && all > 1 ? all - 1 : all;
  double sum = 0;
  for (uint32_t g = 0; g < n_groups; g++) {
    draw_group(r, draw(r, g, all), r->b ? 0 : (size_t)g * n);
    if (r->b) sum += log(aoth_median(r->drawn_b, n) / aoth_median(r->drawn_a, n));
  }
  return r->b ? exp(sum / n_groups) : aoth_median(r->drawn_a, n_groups * n);
}

static aoth_interval_t interval(const aoth_sample_t *a, const aoth_sample_t *b, aoth_bootstrap_t how) {
  aoth_interval_t out = {NAN, NAN, NAN};
  bootstrap_t r = {.a = a, .b = b};
  const size_t n = (size_t)a->n_groups * a->n_each;
  double *work = n && how.n_draws ? malloc((how.n_draws + 2 * n) * sizeof *work) : NULL;
  if (!work) return out;
  r.drawn_a = work + how.n_draws;
  r.drawn_b = r.drawn_a + n;
  out.value = statistic(&r);
  r.is_drawing = 1;
  aoth_random_seed(&r.random, how.seed);
  for (uint32_t d = 0; d < how.n_draws; d++) work[d] = statistic(&r);
  qsort(work, how.n_draws, sizeof *work, by_size);
  out.low = aoth_quantile(work, how.n_draws, (1 - how.level) / 2);
  out.high = aoth_quantile(work, how.n_draws, (1 + how.level) / 2);
  free(work);
  return out;
}

aoth_interval_t aoth_median_interval(const aoth_sample_t *a, aoth_bootstrap_t how) { return interval(a, NULL, how); }

aoth_interval_t aoth_ratio_interval(const aoth_sample_t *a, const aoth_sample_t *b, aoth_bootstrap_t how) {
  return interval(a, b, how);
}

/* ---- the verdict ---- */

/* The medians of the groups, out[n_groups]; scratch has room for a group. */
static void medians(const aoth_sample_t *s, double *out, double *scratch) {
  for (uint32_t g = 0; g < s->n_groups; g++) {
    memcpy(scratch, s->x + (size_t)g * s->n_each, s->n_each * sizeof *scratch);
    out[g] = aoth_median(scratch, s->n_each);
  }
}

/* 1: the first series' medians are below the second's: all below all, or, of groups enough, each below its partner. */
static int is_below(const double *first, const double *second, uint32_t n) {
  double most = -INFINITY, least = INFINITY;
  uint32_t n_pairs = 0;
  for (uint32_t g = 0; g < n; g++) {
    most = fmax(most, first[g]);
    least = fmin(least, second[g]);
    n_pairs += first[g] < second[g];
  }
  return most < least || (n >= AOTH_LEAST_PAIRS && n_pairs == n);
}

int aoth_verdict(const aoth_sample_t *a, const aoth_sample_t *b, aoth_interval_t ratio) {
  const uint32_t n = a->n_groups;
  int verdict = 0;
  if (n < AOTH_LEAST_GROUPS || !a->n_each || !isfinite(ratio.low) || !isfinite(ratio.high)) return 0;
  double *of_a = malloc((2 * (size_t)n + a->n_each) * sizeof *of_a), *of_b = of_a + n;
  if (!of_a) return 0;
  medians(a, of_a, of_b + n);
  medians(b, of_b, of_b + n);
  if (ratio.high < 1 && is_below(of_b, of_a, n)) verdict = -1;
  if (ratio.low > 1 && is_below(of_a, of_b, n)) verdict = 1;
  free(of_a);
  return verdict;
}
