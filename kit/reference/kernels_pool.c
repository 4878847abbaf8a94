/* Pooling of 1 to 3 spatial dimensions, max and average, sliding and adaptive, and the derivatives.
 *
 * A window is a box [start, end) with a step in each dimension; sliding windows come from kernel, stride, padding,
 * dilation, adaptive ones from floor(i*I/O) .. ceil((i+1)*I/O). Everything else is one loop over output places and the
 * places of their window. Max pooling keeps the first of equal elements, and NaN wins. Its indices are flat within a
 * channel's plane. Leading dimensions (samples, channels) are folded together. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

#define POOL_DIMS 3

typedef struct pool {
  int32_t dims;
  int adaptive, ceil_mode, count_include_pad;
  int64_t divisor; /* 0: the window's size */
  int64_t kernel[POOL_DIMS], stride[POOL_DIMS], padding[POOL_DIMS], dilation[POOL_DIMS];
  int64_t in[POOL_DIMS], out[POOL_DIMS], planes, n_in, n_out;
} pool_t;

typedef struct window {
  int64_t start[POOL_DIMS], end[POOL_DIMS], step[POOL_DIMS], count;
} window_t;

static window_t window_at(const pool_t *p, const int64_t *place) {
  window_t w;
  w.count = 1;
  for (int32_t d = 0; d < p->dims; d++) {
    if (p->adaptive) {
      w.start[d] = place[d] * p->in[d] / p->out[d];
      w.end[d] = ((place[d] + 1) * p->in[d] + p->out[d] - 1) / p->out[d];
      w.step[d] = 1;
      w.count *= w.end[d] - w.start[d];
    } else {
      int64_t limit;
      w.start[d] = place[d] * p->stride[d] - p->padding[d];
      w.end[d] = w.start[d] + p->dilation[d] * (p->kernel[d] - 1) + 1;
      w.step[d] = p->dilation[d];
      limit = p->in[d] + p->padding[d];
      if (p->count_include_pad) w.count *= (w.end[d] < limit ? w.end[d] : limit) - w.start[d];
      while (w.start[d] < 0) w.start[d] += w.step[d];
      if (w.end[d] > p->in[d]) w.end[d] = p->in[d];
      if (!p->count_include_pad) w.count *= w.end[d] > w.start[d] ? w.end[d] - w.start[d] : 0;
    }
  }
  if (p->divisor) w.count = p->divisor;
  return w;
}

/* The places of a window one by one: *flat is the place in the plane. Start with at = start. */
static int window_next(const pool_t *p, const window_t *w, int64_t *at) {
  for (int32_t d = p->dims - 1; d >= 0; d--) {
    at[d] += w->step[d];
    if (at[d] < w->end[d]) return 1;
    at[d] = w->start[d];
  }
  return 0;
}
static int window_begin(const pool_t *p, const window_t *w, int64_t *at) {
  for (int32_t d = 0; d < p->dims; d++) {
    at[d] = w->start[d];
    if (w->start[d] >= w->end[d]) return 0;
  }
  return 1;
}

static aot_status_t split_input(rk_ctx_t *c, const rk_array_t *x, int32_t dims, pool_t *p) {
  RK_CHECK(c, x->rank > dims, "rank %d is too small", x->rank);
  p->dims = dims;
  p->planes = 1;
  p->n_in = 1;
  for (int32_t d = 0; d < x->rank - dims; d++) p->planes *= x->sizes[d];
  for (int32_t d = 0; d < dims; d++) p->n_in *= p->in[d] = x->sizes[x->rank - dims + d];
  return AOT_OK;
}

/* Places of a plane: none where there is no plane, however large it would be. */
static aot_status_t count_places(rk_ctx_t *c, pool_t *p) {
  p->n_out = p->planes > 0;
  for (int32_t d = 0; d < p->dims; d++)
    RK_CHECK(c, !__builtin_mul_overflow(p->n_out, p->out[d], &p->n_out), "the result is too large");
  return AOT_OK;
}

/* kernel, stride, padding and maybe dilation arguments from `first` on; output sizes by pool_out. */
static aot_status_t sliding(rk_ctx_t *c, const rk_array_t *x, int32_t dims, uint32_t first, int has_dilation,
                            int ceil_mode, pool_t *p) {
  static const int64_t ones[POOL_DIMS] = {1, 1, 1}, zeros[POOL_DIMS] = {0, 0, 0};
  uint32_t n = (uint32_t)dims;
  AOT_TRY(split_input(c, x, dims, p));
  AOT_TRY(rk_ints(c, first, n, NULL, p->kernel));
  AOT_TRY(rk_ints(c, first + 1, n, p->kernel, p->stride));
  AOT_TRY(rk_ints(c, first + 2, n, zeros, p->padding));
  memcpy(p->dilation, ones, sizeof ones);
  if (has_dilation) AOT_TRY(rk_ints(c, first + 3, n, ones, p->dilation));
  p->ceil_mode = ceil_mode;
  for (int32_t d = 0; d < dims; d++) {
    int64_t reach = p->dilation[d] * (p->kernel[d] - 1), room = p->in[d] + 2 * p->padding[d] - reach - 1;
    RK_CHECK(c, p->kernel[d] > 0 && p->stride[d] > 0 && p->dilation[d] > 0 && p->padding[d] >= 0,
             "kernel, stride and dilation must be positive");
    room += ceil_mode ? p->stride[d] - 1 : 0;
    RK_CHECK(c, room >= 0, "the kernel is larger than the padded input");
    p->out[d] = room / p->stride[d] + 1;
    if (ceil_mode && (p->out[d] - 1) * p->stride[d] >= p->in[d] + p->padding[d]) p->out[d]--;
  }
  return count_places(c, p);
}

static aot_status_t adaptive(rk_ctx_t *c, const rk_array_t *x, int32_t dims, const int64_t *out, pool_t *p) {
  AOT_TRY(split_input(c, x, dims, p));
  p->adaptive = 1;
  for (int32_t d = 0; d < dims; d++) {
    RK_CHECK(c, out[d] >= 0, "output size %lld is negative", (long long)out[d]);
    p->out[d] = out[d];
  }
  return count_places(c, p);
}

static void output_sizes(const pool_t *p, const rk_array_t *x, int64_t *sizes) {
  memcpy(sizes, x->sizes, sizeof x->sizes);
  for (int32_t d = 0; d < p->dims; d++) sizes[x->rank - p->dims + d] = p->out[d];
}

/* ---- max ---- */

static aot_status_t max_forward(rk_ctx_t *c, const pool_t *p, const rk_array_t *x) {
  rk_array_t y, where;
  int64_t sizes[AOT_MAX_RANK], place[POOL_DIMS] = {0}, at[POOL_DIMS];
  output_sizes(p, x, sizes);
  AOT_TRY(rk_new_f(c, x->rank, sizes, &y));
  AOT_TRY(rk_new_i(c, x->rank, sizes, &where));
  for (int64_t o = 0; o < p->n_out; o++, rk_advance(place, p->dims, p->out)) {
    window_t w = window_at(p, place);
    for (int64_t plane = 0; plane < p->planes; plane++) {
      const double *in = x->f + plane * p->n_in;
      double top = -INFINITY;
      int64_t best = -1;
      if (!window_begin(p, &w, at)) continue;
      do {
        int64_t flat = rk_flat(at, p->dims, p->in);
        if (best < 0 || in[flat] > top || in[flat] != in[flat]) {
          top = in[flat];
          best = flat;
        }
      } while (window_next(p, &w, at));
      y.f[plane * p->n_out + o] = top;
      where.i[plane * p->n_out + o] = best < 0 ? 0 : best;
    }
  }
  AOT_TRY(rk_put_f(c, 0, &y));
  return rk_put_i(c, 1, &where);
}

static aot_status_t max_pool(rk_ctx_t *c, int32_t dims) {
  rk_array_t x;
  pool_t p = {0};
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(sliding(c, &x, dims, 1, 1, rk_bool(c, 5, 0), &p));
  return max_forward(c, &p, &x);
}
static aot_status_t max_pool1d(rk_ctx_t *c) { return max_pool(c, 1); }
static aot_status_t max_pool2d(rk_ctx_t *c) { return max_pool(c, 2); }
static aot_status_t max_pool3d(rk_ctx_t *c) { return max_pool(c, 3); }

static aot_status_t adaptive_max_pool(rk_ctx_t *c, int32_t dims) {
  rk_array_t x;
  pool_t p = {0};
  int64_t out[POOL_DIMS];
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_ints(c, 1, (uint32_t)dims, NULL, out));
  AOT_TRY(adaptive(c, &x, dims, out, &p));
  return max_forward(c, &p, &x);
}
static aot_status_t adaptive_max_pool1d(rk_ctx_t *c) { return adaptive_max_pool(c, 1); }
static aot_status_t adaptive_max_pool2d(rk_ctx_t *c) { return adaptive_max_pool(c, 2); }
static aot_status_t adaptive_max_pool3d(rk_ctx_t *c) { return adaptive_max_pool(c, 3); }

/* The gradient goes to the recorded places. grad, self, .., indices at argument `indices_arg` */
static aot_status_t max_backward(rk_ctx_t *c, int32_t dims, uint32_t indices_arg) {
  rk_array_t g, x, where, gx;
  pool_t p = {0};
  int64_t per_plane;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &x));
  AOT_TRY(rk_need_i(c, indices_arg, &where));
  AOT_TRY(split_input(c, &x, dims, &p));
  RK_CHECK(c, rk_same_sizes(&g, &where) && (p.planes ? g.numel % p.planes == 0 : g.numel == 0),
           "gradient and indices do not fit");
  per_plane = p.planes ? g.numel / p.planes : 0;
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &gx));
  for (int64_t e = 0; e < g.numel; e++) {
    RK_CHECK(c, where.i[e] >= 0 && where.i[e] < p.n_in, "index %lld is out of range for a plane of %lld",
             (long long)where.i[e], (long long)p.n_in);
    gx.f[e / per_plane * p.n_in + where.i[e]] += g.f[e];
  }
  return rk_put_f(c, 0, &gx);
}
static aot_status_t max_pool2d_backward(rk_ctx_t *c) { return max_backward(c, 2, 7); }
static aot_status_t max_pool3d_backward(rk_ctx_t *c) { return max_backward(c, 3, 7); }
static aot_status_t adaptive_max_pool2d_backward(rk_ctx_t *c) { return max_backward(c, 2, 2); }
static aot_status_t adaptive_max_pool3d_backward(rk_ctx_t *c) { return max_backward(c, 3, 2); }
static aot_status_t fractional_max_pool2d_backward(rk_ctx_t *c) { return max_backward(c, 2, 4); }
static aot_status_t fractional_max_pool3d_backward(rk_ctx_t *c) { return max_backward(c, 3, 4); }

/* aot.max_pool2d_backward(grad, self, kernel, stride, padding, dilation, ceil_mode): places found again */
static aot_status_t max_pool2d_recompute(rk_ctx_t *c) {
  rk_array_t g, x, gx;
  pool_t p = {0};
  int64_t place[POOL_DIMS] = {0}, at[POOL_DIMS];
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &x));
  AOT_TRY(sliding(c, &x, 2, 2, 1, rk_bool(c, 6, 0), &p));
  RK_CHECK(c, g.numel == p.planes * p.n_out, "the gradient does not fit the output");
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &gx));
  for (int64_t o = 0; o < p.n_out; o++, rk_advance(place, 2, p.out)) {
    window_t w = window_at(&p, place);
    for (int64_t plane = 0; plane < p.planes; plane++) {
      const double *in = x.f + plane * p.n_in;
      int64_t best = -1;
      if (!window_begin(&p, &w, at)) continue;
      do {
        int64_t flat = rk_flat(at, 2, p.in);
        if (best < 0 || in[flat] > in[best] || in[flat] != in[flat]) best = flat;
      } while (window_next(&p, &w, at));
      gx.f[plane * p.n_in + best] += g.f[plane * p.n_out + o];
    }
  }
  return rk_put_f(c, 0, &gx);
}

/* max_unpool2d(self, indices, output_size), max_unpool3d(self, indices, output_size, stride, padding) */
static aot_status_t max_unpool(rk_ctx_t *c, int32_t dims) {
  rk_array_t x, where, y;
  pool_t p = {0};
  int64_t out[POOL_DIMS], sizes[AOT_MAX_RANK];
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_need_i(c, 1, &where));
  AOT_TRY(rk_ints(c, 2, (uint32_t)dims, NULL, out));
  AOT_TRY(adaptive(c, &x, dims, out, &p));
  RK_CHECK(c, rk_same_sizes(&x, &where), "input and indices differ in shape");
  output_sizes(&p, &x, sizes);
  AOT_TRY(rk_new_f(c, x.rank, sizes, &y));
  for (int64_t e = 0; e < x.numel; e++) {
    RK_CHECK(c, where.i[e] >= 0 && where.i[e] < p.n_out, "index %lld is out of range for a plane of %lld",
             (long long)where.i[e], (long long)p.n_out);
    y.f[e / p.n_in * p.n_out + where.i[e]] = x.f[e];
  }
  return rk_put_f(c, 0, &y);
}
static aot_status_t max_unpool2d(rk_ctx_t *c) { return max_unpool(c, 2); }
static aot_status_t max_unpool3d(rk_ctx_t *c) { return max_unpool(c, 3); }

/* fractional_max_pool2d, 3d(self, kernel, output_size, random_samples): window starts at pseudo-random steps (Graham
 * 2014); samples are [N, C, dims], for 2d in the order width, height. Single precision decides where windows start. */
static int64_t fractional_start(int64_t i, int64_t in, int64_t out, int64_t kernel, float sample) {
  float alpha = out > 1 ? (float)(in - kernel) / (float)(out - 1) : 0;
  if (i == out - 1) return in - kernel;
  return (int64_t)(((float)i + sample) * alpha) - (int64_t)(sample * alpha);
}

static aot_status_t fractional_max_pool(rk_ctx_t *c, int32_t dims) {
  rk_array_t x, samples, y, where;
  pool_t p = {0};
  int64_t kernel[POOL_DIMS], out[POOL_DIMS], sizes[AOT_MAX_RANK], at[POOL_DIMS];
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_ints(c, 1, (uint32_t)dims, NULL, kernel));
  AOT_TRY(rk_ints(c, 2, (uint32_t)dims, NULL, out));
  AOT_TRY(rk_need_f(c, 3, &samples));
  AOT_TRY(adaptive(c, &x, dims, out, &p));
  RK_CHECK(c, samples.numel == p.planes * dims, "%lld samples for %lld planes", (long long)samples.numel,
           (long long)p.planes);
  for (int32_t d = 0; d < dims; d++)
    RK_CHECK(c, kernel[d] > 0 && out[d] > 0 && out[d] + kernel[d] - 1 <= p.in[d], "the windows do not fit");
  output_sizes(&p, &x, sizes);
  AOT_TRY(rk_new_f(c, x.rank, sizes, &y));
  AOT_TRY(rk_new_i(c, x.rank, sizes, &where));
  for (int64_t plane = 0; plane < p.planes; plane++) {
    int64_t place[POOL_DIMS] = {0};
    const double *in = x.f + plane * p.n_in;
    for (int64_t o = 0; o < p.n_out; o++, rk_advance(place, dims, p.out)) {
      window_t w;
      int64_t best = -1;
      for (int32_t d = 0; d < dims; d++) {
        float sample = (float)samples.f[plane * dims + (dims == 2 ? 1 - d : d)];
        RK_CHECK(c, sample >= 0 && sample <= 1, "a random sample lies outside 0..1");
        w.start[d] = fractional_start(place[d], p.in[d], p.out[d], kernel[d], sample);
        RK_CHECK(c, w.start[d] >= 0 && w.start[d] + kernel[d] <= p.in[d], "a random sample moves a window outside");
        w.end[d] = w.start[d] + kernel[d];
        w.step[d] = 1;
        at[d] = w.start[d];
      }
      do {
        int64_t flat = rk_flat(at, dims, p.in);
        if (best < 0 || in[flat] > in[best] || in[flat] != in[flat]) best = flat;
      } while (window_next(&p, &w, at));
      y.f[plane * p.n_out + o] = in[best];
      where.i[plane * p.n_out + o] = best;
    }
  }
  AOT_TRY(rk_put_f(c, 0, &y));
  return rk_put_i(c, 1, &where);
}
static aot_status_t fractional_max_pool2d(rk_ctx_t *c) { return fractional_max_pool(c, 2); }
static aot_status_t fractional_max_pool3d(rk_ctx_t *c) { return fractional_max_pool(c, 3); }

/* ---- average ---- */

/* forward: y[o] = mean of the window; backward: every place of the window gets g[o] / count */
static aot_status_t average(rk_ctx_t *c, const pool_t *p, const rk_array_t *from, rk_array_t *to, int backward) {
  int64_t place[POOL_DIMS] = {0}, at[POOL_DIMS];
  (void)c;
  for (int64_t o = 0; o < p->n_out; o++, rk_advance(place, p->dims, p->out)) {
    window_t w = window_at(p, place);
    for (int64_t plane = 0; plane < p->planes; plane++) {
      double sum = 0;
      if (!window_begin(p, &w, at)) continue;
      do {
        int64_t flat = plane * p->n_in + rk_flat(at, p->dims, p->in);
        if (backward) to->f[flat] += from->f[plane * p->n_out + o] / (double)w.count;
        else sum += from->f[flat];
      } while (window_next(p, &w, at));
      if (!backward) to->f[plane * p->n_out + o] = sum / (double)w.count;
    }
  }
  return AOT_OK;
}

static aot_status_t average_forward(rk_ctx_t *c, const pool_t *p, const rk_array_t *x) {
  rk_array_t y;
  int64_t sizes[AOT_MAX_RANK];
  output_sizes(p, x, sizes);
  AOT_TRY(rk_new_f(c, x->rank, sizes, &y));
  AOT_TRY(average(c, p, x, &y, 0));
  return rk_put_f(c, 0, &y);
}

/* self, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override from argument `first` on */
static aot_status_t average_plan(rk_ctx_t *c, const rk_array_t *x, int32_t dims, uint32_t first, pool_t *p) {
  AOT_TRY(sliding(c, x, dims, first, 0, rk_bool(c, first + 3, 0), p));
  p->count_include_pad = rk_bool(c, first + 4, 1);
  p->divisor = rk_int(c, first + 5, 0);
  return AOT_OK;
}

static aot_status_t avg_pool(rk_ctx_t *c, int32_t dims) {
  rk_array_t x;
  pool_t p = {0};
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(average_plan(c, &x, dims, 1, &p));
  return average_forward(c, &p, &x);
}
static aot_status_t avg_pool1d(rk_ctx_t *c) { return avg_pool(c, 1); }
static aot_status_t avg_pool2d(rk_ctx_t *c) { return avg_pool(c, 2); }
static aot_status_t avg_pool3d(rk_ctx_t *c) { return avg_pool(c, 3); }

static aot_status_t avg_backward(rk_ctx_t *c, int32_t dims, int is_adaptive) {
  rk_array_t g, x, gx;
  pool_t p = {0};
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &x));
  RK_CHECK(c, g.rank == x.rank && x.rank > dims, "gradient and input differ in rank");
  if (is_adaptive) AOT_TRY(adaptive(c, &x, dims, g.sizes + g.rank - dims, &p));
  else AOT_TRY(average_plan(c, &x, dims, 2, &p));
  RK_CHECK(c, g.numel == p.planes * p.n_out, "the gradient does not fit the output");
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &gx));
  AOT_TRY(average(c, &p, &g, &gx, 1));
  return rk_put_f(c, 0, &gx);
}
static aot_status_t avg_pool2d_backward(rk_ctx_t *c) { return avg_backward(c, 2, 0); }
static aot_status_t avg_pool3d_backward(rk_ctx_t *c) { return avg_backward(c, 3, 0); }
static aot_status_t adaptive_avg_pool2d_backward(rk_ctx_t *c) { return avg_backward(c, 2, 1); }
static aot_status_t adaptive_avg_pool3d_backward(rk_ctx_t *c) { return avg_backward(c, 3, 1); }

static aot_status_t adaptive_avg_pool(rk_ctx_t *c, int32_t dims) {
  rk_array_t x;
  pool_t p = {0};
  int64_t out[POOL_DIMS];
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_ints(c, 1, (uint32_t)dims, NULL, out));
  AOT_TRY(adaptive(c, &x, dims, out, &p));
  return average_forward(c, &p, &x);
}
static aot_status_t adaptive_avg_pool1d(rk_ctx_t *c) { return adaptive_avg_pool(c, 1); }
static aot_status_t adaptive_avg_pool2d(rk_ctx_t *c) { return adaptive_avg_pool(c, 2); }
static aot_status_t adaptive_avg_pool3d(rk_ctx_t *c) { return adaptive_avg_pool(c, 3); }

#define ROW(name, fn)                                                                                                  \
  { "aten." name ".default", fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("max_pool1d", max_pool1d),
    ROW("max_pool2d", max_pool2d),
    ROW("max_pool3d", max_pool3d),
    ROW("max_pool1d_with_indices", max_pool1d),
    ROW("max_pool2d_with_indices", max_pool2d),
    ROW("max_pool3d_with_indices", max_pool3d),
    ROW("adaptive_max_pool1d", adaptive_max_pool1d),
    ROW("adaptive_max_pool2d", adaptive_max_pool2d),
    ROW("adaptive_max_pool3d", adaptive_max_pool3d),
    ROW("max_pool2d_with_indices_backward", max_pool2d_backward),
    ROW("max_pool3d_with_indices_backward", max_pool3d_backward),
    ROW("adaptive_max_pool2d_backward", adaptive_max_pool2d_backward),
    ROW("adaptive_max_pool3d_backward", adaptive_max_pool3d_backward),
    {"aot.max_pool2d_backward", max_pool2d_recompute, NULL, NULL, 0},
    {"aot.max_pool2d_backward.default", max_pool2d_recompute, NULL, NULL, 0},
    ROW("fractional_max_pool2d", fractional_max_pool2d),
    ROW("fractional_max_pool3d", fractional_max_pool3d),
    ROW("fractional_max_pool2d_backward", fractional_max_pool2d_backward),
    ROW("fractional_max_pool3d_backward", fractional_max_pool3d_backward),
    ROW("max_unpool2d", max_unpool2d),
    ROW("max_unpool3d", max_unpool3d),
    ROW("avg_pool1d", avg_pool1d),
    ROW("avg_pool2d", avg_pool2d),
    ROW("avg_pool3d", avg_pool3d),
    ROW("avg_pool2d_backward", avg_pool2d_backward),
    ROW("avg_pool3d_backward", avg_pool3d_backward),
    ROW("adaptive_avg_pool1d", adaptive_avg_pool1d),
    ROW("adaptive_avg_pool2d", adaptive_avg_pool2d),
    ROW("adaptive_avg_pool3d", adaptive_avg_pool3d),
    ROW("_adaptive_avg_pool2d", adaptive_avg_pool2d),
    ROW("_adaptive_avg_pool3d", adaptive_avg_pool3d),
    ROW("_adaptive_avg_pool2d_backward", adaptive_avg_pool2d_backward),
    ROW("_adaptive_avg_pool3d_backward", adaptive_avg_pool3d_backward),
};
const rk_family_t rk_family_pool = RK_FAMILY(rows);
