#include "deform_conv.h"

#include <math.h>

/* One moved sampling point of one kernel element, for one offset group. */
typedef struct point {
  int64_t at[4];                    /* elements of a plane; -1: outside */
  double weight[4];                 /* of linear interpolation */
  double dy[4], dx[4];              /* derivatives of those by the point's coordinates */
  int64_t offset_y, offset_x, mask; /* elements of those tensors */
  double share;                     /* the mask's value */
} point_t;

static point_t point_of(const tv_deform_t *d, int64_t image, int64_t group, int64_t tap, int64_t oy, int64_t ox) {
  const int64_t plane = d->out_y * d->out_x, taps = d->kernel_y * d->kernel_x, here = oy * d->out_x + ox;
  point_t p = {
      .offset_y = ((image * d->offset_groups + group) * 2 * taps + 2 * tap) * plane + here,
      .mask = ((image * d->offset_groups + group) * taps + tap) * plane + here,
  };
  p.offset_x = p.offset_y + plane;
  p.share = d->mask ? d->mask[p.mask] : 1;
  const double y = (double)(oy * d->stride_y - d->pad_y + tap / d->kernel_x * d->dilation_y) + d->offset[p.offset_y];
  const double x = (double)(ox * d->stride_x - d->pad_x + tap % d->kernel_x * d->dilation_x) + d->offset[p.offset_x];
  const int inside = y > -1 && y < (double)d->height && x > -1 && x < (double)d->width;
  const int64_t y0 = inside ? (int64_t)floor(y) : 0, x0 = inside ? (int64_t)floor(x) : 0;
  const double fy = y - (double)y0, fx = x - (double)x0;
  for (int i = 0; i < 4; i++) {
    const int64_t cy = y0 + i / 2, cx = x0 + i % 2;
    const double wy = i / 2 ? fy : 1 - fy, wx = i % 2 ? fx : 1 - fx;
    p.at[i] = inside && cy >= 0 && cy < d->height && cx >= 0 && cx < d->width ? cy * d->width + cx : -1;
    p.weight[i] = wy * wx;
    p.dy[i] = (i / 2 ? 1 : -1) * wx;
    p.dx[i] = (i % 2 ? 1 : -1) * wy;
  }
  return p;
}

static double sample(const point_t *p, const double *weights, const double *plane) {
  double sum = 0;
  for (int i = 0; i < 4; i++)
    if (p->at[i] >= 0) sum += weights[i] * plane[p->at[i]];
  return sum;
}

void tv_deform_conv(const tv_deform_t *d, double *output) {
  const int64_t plane = d->out_y * d->out_x, taps = d->kernel_y * d->kernel_x, per_group = d->channels / d->groups;
  for (int64_t image = 0; image < d->batch; image++)
    for (int64_t f = 0; f < d->filters; f++)
      for (int64_t here = 0; here < plane; here++) output[(image * d->filters + f) * plane + here] = d->bias[f];
  for (int64_t image = 0; image < d->batch; image++)
    for (int64_t here = 0; here < plane; here++)
      for (int64_t og = 0; og < d->offset_groups; og++)
        for (int64_t tap = 0; tap < taps; tap++) {
          const point_t p = point_of(d, image, og, tap, here / d->out_x, here % d->out_x);
          const int64_t shared = d->channels / d->offset_groups; /* channels that move alike */
          for (int64_t c = og * shared; c < (og + 1) * shared; c++) {
            const double v =
                p.share * sample(&p, p.weight, d->input + (image * d->channels + c) * d->height * d->width);
            const int64_t first = c / per_group * (d->filters / d->groups), end = first + d->filters / d->groups;
            for (int64_t f = first; f < end; f++)
              output[(image * d->filters + f) * plane + here] +=
                  v * d->weight[(f * per_group + c % per_group) * taps + tap];
          }
        }
}

void tv_deform_conv_backward(const tv_deform_t *d, const double *output_gradient, const tv_deform_gradients_t *g) {
  const int64_t plane = d->out_y * d->out_x, taps = d->kernel_y * d->kernel_x, per_group = d->channels / d->groups;
  for (int64_t image = 0; image < d->batch; image++)
    for (int64_t f = 0; f < d->filters; f++)
      for (int64_t here = 0; here < plane; here++)
        g->bias[f] += output_gradient[(image * d->filters + f) * plane + here];
  for (int64_t image = 0; image < d->batch; image++)
    for (int64_t here = 0; here < plane; here++)
      for (int64_t og = 0; og < d->offset_groups; og++)
        for (int64_t tap = 0; tap < taps; tap++) {
          const point_t p = point_of(d, image, og, tap, here / d->out_x, here % d->out_x);
          const int64_t shared = d->channels / d->offset_groups;
          for (int64_t c = og * shared; c < (og + 1) * shared; c++) {
            const int64_t at = (image * d->channels + c) * d->height * d->width;
            const int64_t first = c / per_group * (d->filters / d->groups), end = first + d->filters / d->groups;
            const double v = sample(&p, p.weight, d->input + at);
            double column = 0; /* gradient of the masked sample */
            for (int64_t f = first; f < end; f++) {
              const double out = output_gradient[(image * d->filters + f) * plane + here];
              const int64_t w = (f * per_group + c % per_group) * taps + tap;
              column += out * d->weight[w];
              g->weight[w] += out * p.share * v;
            }
            for (int i = 0; i < 4; i++)
              if (p.at[i] >= 0) g->input[at + p.at[i]] += column * p.share * p.weight[i];
            g->offset[p.offset_y] += column * p.share * sample(&p, p.dy, d->input + at);
            g->offset[p.offset_x] += column * p.share * sample(&p, p.dx, d->input + at);
            if (g->mask) g->mask[p.mask] += column * v;
          }
        }
}
