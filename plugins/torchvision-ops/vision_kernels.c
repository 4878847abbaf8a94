/* From a call with tensors of any strides to the algorithms, which see dense arrays of double: operands are read,
 * results written, here alone. Arguments are named by their numbers in the schemas of operators_emit.c. */
#include "vision_kernels.h"

#include "deform_conv.h"
#include "dense.h"
#include "nms.h"
#include "roi_align.h"
#include "roi_pool.h"

#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_ARGS = 16, MAX_RESULTS = 5 };

/* One call with its operands read and its results zeroed. */
typedef struct dense_call {
  const aot_kernel_call_t *call;
  double *in[MAX_ARGS]; /* NULL where the argument is no tensor */
  double *out[MAX_RESULTS];
} dense_call_t;

/* What follows a kernel's self. */
typedef struct row {
  aot_status_t (*run)(const dense_call_t *c);
} row_t;

static aot_status_t bad(const aot_kernel_call_t *c, const char *text) {
  snprintf(c->message, c->message_size, "%s", text);
  return AOT_E_INVALID;
}

static const aot_tensor_t *tensor(const dense_call_t *c, int arg) { return c->call->args[arg].u.tensor; }
static int64_t whole(const dense_call_t *c, int arg) { return c->call->args[arg].u.i; }

/* ---- operators over regions ---- */

/* The regions of argument 1, the scale and bins from argument `first` on, and the shape of the images. */
static aot_status_t grid_of(const dense_call_t *c, int first, const int64_t *image_sizes, tv_regions_t *out) {
  const aot_tensor_t *regions = tensor(c, 1);
  *out = (tv_regions_t){
      .regions = c->in[1],
      .n_regions = regions->sizes[0],
      .batch = image_sizes[0],
      .channels = image_sizes[1],
      .height = image_sizes[2],
      .width = image_sizes[3],
      .scale = c->call->args[first].u.f,
      .bins_y = whole(c, first + 1),
      .bins_x = whole(c, first + 2),
      .is_single = regions->dtype == AOT_F32,
  };
  const int64_t k = tv_first_bad_region(out);
  if (k == out->n_regions) return AOT_OK;
  snprintf(c->call->message, c->call->message_size,
           "region %lld is (%g, %g, %g, %g, %g): the first names one of %lld images, corners lie within %g elements",
           (long long)k, c->in[1][5 * k], c->in[1][5 * k + 1], c->in[1][5 * k + 2], c->in[1][5 * k + 3],
           c->in[1][5 * k + 4], (long long)out->batch, TV_FARTHEST);
  return AOT_E_INVALID;
}

/* The number of each channel that a position-sensitive bin reads. */
static void channel_mapping(const tv_regions_t *r, double *out) {
  const int64_t per_region = r->channels / (r->bins_y * r->bins_x) * r->bins_y * r->bins_x;
  for (int64_t i = 0; i < r->n_regions * per_region; i++) out[i] = (double)(i % per_region);
}

static aot_status_t run_roi_align(const dense_call_t *c) {
  tv_align_t a = {.samples = whole(c, 5), .aligned = (int32_t)whole(c, 6)};
  AOT_TRY(grid_of(c, 2, tensor(c, 0)->sizes, &a.grid));
  tv_roi_align(&a, c->in[0], c->out[0]);
  return AOT_OK;
}

static aot_status_t run_roi_align_backward(const dense_call_t *c) {
  tv_align_t a = {.samples = whole(c, 9), .aligned = (int32_t)whole(c, 10)};
  AOT_TRY(grid_of(c, 2, (const int64_t[]){whole(c, 5), whole(c, 6), whole(c, 7), whole(c, 8)}, &a.grid));
  tv_roi_align_backward(&a, c->in[0], c->out[0]);
  return AOT_OK;
}

static aot_status_t run_ps_roi_align(const dense_call_t *c) {
  tv_align_t a = {.samples = whole(c, 5), .by_position = 1};
  AOT_TRY(grid_of(c, 2, tensor(c, 0)->sizes, &a.grid));
  tv_roi_align(&a, c->in[0], c->out[0]);
  channel_mapping(&a.grid, c->out[1]);
  return AOT_OK;
}

static aot_status_t run_ps_roi_align_backward(const dense_call_t *c) {
  tv_align_t a = {.samples = whole(c, 6), .by_position = 1};
  AOT_TRY(grid_of(c, 3, (const int64_t[]){whole(c, 7), whole(c, 8), whole(c, 9), whole(c, 10)}, &a.grid));
  tv_roi_align_backward(&a, c->in[0], c->out[0]);
  return AOT_OK;
}

static aot_status_t run_roi_pool(const dense_call_t *c) {
  tv_regions_t r;
  AOT_TRY(grid_of(c, 2, tensor(c, 0)->sizes, &r));
  tv_roi_pool(&r, c->in[0], c->out[0], c->out[1]);
  return AOT_OK;
}

static aot_status_t run_roi_pool_backward(const dense_call_t *c) {
  tv_regions_t r;
  AOT_TRY(grid_of(c, 3, (const int64_t[]){whole(c, 6), whole(c, 7), whole(c, 8), whole(c, 9)}, &r));
  tv_roi_pool_backward(&r, c->in[2], c->in[0], c->out[0]);
  return AOT_OK;
}

static aot_status_t run_ps_roi_pool(const dense_call_t *c) {
  tv_regions_t r;
  AOT_TRY(grid_of(c, 2, tensor(c, 0)->sizes, &r));
  tv_mean_pool(&r, c->in[0], c->out[0]);
  channel_mapping(&r, c->out[1]);
  return AOT_OK;
}

static aot_status_t run_ps_roi_pool_backward(const dense_call_t *c) {
  tv_regions_t r;
  AOT_TRY(grid_of(c, 3, (const int64_t[]){whole(c, 6), whole(c, 7), whole(c, 8), whole(c, 9)}, &r));
  tv_mean_pool_backward(&r, c->in[0], c->out[0]);
  return AOT_OK;
}

/* ---- suppression ---- */

/* The order is data: an index out of range would read outside of the boxes. */
static aot_status_t run_nms_keep(const dense_call_t *c) {
  const int64_t n = tensor(c, 0)->sizes[0];
  if (tv_numel(tensor(c, 1)) != n) return bad(c->call, "order must list as many boxes as dets has");
  for (int64_t k = 0; k < n; k++) {
    const double box = c->in[1][k];
    if (box >= 0 && box < (double)n) continue;
    snprintf(c->call->message, c->call->message_size, "order[%lld] is %g: an index of one of %lld boxes was expected",
             (long long)k, box, (long long)n);
    return AOT_E_INVALID;
  }
  tv_nms_keep(c->in[0], c->in[1], n, c->call->args[2].u.f, tensor(c, 0)->dtype == AOT_F32, c->out[0]);
  return AOT_OK;
}

/* ---- deformable convolution: arguments input, weight, offset, mask, bias from `first` on, then numbers ---- */

static tv_deform_t deform_of(const dense_call_t *c, int first, const int64_t *output_sizes) {
  const int64_t *input = tensor(c, first)->sizes, *weight = tensor(c, first + 1)->sizes;
  const int number = first + 5;
  return (tv_deform_t){
      .batch = input[0],
      .channels = input[1],
      .height = input[2],
      .width = input[3],
      .filters = weight[0],
      .kernel_y = weight[2],
      .kernel_x = weight[3],
      .out_y = output_sizes[2],
      .out_x = output_sizes[3],
      .stride_y = whole(c, number),
      .stride_x = whole(c, number + 1),
      .pad_y = whole(c, number + 2),
      .pad_x = whole(c, number + 3),
      .dilation_y = whole(c, number + 4),
      .dilation_x = whole(c, number + 5),
      .groups = whole(c, number + 6),
      .offset_groups = whole(c, number + 7),
      .input = c->in[first],
      .weight = c->in[first + 1],
      .offset = c->in[first + 2],
      .mask = whole(c, number + 8) ? c->in[first + 3] : NULL,
      .bias = c->in[first + 4],
  };
}

static aot_status_t run_deform_conv(const dense_call_t *c) {
  const tv_deform_t d = deform_of(c, 0, c->call->results[0].sizes);
  tv_deform_conv(&d, c->out[0]);
  return AOT_OK;
}

static aot_status_t run_deform_conv_backward(const dense_call_t *c) {
  const tv_deform_t d = deform_of(c, 1, tensor(c, 0)->sizes);
  const tv_deform_gradients_t gradients = {c->out[0], c->out[1], c->out[2], d.mask ? c->out[3] : NULL, c->out[4]};
  tv_deform_conv_backward(&d, c->in[0], &gradients);
  return AOT_OK;
}

/* ---- the calls ---- */

static aot_status_t run_dense(const dense_call_t *c, const row_t *row) {
  for (uint32_t i = 0; i < c->call->n_args; i++)
    if (c->call->args[i].kind == AOT_ARG_VALUE && !c->in[i])
      return bad(c->call, "takes tensors of f32 or f64, or there is no memory left");
  for (uint32_t k = 0; k < c->call->n_results; k++)
    if (!c->out[k]) return bad(c->call, "no memory left");
  AOT_TRY(row->run(c));
  for (uint32_t k = 0; k < c->call->n_results; k++) tv_write(c->out[k], &c->call->results[k]);
  return AOT_OK;
}

static aot_status_t AOT_CALL run(const aot_kernel_t *k, const aot_kernel_call_t *call) {
  dense_call_t c = {.call = call};
  if (call->n_args > MAX_ARGS || call->n_results > MAX_RESULTS)
    return bad(call, "another schema than this kernel knows");
  for (uint32_t i = 0; i < call->n_args; i++)
    if (call->args[i].kind == AOT_ARG_VALUE) c.in[i] = tv_read(call->args[i].u.tensor);
  for (uint32_t r = 0; r < call->n_results; r++)
    c.out[r] = calloc((size_t)tv_numel(&call->results[r]) + 1, sizeof(double));
  const aot_status_t status = run_dense(&c, k->head.self);
  for (uint32_t i = 0; i < MAX_ARGS; i++) free(c.in[i]);
  for (uint32_t r = 0; r < MAX_RESULTS; r++) free(c.out[r]);
  return status;
}

#define KERNEL(name, function)                                                                                         \
  {                                                                                                                    \
    .head = {.struct_size = sizeof(aot_kernel_t), .self = &(row_t){function}},                                         \
    .op = AOT_STR_INIT("torchvision." name ".default"), .run = run                                                     \
  }
static const aot_kernel_t rows[] = {
    KERNEL("roi_align", run_roi_align),       KERNEL("_roi_align_backward", run_roi_align_backward),
    KERNEL("roi_pool", run_roi_pool),         KERNEL("_roi_pool_backward", run_roi_pool_backward),
    KERNEL("ps_roi_align", run_ps_roi_align), KERNEL("_ps_roi_align_backward", run_ps_roi_align_backward),
    KERNEL("ps_roi_pool", run_ps_roi_pool),   KERNEL("_ps_roi_pool_backward", run_ps_roi_pool_backward),
    KERNEL("deform_conv2d", run_deform_conv), KERNEL("_deform_conv2d_backward", run_deform_conv_backward),
    KERNEL("_nms_keep", run_nms_keep),
};
static const aot_kernel_t *const kernels[] = {&rows[0], &rows[1], &rows[2], &rows[3], &rows[4], &rows[5],
                                              &rows[6], &rows[7], &rows[8], &rows[9], &rows[10]};
const aot_ext_kernels_t tv_kernels = {
    .struct_size = sizeof tv_kernels,
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof *kernels,
};
