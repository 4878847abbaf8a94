/* Fourier transforms are linear: the gradient is the adjoint, the opposite transform with the same scale. */
#include "rules.h"

static uint32_t last_of(em_t *a, em_x_t dims, int32_t rank) { return ag_dim(a, dims.u.ints[dims.n - 1], rank); }

void ag_rule_fft_c2c(em_t *a) {
  int backward = !ag_is_set(a, "forward", 1);
  ag_set(a, "self", AG_OP(a, "_fft_c2c", ag_g(a, 0), ag_arg(a, "dim"), ag_arg(a, "normalization"), em_b(backward)));
}

/* The half that was left out has no cotangent: zeros. Of the transform back ag_set takes the real part. */
void ag_rule_fft_r2c(em_t *a) {
  em_x_t x = ag_arg(a, "self"), dims = ag_arg(a, "dim"), g = ag_g(a, 0);
  ag_type_t t = ag_type(a, x);
  g = ag_pad_to(a, g, t.sizes);
  ag_set(a, "self", AG_OP(a, "_fft_c2c", g, dims, ag_arg(a, "normalization"), em_b(0)));
}

/* Every value of the half but the first, and the middle one of an even length, represents two of the whole. */
void ag_rule_fft_c2r(em_t *a) {
  em_x_t dims = ag_arg(a, "dim"), g = ag_g(a, 0), twice;
  ag_type_t half = ag_type(a, ag_arg(a, "self"));
  uint32_t last = last_of(a, dims, half.rank);
  int64_t whole = ag_type(a, g).sizes[last], kept, end;
  g = AG_OP(a, "_fft_r2c", g, dims, ag_arg(a, "normalization"), em_b(1));
  kept = ag_type(a, g).sizes[last];
  end = ag_dim_op(a, AOT_EXPR_ADD, ag_dim_op(a, AOT_EXPR_SUB, whole, kept), 1);
  twice = ag_mul(a, AG_OP(a, "slice.Tensor", g, em_i(last), em_i(1), em_i(end), em_i(1)), em_i(2));
  g = AG_OP(a, "slice_scatter", g, twice, em_i(last), em_i(1), em_i(end), em_i(1));
  ag_set(a, "self", ag_pad_to(a, g, half.sizes)); /* values beyond the half were not looked at */
}
