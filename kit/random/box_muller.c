/* Box-Muller in additions, products, quotients and square roots alone, which every machine rounds alike: normal numbers
 * are the same bits everywhere, whatever the C library's log and cos do. Within 4 units in the last place of a
 * double (unit_philox). */
#include "philox.h"

#include <math.h>
#include <string.h>

/* log x for x in (0, 1], no subnormal: x = m 2^e with m within [sqrt 1/2, sqrt 2), log m = 2 artanh s = 2 (s + s^3 / 3
 * + ..), s = (m - 1) / (m + 1). */
static double log_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t above = bits - UINT64_C(0x3FE6A09E667F3BCD); /* sqrt 1/2 */
  int e = (int)((int64_t)above >> 52);
  bits -= (uint64_t)(int64_t)e << 52;
  double m, s, t, sum;
  memcpy(&m, &bits, sizeof m);
  s = (m - 1) / (m + 1);
  t = s * s;
  sum =
      t * (1.0 / 3 +
           t * (1.0 / 5 +
                t * (1.0 / 7 +
                     t * (1.0 / 9 +
                          t * (1.0 / 11 +
                               t * (1.0 / 13 + t * (1.0 / 15 + t * (1.0 / 17 + t * (1.0 / 19 + t * (1.0 / 21))))))))));
  sum = 2 * s + 2 * s * sum;
  return (double)e * 0.693147180369123816490 + (sum + (double)e * 1.90821492927058770002e-10); /* log 2 in two parts */
}

/* Taylor series of sine and cosine for |x| <= pi / 4. */
static void sine_and_cosine(double x, double *sine, double *cosine) {
  double t = x * x;
  *sine = x + x * (t * (-1.0 / 6 +
                        t * (1.0 / 120 +
                             t * (-1.0 / 5040 +
                                  t * (1.0 / 362880 +
                                       t * (-1.0 / 39916800 + t * (1.0 / 6227020800 + t * (-1.0 / 1307674368000))))))));
  *cosine =
      1 + t * (-0.5 + t * (1.0 / 24 +
                           t * (-1.0 / 720 +
                                t * (1.0 / 40320 + t * (-1.0 / 3628800 +
                                                        t * (1.0 / 479001600 + t * (-1.0 / 87178291200 +
                                                                                    t * (1.0 / 20922789888000))))))));
}

/* The angle as quarters of a turn and a rest within an eighth: both exact, since unit has 53 bits at most. */
void ph_box_muller(double radius_unit, double angle_unit, double out[2]) {
  double radius = sqrt(-2 * log_of(radius_unit)), quarters = (double)(int)(4 * angle_unit + 0.5), sine, cosine;
  sine_and_cosine((4 * angle_unit - quarters) * 1.57079632679489661923, &sine, &cosine);
  int quarter = (int)quarters; /* 0 to 4 */
  double first = quarter & 1 ? sine : cosine, second = quarter & 1 ? cosine : sine;
  out[0] = (quarter + 1) & 2 ? -radius * first : radius * first;
  out[1] = quarter & 2 ? -radius * second : radius * second;
}

enum { MANY = 32 /* blocks */ };

/* The words of many blocks, then every pair of them; of the first and the last pair a half may be left out. */
void ph_fill_normal(uint64_t seed, uint64_t counter, uint64_t first, uint64_t n, uint32_t words, double *out) {
  const uint64_t per_block = words == 1 ? 4 : 2;
  uint32_t w[4 * MANY];
  for (uint64_t k = 0; k < n;) {
    uint64_t block = (first + k) / per_block, skip = (first + k) % per_block,
             some = (skip + n - k + per_block - 1) / per_block;
    if (some > MANY) some = MANY;
    ph_words(seed, counter, block, some, w);
    for (uint64_t p = skip / 2; p < some * per_block / 2 && k < n; p++) {
      const uint32_t *at = w + p * (words == 1 ? 2 : 4);
      double pair[2];
      if (words == 1) ph_box_muller(((double)at[0] + 1) * 0x1p-32, (double)at[1] * 0x1p-32, pair);
      else
        ph_box_muller(ph_unit64((uint64_t)at[1] << 32 | at[0], 53) + 0x1p-53,
                      ph_unit64((uint64_t)at[3] << 32 | at[2], 53), pair);
      if (p > skip / 2 || skip % 2 == 0) out[k++] = pair[0];
      if (k < n) out[k++] = pair[1];
    }
  }
}

/* ---- runs of elements ---- */

/* Box-Muller costs far more than the words: the plain filling serves, a piece at a time. */
static void normals(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, uint32_t words,
                    double *wide_out, float *out) {
  double piece[4 * MANY];
  uint64_t most = step == 1 ? 4 * MANY : 1;
  for (uint64_t k = 0, some; k < n; k += some) {
    some = n - k < most ? n - k : most;
    ph_fill_normal(seed, counter, first + k * step, some, words, piece);
    for (uint64_t j = 0; j < some; j++) {
      if (out) out[k + j] = (float)piece[j];
      else wide_out[k + j] = piece[j];
    }
  }
}

void ph_run_normal32(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out) {
  normals(seed, counter, first, step, n, 1, NULL, out);
}
void ph_run_normal64(uint64_t seed, uint64_t counter, uint64_t first, uint64_t step, uint64_t n, void *out) {
  normals(seed, counter, first, step, n, 2, out, NULL);
}
