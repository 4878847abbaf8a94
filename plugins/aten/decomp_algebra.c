/* Small algebra in other operators: powers in double, Vandermonde matrices, sums to a shape, mirrors, diagonals. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

/* float_power: pow with both in float64 */
aot_status_t at_dc_float_power(em_t *e, aot_value_t *out) {
  em_x_t x = em_cast(e, IN("self"), AOT_F64), y = em_cast(e, IN("exponent"), AOT_F64);
  const char *form = x.kind != AOT_ARG_VALUE   ? "pow.Scalar"
                     : y.kind != AOT_ARG_VALUE ? "pow.Tensor_Scalar"
                                               : "pow.Tensor_Tensor";
  if (x.kind == AOT_ARG_INT) x = em_f((double)x.u.i);
  if (y.kind == AOT_ARG_INT) y = em_f((double)y.u.i);
  return at_give_cast(e, EM(e, form, x, y), out);
}

/* vander: column j is x to the power j, or n - 1 - j */
aot_status_t at_dc_vander(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  em_x_t x = em_cast(e, IN("x"), t.dtype), powers = at_range(e, t.sizes[1], x);
  if (!at_in_int(e, "increasing", 0)) powers = SUB(em_i(at_sub(at_infer(e), t.sizes[1], 1)), powers);
  return at_give_cast(e, EM(e, "pow.Tensor_Tensor", at_unsqueeze(e, x, 1), powers), out);
}

/* sum_to_size: what broadcasting added is summed away */
aot_status_t at_dc_sum_to_size(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  int64_t dims[AOT_MAX_RANK];
  int32_t d, lead = t.rank - to.rank;
  uint32_t n = 0;
  for (d = 0; d < t.rank; d++)
    if (d < lead || (at_same(at_infer(e), to.sizes[d - lead], 1) && !at_same(at_infer(e), t.sizes[d], 1)))
      dims[n++] = d;
  x = n ? EM(e, "sum.dim_IntList", x, em_list(e, dims, n), em_b(1), em_dtype(to.dtype)) : em_cast(e, x, to.dtype);
  return at_give(e, at_reshaped(e, x, to.sizes, to.rank), out);
}

/* fliplr mirrors columns, flipud rows */
aot_status_t at_dc_mirror(em_t *e, aot_value_t *out) {
  int64_t dim = strstr(at_name(e), "fliplr") ? 1 : 0;
  return at_give(e, EM(e, "flip", IN("self"), em_list(e, &dim, 1)), out);
}

aot_status_t at_dc_diagflat(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  int64_t flat = at_numel(at_infer(e), TYPE(x).sizes, TYPE(x).rank);
  return at_give(e, EM(e, "diag_embed", at_reshaped(e, x, &flat, 1), IN("offset")), out);
}

/* isreal: true; complex numbers are not in the set */
aot_status_t at_dc_isreal(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, at_filled(e, t.sizes, t.rank, em_b(1), AOT_BOOL, IN("self")), out);
}

/* special_ndtr: the normal distribution function, erfc(-x / sqrt 2) / 2 */
aot_status_t at_dc_ndtr(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, em_cast(e, IN("self"), at_result_type(e, 0).dtype));
  return at_give_cast(e, MUL(EM(e, "erfc", MUL(x, em_f(-sqrt(0.5)))), em_f(0.5)), out);
}
