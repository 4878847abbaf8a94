/* Means that skip nan, quantiles, covariance, correlation. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

/* nanmean: the sum of what is a number over how many are */
aot_status_t at_dc_nanmean(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, em_cast(e, IN("self"), at_result_type(e, 0).dtype)), number = EQ(x, x), sum, count;
  aot_type_t t = TYPE(x);
  const int64_t *dims;
  int64_t all[AOT_MAX_RANK];
  uint32_t n = at_in_ints(e, "dim", &dims);
  int keep = at_in_int(e, "keepdim", 0) != 0;
  int32_t d;
  if (n == 0) {
    for (d = 0; d < t.rank; d++) all[d] = d;
    dims = all;
    n = (uint32_t)t.rank;
  }
  sum = at_summed(e, WHERE(number, x, em_f(0.0)), dims, n, keep);
  count = at_summed(e, em_cast(e, number, t.dtype), dims, n, keep);
  return at_give_cast(e, DIV(sum, count), out);
}

/* Element q (n - 1) of n sorted ones, counted from 0, between its two neighbours where that is no whole number. nan is
 * sorted to the end: nanquantile counts the elements before, quantile takes the last, which is nan
 * (aten/src/ATen/native/Sorting.cpp). */
aot_status_t at_dc_quantile(em_t *e, aot_value_t *out) {
  const int skips_nan = strstr(at_name(e), "nanquantile") != NULL,
            midpoint = at_in_str_is(e, "interpolation", "midpoint");
  em_x_t x = IN("self"), q = IN("q"), sorted, rank, below, value;
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  int64_t along, one[1] = {1}, place[AOT_MAX_RANK], n;
  int32_t d;
  if (at_in_has(e, "dim") && t.rank) {
    x = at_unsqueeze(e, x, t.rank);
    x = EM(e, "transpose.int", x, em_i(at_wrap(at_infer(e), at_in_int(e, "dim", 0), t.rank)), em_i(t.rank));
  } else {
    n = at_numel(at_infer(e), t.sizes, t.rank);
    x = at_reshaped(e, x, &n, 1);
  }
  if (em_is_number(q)) q = EM(e, "scalar_tensor", q, em_dtype(t.dtype), em_none(), em_device(t.device, t.device_index));
  if (TYPE(q).rank == 0) q = at_reshaped(e, q, one, 1);
  t = TYPE(x);
  if (e->status != AOT_OK) return e->status;
  along = t.rank - 1;
  n = t.sizes[along];
  sorted = EM(e, "sort", x, em_i(along));
  if (skips_nan) {
    em_x_t count = at_summed(e, em_cast(e, EQ(sorted, sorted), t.dtype), &along, 1, 1);
    rank = EM(e, "clamp", MUL(q, SUB(count, em_f(1.0))), em_f(0.0));
  } else {
    em_x_t largest = EM(e, "slice.Tensor", sorted, em_i(along), em_i(at_sub(at_infer(e), n, 1)), em_i(n));
    n = at_sub(at_infer(e), n, 1);
    rank = WHERE(EQ(largest, largest), MUL(q, em_i(n)), em_i(n));
  }
  if (at_in_str_is(e, "interpolation", "lower")) rank = EM(e, "floor", rank);
  if (at_in_str_is(e, "interpolation", "higher")) rank = EM(e, "ceil", rank);
  if (at_in_str_is(e, "interpolation", "nearest")) rank = EM(e, "round", rank);
  below = em_cast(e, rank, AOT_I64);
  value = EM(e, "gather", sorted, em_i(along), below);
  if (midpoint || at_in_str_is(e, "interpolation", "linear")) {
    em_x_t above = EM(e, "gather", sorted, em_i(along), em_cast(e, EM(e, "ceil", rank), AOT_I64));
    value =
        midpoint ? EM(e, "lerp.Scalar", value, above, em_f(0.5)) : EM(e, "lerp.Tensor", value, above, SUB(rank, below));
  }
  for (d = 0; d < t.rank; d++) place[d] = d == 0 ? along : d - 1;
  value = EM(e, "permute", value, em_list(e, place, (uint32_t)t.rank));
  return at_give(e, at_reshaped(e, value, to.sizes, to.rank), out);
}

static em_x_t total(em_t *e, em_x_t x) {
  static const int64_t first = 0;
  return at_summed(e, x, &first, 1, 0);
}

/* Rows are variables, columns observations with weights w = fweights aweights. The divisor is
 *     sum w - correction                             without aweights
 *     sum w - correction sum(w aweights) / sum w     with them */
aot_status_t at_dc_cov(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), f = IN("fweights"), a = IN("aweights"), w, sum_w, divisor, c;
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  double correction = em_in_float(e, "correction", 1.0);
  int64_t matrix[2] = {1, 1}, last = 1;
  if (t.rank == 1) matrix[1] = t.sizes[0];
  if (t.rank == 2) matrix[0] = t.sizes[0], matrix[1] = t.sizes[1];
  x = em_cast(e, at_reshaped(e, x, matrix, 2), to.dtype);
  if (!em_is_none(f)) f = em_cast(e, f, to.dtype);
  w = em_is_none(f) ? a : em_is_none(a) ? f : MUL(f, a);
  if (em_is_none(w)) {
    sum_w = em_i(matrix[1]);
    divisor = AOT_DIM_IS_SYM(matrix[1]) ? em_i(at_sub(at_infer(e), matrix[1], (int64_t)correction))
                                        : em_f(fmax(0.0, (double)matrix[1] - correction));
  } else {
    sum_w = total(e, w);
    divisor = em_is_none(a) ? SUB(sum_w, em_f(correction))
                            : SUB(sum_w, DIV(MUL(total(e, MUL(w, a)), em_f(correction)), sum_w));
    divisor = EM(e, "clamp", divisor, em_f(0.0));
  }
  c = DIV(at_summed(e, em_is_none(w) ? x : MUL(x, w), &last, 1, 1), sum_w);
  x = SUB(x, c);
  c = EM(e, "mm", x, EM(e, "t", em_is_none(w) ? x : MUL(x, w)));
  return at_give_cast(e, at_reshaped(e, DIV(c, divisor), to.sizes, to.rank), out);
}

/* Covariances over the standard deviations of both variables, held in [-1, 1]. */
aot_status_t at_dc_corrcoef(em_t *e, aot_value_t *out) {
  em_x_t c = EM(e, "cov", at_math(e, IN("self"))), deviation;
  if (TYPE(c).rank == 0) return at_give_cast(e, DIV(c, c), out);
  deviation = SQRT(EM(e, "diagonal", c));
  c = DIV(DIV(c, at_unsqueeze(e, deviation, 1)), deviation);
  return at_give_cast(e, EM(e, "clamp", c, em_f(-1.0), em_f(1.0)), out);
}
