#include "plane_kernels.h"

#include <math.h>
#include <string.h>

/* In lanes, which vectors hold. */
static double plane_sum(const float *x, int64_t n) {
  double lanes[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; l++) lanes[l] += (double)x[i + l];
  for (; i < n; i++) lanes[0] += (double)x[i];
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

void bc_add_bias(bc_planes_t s, float *y, const float *bias, int64_t begin, int64_t end) {
  for (int64_t n = 0; n < s.n_batch; n++)
    for (int64_t c = begin; c < end; c++) {
      float *plane = y + (n * s.n_channel + c) * s.n_position;
      for (int64_t i = 0; i < s.n_position; i++) plane[i] += bias[c];
    }
}

void bc_bias_gradient(bc_planes_t s, const float *gy, float *gb, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; c++) {
    double sum = 0;
    for (int64_t n = 0; n < s.n_batch; n++) sum += plane_sum(gy + (n * s.n_channel + c) * s.n_position, s.n_position);
    gb[c] = (float)sum;
  }
}

/* Sums over the planes of one channel: of x - shift, and of (x - shift) * (z - shift_z) when z is given. */
static void channel_sums(bc_planes_t s, int64_t c, const float *x, double shift, const float *z, double shift_z,
                         double *sum, double *product) {
  *sum = *product = 0;
  for (int64_t n = 0; n < s.n_batch; n++) {
    const float *px = x + (n * s.n_channel + c) * s.n_position,
                *pz = z ? z + (n * s.n_channel + c) * s.n_position : NULL;
    double a[4] = {0}, p[4] = {0};
    for (int64_t i = 0; i < s.n_position; i++) {
      a[i & 3] += px[i] - shift;
      if (pz) p[i & 3] += (px[i] - shift) * (pz[i] - shift_z);
    }
    *sum += (a[0] + a[1]) + (a[2] + a[3]);
    *product += (p[0] + p[1]) + (p[2] + p[3]);
  }
}

void bc_batch_norm_train(bc_planes_t s, const bc_batch_norm_t *a) {
  double count = (double)(s.n_batch * s.n_position), sum, squares, ignored;
  for (int64_t c = 0; c < s.n_channel; c++) {
    channel_sums(s, c, a->x, 0, NULL, 0, &sum, &ignored);
    double mean = sum / count;
    channel_sums(s, c, a->x, mean, a->x, mean, &sum, &squares);
    double rstd = 1 / sqrt(squares / count + a->eps);
    float scale = (float)(rstd * (a->w ? a->w[c] : 1)),
          shift = (float)((a->b ? a->b[c] : 0) - mean * rstd * (a->w ? a->w[c] : 1));
    for (int64_t n = 0; n < s.n_batch; n++) {
      int64_t at = (n * s.n_channel + c) * s.n_position;
      for (int64_t i = 0; i < s.n_position; i++) a->y[at + i] = a->x[at + i] * scale + shift;
    }
    if (a->mean) a->mean[c] = (float)mean;
    if (a->rstd) a->rstd[c] = (float)rstd;
    const double share = a->momentum, kept = 1 - share;
    if (a->new_mean)
      a->new_mean[c] = count > 0 ? (float)(kept * a->running_mean[c] + share * mean) : a->running_mean[c];
    if (a->new_var)
      a->new_var[c] = count > 0 ? (float)(kept * a->running_var[c] + share * squares / (count - 1)) : a->running_var[c];
  }
}

void bc_batch_norm_backward(bc_planes_t s, const float *gy, const float *x, const float *w, const float *mean,
                            const float *rstd, float *gx, float *gw, float *gb) {
  double count = (double)(s.n_batch * s.n_position);
  for (int64_t c = 0; c < s.n_channel; c++) {
    double sum, product;
    channel_sums(s, c, gy, 0, x, mean[c], &sum, &product);
    if (gw) gw[c] = (float)(product * rstd[c]);
    if (gb) gb[c] = (float)sum;
    float scale = rstd[c] * (w ? w[c] : 1), flat = (float)(sum / count),
          slope = (float)(product / count * rstd[c] * rstd[c]);
    for (int64_t n = 0; gx && n < s.n_batch; n++) {
      int64_t at = (n * s.n_channel + c) * s.n_position;
      for (int64_t i = 0; i < s.n_position; i++)
        gx[at + i] = scale * (gy[at + i] - flat - (x[at + i] - mean[c]) * slope);
    }
  }
}

/* The place of the largest element under the window of output (h, w); NaN counts as largest. */
static int64_t window_max(const bc_pool2d_t *p, const float *x, int64_t h, int64_t w) {
  int64_t best = -1;
  for (int64_t kh = 0; kh < p->kernel[0]; kh++) {
    int64_t ih = h * p->stride[0] - p->pad[0] + kh * p->dilation[0];
    if (ih < 0 || ih >= p->in[0]) continue;
    for (int64_t kw = 0; kw < p->kernel[1]; kw++) {
      int64_t iw = w * p->stride[1] - p->pad[1] + kw * p->dilation[1], at = ih * p->in[1] + iw;
      if (iw < 0 || iw >= p->in[1]) continue;
      if (best < 0 || x[at] > x[best] || isnan(x[at])) best = at;
    }
  }
  return best;
}

void bc_max_pool(int64_t n_planes, const bc_pool2d_t *p, const float *x, float *y, int64_t *index) {
  int64_t o = 0;
  for (int64_t n = 0; n < n_planes; n++, x += p->in[0] * p->in[1])
    for (int64_t h = 0; h < p->out[0]; h++)
      for (int64_t w = 0; w < p->out[1]; w++, o++) {
        int64_t best = window_max(p, x, h, w);
        if (y) y[o] = best < 0 ? -INFINITY : x[best];
        if (index) index[o] = best < 0 ? 0 : best;
      }
}

void bc_max_pool_backward(int64_t n_planes, const bc_pool2d_t *p, const float *gy, const float *x, const int64_t *index,
                          float *gx) {
  int64_t o = 0, plane = p->in[0] * p->in[1];
  memset(gx, 0, (size_t)(n_planes * plane) * sizeof *gx);
  for (int64_t n = 0; n < n_planes; n++, gx += plane)
    for (int64_t h = 0; h < p->out[0]; h++)
      for (int64_t w = 0; w < p->out[1]; w++, o++) {
        int64_t best = index ? index[o] : window_max(p, x + n * plane, h, w);
        if (best >= 0 && best < plane) gx[best] += gy[o];
      }
}
