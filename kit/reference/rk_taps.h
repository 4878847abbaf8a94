/* What an output place of a resized image reads along one dimension: up to 4 taps.
 *
 * Source places (operators.md section 3, PyTorch's UpSample.h): aligned corners i * (I-1)/(O-1); else
 * (i + 0.5) * I/O - 0.5, clamped at 0 except for cubic; nearest floor(i * I/O), exact floor((i + 0.5) * I/O). A given
 * scale factor replaces O/I. Nearest places are computed in float as PyTorch does: there rounding decides which element
 * is meant. Cubic: Keys 1981 with a = -0.75. */
#ifndef RK_TAPS_H
#define RK_TAPS_H

#include <stdint.h>

#define RK_NEAREST 0
#define RK_NEAREST_EXACT 1
#define RK_LINEAR 2
#define RK_CUBIC 3

typedef struct rk_taps {
  int n; /* the same for all places */
  int64_t at[4];
  double weight[4];
} rk_taps_t;

/* factor: the scale factor given, 0: none. in and out are positive. */
rk_taps_t rk_taps_at(int mode, int align, int64_t in, int64_t out, int64_t i, double factor);

/* Of the taps at -1, 0, 1, 2 for a place `rest` after tap 0. */
void rk_cubic_weights(double rest, double out[4]);

#endif
