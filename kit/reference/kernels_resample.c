/* Resizing and sampling images: nearest, linear, cubic in 1 to 3 dimensions, and grid sampling.
 *
 * Resizing is separable: along each dimension an output place reads up to 4 taps (index, weight), and the result is
 * their tensor product (rk_taps.h); the derivative adds the same taps back. bf16 and f16 images have weights of their
 * dtype. uint8 images are resized one dimension after the other, the last one first, with weights
 * in fixed point, each time rounded to uint8 (PyTorch's UpSampleKernelAVXAntialias.h, after Pillow). */
#include "rk_core.h"
#include "rk_taps.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

#define DIMS 3
#define NEAREST RK_NEAREST
#define NEAREST_EXACT RK_NEAREST_EXACT
#define LINEAR RK_LINEAR
#define CUBIC RK_CUBIC

typedef struct resize {
  int32_t dims;
  int mode, align;
  int64_t in[DIMS], out[DIMS], planes, n_in, n_out;
  rk_taps_t *taps[DIMS]; /* of every output place along the dimension */
} resize_t;

/* Calls for every (output place, tap product): to[..] += weight * from[..], forward or back. */
static void apply(const resize_t *r, const double *in_or_grad, double *out, int back) {
  int64_t place[DIMS] = {0};
  for (int64_t o = 0; o < r->n_out; o++, rk_advance(place, r->dims, r->out)) {
    int64_t pick[DIMS] = {0}, counts[DIMS];
    for (int32_t d = 0; d < r->dims; d++) counts[d] = r->taps[d][place[d]].n;
    do {
      double weight = 1;
      int64_t flat = 0;
      for (int32_t d = 0; d < r->dims; d++) {
        const rk_taps_t *t = &r->taps[d][place[d]];
        weight *= t->weight[pick[d]];
        flat = flat * r->in[d] + t->at[pick[d]];
      }
      for (int64_t p = 0; p < r->planes; p++) {
        if (back) out[p * r->n_in + flat] += weight * in_or_grad[p * r->n_out + o];
        else out[p * r->n_out + o] += weight * in_or_grad[p * r->n_in + flat];
      }
    } while (rk_advance(pick, r->dims, counts));
  }
}

typedef struct resize_row {
  int8_t dims, mode, align_arg, scale_arg; /* scale_arg: the first of one a dimension; vec: the list */
  int8_t is_vec, is_back;
} resize_row_t;

static double scale_of(const rk_ctx_t *c, const resize_row_t *row, int32_t d) {
  const rk_arg_t *a = rk_has(c, (uint32_t)row->scale_arg) ? &c->call->args[row->scale_arg] : NULL;
  if (!row->is_vec) return rk_float(c, (uint32_t)(row->scale_arg + d), 0);
  if (!a) return 0;
  if (a->kind == AOT_ARG_FLOATS && (uint32_t)d < a->n) return a->u.floats[d];
  if (a->kind == AOT_ARG_INTS && (uint32_t)d < a->n) return (double)a->u.ints[d];
  return 0;
}

/* Sizes of both sides: the larger rank dims are planes. */
static aot_status_t set_sizes(rk_ctx_t *c, const resize_row_t *row, const int64_t *in, const int64_t *out, int32_t rank,
                              resize_t *r) {
  RK_CHECK(c, rank > row->dims, "rank %d is too small", rank);
  r->dims = row->dims;
  r->mode = row->mode;
  r->align = row->align_arg >= 0 && rk_bool(c, (uint32_t)row->align_arg, 0);
  r->planes = r->n_in = r->n_out = 1;
  for (int32_t d = 0; d < rank - r->dims; d++) r->planes *= in[d];
  for (int32_t d = 0; d < r->dims; d++) {
    double factor = scale_of(c, row, d);
    r->in[d] = in[rank - r->dims + d];
    r->out[d] = out[d];
    RK_CHECK(c, r->in[d] > 0 && r->out[d] > 0, "input and output sizes must be positive");
    r->n_in *= r->in[d];
    r->n_out *= r->out[d];
    RK_SCRATCH(c, r->out[d], r->taps[d]);
    for (int64_t i = 0; i < r->out[d]; i++)
      r->taps[d][i] = rk_taps_at(r->mode, r->align, r->in[d], r->out[d], i, factor);
  }
  return AOT_OK;
}

/* Weights of bf16 and f16 images are in the dtype. */
static void round_weights(const resize_t *r, int32_t dtype) {
  for (int32_t d = 0; d < r->dims; d++)
    for (int64_t i = 0; i < r->out[d]; i++)
      for (int k = 0; k < r->taps[d][i].n; k++) r->taps[d][i].weight[k] = rk_round_to(r->taps[d][i].weight[k], dtype);
}

/* int16 weights: as many fraction bits as the largest weight leaves. */
static void fix_weights(const resize_t *r, int32_t d) {
  double most = 0, one = 1;
  for (int64_t i = 0; i < r->out[d]; i++)
    for (int k = 0; k < r->taps[d][i].n; k++) most = fmax(most, r->taps[d][i].weight[k]);
  for (int bits = 0; bits < 22 && floor(0.5 + most * one * 2) < 32768; bits++) one *= 2;
  for (int64_t i = 0; i < r->out[d]; i++)
    for (int k = 0; k < r->taps[d][i].n; k++) r->taps[d][i].weight[k] = round(r->taps[d][i].weight[k] * one) / one;
}

static aot_status_t resize_bytes(rk_ctx_t *c, const resize_t *r, const rk_array_t *x) {
  rk_array_t from = *x, to;
  for (int32_t d = r->dims - 1; d >= 0; d--) { /* planes: what is before the dimension; after it all is done */
    int64_t inner = 1;
    from.sizes[from.rank - r->dims + d] = r->out[d];
    for (int32_t k = d + 1; k < r->dims; k++) inner *= r->out[k];
    fix_weights(r, d);
    AOT_TRY(rk_new_f(c, from.rank, from.sizes, &to));
    for (int64_t e = 0; e < to.numel; e++) {
      const int64_t i = e % inner, o = e / inner % r->out[d], plane = e / inner / r->out[d];
      const rk_taps_t *t = &r->taps[d][o];
      double sum = 0;
      for (int k = 0; k < t->n; k++) sum += t->weight[k] * from.f[(plane * r->in[d] + t->at[k]) * inner + i];
      to.f[e] = fmin(fmax(floor(sum + 0.5), 0), 255);
    }
    from = to;
  }
  return rk_put_f(c, 0, &from);
}

static aot_status_t run(rk_ctx_t *c) {
  const resize_row_t *row = c->kernel->row;
  rk_array_t x, y;
  resize_t r = {0};
  int64_t out[DIMS], sizes[AOT_MAX_RANK];
  const int64_t *listed;
  AOT_TRY(rk_need_f(c, 0, &x));
  if (row->is_back) { /* grad, output_size, input_size */
    uint32_t n = rk_list(c, 2, &listed);
    RK_CHECK(c, (int32_t)n == x.rank, "input_size has %u numbers for rank %d", n, x.rank);
    AOT_TRY(rk_ints(c, 1, (uint32_t)row->dims, NULL, out));
    AOT_TRY(set_sizes(c, row, listed, out, x.rank, &r));
    RK_CHECK(c, x.numel == r.planes * r.n_out, "the gradient does not fit the output");
    AOT_TRY(rk_new_f(c, x.rank, listed, &y));
    apply(&r, x.f, y.f, 1);
    return rk_put_f(c, 0, &y);
  }
  for (int32_t d = 0; d < row->dims; d++) { /* without output_size: floor(in * scale) */
    RK_CHECK(c, x.rank > row->dims, "rank %d is too small", x.rank);
    out[d] = aot_float_to_int(floor((double)x.sizes[x.rank - row->dims + d] * scale_of(c, row, d)));
  }
  if (rk_list(c, 1, &listed)) AOT_TRY(rk_ints(c, 1, (uint32_t)row->dims, NULL, out));
  AOT_TRY(set_sizes(c, row, x.sizes, out, x.rank, &r));
  memcpy(sizes, x.sizes, sizeof sizes);
  for (int32_t d = 0; d < r.dims; d++) sizes[x.rank - r.dims + d] = out[d];
  AOT_TRY(rk_new_f(c, x.rank, sizes, &y));
  if (x.dtype == AOT_U8 && r.mode >= LINEAR) return resize_bytes(c, &r, &x);
  round_weights(&r, x.dtype);
  apply(&r, x.f, y.f, 0);
  return rk_put_f(c, 0, &y);
}

/* ---- grid sampling ---- */

#define PAD_ZEROS 0
#define PAD_BORDER 1
#define PAD_REFLECTION 2

/* A place along one dimension and how it moves with the grid's number. */
typedef struct sample_position {
  double x, slope;
} sample_position_t;

/* The place has the grid's dtype. */
static sample_position_t unnormalise(double x, int64_t n, int align, int32_t dtype) {
  const double half = (double)(align ? n - 1 : n) / 2;
  x = rk_round_to(x + 1, dtype);
  if (align) return (sample_position_t){rk_round_to(x / 2 * (double)(n - 1), dtype), half};
  return (sample_position_t){rk_round_to(rk_round_to(rk_round_to(x * (double)n, dtype) - 1, dtype) / 2, dtype), half};
}

static sample_position_t reflect(sample_position_t p, double twice_low, double twice_high) {
  double low = twice_low / 2, span = (twice_high - twice_low) / 2, rest, x;
  if (twice_low == twice_high) return (sample_position_t){0, 0};
  x = fabs(p.x - low);
  rest = fmod(x, span);
  if (p.x < low) p.slope = -p.slope;
  if (fmod(floor(x / span), 2) == 0) return (sample_position_t){rest + low, p.slope};
  return (sample_position_t){span - rest + low, -p.slope};
}

/* A place in pixels, brought inside as the padding mode says. At a border and beyond it does not move. */
static sample_position_t inside(sample_position_t p, int64_t n, int padding, int align) {
  if (padding == PAD_REFLECTION) p = align ? reflect(p, 0, 2 * (double)(n - 1)) : reflect(p, -1, 2 * (double)n - 1);
  if (padding == PAD_ZEROS) return p;
  if (!(p.x > 0 && p.x < (double)(n - 1))) p.slope = 0;
  p.x = p.x != p.x ? 0 : fmin(fmax(p.x, 0), (double)(n - 1));
  return p;
}

/* Derivatives of the weights of near taps and far ones. */
static double cubic_near_slope(double x) { return (3 * (-0.75 + 2) * x - 2 * (-0.75 + 3)) * x; }
static double cubic_far_slope(double x) { return -0.75 * ((3 * x - 10) * x + 8); }

typedef struct grid_taps {
  rk_taps_t t;
  double slope[4]; /* of the weights, by the grid's number */
} grid_taps_t;

static grid_taps_t cubic_grid_taps(sample_position_t p, int64_t n, int padding,
                                   int align) { /* every tap is padded on its own */
  const double low = floor(p.x), r = p.x - low;
  grid_taps_t g = {{4, {0}, {0}},
                   {cubic_far_slope(r + 1), cubic_near_slope(r), -cubic_near_slope(1 - r), -cubic_far_slope(2 - r)}};
  rk_cubic_weights(r, g.t.weight);
  for (int k = 0; k < 4; k++) {
    g.slope[k] *= p.slope;
    g.t.at[k] = (int64_t)inside((sample_position_t){low - 1 + k, 0}, n, padding, align).x;
  }
  return g;
}

static grid_taps_t taps_of_grid(double normal, int64_t n, int mode, int padding, int align, int32_t dtype) {
  grid_taps_t g = {{1, {0}, {1, 0, 0, 0}}, {0}};
  sample_position_t p = unnormalise(normal, n, align, dtype);
  double low;
  if (!(fabs(p.x) < 1e15)) p.x = padding == PAD_ZEROS ? -100 : p.x; /* nowhere */
  if (mode == 2) return cubic_grid_taps(p, n, padding, align);
  p = inside(p, n, padding, align);
  if (mode == 1) {
    g.t.at[0] = (int64_t)nearbyint(p.x);
    return g;
  }
  low = floor(p.x);
  g.t.n = 2;
  g.t.at[0] = (int64_t)low;
  g.t.at[1] = (int64_t)low + 1;
  g.t.weight[0] = 1 - (p.x - low);
  g.t.weight[1] = p.x - low;
  g.slope[0] = -p.slope;
  g.slope[1] = p.slope;
  return g;
}

/* input [N, C, ..dims], grid [N, ..out, dims] with the last coordinate first; output [N, C, ..out] */
typedef struct sampling {
  rk_array_t x, grid;
  int32_t dims;
  int mode, padding, align;
  int64_t sizes[2 + DIMS], n_in, n_out;
} sampling_t;

/* `at` is the input's argument number; grid, modes and align_corners follow. */
static aot_status_t read_sampling(rk_ctx_t *c, uint32_t at, int32_t dims, sampling_t *s) {
  int64_t mode = rk_int(c, at + 2, 0), padding = rk_int(c, at + 3, 0);
  AOT_TRY(rk_need_f(c, at, &s->x));
  AOT_TRY(rk_need_f(c, at + 1, &s->grid));
  RK_CHECK(c,
           s->x.rank == dims + 2 && s->grid.rank == dims + 2 && s->grid.sizes[dims + 1] == dims &&
               s->grid.sizes[0] == s->x.sizes[0],
           "input and grid do not fit");
  RK_CHECK(c, mode >= 0 && mode <= (dims == 2 ? 2 : 1) && padding >= 0 && padding <= 2,
           "mode %lld with padding %lld is not supported", (long long)mode, (long long)padding);
  s->dims = dims;
  s->mode = (int)mode;
  s->padding = (int)padding;
  s->align = rk_bool(c, at + 4, 0);
  s->sizes[0] = s->x.sizes[0];
  s->sizes[1] = s->x.sizes[1];
  s->n_in = s->n_out = 1;
  for (int32_t d = 0; d < dims; d++) {
    s->n_in *= s->x.sizes[2 + d];
    s->n_out *= s->sizes[2 + d] = s->grid.sizes[1 + d];
    RK_CHECK(c, s->x.sizes[2 + d] > 0, "the input is empty");
  }
  return AOT_OK;
}

/* Taps along every dimension of output place o, counted over samples and places. */
static void taps_of_place(const sampling_t *s, int64_t o, grid_taps_t *t, int64_t *counts) {
  for (int32_t d = 0; d < s->dims; d++) {
    t[d] = taps_of_grid(s->grid.f[o * s->dims + s->dims - 1 - d], s->x.sizes[2 + d], s->mode, s->padding, s->align,
                        s->grid.dtype);
    counts[d] = t[d].t.n;
  }
}

/* The element of a plane that the picked taps mean; -1: outside. */
static int64_t picked(const sampling_t *s, const grid_taps_t *t, const int64_t *pick) {
  int64_t flat = 0;
  for (int32_t d = 0; d < s->dims; d++) {
    const int64_t at = t[d].t.at[pick[d]];
    if (at < 0 || at >= s->x.sizes[2 + d]) return -1;
    flat = flat * s->x.sizes[2 + d] + at;
  }
  return flat;
}

/* Product of the picked weights; dimension `sloped` gives its slope instead. */
static double weight_of(const sampling_t *s, const grid_taps_t *t, const int64_t *pick, int32_t sloped) {
  double w = 1;
  for (int32_t d = 0; d < s->dims; d++) w *= d == sloped ? t[d].slope[pick[d]] : t[d].t.weight[pick[d]];
  return w;
}

static aot_status_t grid_sampler(rk_ctx_t *c, int32_t dims) {
  sampling_t s = {0};
  rk_array_t y;
  AOT_TRY(read_sampling(c, 0, dims, &s));
  AOT_TRY(rk_new_f(c, dims + 2, s.sizes, &y));
  for (int64_t o = 0; o < s.x.sizes[0] * s.n_out; o++) {
    grid_taps_t t[DIMS];
    int64_t pick[DIMS] = {0}, counts[DIMS], plane = o / s.n_out * s.x.sizes[1];
    taps_of_place(&s, o, t, counts);
    do {
      const int64_t flat = picked(&s, t, pick);
      const double weight = weight_of(&s, t, pick, -1);
      for (int64_t ch = 0; flat >= 0 && ch < s.x.sizes[1]; ch++)
        y.f[(plane + ch) * s.n_out + o % s.n_out] += weight * s.x.f[(plane + ch) * s.n_in + flat];
    } while (rk_advance(pick, dims, counts));
  }
  return rk_put_f(c, 0, &y);
}
static aot_status_t grid_sampler_2d(rk_ctx_t *c) { return grid_sampler(c, 2); }
static aot_status_t grid_sampler_3d(rk_ctx_t *c) { return grid_sampler(c, 3); }
static aot_status_t grid_sampler_any(rk_ctx_t *c) {
  const rk_tensor_t *x;
  AOT_TRY(rk_need_tensor(c, 0, &x));
  return grid_sampler(c, x->rank == 5 ? 3 : 2);
}

/* grad_output, input, grid, modes, align_corners, output_mask -> gradients of input and grid */
static aot_status_t grid_sampler_backward(rk_ctx_t *c, int32_t dims) {
  sampling_t s = {0};
  rk_array_t g, dx, dgrid;
  AOT_TRY(read_sampling(c, 1, dims, &s));
  AOT_TRY(rk_need_f(c, 0, &g));
  RK_CHECK(c, g.numel == s.x.sizes[0] * s.x.sizes[1] * s.n_out, "the gradient does not fit the output");
  AOT_TRY(rk_new_f(c, s.x.rank, s.x.sizes, &dx));
  AOT_TRY(rk_new_f(c, s.grid.rank, s.grid.sizes, &dgrid));
  for (int64_t o = 0; o < s.x.sizes[0] * s.n_out; o++) {
    grid_taps_t t[DIMS];
    int64_t pick[DIMS] = {0}, counts[DIMS], plane = o / s.n_out * s.x.sizes[1];
    taps_of_place(&s, o, t, counts);
    do {
      const int64_t flat = picked(&s, t, pick);
      const double weight = weight_of(&s, t, pick, -1);
      double through = 0; /* the tap's value times the gradient, over channels */
      for (int64_t ch = 0; flat >= 0 && ch < s.x.sizes[1]; ch++) {
        const double from = g.f[(plane + ch) * s.n_out + o % s.n_out];
        dx.f[(plane + ch) * s.n_in + flat] += weight * from;
        through += s.x.f[(plane + ch) * s.n_in + flat] * from;
      }
      for (int32_t d = 0; d < dims; d++) dgrid.f[o * dims + dims - 1 - d] += weight_of(&s, t, pick, d) * through;
    } while (rk_advance(pick, dims, counts));
  }
  if (rk_wants(c, 0)) AOT_TRY(rk_put_f(c, 0, &dx));
  return rk_wants(c, 1) ? rk_put_f(c, 1, &dgrid) : AOT_OK;
}
static aot_status_t grid_sampler_2d_backward(rk_ctx_t *c) { return grid_sampler_backward(c, 2); }
static aot_status_t grid_sampler_3d_backward(rk_ctx_t *c) { return grid_sampler_backward(c, 3); }

#define UP(name, dims, mode, align, scale, is_vec, is_back)                                                            \
  { "aten." name, run, NULL, &(const resize_row_t){dims, mode, align, scale, is_vec, is_back}, 0 }
static const rk_kernel_t rows[] = {
    UP("upsample_nearest1d.default", 1, NEAREST, -1, 2, 0, 0),
    UP("upsample_nearest2d.default", 2, NEAREST, -1, 2, 0, 0),
    UP("upsample_nearest3d.default", 3, NEAREST, -1, 2, 0, 0),
    UP("_upsample_nearest_exact1d.default", 1, NEAREST_EXACT, -1, 2, 0, 0),
    UP("_upsample_nearest_exact2d.default", 2, NEAREST_EXACT, -1, 2, 0, 0),
    UP("_upsample_nearest_exact3d.default", 3, NEAREST_EXACT, -1, 2, 0, 0),
    UP("upsample_linear1d.default", 1, LINEAR, 2, 3, 0, 0),
    UP("upsample_bilinear2d.default", 2, LINEAR, 2, 3, 0, 0),
    UP("upsample_trilinear3d.default", 3, LINEAR, 2, 3, 0, 0),
    UP("upsample_bicubic2d.default", 2, CUBIC, 2, 3, 0, 0),
    UP("upsample_nearest1d.vec", 1, NEAREST, -1, 2, 1, 0),
    UP("upsample_nearest2d.vec", 2, NEAREST, -1, 2, 1, 0),
    UP("upsample_nearest3d.vec", 3, NEAREST, -1, 2, 1, 0),
    UP("upsample_linear1d.vec", 1, LINEAR, 2, 3, 1, 0),
    UP("upsample_bilinear2d.vec", 2, LINEAR, 2, 3, 1, 0),
    UP("upsample_trilinear3d.vec", 3, LINEAR, 2, 3, 1, 0),
    UP("upsample_bicubic2d.vec", 2, CUBIC, 2, 3, 1, 0),
    UP("upsample_nearest1d_backward.default", 1, NEAREST, -1, 3, 0, 1),
    UP("upsample_nearest2d_backward.default", 2, NEAREST, -1, 3, 0, 1),
    UP("upsample_nearest3d_backward.default", 3, NEAREST, -1, 3, 0, 1),
    UP("upsample_linear1d_backward.default", 1, LINEAR, 3, 4, 0, 1),
    UP("upsample_bilinear2d_backward.default", 2, LINEAR, 3, 4, 0, 1),
    UP("upsample_trilinear3d_backward.default", 3, LINEAR, 3, 4, 0, 1),
    UP("upsample_bicubic2d_backward.default", 2, CUBIC, 3, 4, 0, 1),
    {"aten.grid_sampler.default", grid_sampler_any, NULL, NULL, 0},
    {"aten.grid_sampler_2d.default", grid_sampler_2d, NULL, NULL, 0},
    {"aten.grid_sampler_3d.default", grid_sampler_3d, NULL, NULL, 0},
    {"aten.grid_sampler_2d_backward.default", grid_sampler_2d_backward, NULL, NULL, 0},
    {"aten.grid_sampler_3d_backward.default", grid_sampler_3d_backward, NULL, NULL, 0},
};
const rk_family_t rk_family_resample = RK_FAMILY(rows);
