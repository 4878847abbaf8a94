#include "conv_kernels.h"

#include "common/blas/openblas.h"
#include <string.h>

static int64_t positions(const bc_conv_t *c) { return c->out[0] * c->out[1]; }
static int64_t window(const bc_conv_t *c) { return c->c_in / c->groups * c->kernel[0] * c->kernel[1]; }

static int is_plain(const bc_conv_t *c) {
  return c->kernel[0] == 1 && c->kernel[1] == 1 && c->stride[0] == 1 && c->stride[1] == 1 && !c->pad[0] && !c->pad[1];
}

uint64_t bc_conv_work(const bc_conv_t *c) { return (uint64_t)window(c) * (uint64_t)positions(c); }

/* The outputs [*begin, *end) of one line whose input position lies inside [0, size). */
static void inside(int64_t size, int64_t n_out, int64_t stride, int64_t shift, int64_t *begin, int64_t *end) {
  *begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  *end = size - shift <= 0 ? 0 : (size - shift + stride - 1) / stride;
  if (*end > n_out) *end = n_out;
  if (*begin > *end) *begin = *end;
}

/* One row of columns: channel plane x, window position (kh, kw). */
static void gather(const bc_conv_t *c, const float *x, int64_t kh, int64_t kw, float *row) {
  int64_t sh = kh * c->dilation[0] - c->pad[0], sw = kw * c->dilation[1] - c->pad[1], h0, h1, w0, w1;
  inside(c->in[0], c->out[0], c->stride[0], sh, &h0, &h1);
  inside(c->in[1], c->out[1], c->stride[1], sw, &w0, &w1);
  memset(row, 0, (size_t)positions(c) * sizeof *row);
  for (int64_t h = h0; h < h1; h++) {
    const float *line = x + (h * c->stride[0] + sh) * c->in[1] + sw;
    float *to = row + h * c->out[1];
    if (c->stride[1] == 1) memcpy(to + w0, line + w0, (size_t)(w1 - w0) * sizeof *to);
    else
      for (int64_t w = w0; w < w1; w++) to[w] = line[w * c->stride[1]];
  }
}

static void scatter(const bc_conv_t *c, const float *row, int64_t kh, int64_t kw, float *x) {
  int64_t sh = kh * c->dilation[0] - c->pad[0], sw = kw * c->dilation[1] - c->pad[1], h0, h1, w0, w1;
  inside(c->in[0], c->out[0], c->stride[0], sh, &h0, &h1);
  inside(c->in[1], c->out[1], c->stride[1], sw, &w0, &w1);
  for (int64_t h = h0; h < h1; h++) {
    int64_t line = (h * c->stride[0] + sh) * c->in[1] + sw;
    const float *from = row + h * c->out[1];
    for (int64_t w = w0; w < w1; w++) x[line + w * c->stride[1]] += from[w];
  }
}

static const float *columns(const bc_conv_t *c, const float *x, float *work) {
  int64_t row = 0, n = c->c_in / c->groups;
  if (is_plain(c)) return x;
  for (int64_t k = 0; k < n; k++)
    for (int64_t kh = 0; kh < c->kernel[0]; kh++)
      for (int64_t kw = 0; kw < c->kernel[1]; kw++)
        gather(c, x + k * c->in[0] * c->in[1], kh, kw, work + row++ * positions(c));
  return work;
}

static void add_columns(const bc_conv_t *c, const float *work, float *gx) {
  int64_t row = 0, n = c->c_in / c->groups;
  for (int64_t k = 0; k < n; k++)
    for (int64_t kh = 0; kh < c->kernel[0]; kh++)
      for (int64_t kw = 0; kw < c->kernel[1]; kw++)
        scatter(c, work + row++ * positions(c), kh, kw, gx + k * c->in[0] * c->in[1]);
}

/* Where image n and group g begin. */
typedef struct place {
  int64_t x, w, y;
} place_t;
static place_t place(const bc_conv_t *c, int64_t n, int64_t g) {
  int64_t ci = c->c_in / c->groups, co = c->c_out / c->groups;
  return (place_t){(n * c->c_in + g * ci) * c->in[0] * c->in[1], g * co * window(c),
                   (n * c->c_out + g * co) * positions(c)};
}

void bc_conv_forward(const bc_conv_t *c, const float *x, const float *w, const float *b, float *y, float *work) {
  blasint co = (blasint)(c->c_out / c->groups), p = (blasint)positions(c), k = (blasint)window(c);
  for (int64_t r = 0; b && r < c->n_batch * c->c_out; r++)
    for (int64_t i = 0; i < p; i++) y[r * p + i] = b[r % c->c_out];
  for (int64_t n = 0; n < c->n_batch; n++)
    for (int64_t g = 0; g < c->groups; g++) {
      place_t at = place(c, n, g);
      const float *cols = columns(c, x + at.x, work);
      bl_library()->cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, co, p, k, 1, w + at.w, k, cols, p, b ? 1 : 0,
                                y + at.y, p);
    }
}

static void input_gradient(const bc_conv_t *c, const float *gy, const float *w, place_t at, float *gx, float *work) {
  blasint co = (blasint)(c->c_out / c->groups), p = (blasint)positions(c), k = (blasint)window(c);
  float *into = is_plain(c) ? gx + at.x : work;
  bl_library()->cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, p, co, 1, w + at.w, k, gy + at.y, p, 0, into,
                            p);
  if (!is_plain(c)) add_columns(c, work, gx + at.x);
}

void bc_conv_backward(const bc_conv_t *c, const float *gy, const float *x, const float *w, float *gx, float *gw,
                      float *work) {
  blasint co = (blasint)(c->c_out / c->groups), p = (blasint)positions(c), k = (blasint)window(c);
  if (gx) memset(gx, 0, (size_t)(c->n_batch * c->c_in * c->in[0] * c->in[1]) * sizeof *gx);
  for (int64_t n = 0; n < c->n_batch; n++)
    for (int64_t g = 0; g < c->groups; g++) {
      place_t at = place(c, n, g);
      if (gw) {
        const float *cols = columns(c, x + at.x, work);
        bl_library()->cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, co, k, p, 1, gy + at.y, p, cols, p,
                                  n ? 1 : 0, gw + at.w, k);
      }
      if (gx) input_gradient(c, gy, w, at, gx, work);
    }
}
