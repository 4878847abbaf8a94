#include "resample_kernels.h"

#include "simd_dispatch.h"
#include <string.h>

BC_INLINE void add_row(float *restrict to, const float *restrict from, int64_t n, float weight) {
  for (int64_t i = 0; i < n; i++) to[i] += weight * from[i];
}

BC_INLINE void scale_row(float *restrict to, const float *restrict from, int64_t n, float weight) {
  for (int64_t i = 0; i < n; i++) to[i] = weight * from[i];
}

BC_INLINE void pick_columns(const bc_taps_t *taps, int32_t n_taps, const float *restrict row, int64_t n,
                            float *restrict out) {
  for (int64_t i = 0; i < n; i++) {
    float sum = taps[i].weight[0] * row[taps[i].at[0]];
    for (int32_t k = 1; k < n_taps; k++) sum += taps[i].weight[k] * row[taps[i].at[k]];
    out[i] = sum;
  }
}

BC_WIDE void bc_resample(const bc_resample_t *r, int64_t begin, int64_t end, const float *x, float *y, float *work) {
  const int64_t width = r->in[1];
  for (int64_t plane = begin; plane < end; plane++)
    for (int64_t o = 0; o < r->out[0]; o++) {
      const bc_taps_t *t = &r->taps[0][o];
      const float *from = x + plane * r->in[0] * width;
      float *to = y + (plane * r->out[0] + o) * r->out[1];
      scale_row(work, from + t->at[0] * width, width, t->weight[0]);
      for (int32_t k = 1; k < r->n[0]; k++) add_row(work, from + t->at[k] * width, width, t->weight[k]);
      if (r->n[1] == 1) pick_columns(r->taps[1], 1, work, r->out[1], to);
      else if (r->n[1] == 2) pick_columns(r->taps[1], 2, work, r->out[1], to);
      else pick_columns(r->taps[1], 4, work, r->out[1], to);
    }
}

BC_WIDE void bc_resample_backward(const bc_resample_t *r, int64_t begin, int64_t end, const float *gy, float *gx,
                                  float *work) {
  const int64_t width = r->in[1], n_in = r->in[0] * width;
  memset(gx + begin * n_in, 0, (size_t)((end - begin) * n_in) * sizeof *gx);
  for (int64_t plane = begin; plane < end; plane++)
    for (int64_t o = 0; o < r->out[0]; o++) {
      const bc_taps_t *t = &r->taps[0][o];
      const float *from = gy + (plane * r->out[0] + o) * r->out[1];
      memset(work, 0, (size_t)width * sizeof *work);
      for (int64_t i = 0; i < r->out[1]; i++)
        for (int32_t k = 0; k < r->n[1]; k++) work[r->taps[1][i].at[k]] += r->taps[1][i].weight[k] * from[i];
      for (int32_t k = 0; k < r->n[0]; k++) add_row(gx + plane * n_in + t->at[k] * width, work, width, t->weight[k]);
    }
}
