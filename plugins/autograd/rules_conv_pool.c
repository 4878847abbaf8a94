/* Convolutions of every rank (convolution_backward with expanded arguments), max pools with indices, and padding. */
#include "rules.h"

/* An int[n] argument that may be written as one number, or be missing. */
static em_x_t per_axis(em_t *a, const char *name, uint32_t n, int64_t otherwise) {
  int64_t out[AOT_MAX_RANK];
  uint32_t index = ag_at(a, name), i;
  em_x_t v = index == AG_NO_ARG ? em_none() : a->info.args[index];
  for (i = 0; i < n && i < AOT_MAX_RANK; i++) {
    if (v.kind == AOT_ARG_INTS && v.n > 0) out[i] = v.u.ints[v.n == 1 ? 0 : i];
    else out[i] = v.kind == AOT_ARG_INT ? v.u.i : otherwise;
  }
  return em_list(a, out, n);
}

/* conv1d, conv2d, conv3d, their transposed forms, and convolution itself. An input without batch gets one of 1. */
void ag_rule_convolution(em_t *a) {
  static const char *const NAMES[] = {"input", "weight", "bias"};
  em_x_t x = ag_arg(a, "input"), w = ag_arg(a, "weight"), bias = ag_arg(a, "bias"), g = ag_g(a, 0), out[3], mask;
  int32_t rank = ag_type(a, w).rank;
  uint32_t n = rank > 2 ? (uint32_t)rank - 2 : 0, i, at = ag_at(a, "transposed");
  int transposed = at != AG_NO_ARG ? a->info.args[at].u.i != 0 : ag_at(a, "output_padding") != AG_NO_ARG;
  int64_t wanted[3];
  for (i = 0; i < 3; i++) wanted[i] = ag_needs(a, NAMES[i]);
  mask = em_list(a, wanted, 3);
  mask.kind = AOT_ARG_BOOLS;
  if (ag_type(a, x).rank == rank - 1) {
    x = AG_OP(a, "unsqueeze", x, em_i(0));
    g = AG_OP(a, "unsqueeze", g, em_i(0));
  }
  {
    const em_x_t args[] = {g,
                           x,
                           w,
                           em_is_value(bias) ? ag_sizes(a, bias) : em_none(),
                           per_axis(a, "stride", n, 1),
                           per_axis(a, "padding", n, 0),
                           per_axis(a, "dilation", n, 1),
                           em_b(transposed),
                           per_axis(a, "output_padding", n, 0),
                           ag_arg(a, "groups"),
                           mask};
    ag_call_n(a, "convolution_backward", 11, args, 3, out);
  }
  if (wanted[0]) ag_set(a, "input", ag_reshape_like(a, out[0], ag_arg(a, "input")));
  if (wanted[1]) ag_set(a, "weight", out[1]);
  if (wanted[2]) ag_set(a, "bias", out[2]);
}

/* 2 or 3 dimensions: the operator's name says it. */
static uint32_t plane_rank(const em_t *a) {
  uint64_t i;
  for (i = 0; i + 1 < a->desc->name.size; i++)
    if (a->desc->name.data[i] == '3' && a->desc->name.data[i + 1] == 'd') return 3;
  return 2;
}

/* What is in the flattened planes of g at the places that indices names. */
static em_x_t read_planes(em_t *a, em_x_t g, em_x_t index) {
  ag_type_t tg = ag_type(a, g), ti = ag_type(a, index);
  uint32_t plane = plane_rank(a), lead = (uint32_t)ti.rank - plane;
  tg.sizes[lead] = ag_product(a, tg.sizes + lead, plane);
  ti.sizes[lead] = ag_product(a, ti.sizes + lead, plane);
  return AG_OP(a, "gather", ag_reshape(a, g, tg.sizes, (int32_t)lead + 1), em_i(-1),
               ag_reshape(a, index, ti.sizes, (int32_t)lead + 1));
}

/* The inverse of a max pool puts each element at its index: it gets what is there. */
void ag_rule_unpool(em_t *a) {
  ag_set(a, "self", ag_reshape_like(a, read_planes(a, ag_g(a, 0), ag_arg(a, "indices")), ag_arg(a, "self")));
}

/* So does the backward of a max pool; what was pooled only says which shape. */
void ag_rule_max_pool_backward(em_t *a) {
  if (!ag_needs(a, "grad_output")) return;
  const em_x_t read = read_planes(a, ag_g(a, 0), ag_arg(a, "indices"));
  ag_set(a, "grad_output", ag_reshape_like(a, read, ag_arg(a, "grad_output")));
}

/* The one that was not given the places. */
void ag_rule_max_pool_again(em_t *a) {
  if (!ag_needs(a, "grad")) return;
  const em_x_t pooled = AG_OP(a, "max_pool2d_with_indices", ag_arg(a, "self"), ag_arg(a, "kernel_size"),
                              ag_arg(a, "stride"), ag_arg(a, "padding"), ag_arg(a, "dilation"), ag_arg(a, "ceil_mode"));
  ag_set(a, "grad", ag_reshape_like(a, read_planes(a, ag_g(a, 0), em_nth(pooled, 1)), ag_arg(a, "grad")));
}

/* Max pools whose second result gives, for each window, the place in its flattened plane: the last 2 or 3
 * dimensions. */
void ag_rule_pool_indices(em_t *a) {
  em_x_t x = ag_arg(a, "self"), g = ag_g(a, 0), index = ag_y(a, 1), flat;
  ag_type_t tx = ag_type(a, x), tg = ag_type(a, g);
  uint32_t plane = plane_rank(a), lead = (uint32_t)tx.rank - plane;
  tx.sizes[lead] = ag_product(a, tx.sizes + lead, plane);
  tg.sizes[lead] = ag_product(a, tg.sizes + lead, plane);
  tx.rank = tg.rank = (int32_t)lead + 1;
  flat = AG_OP(a, "scatter_add", ag_zeros(a, &tx), em_i(-1), ag_reshape(a, index, tg.sizes, tg.rank),
               ag_reshape(a, g, tg.sizes, tg.rank));
  ag_set(a, "self", ag_reshape_like(a, flat, x));
}

/* Which element of n is at each place of a bordered dimension: i = place - before, clamped to the edge, or
 * reflected in it: n-1 - |n-1 - |i||. */
static em_x_t border_source(em_t *a, const ag_type_t *t, int64_t before, int64_t total, int64_t n, int reflects) {
  em_x_t i = AG_OP(a, "arange", em_i(total), aot_arg_dtype(AOT_I64), em_none(), ag_device(t));
  em_x_t last = em_i(ag_dim_op(a, AOT_EXPR_SUB, n, 1));
  i = ag_sub(a, i, em_i(before));
  if (!reflects) return AG_OP(a, "clamp", i, em_i(0), last);
  i = ag_sub(a, last, AG_OP(a, "abs", i));
  return ag_sub(a, last, AG_OP(a, "abs", i));
}

/* Reflection and replication: one dimension at a time, the border's part of g is added to what it was copied from. */
void ag_rule_border(em_t *a) {
  static const char reflection[] = "aten.reflection";
  em_x_t x = ag_arg(a, "self"), pad = ag_arg(a, "padding"), g = ag_wide(a, ag_g(a, 0));
  ag_type_t tx = ag_type(a, x), t = ag_type(a, g);
  int reflects = memcmp(a->desc->name.data, reflection, sizeof reflection - 1) == 0;
  uint32_t k;
  for (k = 0; k < pad.n / 2 && a->status == AOT_OK; k++) {
    uint32_t d = (uint32_t)t.rank - 1 - k;
    em_x_t source = border_source(a, &t, pad.u.ints[2 * k], t.sizes[d], tx.sizes[d], reflects);
    t.sizes[d] = tx.sizes[d];
    g = AG_OP(a, "index_add", ag_zeros(a, &t), em_i(d), source, g);
  }
  ag_set(a, "self", g);
}
