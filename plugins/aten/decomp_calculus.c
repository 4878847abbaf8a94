/* Differences and sums along a dimension: diff, trapezoid, cumulative_trapezoid. */
#include "at_formula.h"

#include <string.h>

static em_x_t part(em_t *e, em_x_t x, int32_t dim, int64_t start, int64_t end) {
  return EM(e, "slice.Tensor", x, em_i(dim), em_i(start), em_i(end));
}

/* Elements 0 .. n - 2 and 1 .. n - 1. */
static void neighbours(em_t *e, em_x_t x, int32_t dim, em_x_t *out_left, em_x_t *out_right) {
  int64_t n = TYPE(x).sizes[dim];
  *out_left = part(e, x, dim, 0, at_sub(at_infer(e), n, 1));
  *out_right = part(e, x, dim, 1, n);
}

static em_x_t joined(em_t *e, em_x_t a, em_x_t b, int32_t dim) {
  uint32_t ids[2];
  if (em_is_none(a) || em_is_none(b)) return em_is_none(a) ? b : a;
  ids[0] = VAL(a).id;
  ids[1] = VAL(b).id;
  return e->status == AOT_OK ? EM(e, "cat", aot_arg_values(ids, 2), em_i(dim)) : em_none();
}

aot_status_t at_dc_diff(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), left, right;
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", -1), TYPE(x).rank);
  int64_t n = at_in_int(e, "n", 1), i;
  if (n == 0) return at_give(e, EM(e, "clone", x), out);
  x = joined(e, joined(e, IN("prepend"), x, dim), IN("append"), dim);
  for (i = 0; i < n && e->status == AOT_OK && at_hint(at_infer(e), TYPE(x).sizes[dim]) > 0; i++) {
    neighbours(e, x, dim, &left, &right);
    x = TYPE(x).dtype == AOT_BOOL ? EM(e, "logical_xor", left, right) : SUB(right, left);
  }
  return at_give(e, x, out);
}

/* The widths of the steps: dx, or the differences of x, which lies along dim or broadcasts to y. */
static em_x_t widths(em_t *e, em_x_t y, int32_t dim) {
  em_x_t x = IN("x"), left, right;
  int32_t rank = TYPE(y).rank, own;
  if (!at_in_has(e, "x")) return IN("dx");
  own = TYPE(x).rank;
  if (own == 1) x = at_along(e, x, dim, rank);
  while (own > 1 && own < rank) x = at_unsqueeze(e, x, 0), own++;
  neighbours(e, x, dim, &left, &right);
  return SUB(right, left);
}

/* The area under the lines between neighbours: sum of (y[i] + y[i + 1]) width / 2 */
aot_status_t at_dc_trapezoid(em_t *e, aot_value_t *out) {
  em_x_t y = IN("y"), left, right, area;
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", -1), TYPE(y).rank);
  int64_t dims[1] = {dim};
  aot_type_t t = at_result_type(e, 0);
  y = em_cast(e, y, t.dtype);
  if (at_hint(at_infer(e), TYPE(y).sizes[dim]) == 0)
    return at_give(e, at_filled(e, t.sizes, t.rank, em_f(0.0), t.dtype, y), out);
  neighbours(e, y, dim, &left, &right);
  area = MUL(MUL(ADD(left, right), widths(e, y, dim)), em_f(0.5));
  if (strstr(at_name(e), "cumulative")) return at_give_cast(e, EM(e, "cumsum", area, em_i(dim)), out);
  return at_give_cast(e, at_summed(e, area, dims, 1, 0), out);
}
