/* Differences and sums along a dimension: diff, gradient, trapezoid, cumulative_trapezoid. */
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

/* Three neighbours along a dimension, and the widths of the two steps between them. */
typedef struct three {
  em_x_t x[3], h[2];
} three_t;

static three_t three_from(em_t *e, em_x_t x, em_x_t steps, int32_t dim, int64_t first, int64_t n) {
  three_t t;
  int64_t k, start;
  for (k = 0; k < 3; k++) {
    start = at_add(at_infer(e), first, k);
    t.x[k] = part(e, x, dim, start, at_add(at_infer(e), start, n));
    if (k < 2) t.h[k] = part(e, steps, dim, start, at_add(at_infer(e), start, n));
  }
  return t;
}

/* The slope of the parabola through three points, at the middle one or, turned, at the first: widths are then those of
 * the other two points from it, with their signs. */
static em_x_t slope_between(em_t *e, em_x_t left, em_x_t at, em_x_t right, em_x_t h1, em_x_t h2) {
  em_x_t a = DIV(MUL(SUB(left, at), h2), h1), c = DIV(MUL(SUB(right, at), h1), h2);
  return DIV(SUB(c, a), ADD(h1, h2));
}

/* Slopes along dim of points that lie `steps` apart; at both ends of the line through two points or the parabola
 * through three (aten/src/ATen/native/ReduceOps.cpp, pre_check_gradient and below). */
static em_x_t slopes(em_t *e, em_x_t x, em_x_t steps, int32_t dim, int64_t edge) {
  const int64_t n = TYPE(x).sizes[dim], inner = at_sub(at_infer(e), n, 2);
  three_t t = three_from(e, x, steps, dim, 0, inner);
  em_x_t middle = slope_between(e, t.x[0], t.x[1], t.x[2], t.h[0], t.h[1]), first, last;
  if (edge == 1) {
    const int64_t m = at_sub(at_infer(e), n, 1);
    first = DIV(SUB(part(e, x, dim, 1, 2), part(e, x, dim, 0, 1)), part(e, steps, dim, 0, 1));
    last = DIV(SUB(part(e, x, dim, m, n), part(e, x, dim, inner, m)), part(e, steps, dim, inner, m));
  } else {
    t = three_from(e, x, steps, dim, 0, 1);
    first = slope_between(e, t.x[1], t.x[0], t.x[2], NEG(t.h[0]), ADD(t.h[0], t.h[1]));
    t = three_from(e, x, steps, dim, at_sub(at_infer(e), n, 3), 1);
    last = slope_between(e, t.x[0], t.x[2], t.x[1], ADD(t.h[0], t.h[1]), NEG(t.h[1]));
  }
  return joined(e, joined(e, first, middle, dim), last, dim);
}

/* The steps along the k-th dimension that is requested: one distance, one for each dimension, or the differences of
 * coordinates. */
static em_x_t steps_of(em_t *e, em_x_t x, int32_t dim, uint32_t k) {
  const aot_arg_t spacing = IN("spacing");
  const aot_type_t t = TYPE(x);
  const int64_t n = at_sub(at_infer(e), t.sizes[dim], 1);
  em_x_t one = em_is_none(spacing) ? em_f(1.0) : spacing, left, right;
  if (spacing.kind == AOT_ARG_VALUES) {
    neighbours(e, em_v((aot_value_t){spacing.u.ids[k]}), 0, &left, &right);
    return at_along(e, SUB(right, left), dim, t.rank);
  }
  if (spacing.kind == AOT_ARG_INTS) one = em_i(spacing.u.ints[k]);
  if (spacing.kind == AOT_ARG_FLOATS) one = em_f(spacing.u.floats[k]);
  return at_along(e, at_filled(e, &n, 1, one, t.dtype, x), dim, t.rank);
}

aot_status_t at_dc_gradient(em_t *e, aot_value_t *out) {
  em_x_t x = em_cast(e, IN("self"), at_result_type(e, 0).dtype);
  const int64_t *dims, edge = at_in_int(e, "edge_order", 1);
  const uint32_t n = at_in_ints(e, "dim", &dims);
  const aot_arg_t spacing = IN("spacing");
  uint32_t k;
  if ((spacing.kind == AOT_ARG_VALUES || spacing.kind == AOT_ARG_INTS || spacing.kind == AOT_ARG_FLOATS) &&
      spacing.n != e->info.n_results)
    em_fail(e, AOT_E_INVALID, "", "gradient along %u dimensions with %u distances", e->info.n_results, spacing.n);
  for (k = 0; k < e->info.n_results && e->status == AOT_OK; k++) {
    const int32_t dim = n ? at_wrap(at_infer(e), dims[k], TYPE(x).rank) : (int32_t)k;
    out[k] = em_value(e, slopes(e, x, steps_of(e, x, dim, k), dim, edge));
  }
  return e->status;
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
