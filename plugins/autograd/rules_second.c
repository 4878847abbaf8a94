/* Second derivatives that are not one line. A backward operator is linear in grad_output: its derivative there is the
 * forward operator's forward-mode derivative. */
#include "rules.h"

static em_x_t masked_backward(em_t *a, em_x_t g, em_x_t input, em_x_t weight, uint32_t which) {
  int64_t wanted[3] = {0};
  em_x_t out[3], mask;
  wanted[which] = 1;
  mask = em_list(a, wanted, 3);
  mask.kind = AOT_ARG_BOOLS;
  {
    /* clang-format off */
    const em_x_t args[] = {g, input, weight, em_none(), ag_arg(a, "stride"), ag_arg(a, "padding"), ag_arg(a, "dilation"),
                             ag_arg(a, "transposed"), ag_arg(a, "output_padding"), ag_arg(a, "groups"), mask};
    /* clang-format on */
    if (input.kind == AOT_ARG_NONE || weight.kind == AOT_ARG_NONE) return em_none();
    ag_call_n(a, "convolution_backward", 11, args, 3, out);
  }
  return out[which];
}

static em_x_t forward(em_t *a, em_x_t input, em_x_t weight) {
  if (weight.kind == AOT_ARG_NONE) return weight;
  return AG_OP(a, "convolution", input, weight, em_none(), ag_arg(a, "stride"), ag_arg(a, "padding"),
               ag_arg(a, "dilation"), ag_arg(a, "transposed"), ag_arg(a, "output_padding"), ag_arg(a, "groups"));
}

/* With cotangents p, q, r of the gradients of input, weight and bias, <p, gi> + <q, gw> = <G, conv(p, w) + conv(x,
 * q)>. */
void ag_rule_convolution_backward(em_t *a) {
  em_x_t g = ag_arg(a, "grad_output"), x = ag_arg(a, "input"), w = ag_arg(a, "weight");
  em_x_t p = ag_g(a, 0), q = ag_g(a, 1), r = ag_g(a, 2), sum;
  ag_type_t t = ag_type(a, g);
  int32_t d;
  if (ag_needs(a, "grad_output")) {
    sum = ag_add(a, forward(a, p, w), forward(a, x, q));
    if (r.kind != AOT_ARG_NONE) {
      int64_t sizes[AOT_MAX_RANK];
      for (d = 0; d < t.rank; d++) sizes[d] = d == 1 ? t.sizes[1] : 1;
      sum = ag_add(a, sum, ag_expand(a, ag_reshape(a, r, sizes, t.rank), t.sizes, t.rank));
    }
    ag_set(a, "grad_output", sum);
  }
  if (ag_needs(a, "weight")) ag_set(a, "weight", masked_backward(a, g, p, w, 1));
  if (ag_needs(a, "input")) ag_set(a, "input", masked_backward(a, g, x, q, 0));
}

/* gelu's second derivative: phi(x) (2 - x^2); by tanh: with u = k (x + c x^3), t = tanh u,
 * (1 - t^2) (u' + x (u''/2 - t u'^2)), u' = k (1 + 3 c x^2), u'' = 6 k c x. */
void ag_rule_gelu_backward(em_t *a) {
  const double k = 0.79788456080286535588, c = 0.044715;
  em_x_t x = ag_arg(a, "self"), g = ag_g(a, 0), how = ag_arg(a, "approximate"), square = ag_mul(a, x, x), t, slope, d;
  if (ag_needs(a, "grad_output")) ag_set(a, "grad_output", AG_OP(a, "gelu_backward", g, x, how));
  if (!ag_needs(a, "self")) return;
  if (how.kind == AOT_ARG_STR && how.n > 0 && how.u.chars[0] == 't') {
    t = AG_OP(a, "tanh", ag_mul(a, ag_mul(a, x, ag_add(a, ag_mul(a, square, em_f(c)), em_i(1))), em_f(k)));
    slope = ag_add(a, ag_mul(a, square, em_f(3 * c * k)), em_f(k));
    d = ag_sub(a, ag_mul(a, x, em_f(3 * k * c)), ag_mul(a, t, ag_mul(a, slope, slope)));
    d = ag_mul(a, ag_sub(a, em_i(1), ag_mul(a, t, t)), ag_add(a, slope, ag_mul(a, x, d)));
  } else {
    d = AG_OP(a, "exp", ag_mul(a, square, em_f(-0.5)));
    d = ag_mul(a, ag_mul(a, d, em_f(k / 2)), ag_sub(a, em_i(2), square));
  }
  ag_set(a, "self", ag_mul(a, ag_mul(a, g, ag_arg(a, "grad_output")), d));
}

/* Below 0 the slope is an exponential, or linear in the result. */
void ag_rule_elu_backward(em_t *a) {
  em_x_t x = ag_arg(a, "self_or_result"), g = ag_g(a, 0), d;
  int of_result = ag_is_set(a, "is_result", 0);
  if (ag_needs(a, "grad_output"))
    ag_set(a, "grad_output",
           AG_OP(a, "elu_backward", g, ag_arg(a, "alpha"), ag_arg(a, "scale"), ag_arg(a, "input_scale"),
                 em_b(of_result), x));
  if (!ag_needs(a, "self_or_result")) return;
  d = ag_mul(a, ag_mul(a, g, ag_arg(a, "grad_output")), ag_arg(a, "input_scale"));
  if (!of_result)
    d = AG_OP(a, "elu_backward", d, ag_arg(a, "alpha"), ag_arg(a, "scale"), ag_arg(a, "input_scale"), em_b(0), x);
  ag_set(a, "self_or_result", ag_where(a, ag_compare(a, "lt", x, em_i(0)), d, em_none()));
}

static em_x_t joined(em_t *a, em_x_t first, em_x_t second, em_x_t dim) {
  uint32_t ids[2];
  if (a->status != AOT_OK || !em_is_value(first) || !em_is_value(second)) return em_none();
  ids[0] = (uint32_t)first.u.i;
  ids[1] = (uint32_t)second.u.i;
  return AG_OP(a, "cat", aot_arg_values(ids, 2), dim);
}

/* glu_backward is [G s, G u s (1-s)] for x = [u, v], s = sigmoid(v); p and q are the forward and backward graphs of its
 * cotangent. */
void ag_rule_glu_backward(em_t *a) {
  em_x_t x = ag_arg(a, "self"), out = ag_arg(a, "grad_output"), g = ag_g(a, 0), dim, s, slope, u, p, q, first, second;
  ag_type_t t = ag_type(a, x);
  uint32_t d = ag_dim(a, ag_int(a, ag_arg(a, "dim"), -1), t.rank);
  em_x_t half = em_i(ag_dim_op(a, AOT_EXPR_FLOORDIV, t.sizes[d], 2)), all = em_i(t.sizes[d]);
  dim = em_i(d);
  u = AG_OP(a, "slice.Tensor", x, dim, em_i(0), half, em_i(1));
  s = AG_OP(a, "sigmoid", AG_OP(a, "slice.Tensor", x, dim, half, all, em_i(1)));
  slope = ag_mul(a, s, ag_sub(a, em_i(1), s));
  p = AG_OP(a, "slice.Tensor", g, dim, em_i(0), half, em_i(1));
  q = AG_OP(a, "slice.Tensor", g, dim, half, all, em_i(1));
  if (ag_needs(a, "grad_output"))
    ag_set(a, "grad_output", ag_add(a, ag_mul(a, p, s), ag_mul(a, q, ag_mul(a, u, slope))));
  if (!ag_needs(a, "self")) return;
  slope = ag_mul(a, slope, out);
  first = ag_mul(a, q, slope);
  second = ag_mul(a, ag_mul(a, q, u), ag_sub(a, em_i(1), ag_mul(a, s, em_i(2))));
  ag_set(a, "self", joined(a, first, ag_mul(a, slope, ag_add(a, p, second)), dim));
}

/* The saved logsumexp is a constant to autograd, so that a second derivative would silently lack what passes through
 * it. */
void ag_rule_flash_backward(em_t *a) {
  em_fail(a, AOT_E_INVALID, "take scaled_dot_product_attention, whose backward can be differentiated",
          "the second derivative of %.*s is not supported, nor is it in PyTorch", (int)a->desc->name.size,
          a->desc->name.data);
}
