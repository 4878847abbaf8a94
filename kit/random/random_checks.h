/* Is this a sample of that distribution? What tests of random numbers compute. Each check answers how many standard
 * deviations the sample lies off what is expected, so that one bound serves all: with RC_BOUND a right sample fails
 * once in 100,000 (once in 2,000 by Kolmogorov and Smirnov, whose tail is longer). Seeds in tests are fixed: a test
 * that passed passes again. */
#ifndef RC_RANDOM_CHECKS_H
#define RC_RANDOM_CHECKS_H

#include <stdint.h>

#define RC_BOUND 4.5

typedef double rc_cdf_fn(double x, const double *parameters);

/* Pearson's chi-square over bins, as a normal deviate (Wilson, Hilferty, The distribution of chi-square, 1931). Bins
 * that expect fewer than 8 are merged with the ones after them. Both samples that are too far off and too close are
 * far from 0. */
double rc_chi_square(const double *counts, const double *expected, uint32_t n_bins);
/* Kolmogorov and Smirnov: sqrt(n) times the largest distance of the distribution functions, less its mean 0.87, over
 * its deviation 0.26. Sorts x. */
double rc_kolmogorov_smirnov(double *x, uint64_t n, rc_cdf_fn *cdf, const double *parameters);
/* The mean, and the variance, of n numbers whose distribution has this mean, variance and kurtosis (3: normal). The
 * larger. */
double rc_mean_and_variance(const double *x, uint64_t n, double mean, double variance, double kurtosis);
/* Skewness and kurtosis of n normal numbers. The larger. */
double rc_normal_shape(const double *x, uint64_t n);
double rc_correlation(const double *x, const double *y, uint64_t n);
/* How often something happened that should happen with probability p. */
double rc_rate(uint64_t happened, uint64_t n, double p);

double rc_uniform_cdf(double x, const double *low_high);
double rc_normal_cdf(double x, const double *mean_std);
double rc_gamma_cdf(double x, const double *shape); /* scale 1 */
double rc_exponential_cdf(double x, const double *rate);
double rc_cauchy_cdf(double x, const double *median_sigma);
double rc_log_normal_cdf(double x, const double *mean_std);
double rc_poisson_mass(double k, const double *rate);
double rc_binomial_mass(double k, const double *count_p);
double rc_geometric_mass(double k, const double *p); /* k = 1, 2, .. */
/* x holds whole numbers from `low` on: their frequencies against n * mass(k), what is beyond low + n_bins - 1 in a
 * bin of its own. */
double rc_masses(const double *x, uint64_t n, double (*mass)(double k, const double *parameters),
                 const double *parameters, double low, uint32_t n_bins);

#endif
