#include "sum_kernels.h"

#include "kit/base/geometry.h"
#include "simd_dispatch.h"

enum { LANES = 8 };

/* Elements that follow each other go to lanes in turn, which are added in one order. */
#define ADD_ROW(name, type)                                                                                            \
  BC_WIDE static double name(const type *x, int64_t step, int64_t n) {                                                 \
    double lane[LANES] = {0};                                                                                          \
    int64_t i = 0;                                                                                                     \
    for (; step == 1 && i + LANES <= n; i += LANES)                                                                    \
      for (int k = 0; k < LANES; k++) lane[k] += (double)x[i + k];                                                     \
    for (; i < n; i++) lane[i % LANES] += (double)x[i * step];                                                         \
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));                  \
  }
ADD_ROW(add_floats, float)
ADD_ROW(add_doubles, double)

int64_t bc_sum_results(const bc_sum_t *s) {
  int64_t n = 1;
  for (int32_t d = 0; d < s->n_kept; d++) n *= s->kept[d];
  return n;
}

static double add_row(const bc_sum_t *s, const void *x, int64_t at) {
  const int64_t n = s->n_added ? s->added[s->n_added - 1] : 1, step = s->n_added ? s->step[s->n_added - 1] : 1;
  return s->dtype == AOT_F32 ? add_floats((const float *)x + at, step, n)
                             : add_doubles((const double *)x + at, step, n);
}

static double add_all(const bc_sum_t *s, const void *x, int64_t at) {
  const int64_t *const step = s->step;
  int64_t index[AOT_MAX_RANK] = {0};
  double sum = 0;
  do sum += add_row(s, x, at);
  while (tn_next(s->n_added - 1, s->added, index, 1, &step, &at));
  return sum;
}

void bc_sum(const bc_sum_t *s, const void *x, void *y, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) {
    int64_t from = 0, to = 0, rest = i;
    for (int32_t d = s->n_kept - 1; d >= 0; rest /= s->kept[d], d--) {
      from += rest % s->kept[d] * s->from[d];
      to += rest % s->kept[d] * s->to[d];
    }
    const double sum = add_all(s, x, from) / s->divisor;
    if (s->dtype == AOT_F32) ((float *)y)[to] = (float)sum;
    else ((double *)y)[to] = sum;
  }
}
