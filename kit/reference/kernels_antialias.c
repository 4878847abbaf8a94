/* Resizing images smoothly: bilinear and bicubic with antialiasing (PyTorch's UpSampleKernel.cpp, after Pillow's
 * resample).
 *
 * Output place i is centered at (i + 0.5) s, s input elements wide, and reads what a filter of that width covers: a
 * triangle of radius 1, or Keys' cubic of 1981 with a = -0.5 and radius 2, stretched by s where the image shrinks.
 * Weights add up to 1. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* What one output place reads of its dimension. */
typedef struct reads {
  int64_t first, n;
  double *weight;
} reads_t;

typedef struct smooth {
  int64_t planes, in[2], out[2];
  reads_t *of[2]; /* of every output place, rows and columns */
} smooth_t;

static double triangle(double x) {
  x = fabs(x);
  return x < 1 ? 1 - x : 0;
}

static double cubic(double x) {
  const double a = -0.5;
  x = fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? a * (((x - 5) * x + 8) * x - 4) : 0;
}

static aot_status_t weigh(rk_ctx_t *c, double s, int64_t in, int64_t i, int is_cubic, reads_t *r) {
  const double wide = s > 1 ? s : 1, radius = (is_cubic ? 2 : 1) * wide, center = s * ((double)i + 0.5);
  int64_t end = (int64_t)(center + radius + 0.5);
  double total = 0;
  r->first = (int64_t)fmax(center - radius + 0.5, 0);
  if (end > in) end = in;
  r->n = end > r->first ? end - r->first : 0;
  RK_SCRATCH(c, r->n, r->weight);
  for (int64_t k = 0; k < r->n; k++) {
    const double x = ((double)(k + r->first) - center + 0.5) / wide;
    total += r->weight[k] = is_cubic ? cubic(x) : triangle(x);
  }
  for (int64_t k = 0; k < r->n && total != 0; k++) r->weight[k] /= total;
  return AOT_OK;
}

/* The last two of sizes are the input's; arguments from `at`: align_corners, scales_h, scales_w. */
static aot_status_t plan(rk_ctx_t *c, const int64_t *sizes, const int64_t *out, uint32_t at, int is_cubic,
                         smooth_t *p) {
  p->planes = sizes[0] * sizes[1];
  for (uint32_t d = 0; d < 2; d++) {
    const double factor = rk_float(c, at + 1 + d, 0);
    double s;
    p->in[d] = sizes[2 + d];
    p->out[d] = out[d];
    RK_CHECK(c, p->in[d] > 0 && p->out[d] > 0, "input and output sizes must be positive");
    if (rk_bool(c, at, 0)) s = p->out[d] > 1 ? (double)(p->in[d] - 1) / (double)(p->out[d] - 1) : 0;
    else s = factor > 0 ? 1 / factor : (double)p->in[d] / (double)p->out[d];
    RK_SCRATCH(c, p->out[d], p->of[d]);
    for (int64_t i = 0; i < p->out[d]; i++) AOT_TRY(weigh(c, s, p->in[d], i, is_cubic, &p->of[d][i]));
  }
  return AOT_OK;
}

/* to += the weighted elements of from; back: the weights are applied the other way. */
static void apply(const smooth_t *p, const double *from, double *to, int back) {
  const int64_t n_in = p->in[0] * p->in[1], n_out = p->out[0] * p->out[1];
  for (int64_t plane = 0; plane < p->planes; plane++)
    for (int64_t o = 0; o < n_out; o++) {
      const reads_t *rows = &p->of[0][o / p->out[1]], *columns = &p->of[1][o % p->out[1]];
      for (int64_t y = 0; y < rows->n; y++)
        for (int64_t x = 0; x < columns->n; x++) {
          const int64_t i = plane * n_in + (rows->first + y) * p->in[1] + columns->first + x;
          const double w = rows->weight[y] * columns->weight[x];
          if (back) to[i] += w * from[plane * n_out + o];
          else to[plane * n_out + o] += w * from[i];
        }
    }
}

/* (self, output_size, align_corners, scales_h, scales_w) */
static aot_status_t forward(rk_ctx_t *c, int is_cubic) {
  const rk_tensor_t *t;
  rk_array_t x, y;
  smooth_t p = {0};
  int64_t sizes[4];
  AOT_TRY(rk_need_tensor(c, 0, &t));
  RK_CHECK(c, t->rank == 4 && !rk_is_int(t->dtype), "images must be floating and of rank 4, not %d", t->rank);
  AOT_TRY(rk_dense_f(c, t, &x));
  memcpy(sizes, x.sizes, sizeof sizes);
  AOT_TRY(rk_ints(c, 1, 2, NULL, sizes + 2));
  AOT_TRY(plan(c, x.sizes, sizes + 2, 2, is_cubic, &p));
  AOT_TRY(rk_new_f(c, 4, sizes, &y));
  apply(&p, x.f, y.f, 0);
  return rk_put_f(c, 0, &y);
}
static aot_status_t bilinear(rk_ctx_t *c) { return forward(c, 0); }
static aot_status_t bicubic(rk_ctx_t *c) { return forward(c, 1); }

/* (grad_output, output_size, input_size, align_corners, scales_h, scales_w) */
static aot_status_t backward(rk_ctx_t *c, int is_cubic) {
  rk_array_t g, dx;
  smooth_t p = {0};
  const int64_t *sizes;
  int64_t out[2];
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_ints(c, 1, 2, NULL, out));
  RK_CHECK(c, rk_list(c, 2, &sizes) == 4 && g.rank == 4, "gradient and input_size must be of rank 4");
  AOT_TRY(plan(c, sizes, out, 3, is_cubic, &p));
  RK_CHECK(c, g.numel == p.planes * out[0] * out[1], "the gradient does not fit the output");
  AOT_TRY(rk_new_f(c, 4, sizes, &dx));
  apply(&p, g.f, dx.f, 1);
  return rk_put_f(c, 0, &dx);
}
static aot_status_t bilinear_backward(rk_ctx_t *c) { return backward(c, 0); }
static aot_status_t bicubic_backward(rk_ctx_t *c) { return backward(c, 1); }

#define ROW(name, fn)                                                                                                  \
  { "aten." name ".default", fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("_upsample_bilinear2d_aa", bilinear),
    ROW("_upsample_bicubic2d_aa", bicubic),
    ROW("_upsample_bilinear2d_aa_backward", bilinear_backward),
    ROW("_upsample_bicubic2d_aa_backward", bicubic_backward),
};
const rk_family_t rk_family_antialias = RK_FAMILY(rows);
