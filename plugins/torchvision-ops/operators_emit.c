/* The table of operators, and their shape rules. Schemas: torchvision/csrc/ops. */
#include "operators.h"

#include "kit/base/errors.h"
#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>

/* ---- steps of a shape rule ---- */

static void fail(tv_infer_t *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(tv_infer_t *t, const char *format, ...) {
  char text[256];
  if (t->status != AOT_OK) return;
  const int n = snprintf(text, sizeof text, "%s: ", t->op);
  va_list list;
  va_start(list, format);
  vsnprintf(text + n, sizeof text - (size_t)n, format, list);
  va_end(list);
  const aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, "torchvision.bad-arguments", text);
  t->host->diag(t->host, t->ctx, &d);
  t->status = AOT_E_INVALID;
}

/* The type of a tensor argument, which must have this rank and hold real floating-point numbers. */
static aot_type_t tensor(tv_infer_t *t, int arg, int32_t rank, const char *name) {
  aot_type_t type = {0};
  const aot_value_t v = {t->args[arg].kind == AOT_ARG_VALUE ? (uint32_t)t->args[arg].u.i : AOT_NO_ID};
  if (t->status != AOT_OK) return type;
  if (v.id == AOT_NO_ID || t->host->graph->value_type(t->prog, v, &type) != AOT_OK || type.kind != AOT_TYPE_TENSOR)
    fail(t, "argument %s must be a tensor", name);
  else if (type.rank != rank) fail(t, "%s must have rank %d, not %d", name, (int)rank, (int)type.rank);
  else if (!aot_dtype_is_float(type.dtype))
    fail(t, "%s must be floating-point, not %s", name, aot_dtype_name(type.dtype));
  return type;
}

static int64_t dim(tv_infer_t *t, int32_t op, int64_t a, int64_t b) {
  int64_t out = 0;
  if (t->status == AOT_OK) t->status = t->host->edit->dim_make(t->prog, op, a, b, 0, &out);
  return out;
}

/* A dense result, with the device of `like`. */
static void put(tv_infer_t *t, const aot_type_t *like, int32_t dtype, int32_t rank, const int64_t *sizes) {
  const aot_type_t type = {
      .kind = AOT_TYPE_TENSOR,
      .dtype = dtype,
      .rank = rank,
      .device = like->device,
      .device_index = like->device_index,
      .sizes = sizes,
  };
  if (t->status == AOT_OK) t->status = t->sink->put(t->sink, &type);
}

/* ---- rules ---- */

/* Input [batch, channels, height, width] and regions [n, 5]; bins from argument 3 on. The input, and sizes with all
 * its channels. */
static aot_type_t input_of(tv_infer_t *t, int64_t sizes[4]) {
  const aot_type_t input = tensor(t, 0, 4, "input"), regions = tensor(t, 1, 2, "rois");
  if (t->status == AOT_OK && t->host->graph->dim_hint(t->prog, regions.sizes[1]) != 5)
    fail(t, "rois must have rows of five numbers");
  if (t->status == AOT_OK && regions.dtype != input.dtype) fail(t, "input and rois must have one dtype");
  if (t->status != AOT_OK) return input;
  sizes[0] = regions.sizes[0];
  sizes[1] = input.sizes[1];
  sizes[2] = t->args[3].u.i;
  sizes[3] = t->args[4].u.i;
  return input;
}

static void infer_align(tv_infer_t *t) {
  int64_t sizes[4] = {0};
  const aot_type_t input = input_of(t, sizes);
  put(t, &input, input.dtype, 4, sizes);
}

static void infer_pool(tv_infer_t *t) {
  int64_t sizes[4] = {0};
  const aot_type_t input = input_of(t, sizes);
  put(t, &input, input.dtype, 4, sizes);
  put(t, &input, AOT_I32, 4, sizes);
}

/* Each bin has channels of its own. */
static void infer_by_position(tv_infer_t *t) {
  int64_t sizes[4] = {0};
  const aot_type_t input = input_of(t, sizes);
  const int64_t bins = dim(t, AOT_EXPR_MUL, sizes[2], sizes[3]);
  if (t->status == AOT_OK &&
      (t->host->graph->dim_hint(t->prog, bins) < 1 ||
       t->host->graph->dim_hint(t->prog, sizes[1]) % t->host->graph->dim_hint(t->prog, bins) != 0))
    fail(t, "the channels of input must be a multiple of the number of bins");
  sizes[1] = dim(t, AOT_EXPR_FLOORDIV, sizes[1], bins);
  put(t, &input, input.dtype, 4, sizes);
  put(t, &input, AOT_I32, 4, sizes);
}

/* The gradient of the input: its four sizes are arguments, from `first` on. */
static void put_image(tv_infer_t *t, int first) {
  const aot_type_t gradient = tensor(t, 0, 4, "grad");
  const int64_t sizes[4] = {t->args[first].u.i, t->args[first + 1].u.i, t->args[first + 2].u.i, t->args[first + 3].u.i};
  put(t, &gradient, gradient.dtype, 4, sizes);
}
static void infer_align_backward(tv_infer_t *t) { put_image(t, 5); }
static void infer_pool_backward(tv_infer_t *t) { put_image(t, 6); }
static void infer_ps_align_backward(tv_infer_t *t) { put_image(t, 7); }

/* (size + 2 pad - dilation (kernel - 1) - 1) / stride + 1 */
static int64_t convolved(tv_infer_t *t, int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  const int64_t reach = dim(t, AOT_EXPR_MUL, dilation, dim(t, AOT_EXPR_SUB, kernel, 1));
  const int64_t room =
      dim(t, AOT_EXPR_SUB, dim(t, AOT_EXPR_ADD, size, dim(t, AOT_EXPR_MUL, 2, pad)), dim(t, AOT_EXPR_ADD, reach, 1));
  if (t->status == AOT_OK && t->host->graph->dim_hint(t->prog, stride) < 1) fail(t, "strides must be positive");
  return dim(t, AOT_EXPR_ADD, dim(t, AOT_EXPR_FLOORDIV, room, stride), 1);
}

static void infer_deform_conv(tv_infer_t *t) {
  enum { STRIDE_Y = 5, STRIDE_X, PAD_Y, PAD_X, DILATION_Y, DILATION_X, GROUPS, OFFSET_GROUPS, USE_MASK };
  const aot_type_t input = tensor(t, 0, 4, "input"), weight = tensor(t, 1, 4, "weight"),
                   offset = tensor(t, 2, 4, "offset");
  const aot_type_t bias = tensor(t, 4, 1, "bias");
  if (t->args[USE_MASK].u.i) tensor(t, 3, 4, "mask");
  if (t->status != AOT_OK) return;
  const aot_arg_t *a = t->args;
  const int64_t sizes[4] = {
      input.sizes[0], weight.sizes[0],
      convolved(t, input.sizes[2], weight.sizes[2], a[STRIDE_Y].u.i, a[PAD_Y].u.i, a[DILATION_Y].u.i),
      convolved(t, input.sizes[3], weight.sizes[3], a[STRIDE_X].u.i, a[PAD_X].u.i, a[DILATION_X].u.i)};
  const aot_graph_api_t *api = t->host->graph;
  const int64_t groups = a[GROUPS].u.i, offset_groups = a[OFFSET_GROUPS].u.i,
                channels = api->dim_hint(t->prog, input.sizes[1]);
  if (groups < 1 || offset_groups < 1 || channels % groups || channels % offset_groups ||
      api->dim_hint(t->prog, sizes[1]) % groups)
    fail(t, "channels must be multiples of the groups and offset groups");
  else if (channels != groups * api->dim_hint(t->prog, weight.sizes[1]))
    fail(t, "input has other channels than weight");
  else if (api->dim_hint(t->prog, offset.sizes[1]) !=
           2 * offset_groups * api->dim_hint(t->prog, weight.sizes[2]) * api->dim_hint(t->prog, weight.sizes[3]))
    fail(t, "offset must have two channels for each offset group and kernel element");
  else if (api->dim_hint(t->prog, bias.sizes[0]) != api->dim_hint(t->prog, sizes[1]))
    fail(t, "bias must have a number for each filter");
  else if (api->dim_hint(t->prog, offset.sizes[2]) != api->dim_hint(t->prog, sizes[2]) ||
           api->dim_hint(t->prog, offset.sizes[3]) != api->dim_hint(t->prog, sizes[3]))
    fail(t, "offset must have the height and width of the output");
  put(t, &input, input.dtype, 4, sizes);
}

static void infer_deform_conv_backward(tv_infer_t *t) {
  for (int arg = 1; arg <= 5 && t->status == AOT_OK; arg++) {
    aot_type_t type = {0};
    const aot_value_t v = {(uint32_t)t->args[arg].u.i};
    t->status = t->host->graph->value_type(t->prog, v, &type);
    put(t, &type, type.dtype, type.rank, type.sizes);
  }
}

static void infer_nms_keep(tv_infer_t *t) {
  const aot_type_t boxes = tensor(t, 0, 2, "dets");
  if (t->status == AOT_OK && t->host->graph->dim_hint(t->prog, boxes.sizes[1]) != 4)
    fail(t, "dets must have rows of four numbers");
  put(t, &boxes, AOT_BOOL, 1, boxes.sizes);
}

/* ---- the table ---- */

#define OP(name, ...) "torchvision." name ".default", __VA_ARGS__
#define NOWHERE 0, 0
#define ON_CUDA 0, AOT_AUTOCAST_F32_AND_BACK
#define BOTH AOT_AUTOCAST_F32_AND_BACK, AOT_AUTOCAST_F32_AND_BACK
const tv_operator_t tv_operators[] = {
    {OP("roi_align", "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, int "
                     "sampling_ratio, "
                     "bool aligned) -> Tensor"),
     "means of interpolated points of regions", "regions", 0, infer_align, BOTH},
    {OP("_roi_align_backward",
        "(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, SymInt batch_size, "
        "SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor"),
     "its gradient by input", "image", AOT_OP_NO_GRAD, infer_align_backward, NOWHERE},
    {OP("roi_pool", "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> "
                    "(Tensor, Tensor)"),
     "largest elements of regions, and where they are", "regions", 0, infer_pool, ON_CUDA},
    {OP("_roi_pool_backward",
        "(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
        "SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor"),
     "its gradient by input", "image", AOT_OP_NO_GRAD, infer_pool_backward, NOWHERE},
    {OP("ps_roi_align", "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
                        "int sampling_ratio) -> "
                        "(Tensor, Tensor)"),
     "roi_align with channels of its own for each bin", "regions_by_position", 0, infer_by_position, ON_CUDA},
    {OP("_ps_roi_align_backward",
        "(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, SymInt "
        "pooled_width, "
        "int sampling_ratio, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor"),
     "its gradient by input", "image", AOT_OP_NO_GRAD, infer_ps_align_backward, NOWHERE},
    {OP("ps_roi_pool", "(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> "
                       "(Tensor, Tensor)"),
     "means of regions with channels of its own for each bin", "regions_by_position", 0, infer_by_position, ON_CUDA},
    {OP("_ps_roi_pool_backward", "(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt "
                                 "pooled_height, SymInt pooled_width, "
                                 "SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor"),
     "its gradient by input", "image", AOT_OP_NO_GRAD, infer_pool_backward, NOWHERE},
    {OP("deform_conv2d", "(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
                         "SymInt stride_w, SymInt pad_h, "
                         "SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, "
                         "bool use_mask) -> Tensor"),
     "convolution whose sampling points are moved", "deform_conv", AOT_OP_HEAVY, infer_deform_conv, ON_CUDA},
    {OP("_deform_conv2d_backward", "(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor "
                                   "bias, SymInt stride_h, SymInt stride_w, "
                                   "SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
                                   "SymInt offset_groups, bool use_mask) -> "
                                   "(Tensor, Tensor, Tensor, Tensor, Tensor)"),
     "its gradients", "like_operands", AOT_OP_HEAVY | AOT_OP_NO_GRAD, infer_deform_conv_backward, NOWHERE},
    {OP("nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"),
     "numbers of the boxes that overlap no better one", "given", AOT_OP_EFFECT | AOT_OP_NO_GRAD, NULL, BOTH},
    {OP("_nms_keep", "(Tensor dets, Tensor order, float iou_threshold) -> Tensor"),
     "which boxes of an order overlap no earlier one", "kept", AOT_OP_NO_GRAD, infer_nms_keep, NOWHERE},
};
const uint32_t tv_n_operators = sizeof tv_operators / sizeof *tv_operators;
