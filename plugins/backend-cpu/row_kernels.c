#include "row_kernels.h"

#include "exp_f32.h"
#include <math.h>
#include <string.h>

/* Sums in eight lanes of double: the order is fixed, so results repeat, and the compiler can vectorise it. */
enum { LANES = 8, BLOCK = 16 };

BC_INLINE double sum_lanes(const double *lane) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

BC_INLINE double row_sum(const float *x, int64_t n) {
  double lane[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) lane[k] += x[i + k];
  for (; i < n; i++) lane[0] += x[i];
  return sum_lanes(lane);
}

BC_INLINE double row_sum_squares(const float *x, double mean, int64_t n) {
  double lane[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) lane[k] += (x[i + k] - mean) * (x[i + k] - mean);
  for (; i < n; i++) lane[0] += (x[i] - mean) * (x[i] - mean);
  return sum_lanes(lane);
}

/* Of all that are numbers: one that is none makes the sums NaN that the maximum is for. */
BC_INLINE float row_max(const float *x, int64_t n) {
  float lane[BLOCK], m = -INFINITY;
  int64_t i = 0;
  for (int k = 0; k < BLOCK; k++) lane[k] = m;
  for (; i + BLOCK <= n; i += BLOCK)
    for (int k = 0; k < BLOCK; k++) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
  for (; i < n; i++) m = x[i] > m ? x[i] : m;
  for (int k = 0; k < BLOCK; k++) m = lane[k] > m ? lane[k] : m;
  return m;
}

BC_INLINE void row_moments(const float *x, int64_t n, double eps, double *mean, double *rstd) {
  const double sum = row_sum(x, n);
  *mean = isinf(sum) ? NAN : sum / (double)n; /* PyTorch's running mean has inf - inf */
  *rstd = 1.0 / sqrt(row_sum_squares(x, *mean, n) / (double)n + eps);
}

/* gi = rstd * (gh - mean(gh) - xh * mean(gh * xh)), gh = go * w, xh = (x - mean) * rstd */
BC_INLINE void layer_norm_input_gradient(const float *go, const float *x, const float *w, double m, double s, int64_t n,
                                         float *gi) {
  double sum[LANES] = {0}, sum_xh[LANES] = {0};
  int64_t first = 0;
  for (; first + LANES <= n; first += LANES)
    for (int k = 0; k < LANES; k++) {
      const double gh = (double)go[first + k] * (w ? w[first + k] : 1.0f);
      sum[k] += gh;
      sum_xh[k] += gh * ((x[first + k] - m) * s);
    }
  for (int64_t i = first; i < n; i++) {
    const double gh = (double)go[i] * (w ? w[i] : 1.0f);
    sum[0] += gh;
    sum_xh[0] += gh * ((x[i] - m) * s);
  }
  const float a = (float)(sum_lanes(sum) / (double)n), c = (float)(sum_lanes(sum_xh) / (double)n), fm = (float)m,
              fs = (float)s;
  for (int64_t i = 0; i < n; i++) {
    float gh = go[i] * (w ? w[i] : 1.0f);
    gi[i] = fs * (gh - a - (x[i] - fm) * fs * c);
  }
}

BC_WIDE void bc_layer_norm_backward(const float *go, const float *x, const float *w, const float *mean,
                                    const float *rstd, int64_t rows, int64_t n, double eps, float *gi, float *gw,
                                    float *gb) {
  if (gw) memset(gw, 0, (size_t)n * sizeof *gw);
  if (gb) memset(gb, 0, (size_t)n * sizeof *gb);
  for (int64_t r = 0; r < rows; r++, x += n, go += n) {
    double m, s;
    if (mean && rstd) m = mean[r], s = rstd[r];
    else row_moments(x, n, eps, &m, &s);
    if (gi) layer_norm_input_gradient(go, x, w, m, s, n, gi + r * n);
    float fm = (float)m, fs = (float)s;
    for (int64_t i = 0; gw && i < n; i++) gw[i] += go[i] * ((x[i] - fm) * fs);
    for (int64_t i = 0; gb && i < n; i++) gb[i] += go[i];
  }
}

/* All is read before anything is written: y may be x, and it is one vector yet. */
BC_INLINE void exp_block(const float *x, float m, float *y) {
  float block[BLOCK];
  for (int k = 0; k < BLOCK; k++) block[k] = exp_f32(x[k] - m);
  for (int k = 0; k < BLOCK; k++) y[k] = block[k];
}

/* exp(x - max) into y; returns the sum. A row of -inf alone gives zeros and sum 0. */
BC_INLINE double row_exp(const float *x, int64_t n, float *y) {
  float m = row_max(x, n);
  if (m == -INFINITY) m = 0;
  int64_t i = 0;
  for (; i + BLOCK <= n; i += BLOCK) exp_block(x + i, m, y + i);
  if (i < n) { /* the last block is filled up */
    float last[BLOCK] = {0};
    memcpy(last, x + i, (size_t)(n - i) * sizeof *x);
    exp_block(last, m, last);
    memcpy(y + i, last, (size_t)(n - i) * sizeof *x);
  }
  return row_sum(y, n);
}

BC_INLINE double row_log_sum_exp(const float *x, int64_t n) {
  double m = row_max(x, n), lane[LANES] = {0}; /* NaN where the maximum is infinite */
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) lane[k] += exp_f32((float)(x[i + k] - m));
  for (; i < n; i++) lane[0] += exp_f32((float)(x[i] - m));
  return m + log(sum_lanes(lane));
}

BC_WIDE int64_t bc_cross_entropy(const float *x, const int64_t *target, int64_t rows, int64_t n, int32_t reduction,
                                 int64_t ignore, float *out) {
  double sum = 0;
  int64_t kept = 0;
  for (int64_t r = 0; r < rows; r++) {
    if (target[r] == ignore) continue;
    if (target[r] < 0 || target[r] >= n) return r;
    sum += row_log_sum_exp(x + r * n, n) - x[r * n + target[r]];
    kept++;
  }
  *out = (float)(reduction == 1 ? sum / (double)kept : sum);
  return -1;
}

BC_WIDE void bc_cross_entropy_backward(float g, const float *x, const int64_t *target, int64_t rows, int64_t n,
                                       int32_t reduction, int64_t ignore, float *gi) {
  int64_t kept = 0;
  for (int64_t r = 0; r < rows; r++) kept += target[r] != ignore;
  float scale = reduction == 1 ? g / (float)kept : g;
  for (int64_t r = 0; r < rows; r++, x += n, gi += n) {
    if (target[r] == ignore) {
      memset(gi, 0, (size_t)n * sizeof *gi);
      continue;
    }
    float factor = (float)(scale / row_exp(x, n, gi));
    for (int64_t i = 0; i < n; i++) gi[i] *= factor;
    gi[target[r]] -= scale;
  }
}

int64_t bc_embedding_backward(const float *go, const int64_t *index, int64_t rows, int64_t n_table, int64_t width,
                              int64_t padding, float *g_table) {
  memset(g_table, 0, (size_t)(n_table * width) * sizeof *g_table);
  for (int64_t r = 0; r < rows; r++) {
    if (index[r] < 0 || index[r] >= n_table) return r;
    if (index[r] == padding) continue;
    float *row = g_table + index[r] * width;
    for (int64_t i = 0; i < width; i++) row[i] += go[r * width + i];
  }
  return -1;
}
