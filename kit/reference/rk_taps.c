#include "rk_taps.h"

#include <aot/inline.h>
#include <math.h>

static double cubic_near(double x) { return ((-0.75 + 2) * x - (-0.75 + 3)) * x * x + 1; }
static double cubic_far(double x) { return ((-0.75 * x - 5 * -0.75) * x + 8 * -0.75) * x - 4 * -0.75; }

void rk_cubic_weights(double rest, double out[4]) {
  out[0] = cubic_far(rest + 1);
  out[1] = cubic_near(rest);
  out[2] = cubic_near(1 - rest);
  out[3] = cubic_far(2 - rest);
}

static int64_t clamp_place(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

rk_taps_t rk_taps_at(int mode, int align, int64_t in, int64_t out, int64_t i, double factor) {
  int64_t low;
  double step = factor > 0 ? 1 / factor : (double)in / (double)out, source, rest;
  rk_taps_t t = {1, {0}, {1, 0, 0, 0}};
  if (mode == RK_NEAREST || mode == RK_NEAREST_EXACT) {
    float f = factor > 0 ? (float)(1.0 / factor) : (float)in / (float)out;
    float place = mode == RK_NEAREST ? (float)i * f : ((float)i + 0.5f) * f;
    t.at[0] = clamp_place(aot_float_to_int(floorf(place)), in);
    return t;
  }
  if (align) source = out > 1 ? (double)i * ((double)(in - 1) / (double)(out - 1)) : 0;
  else source = ((double)i + 0.5) * step - 0.5;
  if (mode == RK_LINEAR && source < 0) source = 0;
  source = fmin(fmax(source, -2), (double)in + 1); /* all further out read the edge alone */
  low = (int64_t)floor(source);
  rest = source - (double)low;
  if (mode == RK_LINEAR) {
    t.n = 2;
    t.at[0] = clamp_place(low, in);
    t.at[1] = clamp_place(low + 1, in);
    t.weight[0] = 1 - rest;
    t.weight[1] = rest;
    return t;
  }
  t.n = 4;
  rk_cubic_weights(rest, t.weight);
  for (int k = 0; k < 4; k++) t.at[k] = clamp_place(low - 1 + k, in);
  return t;
}
