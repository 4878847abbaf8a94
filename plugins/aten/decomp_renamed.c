/* Other names: operators that are one of the others, argument for argument. A row names both. */
#include "at_formula.h"

#include <string.h>

/* Same arguments, another name. */
typedef struct renamed {
  const char *from, *to;
} renamed_t;
static const renamed_t names[] = {
    {"aten.multiply.Tensor", "mul.Tensor"},
    {"aten.divide.Tensor", "div.Tensor"},
    {"aten.true_divide.Tensor", "div.Tensor"},
    {"aten.subtract.Tensor", "sub.Tensor"},
    {"aten.absolute.default", "abs"},
    {"aten.negative.default", "neg"},
    {"aten.clip.default", "clamp"},
    {"aten.special_expit.default", "sigmoid"},
    {"aten.special_logsumexp.default", "logsumexp"},
    {"aten.greater.Tensor", "gt.Tensor"},
    {"aten.greater_equal.Tensor", "ge.Tensor"},
    {"aten.less.Tensor", "lt.Tensor"},
    {"aten.less_equal.Tensor", "le.Tensor"},
    {"aten.not_equal.Tensor", "ne.Tensor"},
    {"aten.concat.default", "cat"},
    {"aten.cdist.default", "_cdist_forward"},
    {"aten.adaptive_avg_pool3d.default", "_adaptive_avg_pool3d"},
    {"aten.max_pool3d.default", "max_pool3d_with_indices"},
    {"aten._unsafe_index.Tensor", "index.Tensor"},
    {"aten._unsafe_index_put.default", "index_put"},
    {"aten._unsafe_view.default", "view"},
    {"aten.zero.default", "zeros_like"},
    {"aten.__lshift__.Tensor", "bitwise_left_shift.Tensor"},
    {"aten.__lshift__.Scalar", "bitwise_left_shift.Tensor_Scalar"},
    {"aten.__rshift__.Tensor", "bitwise_right_shift.Tensor"},
    {"aten.__rshift__.Scalar", "bitwise_right_shift.Tensor_Scalar"},
    {"aten._weight_norm.default", "_weight_norm_interface"},
    {"aten.multilabel_margin_loss.default", "multilabel_margin_loss_forward"},
    {"aten.arccos.default", "acos"},
    {"aten.arccosh.default", "acosh"},
    {"aten.arcsin.default", "asin"},
    {"aten.arcsinh.default", "asinh"},
    {"aten.arctan.default", "atan"},
    {"aten.arctan2.default", "atan2"},
    {"aten.arctanh.default", "atanh"},
    {"aten.clip.Tensor", "clamp.Tensor"},
    {"aten.concatenate.default", "cat"},
    {"aten.divide.Scalar", "div.Scalar"},
    {"aten.divide.Scalar_mode", "div.Scalar_mode"},
    {"aten.divide.Tensor_mode", "div.Tensor_mode"},
    {"aten.true_divide.Scalar", "div.Scalar"},
    {"aten.fix.default", "trunc"},
    {"aten.ger.default", "outer"},
    {"aten.greater.Scalar", "gt.Scalar"},
    {"aten.greater_equal.Scalar", "ge.Scalar"},
    {"aten.less.Scalar", "lt.Scalar"},
    {"aten.less_equal.Scalar", "le.Scalar"},
    {"aten.not_equal.Scalar", "ne.Scalar"},
    {"aten.multiply.Scalar", "mul.Scalar"},
    {"aten.subtract.Scalar", "sub.Scalar"},
    {"aten.moveaxis.int", "movedim.int"},
    {"aten.moveaxis.intlist", "movedim.intlist"},
    {"aten.swapdims.default", "transpose.int"},
    {"aten.row_stack.default", "vstack"},
    {"aten.pdist.default", "_pdist_forward"},
    {"aten.special_digamma.default", "digamma"},
    {"aten.special_psi.default", "digamma"},
    {"aten.special_erf.default", "erf"},
    {"aten.special_erfc.default", "erfc"},
    {"aten.special_erfinv.default", "erfinv"},
    {"aten.special_exp2.default", "exp2"},
    {"aten.special_expm1.default", "expm1"},
    {"aten.special_gammainc.default", "igamma"},
    {"aten.special_gammaincc.default", "igammac"},
    {"aten.special_gammaln.default", "lgamma"},
    {"aten.special_i0.default", "i0"},
    {"aten.special_log1p.default", "log1p"},
    {"aten.special_logit.default", "logit"},
    {"aten.special_multigammaln.default", "mvlgamma"},
    {"aten.special_polygamma.default", "polygamma"},
    {"aten.special_round.default", "round.decimals"},
    {"aten.special_sinc.default", "sinc"},
    {"aten.special_xlogy.default", "xlogy.Tensor"},
    {"aten.native_channel_shuffle.default", "channel_shuffle"},
    {"aten.__and__.Tensor", "bitwise_and.Tensor"},
    {"aten.__and__.Scalar", "bitwise_and.Scalar"},
    {"aten.__or__.Tensor", "bitwise_or.Tensor"},
    {"aten.__or__.Scalar", "bitwise_or.Scalar"},
    {"aten.__xor__.Tensor", "bitwise_xor.Tensor"},
    {"aten.__xor__.Scalar", "bitwise_xor.Scalar"},
    {"aten.bitwise_and.Scalar_Tensor", "bitwise_and.Tensor"},
    {"aten.bitwise_or.Scalar_Tensor", "bitwise_or.Tensor"},
    {"aten.bitwise_xor.Scalar_Tensor", "bitwise_xor.Tensor"},
    {"aten.bitwise_left_shift.Scalar_Tensor", "bitwise_left_shift.Tensor"},
    {"aten.bitwise_right_shift.Scalar_Tensor", "bitwise_right_shift.Tensor"},
    {"aten.xlogy.Scalar_Self", "xlogy.Tensor"},
    {"aten.xlogy.Scalar_Other", "xlogy.Tensor"},
    {"aten.special_xlogy.self_scalar", "xlogy.Tensor"},
    {"aten.special_xlogy.other_scalar", "xlogy.Tensor"},
    {"aten.special_xlog1py.self_scalar", "special_xlog1py"},
    {"aten.special_xlog1py.other_scalar", "special_xlog1py"},
    {"aten.special_zeta.self_scalar", "special_zeta"},
    {"aten.special_zeta.other_scalar", "special_zeta"},
    {"aten.floor_divide.Scalar", "floor_divide"},
    {"aten.special_chebyshev_polynomial_t.x_scalar", "special_chebyshev_polynomial_t"},
    {"aten.special_chebyshev_polynomial_t.n_scalar", "special_chebyshev_polynomial_t"},
    {"aten.special_chebyshev_polynomial_u.x_scalar", "special_chebyshev_polynomial_u"},
    {"aten.special_chebyshev_polynomial_u.n_scalar", "special_chebyshev_polynomial_u"},
    {"aten.special_chebyshev_polynomial_v.x_scalar", "special_chebyshev_polynomial_v"},
    {"aten.special_chebyshev_polynomial_v.n_scalar", "special_chebyshev_polynomial_v"},
    {"aten.special_chebyshev_polynomial_w.x_scalar", "special_chebyshev_polynomial_w"},
    {"aten.special_chebyshev_polynomial_w.n_scalar", "special_chebyshev_polynomial_w"},
    {"aten.special_shifted_chebyshev_polynomial_t.x_scalar", "special_shifted_chebyshev_polynomial_t"},
    {"aten.special_shifted_chebyshev_polynomial_t.n_scalar", "special_shifted_chebyshev_polynomial_t"},
    {"aten.special_shifted_chebyshev_polynomial_u.x_scalar", "special_shifted_chebyshev_polynomial_u"},
    {"aten.special_shifted_chebyshev_polynomial_u.n_scalar", "special_shifted_chebyshev_polynomial_u"},
    {"aten.special_shifted_chebyshev_polynomial_v.x_scalar", "special_shifted_chebyshev_polynomial_v"},
    {"aten.special_shifted_chebyshev_polynomial_v.n_scalar", "special_shifted_chebyshev_polynomial_v"},
    {"aten.special_shifted_chebyshev_polynomial_w.x_scalar", "special_shifted_chebyshev_polynomial_w"},
    {"aten.special_shifted_chebyshev_polynomial_w.n_scalar", "special_shifted_chebyshev_polynomial_w"},
    {"aten.special_hermite_polynomial_h.x_scalar", "special_hermite_polynomial_h"},
    {"aten.special_hermite_polynomial_h.n_scalar", "special_hermite_polynomial_h"},
    {"aten.special_hermite_polynomial_he.x_scalar", "special_hermite_polynomial_he"},
    {"aten.special_hermite_polynomial_he.n_scalar", "special_hermite_polynomial_he"},
    {"aten.special_laguerre_polynomial_l.x_scalar", "special_laguerre_polynomial_l"},
    {"aten.special_laguerre_polynomial_l.n_scalar", "special_laguerre_polynomial_l"},
    {"aten.special_legendre_polynomial_p.x_scalar", "special_legendre_polynomial_p"},
    {"aten.special_legendre_polynomial_p.n_scalar", "special_legendre_polynomial_p"},
};

aot_status_t at_dc_renamed(em_t *e, aot_value_t *out) {
  uint32_t k;
  size_t i;
  for (i = 0; i < sizeof names / sizeof names[0]; i++) {
    em_x_t first;
    if (strcmp(at_name(e), names[i].from) != 0) continue;
    first = em_call(e, names[i].to, e->info.n_args, e->info.args);
    for (k = 0; k < e->info.n_results; k++) out[k] = VAL(em_nth(first, k));
    return e->status;
  }
  return AOT_E_UNIMPLEMENTED;
}

/* The operator of two tensors; the number among them becomes a tensor of the dtype that both have in common. */
aot_status_t at_dc_of_tensors(em_t *e, aot_value_t *out) {
  static const renamed_t rows[] = {
      {"aten.isin.Tensor_Scalar", "isin.Tensor_Tensor"},
      {"aten.isin.Scalar_Tensor", "isin.Tensor_Tensor"},
      {"aten.bucketize.Scalar", "bucketize.Tensor"},
      {"aten.searchsorted.Scalar", "searchsorted.Tensor"},
  };
  em_x_t args[AOT_MAX_RANK];
  size_t i;
  for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    if (strcmp(at_name(e), rows[i].from) != 0) continue;
    const uint32_t number = em_is_number(e->info.args[1]);
    const aot_type_t pair[2] = {TYPE(e->info.args[0]), TYPE(e->info.args[1])}, like = pair[!number];
    memcpy(args, e->info.args, e->info.n_args * sizeof *args);
    args[number] = EM(e, "scalar_tensor", args[number], em_dtype(at_promote(at_infer(e), pair, 2)), em_none(),
                      em_device(like.device, like.device_index));
    return at_give(e, em_call(e, rows[i].to, e->info.n_args, args), out);
  }
  return AOT_E_UNIMPLEMENTED;
}
