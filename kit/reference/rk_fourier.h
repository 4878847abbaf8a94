/* The discrete Fourier transform of any length: y[k] = sum_t x[t] exp(sign 2 pi i k t / n).
 *
 * A length whose prime factors are small is transformed in passes, one a factor (Stockham's self-sorting form: Van
 * Loan, Computational Frameworks for the Fast Fourier Transform, 1992, section 1.7); one with a large prime as a
 * convolution with a chirp, of a power of two (Bluestein 1970). O(n log n) both. */
#ifndef RK_FOURIER_H
#define RK_FOURIER_H

#include "rk_complex.h"

typedef struct rk_fourier {
  int64_t n;
  int sign;
  rk_complex_t *roots;       /* exp(sign 2 pi i k / n) */
  rk_complex_t *work;        /* n elements */
  struct rk_fourier *padded; /* the length of the convolution; NULL: passes */
  rk_complex_t *chirp;       /* exp(sign pi i k^2 / n) */
  rk_complex_t *filter;      /* the transform of its conjugate, padded */
  rk_complex_t *line;        /* of the padded length */
} rk_fourier_t;

/* sign: -1 forward, 1 backward. Memory is the call's. */
aot_status_t rk_fourier_init(rk_ctx_t *c, int64_t n, int sign, rk_fourier_t *out);
void rk_fourier_run(const rk_fourier_t *f, rk_complex_t *x); /* in place, not scaled */

#endif
