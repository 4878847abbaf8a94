#include "samplers.h"

#include "philox.h"
#include <math.h>

/* Two numbers with 53 bits: u in [0, 1), v in (0, 1]. */
typedef struct trial {
  double u, v;
} trial_t;

static trial_t at_trial(uint64_t seed, uint64_t counter, uint64_t element) {
  ph_block_t b = ph_block(seed, counter, element);
  return (trial_t){ph_unit64(ph_pair(&b, 0), 53), ph_unit64(ph_pair(&b, 1), 53) + 0x1p-53};
}

/* log k!, k whole: a table, then Stirling's series, good to 1e-15 of the value. lgamma would write a global. */
static double log_factorial(double k) {
  static const double table[10] = {0.0,
                                   0.0,
                                   0.69314718055994530942,
                                   1.79175946922805500081,
                                   3.17805383034794561965,
                                   4.78749174278204599425,
                                   6.57925121201010099506,
                                   8.52516136106541430017,
                                   10.60460290274525022842,
                                   12.80182748008146961121};
  double x = k + 1, square = x * x;
  if (k < 10) return table[(int)k];
  return (x - 0.5) * log(x) - x + 0.91893853320467274178 +
         (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / 1680 / square) / square) / square) / x;
}

/* ---- Poisson ---- */

/* The least k with u < P(0) + .. + P(k). */
static double poisson_search(double u, double rate) {
  double p = exp(-rate), sum = p, k = 0;
  while (u >= sum && p > 0x1p-60) {
    k++;
    p *= rate / k;
    sum += p;
  }
  return k;
}

static double poisson_rejection(uint64_t seed, uint64_t counter, uint64_t element, double rate) {
  const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2), log_rate = log(rate);
  for (uint64_t t = 0; t < PH_SAMPLER_OFFSETS; t++) {
    trial_t x = at_trial(seed, counter + t, element);
    double u = x.u - 0.5, us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && x.v <= v_r) return k;
    if (!(k >= 0) || (us < 0.013 && x.v > us)) continue;
    if (log(x.v * inverse_alpha / (a / (us * us) + b)) <= k * log_rate - rate - log_factorial(k)) return k;
  }
  return floor(rate);
}

double ph_poisson(uint64_t seed, uint64_t counter, uint64_t element, double rate) {
  if (!isfinite(rate)) return rate;
  if (rate <= 0) return 0;
  if (rate < 10) return poisson_search(at_trial(seed, counter, element).u, rate);
  return poisson_rejection(seed, counter, element, rate);
}

/* ---- gamma ---- */

double ph_gamma(uint64_t seed, uint64_t counter, uint64_t element, double alpha) {
  const double shape = alpha < 1 ? alpha + 1 : alpha, d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
  if (!(alpha >= 0)) return NAN;
  if (alpha == 0 || !isfinite(alpha)) return alpha;
  for (uint64_t t = 0; t < PH_SAMPLER_OFFSETS; t += 2) {
    ph_block_t block = ph_block(seed, counter + t + 1, element);
    double normal, accept = ph_unit64(ph_pair(&block, 0), 53) + 0x1p-53, v;
    ph_fill_normal(seed, counter + t, 2 * element, 1, 2, &normal);
    v = 1 + c * normal;
    if (v <= 0) continue;
    v = v * v * v;
    if (log(accept) >= 0.5 * normal * normal + d - d * v + d * log(v)) continue;
    return alpha < 1 ? d * v * pow(ph_unit64(ph_pair(&block, 1), 53) + 0x1p-53, 1 / alpha) : d * v;
  }
  return alpha;
}

/* ---- binomial ---- */

static double binomial_search(double u, double n, double p) {
  double odds = p / (1 - p), term = exp(n * log1p(-p)), sum = term, k = 0;
  while (u >= sum && k < n && term > 0x1p-60) {
    term *= (n - k) / (k + 1) * odds;
    sum += term;
    k++;
  }
  return k;
}

static double binomial_rejection(uint64_t seed, uint64_t counter, uint64_t element, double n, double p) {
  const double spq = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spq, a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double centre = n * p + 0.5, v_r = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spq, log_odds = log(p / (1 - p));
  const double mode = floor((n + 1) * p), at_mode = log_factorial(mode) + log_factorial(n - mode);
  for (uint64_t t = 0; t < PH_SAMPLER_OFFSETS; t++) {
    trial_t x = at_trial(seed, counter + t, element);
    double u = x.u - 0.5, us = 0.5 - fabs(u), k = floor((2 * a / us + b) * u + centre);
    if (!(k >= 0) || k > n) continue;
    if (us >= 0.07 && x.v <= v_r) return k;
    if (log(x.v * alpha / (a / (us * us) + b)) <=
        at_mode - log_factorial(k) - log_factorial(n - k) + (k - mode) * log_odds)
      return k;
  }
  return floor(n * p);
}

double ph_binomial(uint64_t seed, uint64_t counter, uint64_t element, double count, double p) {
  double n = floor(count), less = p > 0.5 ? 1 - p : p, k;
  if (isnan(count) || isnan(p)) return NAN;
  if (n <= 0 || p <= 0) return 0;
  if (p >= 1 || !isfinite(n)) return n;
  if (n * less < 10) k = binomial_search(at_trial(seed, counter, element).u, n, less);
  else k = binomial_rejection(seed, counter, element, n, less);
  return p > 0.5 ? n - k : k;
}
