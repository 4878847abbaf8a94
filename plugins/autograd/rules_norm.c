/* Group and rms normalization, whose statistics are differentiable in PyTorch too; weight normalization. */
#include "rules.h"

/* Add what the cotangents of mean and rstd [n, groups] send to x, seen as [n, groups, d]:
 * mean: gm/d; rstd = (var + eps)^(-1/2): -rstd^3 (x - mean)/d gr. */
static em_x_t through_statistics(em_t *a) {
  em_x_t x = ag_arg(a, "input"), mean = ag_y(a, 1), rstd = ag_y(a, 2), gm = ag_g(a, 1), gr = ag_g(a, 2), d = em_none();
  int64_t n = ag_int(a, ag_arg(a, "N"), 0), groups = ag_int(a, ag_arg(a, "group"), 1), sizes[3], one[3];
  int64_t per = ag_dim_op(a, AOT_EXPR_FLOORDIV, ag_int(a, ag_arg(a, "C"), 0), groups);
  sizes[0] = one[0] = n;
  sizes[1] = one[1] = groups;
  sizes[2] = ag_dim_op(a, AOT_EXPR_MUL, per, ag_int(a, ag_arg(a, "HxW"), 1));
  one[2] = 1;
  if (gr.kind != AOT_ARG_NONE) {
    em_x_t centred = ag_sub(a, ag_reshape(a, x, sizes, 3), ag_reshape(a, mean, one, 3));
    em_x_t slope = ag_mul(a, ag_reshape(a, gr, one, 3), ag_pow(a, ag_reshape(a, rstd, one, 3), em_i(3)));
    d = ag_neg(a, ag_mul(a, slope, centred));
  }
  if (gm.kind != AOT_ARG_NONE) d = ag_add(a, d, ag_expand(a, ag_reshape(a, gm, one, 3), sizes, 3));
  return ag_reshape_like(a, ag_div(a, d, em_i(sizes[2])), x);
}

void ag_rule_group_norm(em_t *a) {
  static const char *const NAMES[] = {"input", "weight", "bias"};
  em_x_t out[3], mask;
  int64_t wanted[3];
  int i;
  for (i = 0; i < 3; i++) wanted[i] = ag_needs(a, NAMES[i]);
  mask = em_list(a, wanted, 3);
  mask.kind = AOT_ARG_BOOLS;
  const em_x_t args[] = {ag_g(a, 0),     ag_arg(a, "input"), ag_y(a, 1),       ag_y(a, 2),         ag_arg(a, "weight"),
                         ag_arg(a, "N"), ag_arg(a, "C"),     ag_arg(a, "HxW"), ag_arg(a, "group"), mask};
  ag_call_n(a, "native_group_norm_backward", 10, args, 3, out);
  if (wanted[0]) out[0] = ag_add(a, out[0], through_statistics(a));
  for (i = 0; i < 3; i++)
    if (wanted[i]) ag_set(a, NAMES[i], out[i]);
}

/* The second result is r = (mean(x^2) + eps)^(-1/2): -r^3 x / N. */
void ag_rule_fused_rms_norm(em_t *a) {
  em_x_t x = ag_arg(a, "input"), r = ag_y(a, 1), out[2], mask, shape = ag_arg(a, "normalized_shape"), d;
  int64_t wanted[2];
  wanted[0] = ag_needs(a, "input");
  wanted[1] = ag_needs(a, "weight");
  mask = em_list(a, wanted, 2);
  mask.kind = AOT_ARG_BOOLS;
  const em_x_t args[] = {ag_g(a, 0), x, shape, r, ag_arg(a, "weight"), mask};
  ag_call_n(a, "_fused_rms_norm_backward", 6, args, 2, out);
  if (wanted[1]) ag_set(a, "weight", out[1]);
  if (!wanted[0]) return;
  d = ag_g(a, 1);
  if (d.kind != AOT_ARG_NONE) {
    d = ag_mul(a, ag_mul(a, d, ag_pow(a, r, em_i(3))), x);
    d = ag_neg(a, ag_div(a, d, em_i(ag_product(a, shape.u.ints, shape.n))));
  }
  ag_set(a, "input", ag_add(a, out[0], d));
}

/* Weight norm: v and its lengths from the slices' norms, which the forward keeps. */
void ag_rule_weight_norm(em_t *a) {
  const em_x_t args[] = {ag_g(a, 0), ag_arg(a, "v"), ag_arg(a, "g"), ag_y(a, 1), ag_arg(a, "dim")};
  em_x_t out[2];
  ag_call_n(a, "_weight_norm_interface_backward", 5, args, 2, out);
  if (ag_needs(a, "v")) ag_set(a, "v", out[0]);
  if (ag_needs(a, "g")) ag_set(a, "g", out[1]);
}
