/* What repeated measurements say: medians, intervals by the bootstrap, and when two series may be distinguished.
 *
 * Step times vary within a process, and from process to process: where memory and threads happen to lie can cost more
 * than the difference that is looked for, and stays as it is as long as the process lives (Kalibera, Jones, Rigorous
 * Benchmarking in Reasonable Time, 2013). So measurements come in groups, one a process, and both levels are drawn
 * again.
 *
 * The interval is the percentile interval of B. Efron, Bootstrap Methods: Another Look at the Jackknife, Annals of
 * Statistics 7, 1979: groups are drawn with replacement, and measurements in each; the statistic is used again, and of
 * its replicates the middle `level` is the interval. Of n groups n - 1 are drawn, for few groups vary less than what
 * they are drawn from (Hesterberg, What Teachers Should Know About the Bootstrap, American Statistician 69, 2015). Two
 * series that were measured in turn (a[i] next to b[i]) are drawn together, so that what disturbed one moment
 * disturbs both. */
#ifndef AOTH_STATISTICS_H
#define AOTH_STATISTICS_H

#include <stdint.h>

typedef struct aoth_sample {
  const double *x;           /* x[group * n_each + i] */
  uint32_t n_groups, n_each; /* processes; measurements in each */
} aoth_sample_t;

typedef struct aoth_interval {
  double value, low, high; /* of the measurements; NaN: there are none, or no memory */
} aoth_interval_t;

typedef struct aoth_bootstrap {
  double level;     /* 0.95 */
  uint32_t n_draws; /* replicates: 2000 */
  uint64_t seed;    /* equal seeds give equal intervals */
} aoth_bootstrap_t;

/* reorders x; the mean of the middle two where n is even; NaN: n is 0. O(n) expected */
double aoth_median(double *x, uint32_t n);
/* Linear between order statistics: p = 0 is the least, 1 the greatest (type 7 of Hyndman and Fan, 1996). x is
 * sorted, n > 0. */
double aoth_quantile(const double *x, uint32_t n, double p);

/* of all measurements. O(n * n_draws) */
aoth_interval_t aoth_median_interval(const aoth_sample_t *a, aoth_bootstrap_t how);
/* Geometric mean, over the groups, of median(b in the group) / median(a in the group); groups of the same number were
 * measured in turn. a and b have the same shape. */
aoth_interval_t aoth_ratio_interval(const aoth_sample_t *a, const aoth_sample_t *b, aoth_bootstrap_t how);

#define AOTH_LEAST_GROUPS 4u /* fewer allow no verdict */
#define AOTH_LEAST_PAIRS 6u  /* groups that allow one pair by pair */

/* -1: b is less than a, +1: more, 0: no verdict. One is given where the interval of the ratio is on one side of 1
 * and, whatever the distribution, chance seldom does as much: every group's median of one series is beyond every one
 * of the other's (2 of the 70 orders of four and four; Mann, Whitney 1947), or every group's beyond that of the group
 * measured with it (2 of the 64 outcomes of six throws of a coin: the sign test), which the machine's moods from one
 * time to another do not hide. */
int aoth_verdict(const aoth_sample_t *a, const aoth_sample_t *b, aoth_interval_t ratio);

#endif
