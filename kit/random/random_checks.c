#include "random_checks.h"

#include <math.h>
#include <stdlib.h>

/* lgamma_r: lgamma writes a global. */
static double log_gamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

static double larger(double a, double b) { return fabs(a) > fabs(b) || a != a ? a : b; }

double rc_chi_square(const double *counts, const double *expected, uint32_t n_bins) {
  double sum = 0, count = 0, expect = 0, dof = -1, ninth;
  for (uint32_t k = 0; k < n_bins; k++) {
    count += counts[k];
    expect += expected[k];
    if (expect < 8 && k + 1 < n_bins) continue;
    if (expect == 0 && count > 0) return INFINITY;
    if (expect > 0) sum += (count - expect) * (count - expect) / expect;
    dof++;
    count = expect = 0;
  }
  if (dof < 1) return 0;
  ninth = 2 / (9 * dof);
  return (cbrt(sum / dof) - (1 - ninth)) / sqrt(ninth);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double rc_kolmogorov_smirnov(double *x, uint64_t n, rc_cdf_fn *cdf, const double *parameters) {
  double most = 0;
  qsort(x, (size_t)n, sizeof *x, by_value);
  for (uint64_t k = 0; k < n; k++) {
    double at = cdf(x[k], parameters), below = at - (double)k / (double)n, above = (double)(k + 1) / (double)n - at;
    most = fmax(most, fmax(below, above));
    if (at != at) return NAN;
  }
  return (most * sqrt((double)n) - 0.8687) / 0.2603;
}

double rc_mean_and_variance(const double *x, uint64_t n, double mean, double variance, double kurtosis) {
  double sum = 0, squares = 0, count = (double)n;
  for (uint64_t k = 0; k < n; k++) {
    sum += x[k] - mean;
    squares += (x[k] - mean) * (x[k] - mean);
  }
  return larger(sum / sqrt(variance * count), (squares / count / variance - 1) / sqrt((kurtosis - 1) / count));
}

double rc_normal_shape(const double *x, uint64_t n) {
  double cubes = 0, fourths = 0, count = (double)n;
  for (uint64_t k = 0; k < n; k++) {
    cubes += x[k] * x[k] * x[k];
    fourths += x[k] * x[k] * x[k] * x[k];
  }
  /* E x^6 = 15, E x^8 = 105 */
  return larger(cubes / count / sqrt(15 / count), (fourths / count - 3) / sqrt(96 / count));
}

double rc_correlation(const double *x, const double *y, uint64_t n) {
  double sx = 0, sy = 0, xx = 0, yy = 0, xy = 0, count = (double)n;
  for (uint64_t k = 0; k < n; k++) {
    sx += x[k];
    sy += y[k];
    xx += x[k] * x[k];
    yy += y[k] * y[k];
    xy += x[k] * y[k];
  }
  return (xy - sx * sy / count) / sqrt((xx - sx * sx / count) * (yy - sy * sy / count)) * sqrt(count);
}

double rc_rate(uint64_t happened, uint64_t n, double p) {
  return ((double)happened - (double)n * p) / sqrt((double)n * p * (1 - p));
}

/* ---- distributions ---- */

double rc_uniform_cdf(double x, const double *p) { return fmin(1, fmax(0, (x - p[0]) / (p[1] - p[0]))); }
double rc_normal_cdf(double x, const double *p) { return 0.5 * erfc((p[0] - x) / p[1] / sqrt(2)); }
double rc_exponential_cdf(double x, const double *rate) { return x < 0 ? 0 : -expm1(-rate[0] * x); }
double rc_cauchy_cdf(double x, const double *p) { return 0.5 + atan((x - p[0]) / p[1]) / 3.14159265358979323846; }
double rc_log_normal_cdf(double x, const double *p) { return x <= 0 ? 0 : rc_normal_cdf(log(x), p); }

/* The series of the incomplete gamma function, x^a e^-x / Gamma(a + 1) sum x^n / ((a + 1) .. (a + n)). */
double rc_gamma_cdf(double x, const double *shape) {
  double a = shape[0], term = 1, sum = 1;
  if (x <= 0) return 0;
  for (double n = 1; term > sum * 1e-17; n++) {
    term *= x / (a + n);
    sum += term;
  }
  return fmin(1, exp(a * log(x) - x - log_gamma(a + 1)) * sum);
}

double rc_poisson_mass(double k, const double *rate) { return exp(k * log(rate[0]) - rate[0] - log_gamma(k + 1)); }
double rc_binomial_mass(double k, const double *p) {
  if (k > p[0]) return 0;
  return exp(log_gamma(p[0] + 1) - log_gamma(k + 1) - log_gamma(p[0] - k + 1) + k * log(p[1]) +
             (p[0] - k) * log1p(-p[1]));
}
double rc_geometric_mass(double k, const double *p) { return p[0] * pow(1 - p[0], k - 1); }

double rc_masses(const double *x, uint64_t n, double (*mass)(double k, const double *parameters),
                 const double *parameters, double low, uint32_t n_bins) {
  double *counts = calloc(2 * ((size_t)n_bins + 1), sizeof *counts), *expected = counts + n_bins + 1, rest = (double)n,
         z;
  if (!counts) return INFINITY;
  for (uint64_t k = 0; k < n; k++) {
    double bin = x[k] - low;
    if (!(bin >= 0) || bin != floor(bin)) {
      free(counts);
      return INFINITY; /* no whole number from low on */
    }
    counts[bin < n_bins ? (uint32_t)bin : n_bins]++;
  }
  for (uint32_t b = 0; b < n_bins; b++) {
    expected[b] = (double)n * mass(low + b, parameters);
    rest -= expected[b];
  }
  expected[n_bins] = rest > 1e-6 ? rest : 0;
  z = rc_chi_square(counts, expected, n_bins + 1);
  free(counts);
  return z;
}
