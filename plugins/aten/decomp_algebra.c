/* Small algebra in other operators: powers in double, Vandermonde matrices, sums to a shape, mirrors, diagonals. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

/* float_power: pow with both in float64 */
aot_status_t at_dc_float_power(at_emit_t *e, aot_value_t *out) {
  at_x x = at_cast(e, IN("self"), AOT_F64), y = at_cast(e, IN("exponent"), AOT_F64);
  const char *form = x.kind != AOT_ARG_VALUE   ? "pow.Scalar"
                     : y.kind != AOT_ARG_VALUE ? "pow.Tensor_Scalar"
                                               : "pow.Tensor_Tensor";
  if (x.kind == AOT_ARG_INT) x = at_f((double)x.u.i);
  if (y.kind == AOT_ARG_INT) y = at_f((double)y.u.i);
  return at_give_cast(e, AT(e, form, x, y), out);
}

/* vander: column j is x to the power j, or n - 1 - j */
aot_status_t at_dc_vander(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  at_x x = at_cast(e, IN("x"), t.dtype), powers = at_range(e, t.sizes[1], x);
  if (!at_in_int(e, "increasing", 0)) powers = SUB(at_i(at_sub(e->infer, t.sizes[1], 1)), powers);
  return at_give_cast(e, AT(e, "pow.Tensor_Tensor", at_unsqueeze(e, x, 1), powers), out);
}

/* sum_to_size: what broadcasting added is summed away */
aot_status_t at_dc_sum_to_size(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self");
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  int64_t dims[AOT_MAX_RANK];
  int32_t d, lead = t.rank - to.rank;
  uint32_t n = 0;
  for (d = 0; d < t.rank; d++)
    if (d < lead || !at_same(e->infer, t.sizes[d], to.sizes[d - lead])) dims[n++] = d;
  x = n ? AT(e, "sum.dim_IntList", x, at_list(e, dims, n), at_b(1), at_dtype_of(to.dtype)) : x;
  return at_give(e, at_reshaped(e, x, to.sizes, to.rank), out);
}

/* fliplr mirrors columns, flipud rows */
aot_status_t at_dc_mirror(at_emit_t *e, aot_value_t *out) {
  int64_t dim = strstr(e->row->name, "fliplr") ? 1 : 0;
  return at_give(e, AT(e, "flip", IN("self"), at_list(e, &dim, 1)), out);
}

aot_status_t at_dc_diagflat(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self");
  int64_t flat = at_numel(e->infer, TYPE(x).sizes, TYPE(x).rank);
  return at_give(e, AT(e, "diag_embed", at_reshaped(e, x, &flat, 1), IN("offset")), out);
}

/* isreal: true; complex numbers are not in the set */
aot_status_t at_dc_isreal(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  return at_give(e, at_filled(e, t.sizes, t.rank, at_b(1), AOT_BOOL, IN("self")), out);
}

/* special_ndtr: the normal distribution function, erfc(-x / sqrt 2) / 2 */
aot_status_t at_dc_ndtr(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, at_cast(e, IN("self"), at_result_type(e, 0).dtype));
  return at_give_cast(e, MUL(AT(e, "erfc", MUL(x, at_f(-sqrt(0.5)))), at_f(0.5)), out);
}
