/* Elementwise operators whose derivative depends on a mode or on the arguments present. */
#include "rules.h"

#include <math.h>

/* Division; with a rounding mode it is a step function. */
void ag_rule_div_mode(em_t *a) {
  em_x_t x = ag_arg(a, "self"), y = ag_arg(a, "other"), g = ag_g(a, 0);
  if (ag_arg(a, "rounding_mode").kind != AOT_ARG_NONE) return;
  if (ag_needs(a, "self")) ag_set(a, "self", ag_div(a, g, y));
  if (ag_needs(a, "other")) ag_set(a, "other", ag_neg(a, ag_div(a, ag_mul(a, g, ag_div(a, x, y)), y)));
}

/* c^e: g*y*log(c); at c = 0 the function is a constant 0 for e > 0, and PyTorch takes 0 for e = 0 too. */
void ag_rule_pow_scalar(em_t *a) {
  em_x_t base = ag_arg(a, "self"), e = ag_arg(a, "exponent");
  double c = ag_number(a, base, 1);
  em_x_t d = ag_mul(a, ag_g(a, 0), ag_mul(a, ag_y(a, 0), em_f(log(c))));
  ag_set(a, "exponent", c == 0 ? ag_where(a, ag_compare(a, "ge", e, em_i(0)), em_none(), d) : d);
}

static em_x_t both(em_t *a, em_x_t x, em_x_t y) {
  if (x.kind == AOT_ARG_NONE) return y;
  return y.kind == AOT_ARG_NONE ? x : AG_OP(a, "logical_and", x, y);
}

/* Straight through, for the elements within the grid; the grid is a constant. */
void ag_rule_fake_quant_per_channel(em_t *a) {
  /* clang-format off */
  const em_x_t args[] = {ag_arg(a, "input"), ag_cast(a, ag_arg(a, "scales"), AOT_F32), ag_cast(a, ag_arg(a,
      "zero_points"), AOT_I32),
                           ag_arg(a, "axis"), ag_arg(a, "quant_min"), ag_arg(a, "quant_max")};
  /* clang-format on */
  em_x_t y[2];
  ag_call_n(a, "fake_quantize_per_channel_affine_cachemask", 6, args, 2, y);
  ag_set(a, "input", AG_OP(a, "fake_quantize_per_channel_affine_cachemask_backward", ag_g(a, 0), y[1]));
}

/* The derivative passes on the closed interval. With tensors for bounds, a bound gets it where it is what came out;
 * where min > max that is max. */
void ag_rule_clamp(em_t *a) {
  em_x_t x = ag_arg(a, "self"), lo = ag_arg(a, "min"), hi = ag_arg(a, "max"), g = ag_g(a, 0), in, out;
  if (ag_needs(a, "self")) {
    in = both(a, lo.kind == AOT_ARG_NONE ? lo : ag_compare(a, "ge", x, lo),
              hi.kind == AOT_ARG_NONE ? hi : ag_compare(a, "le", x, hi));
    ag_set(a, "self", in.kind == AOT_ARG_NONE ? g : ag_where(a, in, g, em_none()));
  }
  if (ag_needs(a, "min")) {
    out = both(a, ag_compare(a, "lt", x, lo), hi.kind == AOT_ARG_NONE ? hi : ag_compare(a, "lt", lo, hi));
    ag_set(a, "min", ag_where(a, out, g, em_none()));
  }
  if (ag_needs(a, "max")) {
    out = ag_compare(a, "gt", x, hi);
    if (lo.kind != AOT_ARG_NONE) out = AG_OP(a, "logical_or", out, ag_compare(a, "lt", hi, lo));
    ag_set(a, "max", ag_where(a, out, g, em_none()));
  }
}

/* g / (x (1 - x)), 0 where x was clamped; without eps nan outside [0, 1]. At -0 as at 0: g times infinity. */
void ag_rule_logit(em_t *a) {
  em_x_t x = ag_arg(a, "self"), eps = ag_arg(a, "eps"), g = ag_g(a, 0);
  double lo = ag_number(a, eps, 0);
  em_x_t out = AG_OP(a, "logical_or", ag_compare(a, "lt", x, em_f(lo)), ag_compare(a, "gt", x, em_f(1 - lo)));
  em_x_t d = ag_div(a, g, ag_mul(a, AG_OP(a, "abs", x), ag_sub(a, em_i(1), x)));
  ag_set(a, "self", ag_where(a, out, eps.kind == AOT_ARG_NONE ? em_f(NAN) : em_none(), d));
}

/* log Gamma_p(x) = const + sum over j < p of lgamma(x - j/2) */
void ag_rule_mvlgamma(em_t *a) {
  em_x_t x = ag_arg(a, "self"), sum = em_none();
  int64_t p = ag_int(a, ag_arg(a, "p"), 1), j;
  for (j = 0; j < p && a->status == AOT_OK; j++) /* -0 + 0 is 0, as PyTorch has it */
    sum = ag_add(a, sum, AG_OP(a, "digamma", AG_OP(a, "add.Scalar", x, em_f(-(double)j / 2 + 0.0))));
  ag_set(a, "self", ag_mul(a, ag_g(a, 0), sum));
}
