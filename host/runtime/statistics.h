/* What repeated measurements say: medians, and intervals by the bootstrap.
 *
 * The interval is the percentile interval of B. Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of Statistics 7,
 * 1979 (Efron, Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13): measurements are drawn with replacement, as
 * many as there are, the statistic is taken again, and of its replicates the middle `level` is the interval. Two series that
 * were measured in turn (a[i] beside b[i]) are drawn by rounds, both together, so that what disturbed a round disturbs both. */
#ifndef AOTH_STATISTICS_H
#define AOTH_STATISTICS_H

#include <stdint.h>

#define AOTH_LEAST_ROUNDS 8u /* fewer measurements allow no verdict: their interval is no more than their range */

typedef struct aoth_interval {
  double value, low, high; /* of the measurements; NaN: there are none, or no memory */
} aoth_interval_t;

typedef struct aoth_bootstrap {
  double level;     /* 0.95 */
  uint32_t n_draws; /* replicates: 2000 */
  uint64_t seed;    /* equal seeds give equal intervals */
} aoth_bootstrap_t;

double aoth_median(double *x, uint32_t n); /* reorders x; the mean of the middle two where n is even; NaN: n is 0. O(n) expected */
/* Linear between order statistics: p = 0 is the least, 1 the greatest (type 7 of Hyndman and Fan, 1996). x is sorted, n > 0. */
double aoth_quantile(const double *x, uint32_t n, double p);

aoth_interval_t aoth_median_interval(const double *x, uint32_t n, aoth_bootstrap_t how); /* O(n * n_draws) */
/* median(b) / median(a), rounds drawn together. */
aoth_interval_t aoth_ratio_interval(const double *a, const double *b, uint32_t n, aoth_bootstrap_t how);

/* Of a ratio of n rounds: -1 less than one, +1 more, 0: the interval allows no verdict. */
int aoth_ratio_verdict(aoth_interval_t ratio, uint32_t n);

#endif
