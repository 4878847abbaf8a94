/* Convolution of any spatial rank, and its derivatives.
 *
 * One loop over (sample, output channel, output place, input channel of the group, kernel place) does everything: given
 * an output place o and a kernel place k, the input place is o * stride - padding + k * dilation. Forward adds x * w
 * into y, the input's derivative adds g * w into x, the weight's adds g * x into w. A transposed convolution is the
 * input's derivative with the roles of input and output exchanged, so it is the same loop again. */
#include "rk_core.h"
#include <aot/inline.h>
#include <string.h>

#define CONV_DIMS 3

typedef struct conv {
  int32_t dims; /* spatial dimensions */
  int64_t stride[CONV_DIMS], padding[CONV_DIMS], dilation[CONV_DIMS], output_padding[CONV_DIMS], groups;
  int transposed, unbatched;
  /* the correlation underneath: "big" is what the windows run over, "small" has one place a window */
  int64_t samples, big_channels, small_channels;
  int64_t big[CONV_DIMS], small[CONV_DIMS], kernel[CONV_DIMS];
} conv_t;

/* What the loop does with (big element, small element, weight element). */
typedef void (*conv_op_t)(double *big, double *small, double *w);
static void op_small(double *big, double *small, double *w) { *small += *big * *w; }
static void op_big(double *big, double *small, double *w) { *big += *small * *w; }
static void op_weight(double *big, double *small, double *w) { *w += *big * *small; }

static int64_t product(const int64_t *v, int32_t n) {
  int64_t p = 1;
  for (int32_t d = 0; d < n; d++) p *= v[d];
  return p;
}

/* The place in big that window `small` sees at kernel place `k`, or -1. */
static int64_t big_place(const conv_t *p, const int64_t *small, const int64_t *k) {
  int64_t flat = 0;
  for (int32_t d = 0; d < p->dims; d++) {
    int64_t at = small[d] * p->stride[d] - p->padding[d] + k[d] * p->dilation[d];
    if (at < 0 || at >= p->big[d]) return -1;
    flat = flat * p->big[d] + at;
  }
  return flat;
}

static void correlate(const conv_t *p, double *big, double *small, double *w, conv_op_t op) {
  int64_t n_big = product(p->big, p->dims), n_small = product(p->small, p->dims),
          n_kernel = product(p->kernel, p->dims);
  int64_t cb = p->big_channels / p->groups, cs = p->small_channels / p->groups;
  int64_t at[CONV_DIMS] = {0}, k[CONV_DIMS] = {0};
  for (int64_t s = 0; s < n_small; s++, rk_advance(at, p->dims, p->small))
    for (int64_t t = 0; t < n_kernel; t++, rk_advance(k, p->dims, p->kernel)) {
      int64_t b = big_place(p, at, k);
      if (b < 0) continue;
      for (int64_t n = 0; n < p->samples; n++)
        for (int64_t o = 0; o < p->small_channels; o++) {
          double *v = small + (n * p->small_channels + o) * n_small + s;
          double *from = big + (n * p->big_channels + o / cs * cb) * n_big + b, *weight = w + o * cb * n_kernel + t;
          for (int64_t i = 0; i < cb; i++) op(from + i * n_big, v, weight + i * n_kernel);
        }
    }
}

/* The geometry arguments from `first` on: stride, padding, dilation, transposed, output_padding, groups. */
static aot_status_t read_geometry(rk_ctx_t *c, uint32_t first, conv_t *p) {
  static const int64_t ones[CONV_DIMS] = {1, 1, 1}, zeros[CONV_DIMS] = {0, 0, 0};
  uint32_t n = (uint32_t)p->dims;
  AOT_TRY(rk_ints(c, first, n, ones, p->stride));
  AOT_TRY(rk_ints(c, first + 1, n, zeros, p->padding));
  AOT_TRY(rk_ints(c, first + 2, n, ones, p->dilation));
  p->transposed = rk_bool(c, first + 3, 0);
  AOT_TRY(rk_ints(c, first + 4, n, zeros, p->output_padding));
  p->groups = rk_int(c, first + 5, 1);
  return AOT_OK;
}

/* Spatial rank from the weight; an unbatched input gets a sample dimension. */
static aot_status_t read_input(rk_ctx_t *c, uint32_t x_arg, rk_array_t *x, rk_array_t *w, conv_t *p) {
  AOT_TRY(rk_need_f(c, x_arg, x));
  AOT_TRY(rk_need_f(c, x_arg + 1, w));
  memset(p, 0, sizeof *p);
  p->dims = w->rank - 2;
  RK_CHECK(c, p->dims >= 1 && p->dims <= CONV_DIMS, "the weight has rank %d; 1 to 3 spatial dimensions are supported",
           w->rank);
  RK_CHECK(c, x->rank == w->rank || x->rank == w->rank - 1, "input has rank %d, weight %d", x->rank, w->rank);
  p->unbatched = x->rank == w->rank - 1;
  if (p->unbatched) {
    memmove(x->sizes + 1, x->sizes, (size_t)x->rank * sizeof x->sizes[0]);
    x->sizes[0] = 1;
    x->rank++;
  }
  return AOT_OK;
}

/* Sizes of the output, and the correlation underneath. */
static aot_status_t plan(rk_ctx_t *c, conv_t *p, const rk_array_t *x, const rk_array_t *w, int64_t *out_sizes) {
  int64_t *in = p->transposed ? p->small : p->big, *out = p->transposed ? p->big : p->small;
  int64_t in_channels = x->sizes[1], out_channels = p->transposed ? w->sizes[1] * p->groups : w->sizes[0];
  RK_CHECK(c, p->groups > 0 && in_channels % p->groups == 0 && out_channels % p->groups == 0,
           "channels do not divide by %lld groups", (long long)p->groups);
  RK_CHECK(c, p->transposed ? w->sizes[0] == in_channels : w->sizes[1] == in_channels / p->groups,
           "weight does not fit %lld input channels", (long long)in_channels);
  p->samples = x->sizes[0];
  p->big_channels = p->transposed ? out_channels : in_channels;
  p->small_channels = p->transposed ? in_channels : out_channels;
  out_sizes[0] = p->samples;
  out_sizes[1] = out_channels;
  for (int32_t d = 0; d < p->dims; d++) {
    int64_t reach = p->dilation[d] * (w->sizes[2 + d] - 1);
    p->kernel[d] = w->sizes[2 + d];
    in[d] = x->sizes[2 + d];
    RK_CHECK(c, p->stride[d] > 0 && p->dilation[d] > 0 && p->padding[d] >= 0, "stride and dilation must be positive");
    if (p->transposed) out[d] = (in[d] - 1) * p->stride[d] - 2 * p->padding[d] + reach + p->output_padding[d] + 1;
    else out[d] = (in[d] + 2 * p->padding[d] - reach - 1) / p->stride[d] + 1;
    RK_CHECK(c, out[d] >= 0 && in[d] + 2 * p->padding[d] > (p->transposed ? -1 : reach),
             "the kernel is larger than the padded input");
    out_sizes[2 + d] = out[d];
  }
  return AOT_OK;
}

static aot_status_t add_bias(rk_ctx_t *c, uint32_t arg, rk_array_t *y) {
  rk_array_t b;
  int64_t space = 1;
  AOT_TRY(rk_get_f(c, arg, &b));
  if (!b.f) return AOT_OK;
  RK_CHECK(c, b.numel == y->sizes[1], "%lld biases for %lld channels", (long long)b.numel, (long long)y->sizes[1]);
  for (int32_t d = 2; d < y->rank; d++) space *= y->sizes[d];
  for (int64_t e = 0; e < y->numel; e++) y->f[e] += b.f[e / space % y->sizes[1]];
  return AOT_OK;
}

static aot_status_t put_output(rk_ctx_t *c, const conv_t *p, rk_array_t *y) {
  if (p->unbatched) {
    memmove(y->sizes, y->sizes + 1, (size_t)(y->rank - 1) * sizeof y->sizes[0]);
    y->rank--;
  }
  return rk_put_f(c, 0, y);
}

static aot_status_t forward(rk_ctx_t *c, conv_t *p, rk_array_t *x, rk_array_t *w) {
  int64_t sizes[2 + CONV_DIMS];
  rk_array_t y;
  AOT_TRY(plan(c, p, x, w, sizes));
  AOT_TRY(rk_new_f(c, 2 + p->dims, sizes, &y));
  if (p->transposed) correlate(p, y.f, x->f, w->f, op_big);
  else correlate(p, x->f, y.f, w->f, op_small);
  AOT_TRY(add_bias(c, 2, &y));
  return put_output(c, p, &y);
}

/* convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
static aot_status_t convolution(rk_ctx_t *c) {
  rk_array_t x, w;
  conv_t p;
  AOT_TRY(read_input(c, 0, &x, &w, &p));
  AOT_TRY(read_geometry(c, 3, &p));
  return forward(c, &p, &x, &w);
}

/* conv1d, conv2d, conv3d(input, weight, bias, stride, padding, dilation, groups); .padding: "same" or "valid" */
static aot_status_t conv_plain(rk_ctx_t *c) {
  static const int64_t ones[CONV_DIMS] = {1, 1, 1}, zeros[CONV_DIMS] = {0, 0, 0};
  rk_array_t x, w;
  conv_t p;
  int is_word;
  AOT_TRY(read_input(c, 0, &x, &w, &p));
  is_word = rk_has(c, 4) && c->call->args[4].kind == AOT_ARG_STR;
  AOT_TRY(rk_ints(c, 3, (uint32_t)p.dims, ones, p.stride));
  AOT_TRY(rk_ints(c, 5, (uint32_t)p.dims, ones, p.dilation));
  p.groups = rk_int(c, 6, 1);
  if (!is_word) AOT_TRY(rk_ints(c, 4, (uint32_t)p.dims, zeros, p.padding));
  if (is_word && rk_str_is(c, 4, "same")) {
    /* the extra one of an odd total is on the right: pad the input there by hand */
    rk_array_t wide;
    int64_t sizes[2 + CONV_DIMS] = {x.sizes[0], x.sizes[1]}, at[2 + CONV_DIMS] = {0};
    for (int32_t d = 0; d < p.dims; d++) {
      int64_t total = p.dilation[d] * (w.sizes[2 + d] - 1);
      RK_CHECK(c, p.stride[d] == 1, "padding \"same\" needs stride 1");
      p.padding[d] = total / 2;
      sizes[2 + d] = x.sizes[2 + d] + total % 2;
    }
    AOT_TRY(rk_new_f(c, x.rank, sizes, &wide));
    for (int64_t e = 0; e < x.numel; e++, rk_advance(at, x.rank, x.sizes)) wide.f[rk_flat(at, x.rank, sizes)] = x.f[e];
    x = wide;
  }
  return forward(c, &p, &x, &w);
}

/* conv_transposeNd(input, weight, bias, stride, padding, output_padding, groups, dilation) */
static aot_status_t conv_transpose(rk_ctx_t *c) {
  static const int64_t ones[CONV_DIMS] = {1, 1, 1}, zeros[CONV_DIMS] = {0, 0, 0};
  rk_array_t x, w;
  conv_t p;
  AOT_TRY(read_input(c, 0, &x, &w, &p));
  AOT_TRY(rk_ints(c, 3, (uint32_t)p.dims, ones, p.stride));
  AOT_TRY(rk_ints(c, 4, (uint32_t)p.dims, zeros, p.padding));
  AOT_TRY(rk_ints(c, 5, (uint32_t)p.dims, zeros, p.output_padding));
  AOT_TRY(rk_ints(c, 7, (uint32_t)p.dims, ones, p.dilation));
  p.groups = rk_int(c, 6, 1);
  p.transposed = 1;
  return forward(c, &p, &x, &w);
}

/* convolution_backward(grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
 * output_mask) */
static aot_status_t convolution_backward(rk_ctx_t *c) {
  rk_array_t g, x, w, gx, gw, gb;
  conv_t p;
  int64_t sizes[2 + CONV_DIMS], space = 1, total = 1;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_input(c, 1, &x, &w, &p));
  AOT_TRY(read_geometry(c, 4, &p));
  AOT_TRY(plan(c, &p, &x, &w, sizes));
  for (int32_t d = 0; d < 2 + p.dims; d++) total *= sizes[d];
  for (int32_t d = 0; d < p.dims; d++) space *= sizes[2 + d];
  RK_CHECK(c, g.numel == total, "the gradient has %lld elements, the output %lld", (long long)g.numel,
           (long long)total);
  if (rk_wants(c, 0)) {
    AOT_TRY(rk_new_f(c, x.rank, x.sizes, &gx));
    if (p.transposed) correlate(&p, g.f, gx.f, w.f, op_small);
    else correlate(&p, gx.f, g.f, w.f, op_big);
    AOT_TRY(put_output(c, &p, &gx));
  }
  if (rk_wants(c, 1)) {
    AOT_TRY(rk_new_f(c, w.rank, w.sizes, &gw));
    correlate(&p, p.transposed ? g.f : x.f, p.transposed ? x.f : g.f, gw.f, op_weight);
    AOT_TRY(rk_put_f(c, 1, &gw));
  }
  AOT_TRY(rk_new_f(c, 1, &sizes[1], &gb));
  for (int64_t e = 0; e < g.numel; e++) gb.f[e / space % sizes[1]] += g.f[e];
  return rk_put_f(c, 2, &gb);
}

/* im2col(self, kernel, dilation, padding, stride): [N, C*kh*kw, L]; col2im(self, output_size, ..) adds back */
static aot_status_t columns(rk_ctx_t *c, int back) {
  rk_array_t x, y;
  conv_t p = {0};
  uint32_t first = back ? 2 : 1;
  int64_t kernel, places, channels, n_big, at[2] = {0}, k[2], sizes[4], row = 0;
  p.dims = 2;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_ints(c, first, 2, NULL, p.kernel));
  AOT_TRY(rk_ints(c, first + 1, 2, NULL, p.dilation));
  AOT_TRY(rk_ints(c, first + 2, 2, NULL, p.padding));
  AOT_TRY(rk_ints(c, first + 3, 2, NULL, p.stride));
  kernel = p.kernel[0] * p.kernel[1];
  RK_CHECK(c, x.rank >= (back ? 2 : 3) && kernel > 0, "rank %d is too small", x.rank);
  p.unbatched = x.rank == (back ? 2 : 3);
  if (back) AOT_TRY(rk_ints(c, 1, 2, NULL, p.big));
  else memcpy(p.big, x.sizes + x.rank - 2, sizeof p.big[0] * 2);
  for (int32_t d = 0; d < 2; d++) {
    RK_CHECK(c, p.stride[d] > 0, "stride must be positive");
    p.small[d] = (p.big[d] + 2 * p.padding[d] - p.dilation[d] * (p.kernel[d] - 1) - 1) / p.stride[d] + 1;
    RK_CHECK(c, p.small[d] > 0, "the kernel is larger than the padded input");
  }
  p.samples = p.unbatched ? 1 : x.sizes[0];
  channels = back ? x.sizes[x.rank - 2] / kernel : x.sizes[x.rank - 3];
  places = product(p.small, 2);
  n_big = product(p.big, 2);
  RK_CHECK(c, x.numel == p.samples * channels * (back ? kernel * places : n_big), "the input does not fit the windows");
  sizes[0] = p.samples;
  sizes[1] = back ? channels : channels * kernel;
  sizes[2] = back ? p.big[0] : places;
  sizes[3] = p.big[1];
  AOT_TRY(rk_new_f(c, back ? 4 : 3, sizes, &y));
  for (int64_t n = 0; n < p.samples * channels; n++)
    for (int64_t t = 0; t < kernel; t++, row++) {
      k[0] = t / p.kernel[1];
      k[1] = t % p.kernel[1];
      for (int64_t s = 0; s < places; s++, rk_advance(at, 2, p.small)) {
        int64_t b = big_place(&p, at, k);
        if (b < 0) continue;
        if (back) y.f[n * n_big + b] += x.f[row * places + s];
        else y.f[row * places + s] = x.f[n * n_big + b];
      }
    }
  return put_output(c, &p, &y);
}
static aot_status_t im2col(rk_ctx_t *c) { return columns(c, 0); }
static aot_status_t col2im(rk_ctx_t *c) { return columns(c, 1); }

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("convolution.default", convolution),
    ROW("_convolution.default", convolution),
    ROW("convolution_overrideable.default", convolution),
    ROW("conv1d.default", conv_plain),
    ROW("conv2d.default", conv_plain),
    ROW("conv3d.default", conv_plain),
    ROW("conv1d.padding", conv_plain),
    ROW("conv2d.padding", conv_plain),
    ROW("conv3d.padding", conv_plain),
    ROW("conv_transpose1d.default", conv_transpose),
    ROW("conv_transpose2d.input", conv_transpose),
    ROW("conv_transpose3d.input", conv_transpose),
    ROW("convolution_backward.default", convolution_backward),
    ROW("im2col.default", im2col),
    ROW("col2im.default", col2im),
};
const rk_family_t rk_family_conv = RK_FAMILY(rows);
