/* Scans, products and norms. */
#include "rules.h"

#include <math.h>
#include <string.h>

/* The running sum from the other end. */
static em_x_t sum_from_end(em_t *a, em_x_t x, em_x_t dim) {
  int64_t d = ag_int(a, dim, 0);
  em_x_t dims = em_list(a, &d, 1);
  if (ag_type(a, x).rank == 0) return x;
  return AG_OP(a, "flip", AG_OP(a, "cumsum", AG_OP(a, "flip", x, dims), dim), dims);
}

void ag_rule_cumsum(em_t *a) { ag_set(a, "self", sum_from_end(a, ag_g(a, 0), ag_arg(a, "dim"))); }

/* The exclusive running product for a size that is not known before the run: a cumprod of what is moved by one. */
static em_x_t running_product_of_any(em_t *a, em_x_t x, uint32_t d, int from_end, int32_t rank) {
  int64_t pad[2 * AOT_MAX_RANK] = {0}, dim = d;
  const em_x_t dims = em_list(a, &dim, 1);
  pad[2 * ((uint32_t)rank - 1 - d)] = 1;
  pad[2 * ((uint32_t)rank - 1 - d) + 1] = -1;
  if (from_end) x = AG_OP(a, "flip", x, dims);
  x = AG_OP(a, "constant_pad_nd", x, em_list(a, pad, 2 * (uint32_t)rank), em_i(1));
  x = AG_OP(a, "cumprod", x, em_i(dim));
  return from_end ? AG_OP(a, "flip", x, dims) : x;
}

/* The product of the others, for each element along dim d: what precedes times what is after. Two exclusive
 * running products, as log2(n) doubling steps of shifted multiplication (Hillis and Steele 1986), so that zeros need no
 * special case. */
static em_x_t running_product(em_t *a, em_x_t x, uint32_t d, int64_t n, int from_end, int32_t rank) {
  int64_t pad[2 * AOT_MAX_RANK] = {0}, step;
  uint32_t at = 2 * ((uint32_t)rank - 1 - d); /* pads count from the last dimension: before, after */
  if (AOT_DIM_IS_SYM(n)) return running_product_of_any(a, x, d, from_end, rank);
  for (step = 1; a->status == AOT_OK; step *= 2) {
    int64_t shift = step == 1 ? 1 : step / 2;
    em_x_t moved;
    pad[at] = from_end ? -shift : shift;
    pad[at + 1] = from_end ? shift : -shift;
    moved = AG_OP(a, "constant_pad_nd", x, em_list(a, pad, 2 * (uint32_t)rank), em_i(1));
    x = step == 1 ? moved : ag_mul(a, x, moved);
    if (step >= n) break;
  }
  return x;
}

/* As in PyTorch: without any 0 the result is divided, which makes NaN of what is not finite; with two in a product
 * over all, 0. */
void ag_rule_prod(em_t *a) {
  em_x_t x = ag_arg(a, "self"), g = ag_g(a, 0), y = ag_y(a, 0), others, n_zero, divided, dim = em_none();
  int all = a->desc->n_args < 3; /* prod.default(self, dtype) */
  ag_type_t t;
  uint32_t d;
  if (all) {
    int64_t n = ag_extent(a, x, em_none()).u.i;
    x = ag_reshape(a, x, &n, 1);
  } else dim = ag_arg(a, "dim");
  t = ag_type(a, x);
  if (a->info.n_results && em_is_value(ag_y(a, 0))) x = ag_cast(a, x, ag_type(a, ag_y(a, 0)).dtype);
  d = all || t.rank == 0 ? 0 : ag_dim(a, ag_int(a, dim, 0), t.rank);
  if (t.rank == 0) others = em_i(1);
  else
    others = ag_mul(a, running_product(a, ag_wide(a, x), d, t.sizes[d], 0, t.rank),
                    running_product(a, ag_wide(a, x), d, t.sizes[d], 1, t.rank));
  g = all ? ag_expand(a, g, t.sizes, t.rank) : ag_unreduce(a, g, x, dim, ag_is_set(a, "keepdim", 0));
  others = ag_mul(a, g, others);
  if (ag_type(a, ag_arg(a, "self")).rank > 0) {
    y = all ? ag_expand(a, y, t.sizes, t.rank) : ag_unreduce(a, y, x, dim, ag_is_set(a, "keepdim", 0));
    divided = ag_mul(a, g, ag_div(a, ag_wide(a, y), ag_wide(a, x)));
    n_zero = AG_OP(a, "sum", ag_cast(a, ag_compare(a, "eq", x, em_i(0)), AOT_I64));
    if (all) others = ag_where(a, ag_compare(a, "gt", n_zero, em_i(1)), em_none(), others);
    others = ag_where(a, ag_compare(a, "eq", n_zero, em_i(0)), divided, others);
  }
  ag_set(a, "self", ag_reshape_like(a, others, ag_arg(a, "self")));
}

/* x moved n places to the left along dim d, zeros coming in. */
static em_x_t shifted_left(em_t *a, em_x_t x, uint32_t d, int64_t n, int32_t rank) {
  int64_t pad[2 * AOT_MAX_RANK] = {0};
  uint32_t at = 2 * ((uint32_t)rank - 1 - d);
  pad[at] = -n;
  pad[at + 1] = n;
  return AG_OP(a, "constant_pad_nd", x, em_list(a, pad, 2 * (uint32_t)rank), em_i(0));
}

/* y_i = x_0 .. x_i. x_k gets (x_0 .. x_{k-1}) S_k with S_k = g_k + x_{k+1} S_{k+1}: a linear recurrence from the end,
 * in log2(n) doubling steps; zeros need no special case. */
static em_x_t through_cumprod(em_t *a, em_x_t x, em_x_t g, uint32_t d, const ag_type_t *t) {
  em_x_t s = g, factor = shifted_left(a, x, d, 1, t->rank);
  for (int64_t step = 1; a->status == AOT_OK && step < t->sizes[d]; step *= 2) {
    s = ag_add(a, s, ag_mul(a, factor, shifted_left(a, s, d, step, t->rank)));
    factor = ag_mul(a, factor, shifted_left(a, factor, d, step, t->rank));
  }
  return ag_mul(a, running_product(a, x, d, t->sizes[d], 0, t->rank), s);
}

/* The same from the first zero on, for a size that is not known before the run: what is after the first zero gets 0;
 * the zero itself the product before it, times the sum over g_i x_{k+1} .. x_i up to the second zero
 * (cumprod_backward of torch/csrc/autograd/FunctionsManual.cpp). zeros: how many there are up to each element. */
static em_x_t through_zeros(em_t *a, em_x_t x, em_x_t g, em_x_t is_zero, em_x_t zeros, em_x_t dim) {
  const int64_t d = ag_int(a, dim, 0);
  const em_x_t first = ag_compare(a, "eq", ag_mul(a, is_zero, zeros), em_i(1)),
               segment = ag_compare(a, "eq", zeros, em_i(1)), dims = em_list(a, &d, 1);
  const em_x_t before =
      AG_OP(a, "prod.dim_int", ag_where(a, ag_compare(a, "eq", zeros, em_i(0)), x, em_i(1)), dim, em_b(1));
  em_x_t behind = AG_OP(a, "cumprod", ag_where(a, segment, ag_where(a, first, em_i(1), x), em_i(1)), dim);
  behind = ag_where(a, segment, ag_mul(a, g, behind), em_none());
  behind = AG_OP(a, "sum.dim_IntList", behind, dims, em_b(1));
  return ag_where(a, first, ag_mul(a, before, behind), em_none());
}

void ag_rule_cumprod(em_t *a) {
  em_x_t x = ag_arg(a, "self"), s = ag_g(a, 0), g = s, dim = ag_arg(a, "dim"), is_zero, zeros, before, divided;
  ag_type_t t = ag_type(a, x);
  uint32_t d = ag_dim(a, ag_int(a, ag_arg(a, "dim"), 0), t.rank);
  if (t.rank == 0 || t.sizes[d] == 1) {
    ag_set(a, "self", s);
    return;
  }
  x = ag_cast(a, x, ag_type(a, s).dtype);
  is_zero = ag_cast(a, ag_compare(a, "eq", x, em_i(0)), AOT_I64);
  zeros = AG_OP(a, "cumsum", is_zero, dim);
  s = AOT_DIM_IS_SYM(t.sizes[d]) ? through_zeros(a, x, g, is_zero, zeros, dim) : through_cumprod(a, x, g, d, &t);
  before = ag_compare(a, "eq", zeros, em_i(0));
  divided = ag_div(a, sum_from_end(a, ag_where(a, before, ag_mul(a, ag_y(a, 0), g), em_none()), dim), x);
  ag_set(a, "self", ag_where(a, before, divided, s));
}

/* exp(x_k) sum_{i >= k} g_i exp(-y_i), in logarithms, positive and negative g apart: nothing overflows. */
void ag_rule_logcumsumexp(em_t *a) {
  em_x_t x = ag_arg(a, "self"), y = ag_y(a, 0), g = ag_g(a, 0), dim = ag_arg(a, "dim"), dims, sum = em_none();
  int64_t d = ag_int(a, dim, 0);
  int sign;
  if (ag_type(a, x).rank == 0) {
    ag_set(a, "self", g);
    return;
  }
  dims = em_list(a, &d, 1);
  for (sign = 1; sign >= -1; sign -= 2) {
    em_x_t h = sign > 0 ? g : ag_neg(a, g), part;
    part = ag_where(a, ag_compare(a, "gt", h, em_i(0)), AG_OP(a, "log", h), em_f(-INFINITY));
    part = AG_OP(a, "flip", ag_sub(a, part, y), dims);
    part = AG_OP(a, "flip", AG_OP(a, "logcumsumexp", part, dim), dims);
    part = AG_OP(a, "exp", ag_add(a, part, x));
    sum = sign > 0 ? part : ag_sub(a, sum, part);
  }
  ag_set(a, "self", sum);
}

/* Through the variance of x over dims, of which g is the gradient: 2 g (x - mean) / (n - correction). Over all of x
 * with n <= correction the variance is infinite (its divisor is clamped to 0), and PyTorch's gradient is g times
 * infinity, or NaN where x is the mean; over given dims it divides by the negative number all the same. An empty list
 * reduces all of x, and n is 1 (FunctionsManual.cpp, var_backward and _safe_size). */
static em_x_t through_variance(em_t *a, em_x_t x, em_x_t g, em_x_t dims, int keep) {
  em_x_t correction = ag_arg(a, "correction"), mean = AG_OP(a, "mean.dim", x, dims, em_b(1)), freedom;
  const int is_empty_list = dims.kind == AOT_ARG_INTS && dims.n == 0 && ag_type(a, x).rank > 0;
  freedom = ag_sub(a, is_empty_list ? em_i(1) : ag_extent(a, x, dims),
                   correction.kind == AOT_ARG_NONE ? em_i(1) : correction);
  if ((dims.kind == AOT_ARG_NONE || ag_type(a, x).rank == 0) && ag_is_constant(freedom) &&
      ag_number(a, freedom, 1) <= 0)
    return ag_where(a, ag_compare(a, "eq", x, mean), em_f(NAN),
                    ag_mul(a, ag_unreduce(a, g, x, dims, keep), em_f(INFINITY)));
  g = ag_div(a, ag_mul(a, g, em_i(2)), freedom);
  return ag_mul(a, ag_unreduce(a, g, x, dims, keep), ag_sub(a, x, mean));
}

/* var, std, and both with the mean as second result. */
void ag_rule_variance(em_t *a) {
  em_x_t x = ag_arg(a, "self"), dims = ag_arg(a, "dim"), g = ag_g(a, 0), d = em_none(), g_mean;
  int keep = ag_is_set(a, "keepdim", 0), is_root = strncmp(a->desc->name.data, "aten.std", 8) == 0;
  if (is_root && em_is_value(g)) {
    em_x_t y = ag_y(a, 0);
    g = ag_where(a, ag_compare(a, "eq", y, em_i(0)), em_none(), ag_div(a, g, ag_mul(a, y, em_i(2))));
  }
  if (em_is_value(g)) d = through_variance(a, x, g, dims, keep);
  g_mean = a->info.n_results > 1 ? ag_g(a, 1) : em_none();
  if (em_is_value(g_mean)) {
    g_mean = ag_div(a, g_mean, ag_extent(a, x, dims));
    d = ag_add(a, d, ag_unreduce(a, g_mean, x, dims, keep));
  }
  ag_set(a, "self", d);
}

/* x / |x|, 0 where x is: the sign of a real number, of a complex one a number on the unit circle */
static em_x_t direction(em_t *a, em_x_t x) { return AG_OP(a, em_is_complex(a, x) ? "sgn" : "sign", x); }

/* Through the p-norm y of x over dims, g and y already spread over x's shape: x |x|^(p-2) g / y^(p-1), zero where the
 * norm is; p = inf: shared evenly among the largest. */
static em_x_t through_norm(em_t *a, em_x_t x, em_x_t g, em_x_t y, double p, em_x_t dims) {
  em_x_t size, top, n, d;
  if (p == 0) return em_none();
  if (p == 1) return ag_mul(a, g, direction(a, x));
  if (p == 2) return ag_mul(a, g, ag_where(a, ag_compare(a, "eq", y, em_i(0)), em_none(), ag_div(a, x, y)));
  size = AG_OP(a, "abs", x);
  if (isinf(p)) { /* a NaN makes the norm NaN, and is the largest then (FunctionsManual.cpp, norm_backward) */
    top = AG_OP(a, "logical_or", ag_compare(a, "eq", size, y), AG_OP(a, "isnan", size));
    n = AG_OP(a, "sum.dim_IntList", top, dims, em_b(1));
    return ag_mul(a, ag_mul(a, g, direction(a, x)), ag_div(a, top, n));
  }
  d = ag_pow(a, ag_div(a, ag_wide(a, size), ag_wide(a, y)),
             em_f(p - 1)); /* many steps: halves are rounded at the end */
  d = ag_mul(a, direction(a, x), d);
  if (p < 1) { /* an element that is 0 has the gradient 0, but where the norm is NaN */
    d = ag_where(a, ag_compare(a, "eq", size, em_i(0)), em_none(), d);
    return ag_mul(a, ag_where(a, AG_OP(a, "isnan", y), y, d), g);
  }
  return ag_where(a, ag_compare(a, "eq", y, em_i(0)), em_none(), ag_mul(a, d, g));
}

/* linalg_vector_norm and norm: the order is called ord, or p. */
void ag_rule_vector_norm(em_t *a) {
  em_x_t x = ag_arg(a, "self"), dims = ag_at(a, "dim") == AG_NO_ARG ? em_none() : ag_arg(a, "dim"), g, y;
  double p = ag_number(a, ag_arg(a, ag_at(a, "ord") == AG_NO_ARG ? "p" : "ord"), 2);
  int keep = ag_at(a, "keepdim") != AG_NO_ARG && ag_is_set(a, "keepdim", 0);
  if (!em_is_complex(a, x)) x = ag_cast(a, x, ag_type(a, ag_y(a, 0)).dtype);
  g = ag_unreduce(a, ag_g(a, 0), x, dims, keep);
  y = ag_unreduce(a, ag_y(a, 0), x, dims, keep);
  ag_set(a, "self", through_norm(a, x, g, y, p, dims));
}

/* The norm of a difference. */
void ag_rule_dist(em_t *a) {
  em_x_t d = ag_sub(a, ag_arg(a, "self"), ag_arg(a, "other"));
  d = through_norm(a, d, ag_unreduce(a, ag_g(a, 0), d, em_none(), 0), ag_unreduce(a, ag_y(a, 0), d, em_none(), 0),
                   ag_number(a, ag_arg(a, "p"), 2), em_none());
  if (ag_needs(a, "self")) ag_set(a, "self", d);
  if (ag_needs(a, "other")) ag_set(a, "other", ag_neg(a, d));
}

/* Through a distance: with p = inf each of the largest differences gets all of g, not its share (PyTorch,
 * DistanceOps). */
static em_x_t through_distance(em_t *a, em_x_t d, em_x_t g, em_x_t y, double p, em_x_t dims) {
  g = AG_OP(a, "unsqueeze", g, em_i(-1));
  y = AG_OP(a, "unsqueeze", y, em_i(-1));
  if (!isinf(p)) return through_norm(a, d, g, y, p, dims);
  return ag_mul(a, ag_mul(a, g, AG_OP(a, "sign", d)), ag_compare(a, "eq", AG_OP(a, "abs", d), y));
}

/* Distances of all rows of x1 to all rows of x2. p = 2 without the array of differences: with r = g/y,
 * x1 sum_j r_ij - r x2. Other p: the norm of the broadcast difference. */
void ag_rule_cdist(em_t *a) {
  em_x_t x1 = ag_arg(a, "x1"), x2 = ag_arg(a, "x2"), g = ag_g(a, 0), y = ag_y(a, 0), r, d, last, before;
  double p = ag_at(a, "p") == AG_NO_ARG ? 2 : ag_number(a, ag_arg(a, "p"), 2);
  int64_t l = -1, b = -2;
  last = em_list(a, &l, 1);
  before = em_list(a, &b, 1);
  if (p == 2) {
    x1 = ag_wide(a, x1), x2 = ag_wide(a, x2); /* what is subtracted may be near each other */
    r = ag_where(a, ag_compare(a, "eq", y, em_i(0)), em_none(), ag_div(a, ag_wide(a, g), ag_wide(a, y)));
    if (ag_needs(a, "x1")) {
      d = ag_mul(a, x1, AG_OP(a, "sum.dim_IntList", r, last, em_b(1)));
      ag_set(a, "x1", ag_sub(a, d, AG_OP(a, "matmul", r, x2)));
    }
    if (ag_needs(a, "x2")) {
      d = ag_mul(a, x2, AG_OP(a, "unsqueeze", AG_OP(a, "sum.dim_IntList", r, before, em_b(0)), em_i(-1)));
      ag_set(a, "x2", ag_sub(a, d, AG_OP(a, "matmul", ag_transpose(a, r), x1)));
    }
    return;
  }
  d = ag_sub(a, AG_OP(a, "unsqueeze", x1, em_i(-2)), AG_OP(a, "unsqueeze", x2, em_i(-3)));
  d = through_distance(a, d, g, y, p, last);
  if (ag_needs(a, "x1")) ag_set(a, "x1", AG_OP(a, "sum.dim_IntList", d, before, em_b(0)));
  b = -3;
  before = em_list(a, &b, 1);
  if (ag_needs(a, "x2")) ag_set(a, "x2", ag_neg(a, AG_OP(a, "sum.dim_IntList", d, before, em_b(0))));
}

/* Distances of all pairs i < j of rows, in the order of the upper triangle. As all distances of the rows to each other,
 * with each pair in both places: x_i gets the sum over j. */
void ag_rule_pdist(em_t *a) {
  em_x_t x = ag_arg(a, "self"), parts[2], r, d, upper, last, before;
  ag_type_t t = ag_type(a, x);
  double p = ag_number(a, ag_arg(a, "p"), 2);
  int64_t l = -1, b = -2;
  int k;
  last = em_list(a, &l, 1);
  before = em_list(a, &b, 1);
  t.sizes[1] = t.sizes[0];
  parts[0] = ag_g(a, 0);
  parts[1] = ag_y(a, 0);
  upper = ag_cast(a, AG_OP(a, "triu", ag_add(a, ag_zeros(a, &t), em_i(1)), em_i(1)), AOT_BOOL);
  for (k = 0; k < 2; k++) {
    em_x_t square = AG_OP(a, "masked_scatter", ag_zeros(a, &t), upper, parts[k]);
    parts[k] = ag_add(a, square, ag_transpose(a, square));
  }
  if (p == 2) {
    for (k = 0; k < 2; k++) parts[k] = ag_wide(a, parts[k]);
    x = ag_wide(a, x);
    r = ag_where(a, ag_compare(a, "eq", parts[1], em_i(0)), em_none(), ag_div(a, parts[0], parts[1]));
    d = ag_mul(a, x, AG_OP(a, "sum.dim_IntList", r, last, em_b(1)));
    ag_set(a, "self", ag_sub(a, d, AG_OP(a, "mm", r, x)));
    return;
  }
  d = ag_sub(a, AG_OP(a, "unsqueeze", x, em_i(1)), AG_OP(a, "unsqueeze", x, em_i(0)));
  d = through_distance(a, d, parts[0], parts[1], p, last);
  ag_set(a, "self", d.kind == AOT_ARG_NONE ? d : AG_OP(a, "sum.dim_IntList", d, before, em_b(0)));
}

/* Slices along dim whose p-norm n exceeds the largest one m are x m / (n + 1e-7). */
void ag_rule_renorm(em_t *a) {
  em_x_t x = ag_arg(a, "self"), g = ag_g(a, 0), p = ag_arg(a, "p"), m = ag_arg(a, "maxnorm"), dims, n, scale, d;
  ag_type_t t = ag_type(a, x);
  uint32_t at = ag_dim(a, ag_int(a, ag_arg(a, "dim"), 0), t.rank), k = 0, i;
  int64_t others[AOT_MAX_RANK];
  for (i = 0; i < (uint32_t)t.rank; i++)
    if (i != at) others[k++] = i;
  dims = em_list(a, others, k);
  n = AG_OP(a, "linalg_vector_norm", x, p, dims, em_b(1));
  scale = AG_OP(a, "reciprocal", ag_add(a, n, em_f(1e-7)));
  d = AG_OP(a, "sum.dim_IntList", ag_mul(a, x, g), dims, em_b(1));
  d = through_norm(a, x, d, n, ag_number(a, p, 2), dims);
  d = ag_mul(a, ag_mul(a, scale, m), ag_sub(a, g, ag_mul(a, scale, d)));
  ag_set(a, "self", ag_where(a, ag_compare(a, "gt", n, m), d, g));
}
