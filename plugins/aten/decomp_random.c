/* Relatives of dropout, and PyTorch's explicit draw. Outside of training, and with p = 0, they are the identity.
 *
 * feature_*: whole channels fall away, one draw for each [batch, channel]. alpha (Klambauer et al. 2017): what falls
 * away becomes the lower bound of selu, and all is scaled so that mean and variance stay: with A = 1.7580993408473766
 * and a = 1 / sqrt((A^2 p + 1)(1 - p)), y = x a keep + A a (keep - 1) + A a p. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

/* 1 with probability 1 - p, 0 otherwise; of x's shape or one for each channel */
static em_x_t draw(em_t *e, em_x_t x, double p, int by_channel) {
  aot_type_t t = TYPE(x);
  int64_t sizes[AOT_MAX_RANK];
  int32_t d;
  if (by_channel && t.rank < 2)
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s of a tensor of rank %d", at_name(e), (int)t.rank);
  for (d = 0; d < t.rank; d++) sizes[d] = by_channel && d >= 2 ? 1 : t.sizes[d];
  return EM(e, "bernoulli", at_filled(e, sizes, t.rank, em_f(1.0 - p), t.dtype, x));
}

/* feature_dropout, alpha_dropout, feature_alpha_dropout */
aot_status_t at_dc_dropout_relative(em_t *e, aot_value_t *out) {
  const double lower = 1.7580993408473766;
  int by_channel = strstr(at_name(e), "feature") != NULL;
  em_x_t x = IN("input"), keep;
  double p = em_in_float(e, "p", 0.5), a;
  if (!at_in_int(e, "train", 0) || p == 0.0) return at_give(e, x, out);
  if (p == 1.0) return at_give(e, MUL(x, em_f(0.0)), out);
  keep = draw(e, x, p, by_channel);
  if (strstr(at_name(e), "alpha") == NULL) return at_give(e, MUL(x, MUL(keep, em_f(1.0 / (1.0 - p)))), out);
  a = 1.0 / sqrt((lower * lower * p + 1.0) * (1.0 - p));
  x = MUL(x, MUL(keep, em_f(a)));
  return at_give(e, ADD(x, ADD(MUL(keep, em_f(lower * a)), em_f(lower * a * (p - 1.0)))), out);
}

/* rngprims.philox_rand: PyTorch's numbers depend on the grid of a CUDA kernel; these on the element alone. The offset
 * moves on by 4, as far as PyTorch's does for sizes that its grid covers at once. */
aot_status_t at_dc_philox_rand(em_t *e, aot_value_t *out) {
  const aot_type_t t = at_result_type(e, 0);
  const em_x_t args[] = {IN("seed"), IN("offset"), em_i(0), IN("size"), em_dtype(t.dtype)};
  if (IN("stride").kind != AOT_ARG_NONE)
    em_fail(e, AOT_E_UNIMPLEMENTED, "PyTorch refuses it, too", "%s with strides", at_name(e));
  out[1] = VAL(EM(e, "full", em_list(e, t.sizes, 0), em_i(4), em_dtype(AOT_I64), em_none(), IN("device")));
  return at_give(e, em_call(e, "aot.philox_uniform.default", 5, args), out);
}
