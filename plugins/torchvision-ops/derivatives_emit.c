/* Derivatives: one node of the operator that torchvision itself uses for the backward. Regions and channel numbers have none. */
#include "vision_rewrites.h"

#include <aot/inline.h>

enum { MAX_ARGS = 16 };

/* The node at the end of the joint graph that a derivative is. */
typedef struct backward {
  const aot_host_t *host;
  const aot_derivative_call_t *call;
  aot_node_info_t of;            /* the node differentiated */
  aot_arg_t args[MAX_ARGS];
  uint32_t n_args;
} backward_t;

static void push(backward_t *b, aot_arg_t a) { b->args[b->n_args++] = a; }
static void push_own(backward_t *b, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) push(b, b->of.args[i]);
}

/* The cotangent of the first result comes first. */
static aot_status_t begin(backward_t *b, const aot_derivative_t *d, const aot_derivative_call_t *call) {
  *b = (backward_t){.host = d->head.self, .call = call, .of = {.struct_size = sizeof b->of}};
  push(b, aot_arg_value(call->cotangents[0]));
  return b->host->graph->node_info(call->prog, call->node, &b->of);
}

/* The sizes of operand 0, as numbers. */
static aot_status_t push_sizes(backward_t *b) {
  aot_type_t t;
  AOT_TRY(b->host->graph->value_type(b->call->prog, (aot_value_t){b->of.operands[0]}, &t));
  for (int32_t d = 0; d < t.rank; d++) push(b, aot_arg_int(t.sizes[d]));
  return AOT_OK;
}

/* Makes the node; its results are the cotangents of the first operands. */
static aot_status_t finish(backward_t *b, const char *op) {
  const aot_derivative_call_t *c = b->call;
  aot_node_info_t made = {.struct_size = sizeof made};
  aot_node_t node;
  const aot_node_spec_t spec = {.struct_size = sizeof spec, .op = b->host->graph->op_find(c->prog, aot_str(op)), .n_args = b->n_args,
                                .args = b->args, .origin = b->of.origin};
  AOT_TRY(b->host->edit->node_create(c->prog, c->graph, &spec, aot_no_node(), &node));
  AOT_TRY(b->host->graph->node_info(c->prog, node, &made));
  for (uint32_t k = 0; k < made.n_results; k++)
    if (c->wanted[k]) c->out[k].id = made.first_result.id + k;
  return AOT_OK;
}

/* Only the first result carries a gradient: the others are numbers of elements and channels. */
static int is_zero(const aot_derivative_call_t *call) { return call->cotangents[0].id == AOT_NO_ID || !call->wanted[0]; }

static aot_status_t roi_align(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  backward_t b;
  (void)ctx;
  if (is_zero(call)) return AOT_OK;
  AOT_TRY(begin(&b, d, call));
  push_own(&b, 1, 5); /* rois, scale, bins */
  AOT_TRY(push_sizes(&b));
  push_own(&b, 5, 7); /* sampling_ratio, aligned */
  return finish(&b, "torchvision._roi_align_backward.default");
}

/* Of the others the second result (argmax, channel_mapping) stands behind rois. */
static aot_status_t with_second_result(const aot_derivative_t *d, const aot_derivative_call_t *call, const char *op) {
  backward_t b;
  if (is_zero(call)) return AOT_OK;
  AOT_TRY(begin(&b, d, call));
  push_own(&b, 1, 2);
  push(&b, aot_arg_value((aot_value_t){b.of.first_result.id + 1}));
  push_own(&b, 2, b.of.n_args);
  AOT_TRY(push_sizes(&b));
  return finish(&b, op);
}

static aot_status_t ps_roi_align(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  (void)ctx;
  return with_second_result(d, call, "torchvision._ps_roi_align_backward.default");
}

static aot_status_t roi_pool(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  (void)ctx;
  return with_second_result(d, call, "torchvision._roi_pool_backward.default");
}

static aot_status_t ps_roi_pool(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  (void)ctx;
  return with_second_result(d, call, "torchvision._ps_roi_pool_backward.default");
}

static aot_status_t deform_conv(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  backward_t b;
  (void)ctx;
  AOT_TRY(begin(&b, d, call));
  push_own(&b, 0, b.of.n_args);
  return finish(&b, "torchvision._deform_conv2d_backward.default");
}

#define INPUT_AND_REGIONS 3u  /* bits of covers; the gradient of regions is zero, as in torchvision */
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
