#include "conv_call.h"

#include <aot/assert.h>

/* n numbers; one number counts for all, none leaves the presets. 0: another count. */
static int spatial(const lw_build_t *b, uint32_t k, int32_t n, int64_t preset, int64_t *out) {
  AOT_ASSERT(n >= 1 && n <= LW_CONV_MAX_RANK); /* the sizes of what is read */
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

/* Numbers of arguments. */
typedef struct places {
  const char *op;
  uint32_t stride, padding, dilation, groups;
  uint32_t transposed; /* LW_NONE: no argument says so */
  int is_transposed;   /* always */
} places_t;
static const places_t places[] = {
    /* (input, weight, bias?, stride, padding, dilation, groups) */
    {"aten.conv1d.default", 3, 4, 5, 6, LW_NONE, 0},
    {"aten.conv2d.default", 3, 4, 5, 6, LW_NONE, 0},
    {"aten.conv3d.default", 3, 4, 5, 6, LW_NONE, 0},
    /* (input, weight, bias?, stride, padding, output_padding, groups, dilation) */
    {"aten.conv_transpose1d.default", 3, 4, 7, 6, LW_NONE, 1},
    {"aten.conv_transpose2d.input", 3, 4, 7, 6, LW_NONE, 1},
    {"aten.conv_transpose3d.input", 3, 4, 7, 6, LW_NONE, 1},
    /* (input, weight, bias?, stride, padding, dilation, transposed, output_padding, groups) */
    {"aten.convolution.default", 3, 4, 5, 8, 6, 0},
    /* (grad, input, weight, bias_sizes?, stride, padding, dilation, transposed, output_padding, groups, output_mask) */
    {"aten.convolution_backward.default", 4, 5, 6, 9, 7, 0},
};

static const places_t *find_places(const lw_build_t *b) {
  const aot_snap_op_t *op = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops) + b->node->op;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (aot_str_eq(aot_snap_text(b->s, op->name), aot_str(places[i].op))) return &places[i];
  return NULL;
}

static int describe(const lw_build_t *b, lw_conv_t *c) {
  const places_t *at = find_places(b);
  if (!at || !c->in || !c->weight || !c->out) return 0;
  c->rank = c->in->rank - 2;
  if (c->rank < 1 || c->rank > LW_CONV_MAX_RANK || c->weight->rank != c->in->rank || c->out->rank != c->in->rank ||
      c->weight->dtype != c->in->dtype || c->out->dtype != c->in->dtype)
    return 0;
  c->is_transposed = at->is_transposed || (at->transposed != LW_NONE && lw_arg_int(b, at->transposed, 0));
  c->groups = lw_arg_int(b, at->groups, 1);
  c->x = c->is_transposed ? c->out : c->in;
  c->y = c->is_transposed ? c->in : c->out;
  return spatial(b, at->stride, c->rank, 1, c->stride) && spatial(b, at->padding, c->rank, 0, c->pad) &&
         spatial(b, at->dilation, c->rank, 1, c->dilation) && fits(c);
}

int lw_conv_call(const lw_build_t *b, lw_conv_t *out) {
  *out = (lw_conv_t){
      .in = lw_arg_tensor(b, 0), .weight = lw_arg_tensor(b, 1), .bias = lw_arg_tensor(b, 2), .out = lw_type(b, 0)};
  if (!describe(b, out)) return 0;
  const lw_tensor_t *bias = out->bias;
  return !bias || (bias->dtype == out->in->dtype && bias->rank == 1 && bias->sizes[0] == out->out->sizes[1]);
}

int lw_conv_backward_call(const lw_build_t *b, lw_conv_t *out) {
  *out = (lw_conv_t){.in = lw_arg_tensor(b, 1), .weight = lw_arg_tensor(b, 2), .out = lw_arg_tensor(b, 0)};
  if (b->node->n_results != 3 || !describe(b, out)) return 0;
  for (uint32_t r = 0; r < 3; r++) {
    const lw_tensor_t *type = lw_type(b, r);
    if (!type->dtype) continue;
    if (type->dtype != out->in->dtype) return 0;
    if (r == 2 ? lw_numel(type) != out->out->sizes[1] : !lw_same_sizes(type, r ? out->weight : out->in)) return 0;
  }
  return 1;
}
