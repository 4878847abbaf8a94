/* Differences and sums along a dimension: diff, trapezoid, cumulative_trapezoid. */
#include "at_formula.h"

#include <string.h>

static at_x part(at_emit_t *e, at_x x, int32_t dim, int64_t start, int64_t end) {
  return AT(e, "slice.Tensor", x, at_i(dim), at_i(start), at_i(end));
}

/* Elements 0 .. n - 2 and 1 .. n - 1. */
static void neighbours(at_emit_t *e, at_x x, int32_t dim, at_x *out_left, at_x *out_right) {
  int64_t n = TYPE(x).sizes[dim];
  *out_left = part(e, x, dim, 0, at_sub(e->infer, n, 1));
  *out_right = part(e, x, dim, 1, n);
}

static at_x joined(at_emit_t *e, at_x a, at_x b, int32_t dim) {
  uint32_t ids[2];
  if (at_is_none(a) || at_is_none(b)) return at_is_none(a) ? b : a;
  ids[0] = VAL(a).id;
  ids[1] = VAL(b).id;
  return e->status == AOT_OK ? AT(e, "cat", aot_arg_values(ids, 2), at_i(dim)) : at_none();
}

aot_status_t at_dc_diff(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self"), left, right;
  int32_t dim = at_wrap(e->infer, at_in_int(e, "dim", -1), TYPE(x).rank);
  int64_t n = at_in_int(e, "n", 1), i;
  if (n == 0) return at_give(e, AT(e, "clone", x), out);
  x = joined(e, joined(e, IN("prepend"), x, dim), IN("append"), dim);
  for (i = 0; i < n && e->status == AOT_OK && at_hint(e->infer, TYPE(x).sizes[dim]) > 0; i++) {
    neighbours(e, x, dim, &left, &right);
    x = TYPE(x).dtype == AOT_BOOL ? AT(e, "logical_xor", left, right) : SUB(right, left);
  }
  return at_give(e, x, out);
}

/* The widths of the steps: dx, or the differences of x, which lies along dim or broadcasts to y. */
static at_x widths(at_emit_t *e, at_x y, int32_t dim) {
  at_x x = IN("x"), left, right;
  int32_t rank = TYPE(y).rank, own;
  if (!at_in_has(e, "x")) return IN("dx");
  own = TYPE(x).rank;
  if (own == 1) x = at_along(e, x, dim, rank);
  while (own > 1 && own < rank) x = at_unsqueeze(e, x, 0), own++;
  neighbours(e, x, dim, &left, &right);
  return SUB(right, left);
}

/* The area under the lines between neighbours: sum of (y[i] + y[i + 1]) width / 2 */
aot_status_t at_dc_trapezoid(at_emit_t *e, aot_value_t *out) {
  at_x y = IN("y"), left, right, area;
  int32_t dim = at_wrap(e->infer, at_in_int(e, "dim", -1), TYPE(y).rank);
  int64_t dims[1] = {dim};
  aot_type_t t = at_result_type(e, 0);
  y = at_cast(e, y, t.dtype);
  if (at_hint(e->infer, TYPE(y).sizes[dim]) == 0)
    return at_give(e, at_filled(e, t.sizes, t.rank, at_f(0.0), t.dtype, y), out);
  neighbours(e, y, dim, &left, &right);
  area = MUL(MUL(ADD(left, right), widths(e, y, dim)), at_f(0.5));
  if (strstr(e->row->name, "cumulative")) return at_give_cast(e, AT(e, "cumsum", area, at_i(dim)), out);
  return at_give_cast(e, at_summed(e, area, dims, 1, 0), out);
}
