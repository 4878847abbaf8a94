/* Derivatives: one node of the operator that torchvision itself uses for the backward. Regions and channel numbers
 * have none. */
#include "vision_rewrites.h"

#include "kit/emit/emit.h"

enum { MAX_ARGS = 16 };

/* The node at the end of the joint graph that a derivative is. */
typedef struct backward {
  em_t e; /* the node at hand is the one that is differentiated */
  const aot_derivative_call_t *call;
  aot_arg_t args[MAX_ARGS];
  uint32_t n_args;
} backward_t;

static void push(backward_t *b, aot_arg_t a) { b->args[b->n_args++] = a; }
static void push_own(backward_t *b, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) push(b, b->e.info.args[i]);
}

/* The cotangent of the first result comes first. */
static aot_status_t begin(backward_t *b, const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  *b = (backward_t){.e = em_make(d->head.self, ctx, call->prog, call->graph), .call = call};
  b->e.code = "torchvision.operator";
  push(b, aot_arg_value(call->cotangents[0]));
  AOT_TRY(em_look(&b->e, call->node));
  b->e.origin = b->e.info.origin;
  return AOT_OK;
}

/* The sizes of operand 0, as numbers. */
static aot_status_t push_sizes(backward_t *b) {
  aot_type_t t;
  AOT_TRY(b->e.host->graph->value_type(b->call->prog, (aot_value_t){b->e.info.operands[0]}, &t));
  for (int32_t d = 0; d < t.rank; d++) push(b, aot_arg_int(t.sizes[d]));
  return AOT_OK;
}

/* Makes the node; its results are the cotangents of the first operands. */
static aot_status_t finish(backward_t *b, const char *op) {
  const aot_derivative_call_t *c = b->call;
  aot_node_info_t made;
  em_put(&b->e, em_op(&b->e, op), b->n_args, b->args, 0, NULL, &made);
  AOT_TRY(b->e.status);
  for (uint32_t k = 0; k < made.n_results; k++)
    if (c->wanted[k]) c->out[k].id = made.first_result.id + k;
  return AOT_OK;
}

/* Only the first result carries a gradient: the others are numbers of elements and channels. */
static int is_zero(const aot_derivative_call_t *call) {
  return call->cotangents[0].id == AOT_NO_ID || !call->wanted[0];
}

static aot_status_t roi_align(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  backward_t b;
  if (is_zero(call)) return AOT_OK;
  AOT_TRY(begin(&b, d, ctx, call));
  push_own(&b, 1, 5); /* rois, scale, bins */
  AOT_TRY(push_sizes(&b));
  push_own(&b, 5, 7); /* sampling_ratio, aligned */
  return finish(&b, "torchvision._roi_align_backward.default");
}

/* Of the others the second result (argmax, channel_mapping) follows rois. */
static aot_status_t with_second_result(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call,
                                       const char *op) {
  backward_t b;
  if (is_zero(call)) return AOT_OK;
  AOT_TRY(begin(&b, d, ctx, call));
  push_own(&b, 1, 2);
  push(&b, aot_arg_value((aot_value_t){b.e.info.first_result.id + 1}));
  push_own(&b, 2, b.e.info.n_args);
  AOT_TRY(push_sizes(&b));
  return finish(&b, op);
}

static aot_status_t ps_roi_align(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  return with_second_result(d, ctx, call, "torchvision._ps_roi_align_backward.default");
}

static aot_status_t roi_pool(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  return with_second_result(d, ctx, call, "torchvision._roi_pool_backward.default");
}

static aot_status_t ps_roi_pool(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  return with_second_result(d, ctx, call, "torchvision._ps_roi_pool_backward.default");
}

static aot_status_t deform_conv(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  backward_t b;
  AOT_TRY(begin(&b, d, ctx, call));
  push_own(&b, 0, b.e.info.n_args);
  return finish(&b, "torchvision._deform_conv2d_backward.default");
}

#define INPUT_AND_REGIONS 3u /* bits of covers; the gradient of regions is zero, as in torchvision */
#define FIVE_TENSORS 31u
static const aot_derivative_t rows[] = {
    {.op = AOT_STR_INIT("torchvision.roi_align.default"), .covers = INPUT_AND_REGIONS, .put = roi_align},
    {.op = AOT_STR_INIT("torchvision.ps_roi_align.default"), .covers = INPUT_AND_REGIONS, .put = ps_roi_align},
    {.op = AOT_STR_INIT("torchvision.roi_pool.default"), .covers = INPUT_AND_REGIONS, .put = roi_pool},
    {.op = AOT_STR_INIT("torchvision.ps_roi_pool.default"), .covers = INPUT_AND_REGIONS, .put = ps_roi_pool},
    {.op = AOT_STR_INIT("torchvision.deform_conv2d.default"), .covers = FIVE_TENSORS, .put = deform_conv},
};

aot_status_t tv_make_derivatives(const aot_host_t *host, aot_ctx_t *ctx, aot_ext_derivatives_t *out) {
  enum { N = sizeof rows / sizeof *rows };
  aot_derivative_t *made = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof rows);
  const aot_derivative_t **all = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), N * sizeof *all);
  if (!made || !all) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < N; i++) {
    made[i] = rows[i];
    made[i].head = (aot_table_t){.struct_size = sizeof made[i], .self = (void *)(uintptr_t)host};
    all[i] = &made[i];
  }
  *out = (aot_ext_derivatives_t){.struct_size = sizeof *out, .derivatives = all, .n_derivatives = N};
  return AOT_OK;
}
