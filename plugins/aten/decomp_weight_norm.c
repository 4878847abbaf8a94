/* Weight norm (Salimans and Kingma 2016): w = g v / |v|, the norm over every dimension but one.
 *
 * Gradients, n being the norms:   gg = sum(gw v) / n      gv = g / n (gw - v sum(gw v) / n^2) */
#include "at_formula.h"

/* Every dimension but dim; -1: every one. */
static uint32_t other_dims(em_t *e, int32_t rank, int64_t *out) {
  int64_t dim = at_in_int(e, "dim", 0);
  int32_t kept = dim == -1 ? -1 : at_wrap(at_infer(e), dim, rank), d;
  uint32_t n = 0;
  for (d = 0; d < rank; d++)
    if (d != kept) out[n++] = d;
  return n;
}

static em_x_t norm_over(em_t *e, em_x_t v, em_x_t order) {
  int64_t dims[AOT_MAX_RANK];
  uint32_t n = other_dims(e, TYPE(v).rank, dims);
  return EM(e, "linalg_vector_norm", v, order, em_list(e, dims, n), em_b(1));
}

aot_status_t at_dc_norm_except_dim(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, at_reshaped(e, norm_over(e, IN("v"), IN("pow")), t.sizes, t.rank), out);
}

/* _weight_norm_interface: the product, and the norms */
aot_status_t at_dc_weight_norm(em_t *e, aot_value_t *out) {
  em_x_t v = at_math(e, IN("v")), norms;
  norms = norm_over(e, v, em_i(2));
  at_give_cast(e, MUL(v, DIV(at_math(e, IN("g")), norms)), out);
  aot_type_t t = at_result_type(e, 1);
  out[1] = VAL(em_cast(e, at_reshaped(e, norms, t.sizes, t.rank), t.dtype));
  return e->status;
}

aot_status_t at_dc_weight_norm_backward(em_t *e, aot_value_t *out) {
  em_x_t gw = at_math(e, IN("grad_w")), v = at_math(e, IN("saved_v")), g = at_math(e, IN("saved_g")), n, along;
  int64_t dims[AOT_MAX_RANK];
  uint32_t n_dims = other_dims(e, TYPE(v).rank, dims);
  n = at_math(e, IN("saved_norms"));
  along = at_summed(e, MUL(gw, v), dims, n_dims, 1);
  out[0] = VAL(em_cast(e, MUL(DIV(g, n), SUB(gw, MUL(v, DIV(along, MUL(n, n))))), at_result_type(e, 0).dtype));
  const aot_type_t t = at_result_type(e, 1); /* rank 0 where the norm is of the whole tensor */
  out[1] = VAL(em_cast(e, at_reshaped(e, DIV(along, n), t.sizes, t.rank), t.dtype));
  return e->status;
}
