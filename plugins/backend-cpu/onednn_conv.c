/* Convolutions. oneDNN is asked for the layouts that it prefers; operands in others are reordered there and back.
 * Channels-last operands are used in their layout. Weights are packed with every call: a step of training changes
 * them. */
#include "onednn_build.h"

#include <string.h>

enum { X, W, B, Y, N_OPERANDS };

/* Of an image: how many, channels, depth, height, width. */
enum { IMAGE_RANK = 2 + BC_CONV_RANK };

typedef struct shapes {
  dnnl_memory_desc_t own[N_OPERANDS];   /* as the caller's operands lie */
  dnnl_memory_desc_t liked[N_OPERANDS]; /* as the primitive is to choose, or reported */
  dnnl_dims_t stride, dilation, pad;
} shapes_t;

static int is_channels_last(const int64_t *strides, int64_t channels) {
  return channels > 1 && strides[1] == 1 && strides[IMAGE_RANK - 1] >= channels;
}

/* Its first dimension; kernels over two are faster, and more. */
static int first_of(const bc_conv_t *c) { return bc_conv_is_flat(c) ? BC_HEIGHT : BC_DEPTH; }

static int strided(dnnl_memory_desc_t *out, const bc_dnn_conv_t *c, int rank, const dnnl_dims_t sizes,
                   const dnnl_dims_t strides) {
  return lib()->dnnl_memory_desc_init_by_strides(out, rank, sizes, bc_dnn_type(c->dtype), strides) == dnnl_success;
}

/* Of the dimensions that `lead` has, n_lead, and those over which the convolution goes. */
static int shape(dnnl_memory_desc_t *out, const bc_dnn_conv_t *c, int n_lead, const int64_t *lead,
                 const int64_t *lead_strides, const int64_t *size, const int64_t *strides) {
  dnnl_dims_t sizes, steps;
  int rank = 0;
  for (; rank < n_lead; rank++) {
    sizes[rank] = lead[rank];
    steps[rank] = lead_strides[rank];
  }
  for (int d = first_of(&c->conv); d < BC_CONV_RANK; d++, rank++) {
    sizes[rank] = size[d];
    steps[rank] = strides[d];
  }
  return strided(out, c, rank, sizes, steps);
}

static int image_shape(dnnl_memory_desc_t *out, const bc_dnn_conv_t *c, int64_t channels, const int64_t *size,
                       const int64_t *at) {
  return shape(out, c, 2, (int64_t[]){c->conv.n_batch, channels}, at, size, at + 2);
}

static int weight_shape(dnnl_memory_desc_t *out, const bc_dnn_conv_t *c) {
  const bc_conv_t *v = &c->conv;
  const int64_t *at = c->w_strides, co = v->c_out / v->groups, ci = v->c_in / v->groups;
  if (v->groups == 1) return shape(out, c, 2, (int64_t[]){co, ci}, at, v->kernel, at + 2);
  return shape(out, c, 3, (int64_t[]){v->groups, co, ci}, (int64_t[]){at[0] * co, at[0], at[1]}, v->kernel, at + 2);
}

static int own_shapes(const bc_dnn_conv_t *c, shapes_t *s) {
  const dnnl_dims_t channels = {c->conv.c_out}, dense = {1};
  const int first = first_of(&c->conv);
  for (int d = first; d < BC_CONV_RANK; d++) {
    s->stride[d - first] = c->conv.stride[d];
    s->dilation[d - first] = c->conv.dilation[d] - 1;
    s->pad[d - first] = c->conv.pad[d];
  }
  return image_shape(&s->own[X], c, c->conv.c_in, c->conv.in, c->x_strides) &&
         image_shape(&s->own[Y], c, c->conv.c_out, c->conv.out, c->y_strides) && weight_shape(&s->own[W], c) &&
         strided(&s->own[B], c, 1, channels, dense);
}

/* Images channels last, or as the primitive likes. */
static int like(const bc_dnn_conv_t *c, int channels_last, shapes_t *s) {
  const dnnl_format_tag_t last = bc_conv_is_flat(&c->conv) ? dnnl_nhwc : dnnl_ndhwc;
  const dnnl_format_tag_t tag = channels_last ? last : dnnl_format_tag_any;
  int ok = 1;
  for (int k = 0; k < N_OPERANDS && ok; k++) {
    const dnnl_memory_desc_t *own = &s->own[k];
    s->liked[k] = *own;
    if (k != B)
      ok = lib()->dnnl_memory_desc_init_by_tag(&s->liked[k], own->ndims, own->dims, bc_dnn_type(c->dtype),
                                               k == W ? dnnl_format_tag_any : tag) == dnnl_success;
  }
  return ok;
}

/* Towards the weights of a depthwise convolution others than those made for it multiply blocks of 16 x 16 channels, of
 * which 16 are there. */
static const char *kind_of(const bc_conv_t *c, int what) {
  return what == BC_CONV_WEIGHTS && c->groups == c->c_in && c->groups == c->c_out && c->groups > 1 ? "dw" : "";
}

/* Not the reference implementation, and none that is im2col and a product: conv_kernels.c does that. */
static int is_fast(const_dnnl_primitive_desc_t made, const char *kind) {
  const char *name = bc_dnn_implementation(made);
  return strncmp(name, "ref", 3) != 0 && strstr(name, "gemm") == NULL && strstr(name, kind) != NULL;
}

static dnnl_primitive_desc_t describe(const bc_dnn_conv_t *c, int what, const shapes_t *s) {
  const dnnl_memory_desc_t *x = &s->liked[X], *w = &s->liked[W], *b = c->has_bias ? &s->liked[B] : NULL,
                           *y = &s->liked[Y];
  dnnl_primitive_desc_t forward = NULL, made = NULL;
  dnnl_convolution_desc_t d;
  dnnl_primitive_attr_t attributes = bc_dnn_attributes();
  int ok = attributes && lib()->dnnl_dilated_convolution_forward_desc_init(
                             &d, dnnl_forward_training, dnnl_convolution_direct, x, w, b, y, s->stride, s->dilation,
                             s->pad, s->pad) == dnnl_success;
  ok = ok && lib()->dnnl_primitive_desc_create(&forward, &d, attributes, lib()->engine, NULL) == dnnl_success;
  if (ok && what == BC_CONV_DATA)
    ok = lib()->dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, x, w, y, s->stride,
                                                                 s->dilation, s->pad, s->pad) == dnnl_success;
  if (ok && what == BC_CONV_WEIGHTS)
    ok = lib()->dnnl_dilated_convolution_backward_weights_desc_init(
             &d, dnnl_convolution_direct, x, w, NULL, y, s->stride, s->dilation, s->pad, s->pad) == dnnl_success;
  if (what == BC_CONV_FORWARD) made = forward;
  else if (ok) ok = lib()->dnnl_primitive_desc_create(&made, &d, attributes, lib()->engine, forward) == dnnl_success;
  if (what != BC_CONV_FORWARD && forward) lib()->dnnl_primitive_desc_destroy(forward);
  if (attributes) lib()->dnnl_primitive_attr_destroy(attributes);
  if (ok && is_fast(made, kind_of(&c->conv, what))) return made;
  if (made) lib()->dnnl_primitive_desc_destroy(made);
  return NULL;
}

/* What each direction calls its operands; which of them is the result. */
static const struct {
  dnnl_query_t query[N_OPERANDS];
  int arg[N_OPERANDS], result;
} directions[] = {
    [BC_CONV_FORWARD] = {{dnnl_query_src_md, dnnl_query_weights_md, 0, dnnl_query_dst_md},
                         {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
                         Y},
    [BC_CONV_DATA] = {{dnnl_query_diff_src_md, dnnl_query_weights_md, 0, dnnl_query_diff_dst_md},
                      {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, 0, DNNL_ARG_DIFF_DST},
                      X},
    [BC_CONV_WEIGHTS] = {{dnnl_query_src_md, dnnl_query_diff_weights_md, 0, dnnl_query_diff_dst_md},
                         {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, 0, DNNL_ARG_DIFF_DST},
                         W},
};

/* Copies before, the convolution, a copy of the result after it. */
static int add_calls(bc_dnn_t *k, const bc_dnn_conv_t *c, int what, const shapes_t *s,
                     const_dnnl_primitive_desc_t made) {
  const int result = directions[what].result;
  int own[N_OPERANDS], used[N_OPERANDS];
  for (int o = 0; o < N_OPERANDS; o++) {
    if (o == B) continue;
    const dnnl_memory_desc_t *liked = lib()->dnnl_primitive_desc_query_md(made, directions[what].query[o], 0);
    if (!liked) return 0;
    own[o] = used[o] = bc_dnn_place(k, &s->own[o], o);
    if (o == result && !lib()->dnnl_memory_desc_equal(liked, &s->own[o])) used[o] = bc_dnn_place(k, liked, BC_DNN_WORK);
    if (o != result) used[o] = bc_dnn_read_as(k, own[o], liked);
    if (used[o] < 0) return 0;
  }
  bc_dnn_call_t *call = bc_dnn_call(k, made);
  if (!call) return 0;
  for (int o = 0; o < N_OPERANDS; o++)
    if (o != B) bc_dnn_arg(call, directions[what].arg[o], used[o]);
  if (c->has_bias && what == BC_CONV_FORWARD) bc_dnn_arg(call, DNNL_ARG_BIAS, bc_dnn_place(k, &s->own[B], B));
  return used[result] == own[result] || bc_dnn_copy(k, used[result], own[result]);
}

/* Blocks of 16 channels of which few are there are mostly zeros: a gradient towards the pixels. */
static int is_mostly_padding(const bc_conv_t *c, int what) {
  return what == BC_CONV_DATA && c->groups == 1 && c->c_in < 16;
}

static int make_conv(bc_dnn_t *k, const bc_dnn_conv_t *c, int what) {
  shapes_t s;
  dnnl_primitive_desc_t made = NULL;
  if (!own_shapes(c, &s)) return 0;
  if ((is_channels_last(c->x_strides, c->conv.c_in) || is_channels_last(c->y_strides, c->conv.c_out)) && like(c, 1, &s))
    made = describe(c, what, &s);
  if (!made && like(c, 0, &s)) made = describe(c, what, &s);
  if (!made) return 0;
  const int ok = add_calls(k, c, what, &s, made);
  lib()->dnnl_primitive_desc_destroy(made);
  return ok;
}

bc_dnn_t *bc_dnn_conv(const bc_dnn_conv_t *c, int what, int32_t n_lanes) {
  bc_dnn_t *k = is_mostly_padding(&c->conv, what) ? NULL : bc_dnn_new(n_lanes);
  if (!k) return NULL;
  const int before = dn_begin();
  k = bc_dnn_finish(k, make_conv(k, c, what));
  dn_end(before);
  return k;
}
