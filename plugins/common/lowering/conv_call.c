#include "conv_call.h"

/* n numbers; one number counts for all, none leaves the presets. 0: another count. */
static int spatial(const lw_build_t *b, uint32_t k, int32_t n, int64_t preset, int64_t *out) {
  int64_t list[AOT_MAX_RANK];
  const uint32_t got = lw_arg_ints(b, k, list, AOT_MAX_RANK);
  if (lw_arg(b, k)->kind == AOT_ARG_STR || (got > 1 && got != (uint32_t)n)) return 0;
  for (int32_t d = 0; d < n; d++) out[d] = got == 0 ? preset : list[got == 1 ? 0 : d];
  return 1;
}

/* Sizes of x [n, c, ..], w [c_out, c / groups, ..], y [n, c_out, ..] as the window makes them. */
static int fits(const lw_conv_t *c) {
  const lw_tensor_t *x = c->x, *w = c->weight, *y = c->y;
  for (int32_t d = 0; d < c->rank; d++) {
    if (c->pad[d] > INT32_MAX || c->dilation[d] > INT32_MAX || w->sizes[2 + d] > INT32_MAX) return 0;
    if (c->stride[d] < 1 || c->pad[d] < 0 || c->dilation[d] < 1) return 0;
    const int64_t reach = x->sizes[2 + d] + 2 * c->pad[d] - c->dilation[d] * (w->sizes[2 + d] - 1) - 1;
    if (reach < 0 || reach / c->stride[d] + 1 != y->sizes[2 + d]) return 0;
  }
  return c->groups >= 1 && x->sizes[1] % c->groups == 0 && w->sizes[0] % c->groups == 0 &&
         w->sizes[1] == x->sizes[1] / c->groups && y->sizes[0] == x->sizes[0] && y->sizes[1] == w->sizes[0] &&
         lw_numel(x) > 0 && lw_numel(w) > 0 && lw_numel(y) > 0;
}

/* first: the argument of the stride; padding and dilation follow. */
static int describe(const lw_build_t *b, uint32_t first, lw_conv_t *c) {
  c->rank = c->in ? c->in->rank - 2 : 0;
  if (!c->weight || !c->out || c->rank < 1 || c->rank > LW_CONV_MAX_RANK || c->weight->rank != c->in->rank ||
      c->out->rank != c->in->rank || c->weight->dtype != c->in->dtype || c->out->dtype != c->in->dtype)
    return 0;
  c->x = c->is_transposed ? c->out : c->in;
  c->y = c->is_transposed ? c->in : c->out;
  return spatial(b, first, c->rank, 1, c->stride) && spatial(b, first + 1, c->rank, 0, c->pad) &&
         spatial(b, first + 2, c->rank, 1, c->dilation) && fits(c);
}

/* conv1d, conv2d, conv3d(input, weight, bias?, stride, padding, dilation, groups)
 * convolution(input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups) */
int lw_conv_call(const lw_build_t *b, lw_conv_t *out) {
  const aot_snap_op_t *op = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops) + b->node->op;
  const int is_general = aot_str_eq(aot_snap_text(b->s, op->name), aot_str("aten.convolution.default"));
  *out = (lw_conv_t){
      .in = lw_arg_tensor(b, 0),
      .weight = lw_arg_tensor(b, 1),
      .bias = lw_arg_tensor(b, 2),
      .out = lw_type(b, 0),
      .is_transposed = is_general && lw_arg_int(b, 6, 0) != 0,
      .groups = lw_arg_int(b, is_general ? 8 : 6, 1),
  };
  if (!describe(b, 3, out)) return 0;
  const lw_tensor_t *bias = out->bias;
  return !bias || (bias->dtype == out->in->dtype && bias->rank == 1 && bias->sizes[0] == out->out->sizes[1]);
}

/* convolution_backward(grad, input, weight, bias_sizes?, stride, padding, dilation, transposed, output_padding, groups,
 * output_mask) */
int lw_conv_backward_call(const lw_build_t *b, lw_conv_t *out) {
  *out = (lw_conv_t){
      .in = lw_arg_tensor(b, 1),
      .weight = lw_arg_tensor(b, 2),
      .out = lw_arg_tensor(b, 0),
      .is_transposed = lw_arg_int(b, 7, 0) != 0,
      .groups = lw_arg_int(b, 9, 1),
  };
  if (b->node->n_results != 3 || !describe(b, 4, out)) return 0;
  for (uint32_t r = 0; r < 3; r++) {
    const lw_tensor_t *type = lw_type(b, r);
    if (!type->dtype) continue;
    if (type->dtype != out->in->dtype) return 0;
    if (r == 2 ? lw_numel(type) != out->out->sizes[1] : !lw_same_sizes(type, r ? out->weight : out->in)) return 0;
  }
  return 1;
}
