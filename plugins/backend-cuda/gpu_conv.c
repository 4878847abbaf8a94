/* Convolutions over one to three dimensions, transposed ones too: products where windows are patches; depthwise ones
 * channels last by kernels of their own; by cuDNN as operands lie, else on copies that are in the way of the first one,
 * else dense ones; what it does not take, or where it is missing, by other kernels of their own. */
#include "gpu_conv.h"

#include "kit/lowering/conv_call.h"
#include "kit/lowering/transaction.h"
#include "conv_layout.h"
#include "direct_conv.h"
#include "depthwise_printer.h"
#include "cudnn/gpu_dnn.h"
#include "patch_embed_gemm.h"
#include "nvrtc_kernel.h"
#include <string.h>

/* Lines are images of height 1. */
static void set_tensor(gc_conv_t *c, int what, const lw_tensor_t *t) {
  const int32_t extra = c->rank + 2 - t->rank;
  int64_t *sizes = c->sizes[what], *strides = c->strides[what];
  for (int32_t d = 0; d < t->rank; d++) {
    const int32_t at = d < 2 ? d : d + extra;
    sizes[at] = t->sizes[d];
    strides[at] = t->strides[d];
  }
  if (!extra) return;
  sizes[2] = 1;
  strides[2] = sizes[3] * strides[3];
}

static gc_conv_t describe(const lw_conv_t *call, const lw_tensor_t *t) {
  gc_conv_t c = {.dtype = call->x->dtype, .rank = call->rank < 2 ? 2 : call->rank};
  const int32_t extra = c.rank - call->rank;
  c.window.rank = c.rank;
  for (int32_t d = 0; d < c.rank; d++) {
    c.window.stride[d] = d < extra ? 1 : call->stride[d - extra];
    c.window.dilation[d] = d < extra ? 1 : call->dilation[d - extra];
    c.window.pad[d] = d < extra ? 0 : call->pad[d - extra];
  }
  for (int what = 0; what < GC_CONV_N_TENSORS; what++) set_tensor(&c, what, &t[what]);
  return c;
}

static int result_of(int32_t kind) {
  return kind == GC_DNN_CONV_FORWARD ? GC_CONV_Y : kind == GC_DNN_CONV_DATA ? GC_CONV_X : GC_CONV_W;
}

/* ---- cuDNN ---- */

static int is_dnn_dtype(int32_t dtype) { return dtype == AOT_F32 || dtype == AOT_F16 || dtype == AOT_BF16; }

/* An element represents several: gradients of sums. */
static int is_spread(const lw_tensor_t *t) {
  for (int32_t d = 0; d < t->rank; d++)
    if (t->sizes[d] > 1 && t->strides[d] == 0) return 1;
  return 0;
}

static const gc_dnn_plan_t *plan_of(lw_build_t *b, const lw_conv_t *call, int32_t kind, const lw_tensor_t *t,
                                    gc_dnn_graph_t *graph) {
  gc_conv_t c = describe(call, t);
  const int last = gc_is_channels_last(&t[GC_CONV_X]);
  for (int what = 0; what < GC_CONV_N_TENSORS; what++) {
    if (!gc_is_aligned_for_dnn(b, &t[what]) || is_spread(&t[what])) return NULL;
    gc_tidy_strides(c.sizes[what], c.strides[what], c.rank + 2, last);
    if (!gc_is_first_or_last(c.sizes[what], c.strides[what], c.rank + 2)) return NULL;
  }
  gc_conv_graph(&c, kind, graph);
  return gc_dnn_plan_of(b, graph);
}

/* As they lie; all channels last where the image or the output has them there; all channels first. */
static aot_status_t add_by_dnn(lw_build_t *b, const lw_conv_t *call, int32_t kind, const lw_tensor_t *t) {
  enum { AS_IT_LIES, CHANNELS_LAST, CHANNELS_FIRST, N_LAYOUTS };
  const int result = result_of(kind);
  const int has_last = gc_is_channels_last(&t[GC_CONV_X]) || gc_is_channels_last(&t[GC_CONV_Y]);
  const gc_dnn_plan_t *plan = NULL;
  lw_tensor_t lies[GC_CONV_N_TENSORS];
  gc_dnn_graph_t graph;
  if (!is_dnn_dtype(t[result].dtype)) return LW_DECLINED;
  for (int layout = 0; layout < N_LAYOUTS && !plan; layout++) {
    if (layout == CHANNELS_LAST && !has_last) continue;
    for (int what = 0; what < GC_CONV_N_TENSORS; what++)
      lies[what] = layout == AS_IT_LIES ? t[what] : gc_laid_out(&t[what], layout == CHANNELS_LAST);
    plan = plan_of(b, call, kind, lies, &graph);
  }
  if (!plan) return LW_DECLINED;
  for (int what = 0; what < GC_CONV_N_TENSORS; what++) {
    if (lw_same_geometry(&lies[what], &t[what])) continue;
    AOT_TRY(lw_new_tensor(b, &lies[what]));
    if (what != result) AOT_TRY(lw_copy(b, &lies[what], &t[what]));
  }
  AOT_TRY(gc_add_dnn(b, plan, &graph, lies, GC_CONV_N_TENSORS));
  return lw_same_geometry(&lies[result], &t[result]) ? AOT_OK : lw_copy(b, &t[result], &lies[result]);
}

/* ---- kernels of their own ---- */

static int is_float(int32_t dtype) { return is_dnn_dtype(dtype) || dtype == AOT_F64; }

/* t: what the kernel does not read or write has no storage. */
static aot_status_t add_kernel(lw_build_t *b, const gc_conv_kernel_t *kernel, const lw_tensor_t *t) {
  const lw_tensor_t *const tensors[] = {&t[GC_CONV_X], &t[GC_CONV_W], &t[GC_CONV_Y]};
  gc_own_kernel_t own = {
      .kind = "conv", .print = gc_print_conv, .self = kernel, .writes = 1u << result_of(kernel->kind)};
  gc_conv_launch(kernel, &own.blocks, &own.threads);
  AOT_TRY(gc_add_own_kernel(b, &own, tensors, GC_CONV_N_TENSORS));
  lw_count_flops(b, gc_conv_flops(kernel), t[GC_CONV_Y].dtype);
  return AOT_OK;
}

static int are_pairs(const lw_build_t *b, const lw_tensor_t *t) {
  return gc_alignment_of(b, t) >= 2 * aot_dtype_size(t->dtype);
}

/* The sum over `parts` as the weights lie. */
static aot_status_t add_parts(lw_build_t *b, const lw_tensor_t *weights, const lw_tensor_t *parts) {
  lw_tensor_t spread = *parts;
  spread.dtype = weights->dtype;
  spread.storage = weights->storage;
  spread.offset = weights->offset;
  spread.strides[0] = 0;
  spread.strides[1] = weights->strides[2];
  spread.strides[2] = weights->strides[3];
  spread.strides[3] = weights->strides[0];
  return gc_add_sums(b, &spread, parts, 1u);
}

static aot_status_t add_depthwise(lw_build_t *b, const lw_conv_t *call, int32_t kind, const lw_tensor_t *t,
                                  const lw_tensor_t *bias) {
  const gc_depthwise_t d = {describe(call, t), kind, bias != NULL};
  const int64_t *w = d.conv.sizes[GC_CONV_W];
  gc_own_kernel_t own = {.kind = "depthwise", .print = gc_print_depthwise, .self = &d};
  if (!gc_is_depthwise(&d.conv) || !are_pairs(b, &t[GC_CONV_X]) || !are_pairs(b, &t[GC_CONV_Y])) return LW_DECLINED;
  if (bias && bias->strides[0] != 1) return LW_DECLINED;
  lw_tensor_t parts = {.dtype = AOT_F32, .rank = 4, .sizes = {gc_depthwise_parts(&d), w[2], w[3], w[0]}};
  const int of_weights = kind == GC_DNN_CONV_WEIGHTS;
  if (of_weights) {
    lw_make_contiguous(&parts);
    AOT_TRY(lw_new_tensor(b, &parts));
  }
  const lw_tensor_t *const tensors[GC_DEPTHWISE_N_POINTERS] = {&t[GC_CONV_X], of_weights ? NULL : &t[GC_CONV_W],
                                                               &t[GC_CONV_Y], of_weights ? &parts : bias};
  gc_depthwise_launch(&d, &own.blocks, &own.threads);
  own.writes = 1u << (of_weights ? GC_DEPTHWISE_N_POINTERS - 1 : result_of(kind));
  AOT_TRY(gc_add_own_kernel(b, &own, tensors, GC_DEPTHWISE_N_POINTERS));
  const gc_conv_kernel_t counted = {d.conv, kind};
  lw_count_flops(b, gc_conv_flops(&counted), d.conv.dtype);
  return of_weights ? add_parts(b, &t[GC_CONV_W], &parts) : AOT_OK;
}

/* By what needs no library of convolutions; bias: of a forward. LW_DECLINED: nothing has changed. */
static aot_status_t add_directly(lw_build_t *b, const lw_conv_t *call, int32_t kind, const lw_tensor_t *t,
                                 const lw_tensor_t *bias) {
  const int is_patches = gc_is_patches(call, t);
  lw_transaction_t directly;
  lw_begin(b, &directly);
  return lw_end(b, &directly,
                is_patches ? gc_lower_patches(b, call, kind, t, bias) : add_depthwise(b, call, kind, t, bias));
}

static aot_status_t add_conv(lw_build_t *b, const lw_conv_t *call, int32_t kind, const lw_tensor_t *t) {
  aot_status_t status = add_directly(b, call, kind, t, NULL);
  if (status == LW_DECLINED) {
    lw_transaction_t by_dnn;
    lw_begin(b, &by_dnn);
    status = lw_end(b, &by_dnn, add_by_dnn(b, call, kind, t));
  }
  if (status != LW_DECLINED) return status;
  const gc_conv_kernel_t kernel = {describe(call, t), kind};
  return add_kernel(b, &kernel, t);
}

/* ---- nodes ---- */

/* The bias of an image's channels at each of its elements. */
static lw_tensor_t spread_bias(const lw_tensor_t *image, const lw_tensor_t *bias) {
  lw_tensor_t spread = *image;
  spread.storage = bias->storage;
  spread.offset = bias->offset;
  memset(spread.strides, 0, sizeof spread.strides);
  spread.strides[1] = bias->strides[0];
  return spread;
}

static aot_status_t add_bias(lw_build_t *b, const lw_tensor_t *image, const lw_tensor_t *bias) {
  const lw_tensor_t spread = spread_bias(image, bias);
  return b->machine->target->add(b, image, &spread);
}

static aot_status_t add_bias_gradient(lw_build_t *b, const lw_tensor_t *gradient, const lw_tensor_t *gb) {
  const lw_tensor_t spread = spread_bias(gradient, gb);
  return gc_add_sums(b, &spread, gradient, ((1u << gradient->rank) - 1) & ~2u /* all but channels */);
}

static aot_status_t lower_forward(lw_build_t *b) {
  lw_tensor_t t[GC_CONV_N_TENSORS];
  lw_conv_t call;
  if (!lw_conv_call(b, &call) || !is_float(call.x->dtype)) return LW_DECLINED;
  const int in = call.is_transposed ? GC_CONV_Y : GC_CONV_X, out = call.is_transposed ? GC_CONV_X : GC_CONV_Y;
  t[in] = *call.in;
  t[GC_CONV_W] = *call.weight;
  AOT_TRY(lw_result(b, 0, &t[out]));
  const aot_status_t status =
      call.is_transposed ? LW_DECLINED : add_directly(b, &call, GC_DNN_CONV_FORWARD, t, call.bias);
  if (status != LW_DECLINED) return status;
  AOT_TRY(add_conv(b, &call, call.is_transposed ? GC_DNN_CONV_DATA : GC_DNN_CONV_FORWARD, t));
  return call.bias ? add_bias(b, &t[out], call.bias) : AOT_OK;
}

static aot_status_t lower_backward(lw_build_t *b) {
  lw_tensor_t t[GC_CONV_N_TENSORS], results[3];
  lw_conv_t call;
  if (!lw_conv_backward_call(b, &call) || !is_float(call.x->dtype)) return LW_DECLINED;
  const int in = call.is_transposed ? GC_CONV_Y : GC_CONV_X;
  t[GC_CONV_X] = *call.x;
  t[GC_CONV_W] = *call.weight;
  t[GC_CONV_Y] = *call.y;
  for (uint32_t r = 0; r < 3; r++) AOT_TRY(lw_result(b, r, &results[r]));
  if (results[0].dtype) {
    lw_tensor_t of[] = {t[GC_CONV_X], t[GC_CONV_W], t[GC_CONV_Y]};
    of[in] = results[0];
    AOT_TRY(add_conv(b, &call, call.is_transposed ? GC_DNN_CONV_FORWARD : GC_DNN_CONV_DATA, of));
  }
  if (results[1].dtype) {
    const lw_tensor_t of[] = {t[GC_CONV_X], results[1], t[GC_CONV_Y]};
    AOT_TRY(add_conv(b, &call, GC_DNN_CONV_WEIGHTS, of));
  }
  return results[2].dtype ? add_bias_gradient(b, call.out, &results[2]) : AOT_OK;
}

static const lw_lowering_t rows[] = {
    {"aten.conv1d.default", lower_forward},         {"aten.conv2d.default", lower_forward},
    {"aten.conv3d.default", lower_forward},         {"aten.conv_transpose1d.default", lower_forward},
    {"aten.conv_transpose2d.input", lower_forward}, {"aten.conv_transpose3d.input", lower_forward},
    {"aten.convolution.default", lower_forward},    {"aten.convolution_backward.default", lower_backward},
};
const lw_lowering_table_t gc_lowerings_conv = LW_TABLE(rows);
