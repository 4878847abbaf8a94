/* Layer, group and root-mean-square norms, and their derivatives.
 *
 * All are rows of `size` elements normalised on their own: xh = (x - mean) * rstd, y = xh * w + b. Layer and rms norm
 * take w and b along the row, group norm one a channel. Backward (operators.md section 4), with gh = g * w:
 *     gx = rstd * (gh - mean(gh) - xh * mean(gh * xh)),  gw = sum(g * xh),  gb = sum(g)
 * where rms norm leaves out the mean terms. Statistics are stored in double and stored in the results' dtype. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>

typedef struct rows_of {
  rk_array_t x;
  int64_t n_rows, size;
  int32_t lead; /* dimensions before the normalised ones */
  double *mean, *rstd;
} rows_of_t;

/* Rows are the last dimensions named by the list argument. */
static aot_status_t read_rows(rk_ctx_t *c, uint32_t x_arg, uint32_t shape_arg, rows_of_t *r) {
  const int64_t *shape;
  uint32_t n = rk_list(c, shape_arg, &shape);
  AOT_TRY(rk_need_f(c, x_arg, &r->x));
  RK_CHECK(c, (int32_t)n <= r->x.rank && n > 0, "%u normalised dimensions for rank %d", n, r->x.rank);
  r->lead = r->x.rank - (int32_t)n;
  r->size = 1;
  for (uint32_t d = 0; d < n; d++) {
    RK_CHECK(c, r->x.sizes[r->lead + (int32_t)d] == shape[d], "normalised size %lld is not the input's %lld",
             (long long)shape[d], (long long)r->x.sizes[r->lead + (int32_t)d]);
    r->size *= shape[d];
  }
  r->n_rows = 1;
  for (int32_t d = 0; d < r->lead; d++) r->n_rows *= r->x.sizes[d];
  RK_SCRATCH(c, r->n_rows, r->mean);
  RK_SCRATCH(c, r->n_rows, r->rstd);
  return AOT_OK;
}

/* centred: layer and group norm; otherwise rms norm (mean stays 0) */
static void statistics(rows_of_t *r, double eps, int centred) {
  for (int64_t k = 0; k < r->n_rows; k++) {
    const double *x = r->x.f + k * r->size;
    double sum = 0, squares = 0;
    for (int64_t e = 0; centred && e < r->size; e++) sum += x[e];
    r->mean[k] = !centred ? 0 : isinf(sum) ? NAN : sum / (double)r->size; /* PyTorch's running mean has inf - inf */
    for (int64_t e = 0; e < r->size; e++) squares += (x[e] - r->mean[k]) * (x[e] - r->mean[k]);
    r->rstd[k] = 1 / sqrt(squares / (double)r->size + eps);
  }
}

/* Sizes of mean and rstd: leading dimensions stored, normalised ones 1. */
static aot_status_t put_row_numbers(rk_ctx_t *c, uint32_t result, const rows_of_t *r, double *v) {
  rk_array_t a = r->x;
  for (int32_t d = r->lead; d < a.rank; d++) a.sizes[d] = 1;
  a.f = v;
  return rk_put_f(c, result, &a);
}

static aot_status_t read_affine(rk_ctx_t *c, uint32_t arg, int64_t size, rk_array_t *out) {
  AOT_TRY(rk_get_f(c, arg, out));
  RK_CHECK(c, !out->f || out->numel == size, "argument %u has %lld elements, not %lld", arg, (long long)out->numel,
           (long long)size);
  return AOT_OK;
}

static aot_status_t apply_rows(rk_ctx_t *c, const rows_of_t *r, const rk_array_t *w, const rk_array_t *b) {
  rk_array_t y;
  AOT_TRY(rk_new_f(c, r->x.rank, r->x.sizes, &y));
  for (int64_t k = 0; k < r->n_rows; k++)
    for (int64_t e = 0; e < r->size; e++) {
      double v = (r->x.f[k * r->size + e] - r->mean[k]) * r->rstd[k];
      if (w->f) v *= w->f[e];
      if (b->f) v += b->f[e];
      y.f[k * r->size + e] = v;
    }
  return rk_put_f(c, 0, &y);
}

/* layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable); the native form also gives mean and rstd */
static aot_status_t layer_norm(rk_ctx_t *c) {
  rows_of_t r;
  rk_array_t w, b;
  AOT_TRY(read_rows(c, 0, 1, &r));
  AOT_TRY(read_affine(c, 2, r.size, &w));
  AOT_TRY(read_affine(c, 3, r.size, &b));
  statistics(&r, rk_float(c, 4, 1e-5), 1);
  AOT_TRY(put_row_numbers(c, 1, &r, r.mean));
  AOT_TRY(put_row_numbers(c, 2, &r, r.rstd));
  return apply_rows(c, &r, &w, &b);
}

/* The epsilon of None is that of the computing dtype: float for half and bfloat16 input too. */
static double rms_eps(const rk_ctx_t *c, uint32_t arg, int32_t dtype) {
  return rk_float(c, arg, rk_dtype_eps(dtype == AOT_F64 ? AOT_F64 : AOT_F32));
}

/* rms_norm(input, normalized_shape, weight, eps); _fused_rms_norm also gives rstd */
static aot_status_t rms_norm(rk_ctx_t *c) {
  rows_of_t r;
  rk_array_t w, none = {0};
  AOT_TRY(read_rows(c, 0, 1, &r));
  AOT_TRY(read_affine(c, 2, r.size, &w));
  statistics(&r, rms_eps(c, 3, r.x.dtype), 0);
  AOT_TRY(put_row_numbers(c, 1, &r, r.rstd));
  return apply_rows(c, &r, &w, &none);
}

static aot_status_t rows_backward(rk_ctx_t *c, const rows_of_t *r, const rk_array_t *g, const rk_array_t *w,
                                  int centred, const rk_array_t *affine) {
  rk_array_t gx, gw, gb;
  RK_CHECK(c, rk_same_sizes(g, &r->x), "gradient and input differ in shape");
  AOT_TRY(rk_new_f(c, r->x.rank, r->x.sizes, &gx));
  AOT_TRY(rk_new_f(c, affine->rank, affine->sizes, &gw));
  AOT_TRY(rk_new_f(c, affine->rank, affine->sizes, &gb));
  for (int64_t k = 0; k < r->n_rows; k++) {
    const double *x = r->x.f + k * r->size, *up = g->f + k * r->size;
    double sum = 0, dot = 0, n = (double)r->size;
    for (int64_t e = 0; e < r->size; e++) {
      double xh = (x[e] - r->mean[k]) * r->rstd[k], gh = up[e] * (w->f ? w->f[e] : 1);
      sum += centred ? gh : 0;
      dot += gh * xh;
      gw.f[e] += up[e] * xh;
      gb.f[e] += up[e];
    }
    for (int64_t e = 0; e < r->size; e++) {
      double xh = (x[e] - r->mean[k]) * r->rstd[k], gh = up[e] * (w->f ? w->f[e] : 1);
      gx.f[k * r->size + e] = r->rstd[k] * (gh - sum / n - xh * dot / n);
    }
  }
  AOT_TRY(rk_put_f(c, 0, &gx));
  AOT_TRY(rk_put_f(c, 1, &gw));
  return centred ? rk_put_f(c, 2, &gb) : AOT_OK;
}

/* The shape of weight and bias gradients: the normalised dimensions. */
static rk_array_t affine_shape(const rows_of_t *r) {
  rk_array_t a = {0};
  a.rank = r->x.rank - r->lead;
  for (int32_t d = 0; d < a.rank; d++) a.sizes[d] = r->x.sizes[r->lead + d];
  return a;
}

static aot_status_t take_statistics(rk_ctx_t *c, rows_of_t *r, uint32_t mean_arg, uint32_t rstd_arg) {
  rk_array_t mean, rstd;
  AOT_TRY(rk_need_f(c, rstd_arg, &rstd));
  RK_CHECK(c, rstd.numel == r->n_rows, "rstd has %lld elements, not %lld", (long long)rstd.numel, (long long)r->n_rows);
  r->rstd = rstd.f;
  if (mean_arg == rstd_arg) return AOT_OK;
  AOT_TRY(rk_need_f(c, mean_arg, &mean));
  RK_CHECK(c, mean.numel == r->n_rows, "mean has %lld elements, not %lld", (long long)mean.numel, (long long)r->n_rows);
  r->mean = mean.f;
  return AOT_OK;
}

/* native_layer_norm_backward(grad, input, normalized_shape, mean, rstd, weight, bias, output_mask) */
static aot_status_t native_layer_norm_backward(rk_ctx_t *c) {
  rows_of_t r;
  rk_array_t g, w, shape;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_rows(c, 1, 2, &r));
  AOT_TRY(take_statistics(c, &r, 3, 4));
  AOT_TRY(read_affine(c, 5, r.size, &w));
  shape = affine_shape(&r);
  return rows_backward(c, &r, &g, &w, 1, &shape);
}

/* aot.layer_norm_backward(grad, input, normalized_shape, weight, bias, eps): statistics made again */
static aot_status_t layer_norm_backward(rk_ctx_t *c) {
  rows_of_t r;
  rk_array_t g, w, shape;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_rows(c, 1, 2, &r));
  AOT_TRY(read_affine(c, 3, r.size, &w));
  statistics(&r, rk_float(c, 5, 1e-5), 1);
  shape = affine_shape(&r);
  return rows_backward(c, &r, &g, &w, 1, &shape);
}

/* aot.rms_norm_backward(grad, input, normalized_shape, weight, eps) */
static aot_status_t rms_norm_backward(rk_ctx_t *c) {
  rows_of_t r;
  rk_array_t g, w, shape;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_rows(c, 1, 2, &r));
  AOT_TRY(read_affine(c, 3, r.size, &w));
  statistics(&r, rms_eps(c, 4, r.x.dtype), 0);
  shape = affine_shape(&r);
  return rows_backward(c, &r, &g, &w, 0, &shape);
}

/* _fused_rms_norm_backward(grad, input, normalized_shape, rstd, weight, output_mask) */
static aot_status_t fused_rms_norm_backward(rk_ctx_t *c) {
  rows_of_t r;
  rk_array_t g, w, shape;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_rows(c, 1, 2, &r));
  AOT_TRY(take_statistics(c, &r, 3, 3));
  AOT_TRY(read_affine(c, 4, r.size, &w));
  shape = affine_shape(&r);
  return rows_backward(c, &r, &g, &w, 0, &shape);
}

/* ---- group norm: a row is one group of channels of one sample ---- */

typedef struct groups_of {
  rows_of_t r;
  int64_t samples, channels, space, groups;
} groups_of_t;

static aot_status_t read_groups(rk_ctx_t *c, uint32_t x_arg, int64_t groups, groups_of_t *g) {
  AOT_TRY(rk_need_f(c, x_arg, &g->r.x));
  RK_CHECK(c, g->r.x.rank >= 2, "rank %d is less than 2", g->r.x.rank);
  g->samples = g->r.x.sizes[0];
  g->channels = g->r.x.sizes[1];
  g->groups = groups;
  RK_CHECK(c, groups > 0 && g->channels % groups == 0, "%lld channels do not divide by %lld groups",
           (long long)g->channels, (long long)groups);
  g->space = 1;
  for (int32_t d = 2; d < g->r.x.rank; d++) g->space *= g->r.x.sizes[d];
  g->r.n_rows = g->samples * groups;
  g->r.size = g->channels / groups * g->space;
  RK_SCRATCH(c, g->r.n_rows, g->r.mean);
  RK_SCRATCH(c, g->r.n_rows, g->r.rstd);
  return AOT_OK;
}

static aot_status_t group_norm_of(rk_ctx_t *c, groups_of_t *g, uint32_t w_arg, uint32_t b_arg, double eps) {
  rk_array_t w, b, y, s = {0};
  AOT_TRY(read_affine(c, w_arg, g->channels, &w));
  AOT_TRY(read_affine(c, b_arg, g->channels, &b));
  statistics(&g->r, eps, 1);
  AOT_TRY(rk_new_f(c, g->r.x.rank, g->r.x.sizes, &y));
  for (int64_t e = 0; e < y.numel; e++) {
    int64_t row = e / g->r.size, channel = e / g->space % g->channels;
    double v = (g->r.x.f[e] - g->r.mean[row]) * g->r.rstd[row];
    if (w.f) v *= w.f[channel];
    if (b.f) v += b.f[channel];
    y.f[e] = v;
  }
  s.rank = 2;
  s.sizes[0] = g->samples;
  s.sizes[1] = g->groups;
  s.f = g->r.mean;
  AOT_TRY(rk_put_f(c, 1, &s));
  s.f = g->r.rstd;
  AOT_TRY(rk_put_f(c, 2, &s));
  return rk_put_f(c, 0, &y);
}

/* native_group_norm(input, weight, bias, N, C, HxW, group, eps) */
static aot_status_t native_group_norm(rk_ctx_t *c) {
  groups_of_t g;
  AOT_TRY(read_groups(c, 0, rk_int(c, 6, 1), &g));
  return group_norm_of(c, &g, 1, 2, rk_float(c, 7, 1e-5));
}

/* group_norm(input, num_groups, weight, bias, eps, cudnn_enabled) */
static aot_status_t group_norm(rk_ctx_t *c) {
  groups_of_t g;
  AOT_TRY(read_groups(c, 0, rk_int(c, 1, 1), &g));
  return group_norm_of(c, &g, 2, 3, rk_float(c, 4, 1e-5));
}

/* native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group, output_mask) */
static aot_status_t native_group_norm_backward(rk_ctx_t *c) {
  groups_of_t g;
  rk_array_t up, w, gx, gw, gb;
  AOT_TRY(rk_need_f(c, 0, &up));
  AOT_TRY(read_groups(c, 1, rk_int(c, 8, 1), &g));
  AOT_TRY(take_statistics(c, &g.r, 2, 3));
  AOT_TRY(read_affine(c, 4, g.channels, &w));
  RK_CHECK(c, rk_same_sizes(&up, &g.r.x), "gradient and input differ in shape");
  AOT_TRY(rk_new_f(c, up.rank, up.sizes, &gx));
  AOT_TRY(rk_new_f(c, 1, &g.channels, &gw));
  AOT_TRY(rk_new_f(c, 1, &g.channels, &gb));
  for (int64_t row = 0; row < g.r.n_rows; row++) {
    double sum = 0, dot = 0, n = (double)g.r.size;
    for (int pass = 0; pass < 2; pass++)
      for (int64_t e = row * g.r.size; e < (row + 1) * g.r.size; e++) {
        int64_t channel = e / g.space % g.channels;
        double xh = (g.r.x.f[e] - g.r.mean[row]) * g.r.rstd[row], gh = up.f[e] * (w.f ? w.f[channel] : 1);
        if (pass == 1) {
          gx.f[e] = g.r.rstd[row] * (gh - sum / n - xh * dot / n);
          continue;
        }
        sum += gh;
        dot += gh * xh;
        gw.f[channel] += up.f[e] * xh;
        gb.f[channel] += up.f[e];
      }
  }
  AOT_TRY(rk_put_f(c, 0, &gx));
  AOT_TRY(rk_put_f(c, 1, &gw));
  return rk_put_f(c, 2, &gb);
}

#define ROW(name, fn)                                                                                                  \
  { name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("aten.layer_norm.default", layer_norm),
    ROW("aten.native_layer_norm.default", layer_norm),
    ROW("aten.native_layer_norm_backward.default", native_layer_norm_backward),
    ROW("aot.layer_norm_backward", layer_norm_backward),
    ROW("aot.layer_norm_backward.default", layer_norm_backward),
    ROW("aten.rms_norm.default", rms_norm),
    ROW("aten._fused_rms_norm.default", rms_norm),
    ROW("aten._fused_rms_norm_backward.default", fused_rms_norm_backward),
    ROW("aot.rms_norm_backward", rms_norm_backward),
    ROW("aot.rms_norm_backward.default", rms_norm_backward),
    ROW("aten.group_norm.default", group_norm),
    ROW("aten.native_group_norm.default", native_group_norm),
    ROW("aten.native_group_norm_backward.default", native_group_norm_backward),
};
const rk_family_t rk_family_norm = RK_FAMILY(rows);
