/* rk_fourier.c - see rk_fourier.h. */
#include "rk_fourier.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

#define LARGEST_PASS 61 /* a larger prime costs more as a pass than as a convolution */
#define PI 3.14159265358979323846

static rk_complex_t turn(int64_t k, int64_t n, int sign) { /* exp(sign 2 pi i k / n) */
  double angle = 2 * PI * (double)(k % n) / (double)n;
  return rk_complex_of(cos(angle), sign * sin(angle));
}

static int64_t smallest_factor(int64_t n) {
  for (int64_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

static int64_t largest_factor(int64_t n) {
  int64_t p = 1;
  while (n > 1) {
    p = smallest_factor(n);
    n /= p;
  }
  return p;
}

static aot_status_t init_chirp(rk_ctx_t *c, int64_t n, int sign, rk_fourier_t *f) {
  int64_t padded = 1;
  rk_fourier_t forward;
  while (padded < 2 * n - 1) padded *= 2;
  RK_SCRATCH(c, 1, f->padded);
  RK_SCRATCH(c, n, f->chirp);
  RK_SCRATCH(c, padded, f->filter);
  RK_SCRATCH(c, padded, f->line);
  AOT_TRY(rk_fourier_init(c, padded, -1, &forward));
  AOT_TRY(rk_fourier_init(c, padded, 1, f->padded));
  for (int64_t k = 0; k < n; k++) {
    f->chirp[k] = turn(k * k % (2 * n), 2 * n, sign); /* k^2 / 2 turns of 1/n */
    f->filter[k] = conj(f->chirp[k]);
    if (k) f->filter[padded - k] = f->filter[k];
  }
  rk_fourier_run(&forward, f->filter);
  return AOT_OK;
}

aot_status_t rk_fourier_init(rk_ctx_t *c, int64_t n, int sign, rk_fourier_t *f) {
  *f = (rk_fourier_t){.n = n, .sign = sign};
  if (largest_factor(n) > LARGEST_PASS) return init_chirp(c, n, sign, f);
  RK_SCRATCH(c, n, f->roots);
  RK_SCRATCH(c, n, f->work);
  for (int64_t k = 0; k < n; k++) f->roots[k] = turn(k, n, sign);
  return AOT_OK;
}

/* Before the pass, in[j * p m + k] is element j of the transforms, of length l, of every (p m)-th input from k on. p of
 * them, from k, k + m, .. on, give those of length l p of every m-th input. */
static void pass(const rk_fourier_t *f, int64_t l, int64_t p, const rk_complex_t *in, rk_complex_t *out) {
  const int64_t n = f->n, m = n / (l * p);
  rk_complex_t t[LARGEST_PASS];
  for (int64_t j = 0; j < l; j++)
    for (int64_t k = 0; k < m; k++) {
      for (int64_t q = 0; q < p; q++) t[q] = in[j * p * m + k + m * q] * f->roots[q * j * m];
      for (int64_t u = 0; u < p; u++) {
        rk_complex_t sum = t[0];
        for (int64_t q = 1; q < p; q++) sum += t[q] * f->roots[q * u % p * (n / p)];
        out[(j + l * u) * m + k] = sum;
      }
    }
}

/* k t = (k^2 + t^2 - (k - t)^2) / 2: the transform is a convolution with the conjugate chirp, between two products
 * with it. */
static void run_chirp(const rk_fourier_t *f, rk_complex_t *x) {
  const int64_t n = f->n, padded = f->padded->n;
  memset(f->line, 0, (size_t)padded * sizeof *f->line);
  for (int64_t k = 0; k < n; k++) f->line[k] = conj(x[k] * f->chirp[k]);
  rk_fourier_run(f->padded, f->line); /* backward of the conjugate is the conjugate of forward */
  for (int64_t k = 0; k < padded; k++) f->line[k] = conj(f->line[k]) * f->filter[k];
  rk_fourier_run(f->padded, f->line);
  for (int64_t k = 0; k < n; k++) x[k] = f->line[k] * f->chirp[k] / (double)padded;
}

void rk_fourier_run(const rk_fourier_t *f, rk_complex_t *x) {
  rk_complex_t *in = x, *out = f->work, *other;
  if (f->padded) {
    run_chirp(f, x);
    return;
  }
  for (int64_t l = 1, p; l < f->n; l *= p) {
    p = smallest_factor(f->n / l);
    pass(f, l, p, in, out);
    other = in;
    in = out;
    out = other;
  }
  if (in != x) memcpy(x, in, (size_t)f->n * sizeof *x);
}
