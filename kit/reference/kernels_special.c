/* Special functions, in double: Bessel and Airy functions, incomplete gamma, zeta, orthogonal polynomials.
 *
 * Speed is no aim here, so most are evaluated from an integral whose trapezoidal sum converges geometrically:
 *     I_n(x) e^-|x| = 1/pi * integral over [0, pi] of exp(|x| (cos t - 1)) cos(n t)          (periodic integrand)
 *     K_n(x) e^x    =        integral over [0, inf) of exp(-x (cosh t - 1)) cosh(n t)        (doubly exponential decay)
 * (Trefethen and Weideman 2014; DLMF 10.32.3 and 10.32.9). The rest are classical: the series and Lentz's continued
 * fraction of the incomplete gamma function (DLMF 8.7, 8.9), Euler-Maclaurin for Hurwitz's zeta (DLMF 25.11.28), Taylor
 * steps through y'' = x y for Ai at negative x, three-term recurrences for polynomials. */
#include "rk_pointwise.h"
#include <aot/inline.h>
#include <math.h>

#define PI 3.14159265358979323846
/* clang-format off */
#define F(name, expression) static double name##_f(const double *x, const pw_par_t *p) { (void)p; return expression; }
/* clang-format on */

/* ---- modified Bessel functions ---- */

static double scaled_i(int n, double x) {
  double a = fabs(x), sum = 0, sign = n % 2 && x < 0 ? -1 : 1;
  int steps = 64 + (int)(12 * sqrt(a < 1e8 ? a : 1e8)); /* the peak at 0 is 1 / sqrt(a) wide */
  if (a != a) return a;
  if (a > 1e8) return sign / sqrt(2 * PI * a);
  for (int k = 0; k <= steps; k++) {
    double t = PI * k / steps, v = exp(a * (cos(t) - 1)) * cos(n * t);
    sum += k == 0 || k == steps ? v / 2 : v;
  }
  return sign * sum / steps;
}

/* integral of exp(-x (cosh t - 1)) cosh(nu t) */
static double scaled_k(double nu, double x) {
  double sum = 0.5, step = 1.0 / 64;
  if (x == 0) return INFINITY;
  if (!(x > 0)) return NAN;
  for (int k = 1; k < 100000; k++) {
    double t = k * step, v = exp(-x * 2 * sinh(t / 2) * sinh(t / 2)) * cosh(nu * t);
    sum += v;
    if (v < sum * 1e-18) break;
  }
  return sum * step;
}
F(i0, exp(fabs(x[0])) * scaled_i(0, x[0]))
F(i1, exp(fabs(x[0])) * scaled_i(1, x[0]))
F(i0e, scaled_i(0, x[0]))
F(i1e, scaled_i(1, x[0]))
F(k0, exp(-x[0]) * scaled_k(0, x[0]))
F(k1, exp(-x[0]) * scaled_k(1, x[0]))
F(k0e, x[0] == INFINITY ? 0 : scaled_k(0, x[0]))
F(k1e, x[0] == INFINITY ? 0 : scaled_k(1, x[0]))

/* ---- Bessel and Airy functions ---- */

/* PyTorch's Bessel functions have NaN at infinity, where they tend to 0. */
F(bessel_j0, isinf(x[0]) ? NAN : j0(x[0]))
F(bessel_j1, isinf(x[0]) ? NAN : j1(x[0]))
F(bessel_y0, x[0] < 0 || isinf(x[0]) ? NAN : y0(x[0]))
F(bessel_y1, x[0] < 0 || isinf(x[0]) ? NAN : y1(x[0]))
F(spherical_j0, isinf(x[0]) ? 0 : fabs(x[0]) < 1e-4 ? 1 - x[0] * x[0] / 6 : sin(x[0]) / x[0])

/* Ai by K_{1/3} for x >= 0; for x < 0 by steps of a Taylor series of 20 terms from 0; far out by the leading
 * asymptotics. */
static double airy(double x) {
  double y = 0.35502805388781723926, slope = -0.25881940379280679840, at = 0, step;
  if (x != x) return x;
  if (x > 0) return sqrt(x / 3) / PI * exp(-2.0 / 3 * x * sqrt(x)) * scaled_k(1.0 / 3, 2.0 / 3 * x * sqrt(x));
  if (x < -1e4) return sin(2.0 / 3 * -x * sqrt(-x) + PI / 4) / (sqrt(PI) * sqrt(sqrt(-x)));
  while (at > x) {
    double c[24], t = 1, value = 0, change = 0;
    step = fmax(x - at, -0.1);
    c[0] = y;
    c[1] = slope;
    for (int k = 2; k < 24; k++) c[k] = (at * c[k - 2] + (k > 2 ? c[k - 3] : 0)) / (k * (k - 1));
    for (int k = 0; k < 24; k++) {
      value += c[k] * t;
      if (k + 1 < 24) change += (k + 1) * c[k + 1] * t;
      t *= step;
    }
    y = value;
    slope = change;
    at += step;
  }
  return y;
}
F(airy_ai, airy(x[0]))

/* ---- the normal distribution ---- */

/* exp(x^2) erfc(x) */
static double erfcx(double x) {
  double r = 1 / (2 * x * x);
  if (x < 25) return exp(x * x) * erfc(x);
  return 1 / (x * sqrt(PI)) * (1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r))));
}
F(erfcx, erfcx(x[0]))
F(log_ndtr, x[0] < -1 ? log(erfcx(-x[0] * sqrt(0.5)) / 2) - x[0] * x[0] / 2 : log1p(-erfc(x[0] * sqrt(0.5)) / 2))

/* The place z below which a share p of the normal distribution lies: Newton on its logarithm, from the tail's
 * expansion. */
static double ndtri(double p) {
  double z, q = p > 0.5 ? 1 - p : p;
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  if (!(p > 0 && p < 1)) return NAN;
  z = q < 0.1 ? -sqrt(-2 * log(q)) : (q - 0.5) * 2.5;
  for (int k = 0; k < 60; k++) {
    double share = 0.5 * erfc(-z * sqrt(0.5)), density = exp(-z * z / 2) / sqrt(2 * PI),
           move = (log(share) - log(q)) * share / density;
    z -= move;
    if (fabs(move) < 1e-15 * (1 + fabs(z))) break;
  }
  return p > 0.5 ? -z : z;
}
F(ndtri, ndtri(x[0]))

/* ---- gamma and zeta ---- */

/* Q(a, x) by Lentz's continued fraction, for x > a + 1. */
static double gamma_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int k = 1; k < 100000; k++) {
    double an = -k * (k - a), change;
    b += 2;
    d = an * d + b;
    d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
    c = b + an / c;
    if (fabs(c) < 1e-300) c = 1e-300;
    h *= change = d * c;
    if (fabs(change - 1) < 1e-16) break;
  }
  return h * exp(-x + a * log(x) - lgamma(a));
}
static double gamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < 1000000 && fabs(term) > sum * 1e-17; k++) sum += term *= x / (a + k);
  return sum * exp(-x + a * log(x) - lgamma(a));
}
static double igamma(double a, double x, int upper) {
  double lower;
  if (a != a || x != x || x < 0 || a < 0) return NAN;
  if (a == 0) lower = x > 0 ? 1 : NAN;
  else if (x == 0) lower = 0;
  else if (isinf(a)) lower = isinf(x) ? NAN : 0;
  else if (isinf(x)) lower = 1;
  else if (x > a + 1) return upper ? gamma_fraction(a, x) : 1 - gamma_fraction(a, x);
  else lower = gamma_series(a, x);
  return upper ? 1 - lower : lower;
}
F(igamma, igamma(x[0], x[1], 0))
F(igammac, igamma(x[0], x[1], 1))

/* sum over k >= 0 of (q + k)^-s */
static double hurwitz_zeta(double s, double q) {
  static const double bernoulli[] = {1.0 / 12,
                                     -1.0 / 720,
                                     1.0 / 30240,
                                     -1.0 / 1209600,
                                     1.0 / 47900160,
                                     -691.0 / 1307674368000.0,
                                     1.0 / 74724249600.0,
                                     -3617.0 / 10670622842880000.0};
  double sum = 0, a = q, factor, power;
  if (s == 1) return INFINITY;
  if (!(s > 1) || q == INFINITY) return NAN; /* at infinity as PyTorch's series: 0 * inf */
  if (q <= 0 && q == floor(q)) return INFINITY;
  if (q <= 0 && s != floor(s)) return NAN;
  for (; a < 20; a += 1) {
    double t = pow(a, -s);
    sum += t;
    if (a > 9 && fabs(t) < fabs(sum) * 1e-18) return sum;
  }
  sum += pow(a, 1 - s) / (s - 1) + 0.5 * pow(a, -s);
  factor = s;
  power = pow(a, -s - 1);
  for (int k = 0; k < 8; k++) {
    sum += bernoulli[k] * factor * power;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= a * a;
  }
  return sum;
}
F(zeta, hurwitz_zeta(x[0], x[1]))

/* polygamma(n, self): the n-th derivative of psi is (-1)^(n+1) n! zeta(n + 1, x); psi itself as in kernels_math.c */
static double psi(double x) {
  double sum = 0, r;
  if (x == 0) return copysign(INFINITY, -x);
  if (x < 0) return x == floor(x) ? NAN : psi(1 - x) - PI / tan(PI * x);
  for (; x < 10; x += 1) sum -= 1 / x;
  r = 1 / (x * x);
  return sum + log(x) - 0.5 / x -
         r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * 691.0 / 32760)))));
}
/* zeta(2, x) for x < 1/2 by reflection: (pi / sin(pi x))^2 - zeta(2, 1 - x) */
static double trigamma(double x, int32_t dtype) {
  /* near poles its rounding is all there is */
  double s = sin(dtype == AOT_F64 ? PI * x : (double)((float)PI * (float)x));
  if (x == INFINITY) return 0;
  return x < 0.5 ? PI / s * (PI / s) - hurwitz_zeta(2, 1 - x) : hurwitz_zeta(2, x);
}
static double polygamma_f(const double *x, const pw_par_t *p) {
  const double n = x[0];
  if (n == 0) return psi(x[1]);
  if (n == 1) return trigamma(x[1], p->dtype);
  return (fmod(n, 2) != 0 ? 1 : -1) * exp(lgamma(n + 1)) * hurwitz_zeta(n + 1, x[1]);
}

/* ---- orthogonal polynomials: x[0] the place, x[1] the degree ---- */

/* What three-term recurrences share: value after `degree` steps from p0, p1. */
typedef double (*next_term_t)(int64_t k, double x, double last, double before);
static double recur(double x, int64_t degree, double p0, double p1, next_term_t next) {
  double before = p0, last = p1;
  if (degree <= 0) return p0;
  for (int64_t k = 1; k < degree && last == last; k++) {
    double v = next(k, x, last, before);
    before = last;
    last = v;
  }
  return last;
}
static double chebyshev_next(int64_t k, double x, double last, double before) {
  (void)k;
  return 2 * x * last - before;
}
static double hermite_next(int64_t k, double x, double last, double before) {
  return 2 * x * last - 2 * (double)k * before;
}
static double hermite_e_next(int64_t k, double x, double last, double before) { return x * last - (double)k * before; }
static double laguerre_next(int64_t k, double x, double last, double before) {
  return ((2 * (double)k + 1 - x) * last - (double)k * before) / (double)(k + 1);
}
static double legendre_next(int64_t k, double x, double last, double before) {
  return ((2 * (double)k + 1) * x * last - (double)k * before) / (double)(k + 1);
}

/* A degree that is no number, or infinite, is below 0. */
static int64_t degree_of(double n) { return !(n > -1) || isinf(n) ? -1 : n > 1e6 ? 1000000 : (int64_t)n; }

/* Kinds T, U, V, W start 1 and x, 2x, 2x - 1, 2x + 1; inside (-1, 1) they are ratios of sines, which high degrees
 * need. */
static double chebyshev(char kind, double x, double degree) {
  int64_t n = degree_of(degree);
  double t, half;
  if (n < 0) return 0;
  if (fabs(x) < 1 && n > 8) {
    t = acos(x);
    half = ((double)n + 0.5) * t;
    if (kind == 'T') return cos((double)n * t);
    if (kind == 'U') return sin((double)(n + 1) * t) / sin(t);
    return kind == 'V' ? cos(half) / cos(t / 2) : sin(half) / sin(t / 2);
  }
  return recur(x, n, 1, kind == 'T' ? x : kind == 'U' ? 2 * x : kind == 'V' ? 2 * x - 1 : 2 * x + 1, chebyshev_next);
}
F(chebyshev_t, chebyshev('T', x[0], x[1]))
F(chebyshev_u, chebyshev('U', x[0], x[1]))
F(chebyshev_v, chebyshev('V', x[0], x[1]))
F(chebyshev_w, chebyshev('W', x[0], x[1]))
F(shifted_t, chebyshev('T', 2 * x[0] - 1, x[1]))
F(shifted_u, chebyshev('U', 2 * x[0] - 1, x[1]))
F(shifted_v, chebyshev('V', 2 * x[0] - 1, x[1]))
F(shifted_w, chebyshev('W', 2 * x[0] - 1, x[1]))
F(hermite_h, degree_of(x[1]) < 0 ? 0 : recur(x[0], degree_of(x[1]), 1, 2 * x[0], hermite_next))
F(hermite_he, degree_of(x[1]) < 0 ? 0 : recur(x[0], degree_of(x[1]), 1, x[0], hermite_e_next))
F(laguerre_l, degree_of(x[1]) < 0 ? 0 : recur(x[0], degree_of(x[1]), 1, 1 - x[0], laguerre_next))
F(legendre_p, degree_of(x[1]) < 0 ? 0 : recur(x[0], degree_of(x[1]), 1, x[0], legendre_next))

#define SPECIAL(name, f) PW(name ".default", PW_RESULT, f##_f, NULL)
static const rk_kernel_t rows[] = {
    SPECIAL("i0", i0),
    SPECIAL("special_i0e", i0e),
    SPECIAL("special_i1", i1),
    SPECIAL("special_i1e", i1e),
    SPECIAL("special_modified_bessel_i0", i0),
    SPECIAL("special_modified_bessel_i1", i1),
    SPECIAL("special_modified_bessel_k0", k0),
    SPECIAL("special_modified_bessel_k1", k1),
    SPECIAL("special_scaled_modified_bessel_k0", k0e),
    SPECIAL("special_scaled_modified_bessel_k1", k1e),
    SPECIAL("special_bessel_j0", bessel_j0),
    SPECIAL("special_bessel_j1", bessel_j1),
    SPECIAL("special_bessel_y0", bessel_y0),
    SPECIAL("special_bessel_y1", bessel_y1),
    SPECIAL("special_spherical_bessel_j0", spherical_j0),
    SPECIAL("special_airy_ai", airy_ai),
    SPECIAL("special_erfcx", erfcx),
    SPECIAL("special_log_ndtr", log_ndtr),
    SPECIAL("special_ndtri", ndtri),
    SPECIAL("igamma", igamma),
    SPECIAL("igammac", igammac),
    SPECIAL("special_zeta", zeta),
    SPECIAL("polygamma", polygamma),
    SPECIAL("special_chebyshev_polynomial_t", chebyshev_t),
    SPECIAL("special_chebyshev_polynomial_u", chebyshev_u),
    SPECIAL("special_chebyshev_polynomial_v", chebyshev_v),
    SPECIAL("special_chebyshev_polynomial_w", chebyshev_w),
    SPECIAL("special_shifted_chebyshev_polynomial_t", shifted_t),
    SPECIAL("special_shifted_chebyshev_polynomial_u", shifted_u),
    SPECIAL("special_shifted_chebyshev_polynomial_v", shifted_v),
    SPECIAL("special_shifted_chebyshev_polynomial_w", shifted_w),
    SPECIAL("special_hermite_polynomial_h", hermite_h),
    SPECIAL("special_hermite_polynomial_he", hermite_he),
    SPECIAL("special_laguerre_polynomial_l", laguerre_l),
    SPECIAL("special_legendre_polynomial_p", legendre_p),
};
const rk_family_t rk_family_special = RK_FAMILY(rows);
