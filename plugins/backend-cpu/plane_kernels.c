#include "plane_kernels.h"

#include "simd_dispatch.h"
#include <math.h>
#include <string.h>

/* ---- sums ---- */

enum { LANES = 16 };

BC_INLINE double join(const double *lanes) {
  double sum[LANES];
  memcpy(sum, lanes, sizeof sum);
  for (int half = LANES / 2; half > 0; half /= 2)
    for (int l = 0; l < half; l++) sum[l] += sum[l + half];
  return sum[0];
}

/* Of x - shift; in lanes, which vectors hold. */
BC_WIDE static double sum_of(const float *x, double shift, int64_t n) {
  double lanes[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++) lanes[l] += (double)x[i + l] - shift;
  for (; i < n; i++) lanes[i % LANES] += (double)x[i] - shift;
  return join(lanes);
}

/* Of z * (x - shift). */
BC_WIDE static double sum_of_products(const float *x, double shift, const float *z, double shift_z, int64_t n) {
  double lanes[LANES] = {0};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int l = 0; l < LANES; l++) lanes[l] += ((double)x[i + l] - shift) * ((double)z[i + l] - shift_z);
  for (; i < n; i++) lanes[i % LANES] += ((double)x[i] - shift) * ((double)z[i] - shift_z);
  return join(lanes);
}

static int64_t plane_at(bc_planes_t s, int64_t n, int64_t c) { return (n * s.n_channel + c) * s.n_position; }

/* ---- biases ---- */

void bc_add_bias(bc_planes_t s, float *y, const float *bias, int64_t begin, int64_t end) {
  for (int64_t n = 0; n < s.n_batch; n++)
    for (int64_t c = begin; c < end; c++) {
      float *plane = y + plane_at(s, n, c);
      for (int64_t i = 0; i < s.n_position; i++) plane[i] += bias[c];
    }
}

void bc_bias_gradient(bc_planes_t s, const float *gy, float *gb, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c++) {
    double sum = 0;
    for (int64_t n = 0; n < s.n_batch; n++) sum += sum_of(gy + plane_at(s, n, c), 0, s.n_position);
    gb[c] = (float)sum;
  }
}

void bc_bias_gradient_f64(bc_planes_t s, const double *gy, double *gb, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c++) {
    gb[c] = 0;
    for (int64_t n = 0; n < s.n_batch; n++)
      for (int64_t i = 0; i < s.n_position; i++) gb[c] += gy[plane_at(s, n, c) + i];
  }
}

/* ---- batch norm ---- */

BC_WIDE static void scale_and_shift(const float *restrict x, float scale, float shift, int64_t n, float *restrict y) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * scale + shift;
}

void bc_batch_norm_train(bc_planes_t s, const bc_batch_norm_t *a, int64_t begin, int64_t end) {
  const double count = (double)(s.n_batch * s.n_position);
  for (int64_t c = begin; c < end; c++) {
    double sum = 0, squares = 0;
    for (int64_t n = 0; n < s.n_batch; n++) sum += sum_of(a->x + plane_at(s, n, c), 0, s.n_position);
    const double mean = sum / count;
    for (int64_t n = 0; n < s.n_batch; n++) {
      const float *x = a->x + plane_at(s, n, c);
      squares += sum_of_products(x, mean, x, mean, s.n_position);
    }
    double rstd = 1 / sqrt(squares / count + a->eps);
    float scale = (float)(rstd * (a->w ? a->w[c] : 1)),
          shift = (float)((a->b ? a->b[c] : 0) - mean * rstd * (a->w ? a->w[c] : 1));
    for (int64_t n = 0; n < s.n_batch; n++)
      scale_and_shift(a->x + plane_at(s, n, c), scale, shift, s.n_position, a->y + plane_at(s, n, c));
    if (a->mean) a->mean[c] = (float)mean;
    if (a->rstd) a->rstd[c] = (float)rstd;
    const double share = a->momentum, kept = 1 - share;
    if (a->new_mean)
      a->new_mean[c] = count > 0 ? (float)(kept * a->running_mean[c] + share * mean) : a->running_mean[c];
    if (a->new_var)
      a->new_var[c] = count > 0 ? (float)(kept * a->running_var[c] + share * squares / (count - 1)) : a->running_var[c];
  }
}

BC_WIDE static void norm_gradient(const float *restrict gy, const float *restrict x, float scale, float flat,
                                  float mean, float slope, int64_t n, float *restrict gx) {
  for (int64_t i = 0; i < n; i++) gx[i] = scale * (gy[i] - flat - (x[i] - mean) * slope);
}

void bc_batch_norm_backward(bc_planes_t s, const bc_batch_norm_gradient_t *a, int64_t begin, int64_t end) {
  const double count = (double)(s.n_batch * s.n_position);
  for (int64_t c = begin; c < end; c++) {
    double sum = 0, product = 0;
    for (int64_t n = 0; n < s.n_batch; n++) {
      const int64_t at = plane_at(s, n, c);
      sum += sum_of(a->gy + at, 0, s.n_position);
      product += sum_of_products(a->gy + at, 0, a->x + at, a->mean[c], s.n_position);
    }
    if (a->gw) a->gw[c] = (float)(product * a->rstd[c]);
    if (a->gb) a->gb[c] = (float)sum;
    float scale = a->rstd[c] * (a->w ? a->w[c] : 1), flat = (float)(sum / count),
          slope = (float)(product / count * a->rstd[c] * a->rstd[c]);
    for (int64_t n = 0; a->gx && n < s.n_batch; n++) {
      const int64_t at = plane_at(s, n, c);
      norm_gradient(a->gy + at, a->x + at, scale, flat, a->mean[c], slope, s.n_position, a->gx + at);
    }
  }
}

/* ---- max pooling ---- */

enum { TILE = 64 };

/* The largest elements under the windows of outputs (h, first) on, and their places in the plane; -1: a window that
 * covers nothing. The first of equals; NaN counts as largest. */
BC_WIDE static void window_maxima(const bc_pool2d_t *p, const float *restrict x, int64_t h, int64_t first, int64_t n,
                                  float *restrict best, int32_t *restrict place) {
  for (int64_t i = 0; i < n; i++) {
    best[i] = -INFINITY;
    place[i] = -1;
  }
  for (int64_t kh = 0; kh < p->kernel[0]; kh++) {
    const int64_t ih = h * p->stride[0] - p->pad[0] + kh * p->dilation[0];
    if (ih < 0 || ih >= p->in[0]) continue;
    for (int64_t kw = 0; kw < p->kernel[1]; kw++) {
      const int64_t step = p->stride[1], shift = first * step - p->pad[1] + kw * p->dilation[1];
      const float *line = x + ih * p->in[1];
      int64_t i0 = shift >= 0 ? 0 : (-shift + step - 1) / step;
      int64_t i1 = p->in[1] - shift <= 0 ? 0 : (p->in[1] - shift + step - 1) / step;
      if (i1 > n) i1 = n;
      for (int64_t i = i0; i < i1; i++) {
        const float v = line[shift + i * step];
        const int take = (v > best[i]) | (v != v) | (place[i] < 0);
        best[i] = take ? v : best[i];
        place[i] = take ? (int32_t)(ih * p->in[1] + shift + i * step) : place[i];
      }
    }
  }
}

void bc_max_pool(int64_t n_planes, const bc_pool2d_t *p, const float *x, float *y, int64_t *index) {
  float best[TILE];
  int32_t place[TILE];
  int64_t o = 0;
  for (int64_t n = 0; n < n_planes; n++, x += p->in[0] * p->in[1])
    for (int64_t h = 0; h < p->out[0]; h++)
      for (int64_t w = 0; w < p->out[1]; w += TILE) {
        const int64_t size = p->out[1] - w < TILE ? p->out[1] - w : TILE;
        window_maxima(p, x, h, w, size, best, place);
        for (int64_t i = 0; i < size; i++, o++) {
          if (y) y[o] = best[i];
          if (index) index[o] = place[i] < 0 ? 0 : place[i];
        }
      }
}

void bc_max_pool_backward(int64_t n_planes, const bc_pool2d_t *p, const float *gy, const float *x, const int64_t *index,
                          float *gx) {
  const int64_t plane = p->in[0] * p->in[1];
  float best[TILE];
  int32_t place[TILE];
  int64_t o = 0;
  memset(gx, 0, (size_t)(n_planes * plane) * sizeof *gx);
  for (int64_t n = 0; n < n_planes; n++, gx += plane)
    for (int64_t h = 0; h < p->out[0]; h++)
      for (int64_t w = 0; w < p->out[1]; w += TILE) {
        const int64_t size = p->out[1] - w < TILE ? p->out[1] - w : TILE;
        if (!index) window_maxima(p, x + n * plane, h, w, size, best, place);
        for (int64_t i = 0; i < size; i++, o++) {
          const int64_t at = index ? index[o] : place[i];
          if (at >= 0 && at < plane) gx[at] += gy[o];
        }
      }
}

/* ---- average pooling ---- */

static double divisor_of(const bc_average_t *p, const bc_window_t *a, const bc_window_t *b) {
  return p->divisor != 0 ? p->divisor : (double)(a->count * b->count);
}

void bc_average_pool(int64_t n_planes, const bc_average_t *p, const float *x, float *y) {
  for (int64_t n = 0; n < n_planes; n++, x += p->in[0] * p->in[1])
    for (int64_t h = 0; h < p->out[0]; h++)
      for (int64_t w = 0; w < p->out[1]; w++) {
        const bc_window_t *a = &p->windows[0][h], *b = &p->windows[1][w];
        double sum = 0;
        if (b->end - b->begin == p->in[1]) /* whole lines */
          sum = sum_of(x + a->begin * p->in[1], 0, (a->end - a->begin) * p->in[1]);
        else
          for (int64_t i = a->begin; i < a->end; i++)
            for (int64_t j = b->begin; j < b->end; j++) sum += (double)x[i * p->in[1] + j];
        *y++ = (float)(sum / divisor_of(p, a, b));
      }
}

void bc_average_pool_backward(int64_t n_planes, const bc_average_t *p, const float *gy, float *gx) {
  memset(gx, 0, (size_t)(n_planes * p->in[0] * p->in[1]) * sizeof *gx);
  for (int64_t n = 0; n < n_planes; n++, gx += p->in[0] * p->in[1])
    for (int64_t h = 0; h < p->out[0]; h++)
      for (int64_t w = 0; w < p->out[1]; w++) {
        const bc_window_t *a = &p->windows[0][h], *b = &p->windows[1][w];
        const float share = (float)((double)*gy++ / divisor_of(p, a, b));
        for (int64_t i = a->begin; i < a->end; i++)
          for (int64_t j = b->begin; j < b->end; j++) gx[i * p->in[1] + j] += share;
      }
}
