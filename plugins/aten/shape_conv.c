/* Convolutions and pools: windows that slide over the last dimensions.
 *
 *   conv        O = (I + 2p - d(k-1) - 1) / s + 1              transposed  O = (I-1)s - 2p + d(k-1) + op + 1
 *   pool        O = (I + 2p - d(k-1) - 1 + (ceil ? s-1 : 0)) / s + 1, less one when the last window starts beyond I + p
 *
 * Layout: channels-last when input or weight is (conv), when the input is (pool: put_pooled). */
#include "shape_rules.h"

#include <aot/inline.h>
#include <math.h>
#include <string.h>

#define MAX_SPACE 3

/* A per-dimension argument: one number represents all, an empty list for `otherwise`. */
static void spread(at_infer_t *c, const char *name, int32_t n, const int64_t *otherwise, int64_t *out) {
  const int64_t *list;
  uint32_t have = at_ints(c, name, &list);
  int32_t i;
  if (have != 0 && have != 1 && have != (uint32_t)n)
    at_fail(c, "'%s' has %u numbers for %d dimensions", name, have, (int)n);
  for (i = 0; i < n && c->status == AOT_OK; i++) out[i] = have == 0 ? otherwise[i] : list[have == 1 ? 0 : i];
}

static const int64_t zeros[MAX_SPACE] = {0, 0, 0}, ones[MAX_SPACE] = {1, 1, 1};

/* ---- convolutions ---- */

static int64_t conv_out(at_infer_t *c, int64_t in, int64_t pads, int64_t dilation, int64_t kernel, int64_t stride) {
  int64_t span = at_sub(c, at_add(c, in, pads), at_add(c, at_mul(c, dilation, at_sub(c, kernel, 1)), 1));
  if (at_below(c, span, 0)) at_fail(c, "the kernel is larger than the padded input");
  if (stride <= 0) at_fail(c, "stride must be positive");
  return c->status == AOT_OK ? at_add(c, at_floordiv(c, span, stride), 1) : 0;
}

static int64_t conv_transposed_out(at_infer_t *c, int64_t in, int64_t pad, int64_t dilation, int64_t kernel,
                                   int64_t stride, int64_t extra) {
  int64_t o = at_mul(c, at_sub(c, in, 1), stride);
  o = at_sub(c, o, at_mul(c, 2, pad));
  o = at_add(c, o, at_mul(c, dilation, at_sub(c, kernel, 1)));
  return at_add(c, o, at_add(c, extra, 1));
}

static void put_conv_layout(at_infer_t *c, const aot_type_t *x, const aot_type_t *w, const int64_t *sizes,
                            int32_t rank) {
  int64_t *strides = at_dims(c, rank);
  if (rank >= 4 && (at_suggests_channels_last(c, x) || at_suggests_channels_last(c, w)))
    at_strides_channels_last(c, sizes, rank, strides);
  else at_strides_contiguous(c, sizes, rank, strides);
  at_put_strided(c, x->dtype, sizes, strides, rank);
}

static void put_conv(at_infer_t *c, const char *input, int transposed, int64_t groups) {
  aot_type_t x = at_tensor(c, input), w = at_tensor(c, "weight");
  int32_t space = w.rank - 2, d, batched = x.rank == w.rank;
  int64_t stride[MAX_SPACE], pad[MAX_SPACE], dilation[MAX_SPACE], extra[MAX_SPACE], *sizes;
  int same_pad = at_str_is(c, "padding", "same"), valid_pad = at_str_is(c, "padding", "valid");
  if (space < 1 || space > MAX_SPACE || (!batched && x.rank != w.rank - 1))
    at_fail(c, "convolution of an input of rank %d with a weight of rank %d", (int)x.rank, (int)w.rank);
  if (x.dtype != w.dtype)
    at_fail(c, "convolution of a %s input with a %s weight", aot_dtype_name(x.dtype), aot_dtype_name(w.dtype));
  if (c->status != AOT_OK) return;
  spread(c, "stride", space, ones, stride);
  spread(c, "dilation", space, ones, dilation);
  spread(c, "output_padding", space, zeros, extra);
  if (!same_pad && !valid_pad) spread(c, "padding", space, zeros, pad);
  if (c->status != AOT_OK) return;
  if (at_differs(c, x.sizes[batched], transposed ? w.sizes[0] : at_mul(c, w.sizes[1], groups)))
    at_fail(c, "convolution: the input has %lld channels, the weight takes %lld",
            (long long)at_hint(c, x.sizes[batched]),
            (long long)at_hint(c, transposed ? w.sizes[0] : at_mul(c, w.sizes[1], groups)));
  sizes = at_dims_copy(c, x.sizes, x.rank);
  sizes[batched] = transposed ? at_mul(c, w.sizes[1], groups) : w.sizes[0];
  for (d = 0; d < space; d++) {
    int64_t in = x.sizes[batched + 1 + d], k = w.sizes[2 + d];
    int64_t pads = valid_pad ? 0 : same_pad ? at_mul(c, dilation[d], at_sub(c, k, 1)) : at_mul(c, 2, pad[d]);
    sizes[batched + 1 + d] = transposed ? conv_transposed_out(c, in, pad[d], dilation[d], k, stride[d], extra[d])
                                        : conv_out(c, in, pads, dilation[d], k, stride[d]);
  }
  put_conv_layout(c, &x, &w, sizes, x.rank);
}

void at_shape_conv(at_infer_t *c) { put_conv(c, "input", 0, at_int(c, "groups")); }
void at_shape_conv_transpose(at_infer_t *c) { put_conv(c, "input", 1, at_int(c, "groups")); }
void at_shape_conv_tbc(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self"), w = at_tensor(c, "weight"), b = at_tensor(c, "bias");
  int64_t *sizes = at_dims(c, 3);
  if (x.rank != 3 || w.rank != 3 || b.rank != 1 || at_differs(c, x.sizes[2], w.sizes[1]) ||
      at_differs(c, b.sizes[0], w.sizes[2]))
    at_fail(c, "conv_tbc takes [time, batch, in], [time, in, out] and [out]");
  if (c->status != AOT_OK) return;
  sizes[0] = at_sub(c, at_add(c, x.sizes[0], 2 * at_int(c, "pad") + 1), w.sizes[0]);
  sizes[1] = x.sizes[1];
  sizes[2] = w.sizes[2];
  at_put(c, x.dtype, sizes, 3);
}
void at_shape_convolution_of_self(at_infer_t *c) { put_conv(c, "self", 0, at_int(c, "groups")); }
void at_shape_convolution(at_infer_t *c) { put_conv(c, "input", at_bool(c, "transposed"), at_int(c, "groups")); }

static int wanted(at_infer_t *c, uint32_t i) {
  const int64_t *mask;
  return i < at_ints(c, "output_mask", &mask) && mask[i] != 0;
}

void at_shape_convolution_backward(at_infer_t *c) {
  aot_type_t g = at_tensor(c, "grad_output"), x = at_tensor(c, "input"), w = at_tensor(c, "weight");
  const int64_t *bias;
  int64_t groups = at_int(c, "groups");
  int64_t *channels = at_dims(c, 1);
  (void)groups;
  if (wanted(c, 0)) put_conv_layout(c, &x, &w, x.sizes, x.rank);
  else at_put_none(c);
  if (wanted(c, 1)) {
    int64_t *strides = at_dims(c, w.rank);
    if (w.rank >= 4 && (at_suggests_channels_last(c, &x) || at_suggests_channels_last(c, &w)))
      at_strides_channels_last(c, w.sizes, w.rank, strides);
    else at_strides_contiguous(c, w.sizes, w.rank, strides);
    at_put_strided(c, w.dtype, w.sizes, strides, w.rank);
  } else {
    at_put_none(c);
  }
  if (!wanted(c, 2)) {
    at_put_none(c);
    return;
  }
  if (at_ints(c, "bias_sizes", &bias) == 1) channels[0] = bias[0];
  else channels[0] = g.rank > 1 ? g.sizes[1] : 0;
  at_put(c, g.dtype, channels, 1);
}

/* ---- pools ---- */

/* With ceil_mode the last window must begin before the end of the input and its left padding, which costs at most one
 * of them. Both sizes are possible for one program of symbolic sizes: the minimum holds for all. */
static int64_t pool_out(at_infer_t *c, int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                        int ceil) {
  int64_t o,
      span = at_sub(c, at_add(c, in, at_mul(c, 2, pad)), at_add(c, at_mul(c, dilation, at_sub(c, kernel, 1)), 1));
  if (stride <= 0 || kernel <= 0) at_fail(c, "a pool's kernel and stride must be positive");
  if (c->status != AOT_OK) return 0;
  if (ceil) span = at_add(c, span, stride - 1);
  o = at_add(c, at_floordiv(c, span, stride), 1);
  if (ceil) o = at_min(c, o, at_add(c, at_floordiv(c, at_sub(c, at_add(c, in, pad), 1), stride), 1));
  if (at_below(c, o, 0)) at_fail(c, "the pool's kernel is larger than the padded input");
  return o;
}

/* Sizes of the pooled tensor; the number of window dimensions comes from the operator. */
static int64_t *pooled(at_infer_t *c, const aot_type_t *x, int32_t space) {
  int64_t kernel[MAX_SPACE], stride[MAX_SPACE], pad[MAX_SPACE], dilation[MAX_SPACE];
  int64_t *sizes = at_dims_copy(c, x->sizes, x->rank);
  int32_t d;
  if (x->rank != space + 1 && x->rank != space + 2) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)x->rank);
  spread(c, "kernel_size", space, ones, kernel);
  if (c->status != AOT_OK) return sizes;
  spread(c, "stride", space, kernel, stride);
  spread(c, "padding", space, zeros, pad);
  spread(c, "dilation", space, ones, dilation);
  for (d = 0; d < space && c->status == AOT_OK; d++) {
    int32_t at = x->rank - space + d;
    sizes[at] = pool_out(c, x->sizes[at], kernel[d], stride[d], pad[d], dilation[d], at_bool(c, "ceil_mode"));
  }
  return sizes;
}

static int32_t window_dims(at_infer_t *c) { /* the digit in "avg_pool2d" */
  const char *digit = strpbrk(c->row->name, "123");
  return digit ? *digit - '0' : 2;
}

/* Of volumes the maximum of windows alone keeps the memory format. */
static void put_pooled(at_infer_t *c, const aot_type_t *x, const int64_t *sizes, int32_t dtype) {
  if (window_dims(c) < 3 || strstr(c->row->name, ".max_pool")) at_put_in_format_of(c, x, sizes, dtype);
  else at_put(c, dtype, sizes, x->rank);
}

void at_shape_pool(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  put_pooled(c, &x, pooled(c, &x, window_dims(c)), x.dtype);
}

void at_shape_pool_with_indices(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  int64_t *sizes = pooled(c, &x, window_dims(c));
  put_pooled(c, &x, sizes, x.dtype);
  put_pooled(c, &x, sizes, AOT_I64);
}

static int64_t *adaptive(at_infer_t *c, const aot_type_t *x) {
  int32_t space = window_dims(c), d;
  int64_t *sizes = at_dims_copy(c, x->sizes, x->rank), out[MAX_SPACE] = {0, 0, 0};
  if (x->rank != space + 1 && x->rank != space + 2) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)x->rank);
  for (d = 0; d < space && c->status == AOT_OK; d++) out[d] = x->sizes[x->rank - space + d];
  spread(c, "output_size", space, out, out);
  for (d = 0; d < space && c->status == AOT_OK; d++) sizes[x->rank - space + d] = out[d];
  return sizes;
}

void at_shape_adaptive_pool(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  put_pooled(c, &x, adaptive(c, &x), x.dtype);
}

void at_shape_adaptive_pool_with_indices(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  int64_t *sizes = adaptive(c, &x);
  put_pooled(c, &x, sizes, x.dtype);
  put_pooled(c, &x, sizes, AOT_I64);
}

/* Gradient of a pool: the input's shape, in its memory format. What was pooled has as many dimensions as the input, and
 * the shape that the window makes of it where the call says a window. */
void at_shape_pool_backward(at_infer_t *c) {
  static const char *const of[] = {"grad_output", "indices"};
  aot_type_t x = at_tensor(c, "self");
  const int32_t space = window_dims(c);
  const int64_t *sizes = at_has(c, "kernel_size") ? pooled(c, &x, space) : NULL;
  if (x.rank != space + 1 && x.rank != space + 2) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)x.rank);
  for (int k = 0; k < 2 && c->status == AOT_OK; k++) {
    if (!at_has(c, of[k])) continue;
    const aot_type_t y = at_tensor(c, of[k]);
    int same = y.rank == x.rank;
    for (int32_t d = 0; same && sizes && d < x.rank; d++) same = !at_differs(c, y.sizes[d], sizes[d]);
    if (!same) at_fail(c, "%s has another shape than what the pool makes of self", of[k]);
  }
  put_pooled(c, &x, x.sizes, x.dtype);
}

/* Windows at pseudo-random steps: as many as output_size says. */
void at_shape_fractional_pool(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self"), samples = at_tensor(c, "random_samples");
  int32_t space = window_dims(c), d;
  int64_t kernel[MAX_SPACE] = {0}, *sizes = adaptive(c, &x);
  spread(c, "kernel_size", space, ones, kernel);
  if (samples.rank != 3 || samples.dtype != x.dtype)
    at_fail(c, "%s: random_samples must be [N, C, %d] of the input's dtype", c->row->name, (int)space);
  for (d = 0; d < space && c->status == AOT_OK; d++)
    if (at_below(c, at_add(c, at_sub(c, x.sizes[x.rank - space + d], sizes[x.rank - space + d]), 1), kernel[d]))
      at_fail(c, "%s: %lld windows of %lld do not fit an input of %lld", c->row->name,
              (long long)at_hint(c, sizes[x.rank - space + d]), (long long)kernel[d],
              (long long)at_hint(c, x.sizes[x.rank - space + d]));
  at_put(c, x.dtype, sizes, x.rank);
  at_put(c, AOT_I64, sizes, x.rank);
}

/* ---- resampling ---- */

/* floor(size * factor). Of a size that is not known yet: by the factor as a fraction, which has to be exact. */
static int64_t resampled(at_infer_t *c, int64_t size, double factor) {
  enum { MOST = 1 << 20 }; /* numerators and denominators */
  int64_t denominator = 1;
  if (!AOT_DIM_IS_SYM(size)) return aot_float_to_int((double)size * factor);
  while (denominator < MOST && factor * (double)denominator != floor(factor * (double)denominator)) denominator *= 2;
  const double numerator = factor * (double)denominator;
  if (numerator == floor(numerator) && numerator >= 0 && numerator <= MOST)
    return at_floordiv(c, at_mul(c, size, (int64_t)numerator), denominator);
  at_fail(c, "%s: a size that is not known yet is resized by %.17g, which is no fraction of a power of two",
          c->row->name, factor);
  return size;
}

static void put_resampled(at_infer_t *c, const char *input, int channels_last) {
  aot_type_t x = at_tensor(c, input);
  int32_t space = x.rank - 2, d;
  const int64_t *out;
  uint32_t n = at_ints(c, "output_size", &out);
  const aot_arg_t *scales = at_arg(c, "scale_factors");
  int64_t *sizes = at_dims_copy(c, x.sizes, x.rank);
  if (space < 1 || space > MAX_SPACE) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)x.rank);
  else if (n == 0 && scales->kind != AOT_ARG_FLOATS) at_fail(c, "%s needs output_size or scale_factors", c->row->name);
  else if ((n ? n : scales->n) != 1 && (n ? n : scales->n) != (uint32_t)space)
    at_fail(c, "%s: %u sizes or factors for %d dimensions", c->row->name, n ? n : scales->n, (int)space);
  for (d = 0; d < space && c->status == AOT_OK; d++) {
    if (n != 0) sizes[2 + d] = out[n == 1 ? 0 : d];
    else sizes[2 + d] = resampled(c, x.sizes[2 + d], scales->u.floats[scales->n == 1 ? 0 : d]);
  }
  if (channels_last) at_put_in_format_of(c, &x, sizes, x.dtype);
  else at_put(c, x.dtype, sizes, x.rank);
}

void at_shape_upsample(at_infer_t *c) { put_resampled(c, at_has(c, "input") ? "input" : "self", 1); }

void at_shape_input_size(at_infer_t *c) { /* upsample_*_backward */
  aot_type_t g = at_tensor(c, "grad_output");
  const int64_t *sizes;
  uint32_t n = at_ints(c, "input_size", &sizes);
  if (n != (uint32_t)g.rank) at_fail(c, "input_size has %u numbers, the gradient has rank %d", n, (int)g.rank);
  else at_put_in_format_of(c, &g, sizes, g.dtype);
}

void at_shape_grid_sampler(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), grid = at_tensor(c, "grid");
  int64_t *sizes = at_dims_copy(c, x.sizes, x.rank);
  int32_t d;
  if (x.rank != grid.rank || x.rank < 4)
    at_fail(c, "a grid of rank %d for an input of rank %d", (int)grid.rank, (int)x.rank);
  if (c->status != AOT_OK) return;
  for (d = 2; d < x.rank; d++) sizes[d] = grid.sizes[d - 1];
  at_put(c, x.dtype, sizes, x.rank);
}

/* Row-major whatever the operands' layout. The grid's gradient is there whether requested or not, as in PyTorch. */
void at_shape_grid_sampler_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "input"), grid = at_tensor(c, "grid");
  if (x.rank != grid.rank || x.rank < 4)
    at_fail(c, "a grid of rank %d for an input of rank %d", (int)grid.rank, (int)x.rank);
  if (wanted(c, 0)) at_put(c, x.dtype, x.sizes, x.rank);
  else at_put_none(c);
  at_put(c, grid.dtype, grid.sizes, grid.rank);
}

/* Gradients of adaptive pools: as many dimensions as the input has, three or four in two dimensions, four or five in
 * three. */
void at_shape_adaptive_pool_backward(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self"), g = at_tensor(c, "grad_output");
  int32_t space = strstr(c->row->name, "3d") != NULL ? 3 : 2;
  if (c->status != AOT_OK) return;
  if (x.rank != g.rank || x.rank < space + 1 || x.rank > space + 2)
    at_fail(c, "the gradient has rank %d and the input %d; both must have %d or %d", (int)g.rank, (int)x.rank,
            (int)space + 1, (int)space + 2);
  else put_pooled(c, &x, x.sizes, x.dtype);
}

/* size is [N, C, ..]: theta [N, d, d+1] for d dimensions, the grid [N, .., d] */
static uint32_t affine_size(at_infer_t *c, const int64_t **size) {
  uint32_t n = at_ints(c, "size", size);
  if (n != 4 && n != 5) at_fail(c, "%s: size has %u numbers, not 4 or 5", c->row->name, n);
  return n;
}

void at_shape_affine_grid(at_infer_t *c) {
  aot_type_t theta = at_tensor(c, "theta");
  const int64_t *size;
  uint32_t n = affine_size(c, &size), d;
  int64_t *sizes = at_dims(c, 5);
  if (c->status != AOT_OK) return;
  if (theta.rank != 3 || at_differs(c, theta.sizes[0], size[0]) || at_differs(c, theta.sizes[1], n - 2) ||
      at_differs(c, theta.sizes[2], n - 1))
    at_fail(c, "theta of %u dimensions must be [%lld, %u, %u]", n - 2, (long long)at_hint(c, size[0]), n - 2, n - 1);
  sizes[0] = size[0];
  for (d = 2; d < n; d++) sizes[d - 1] = size[d];
  sizes[n - 1] = n - 2;
  at_put(c, theta.dtype, sizes, (int32_t)n);
}

/* Transposed in memory, as PyTorch's product leaves it. */
void at_shape_affine_grid_backward(at_infer_t *c) {
  aot_type_t g = at_tensor(c, "grad");
  const int64_t *size;
  uint32_t n = affine_size(c, &size);
  int64_t *sizes = at_dims(c, 3), *strides = at_dims(c, 3);
  if (c->status != AOT_OK) return;
  sizes[0] = size[0];
  sizes[1] = n - 2;
  sizes[2] = n - 1;
  strides[0] = (int64_t)(n - 2) * (n - 1);
  strides[1] = 1;
  strides[2] = n - 2;
  at_put_strided(c, g.dtype, sizes, strides, 3);
}

/* ---- im2col and back ---- */

void at_shape_im2col(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  int64_t kernel[2], dilation[2], pad[2], stride[2], *sizes = at_dims(c, 3), blocks = 1, window = 1;
  int32_t batched = x.rank == 4, d;
  if (x.rank != 3 && x.rank != 4) at_fail(c, "im2col of a tensor of rank %d", (int)x.rank);
  spread(c, "kernel_size", 2, ones, kernel);
  spread(c, "dilation", 2, ones, dilation);
  spread(c, "padding", 2, zeros, pad);
  spread(c, "stride", 2, ones, stride);
  if (c->status != AOT_OK) return;
  for (d = 0; d < 2; d++) {
    blocks = at_mul(c, blocks,
                    conv_out(c, x.sizes[batched + 1 + d], at_mul(c, 2, pad[d]), dilation[d], kernel[d], stride[d]));
    window = at_mul(c, window, kernel[d]);
  }
  sizes[0] = x.sizes[0];
  sizes[batched] = at_mul(c, x.sizes[batched], window);
  sizes[batched + 1] = blocks;
  at_put(c, x.dtype, sizes, batched + 2);
}

void at_shape_col2im(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  int64_t kernel[2], out[2], *sizes = at_dims(c, 4);
  int32_t batched = x.rank == 3;
  spread(c, "kernel_size", 2, ones, kernel);
  spread(c, "output_size", 2, ones, out);
  if (x.rank != 2 && x.rank != 3) at_fail(c, "col2im of a tensor of rank %d", (int)x.rank);
  if (c->status != AOT_OK) return;
  sizes[0] = x.sizes[0];
  sizes[batched] = at_floordiv(c, x.sizes[batched], kernel[0] * kernel[1]);
  sizes[batched + 1] = out[0];
  sizes[batched + 2] = out[1];
  at_put(c, x.dtype, sizes, batched + 3);
}

/* ---- padding ---- */

/* Pairs (before, after) from the last dimension on; negative ones cut. */
static void put_padded(at_infer_t *c, int keep_format) {
  aot_type_t x = at_tensor(c, "self");
  const int64_t *pad;
  uint32_t n = at_ints(c, at_has(c, "pad") ? "pad" : "padding", &pad), i;
  int64_t *sizes = at_dims_copy(c, x.sizes, x.rank);
  if (n % 2 || n / 2 > (uint32_t)x.rank) at_fail(c, "%u padding numbers for a tensor of rank %d", n, (int)x.rank);
  for (i = 0; i < n / 2 && c->status == AOT_OK; i++) {
    int32_t d = x.rank - 1 - (int32_t)i;
    sizes[d] = at_add(c, sizes[d], at_add(c, pad[2 * i], pad[2 * i + 1]));
    if (at_below(c, sizes[d], 0)) at_fail(c, "padding of dim %d cuts more than there is", (int)d);
  }
  if (keep_format) at_put_in_format_of(c, &x, sizes, x.dtype);
  else at_put(c, x.dtype, sizes, x.rank);
}

void at_shape_constant_pad(at_infer_t *c) { put_padded(c, 1); }
void at_shape_pad(at_infer_t *c) { put_padded(c, 0); }

/* Borders come from the other end, once around at most. */
void at_shape_pad_circular(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  const int64_t *pad;
  uint32_t n = at_ints(c, "pad", &pad), i;
  for (i = 0; i < n && i / 2 < (uint32_t)x.rank; i++)
    if (at_below(c, x.sizes[x.rank - 1 - (int32_t)(i / 2)], pad[i]))
      at_fail(c, "circular padding of %lld around a dimension of size %lld", (long long)pad[i],
              (long long)at_hint(c, x.sizes[x.rank - 1 - (int32_t)(i / 2)]));
  at_shape_pad(c);
}

void at_shape_pad_enum(at_infer_t *c) { put_padded(c, at_int(c, "mode") == 3); }
void at_shape_pad_mode(at_infer_t *c) { put_padded(c, at_str_is(c, "mode", "constant")); }

/* max_unpool: the sizes before pooling are given */
void at_shape_unpool(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self"), indices = at_tensor(c, "indices");
  const int64_t *out;
  uint32_t n = at_ints(c, "output_size", &out), d;
  int64_t *sizes = at_dims_copy(c, x.sizes, x.rank);
  if (n == 0 || n > (uint32_t)x.rank) at_fail(c, "output_size has %u numbers for a tensor of rank %d", n, (int)x.rank);
  if (indices.rank != x.rank)
    at_fail(c, "%s: indices of rank %d for an input of rank %d", c->row->name, (int)indices.rank, (int)x.rank);
  for (d = 0; d < (uint32_t)x.rank && c->status == AOT_OK; d++)
    if (at_differs(c, indices.sizes[d], x.sizes[d]))
      at_fail(c, "%s: indices must have the sizes of the input", c->row->name);
  for (d = 0; d < n && c->status == AOT_OK; d++) sizes[x.rank - (int32_t)n + (int32_t)d] = out[d];
  at_put_in_format_of(c, &x, sizes, x.dtype);
}
