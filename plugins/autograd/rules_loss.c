/* Losses whose derivative depends on an option or an optional weight. Reductions: 0 none, 1 mean, 2 sum; the mean
 * divides by the number of elements of the broadcast operands. */
#include "rules.h"

#include <math.h>

static em_x_t per(em_t *a, em_x_t d) {
  if (ag_int(a, ag_arg(a, "reduction"), 1) != 1 || !em_is_value(d)) return d;
  return ag_div(a, d, ag_extent(a, d, em_none()));
}

static void set_both(em_t *a, em_x_t d) {
  if (ag_needs(a, "self")) ag_set(a, "self", d);
  if (ag_needs(a, "target")) ag_set(a, "target", ag_neg(a, d));
}

/* d/beta inside |d| < beta, the sign outside. Without an inside the operator gives both operands -1 where they are
 * equal. */
void ag_rule_smooth_l1(em_t *a) {
  em_x_t d = ag_sub(a, ag_arg(a, "self"), ag_arg(a, "target")), g = ag_g(a, 0), slope, equal;
  double beta = ag_number(a, ag_arg(a, "beta"), 1);
  if (beta != 0) {
    slope = AG_OP(a, "clamp", ag_div(a, d, em_f(beta)), em_f(-1), em_f(1));
    set_both(a, per(a, ag_mul(a, slope, g)));
    return;
  }
  slope = AG_OP(a, "sign", d);
  equal = ag_compare(a, "eq", d, em_i(0));
  if (ag_needs(a, "self")) ag_set(a, "self", per(a, ag_mul(a, ag_where(a, equal, em_f(-1), slope), g)));
  if (ag_needs(a, "target")) ag_set(a, "target", per(a, ag_mul(a, ag_where(a, equal, em_f(-1), ag_neg(a, slope)), g)));
}

/* In the shape that operands x and t broadcast to, for its mean. */
static em_x_t spread(em_t *a, em_x_t d, em_x_t x, em_x_t t) {
  ag_type_t both;
  if (!em_is_value(d)) return d;
  both = ag_type(a, ag_sub(a, x, t));
  return ag_expand(a, d, both.sizes, both.rank);
}

/* log_target: exp(t)(t - x); else t log t - t x, with t log t = 0 at 0, where its derivative is nan to PyTorch. */
void ag_rule_kl_div(em_t *a) {
  em_x_t x = ag_arg(a, "self"), t = ag_arg(a, "target"), g = ag_g(a, 0), weight = t, d;
  int log_target = ag_is_set(a, "log_target", 0);
  if (log_target) weight = AG_OP(a, "exp", t);
  if (ag_needs(a, "self")) ag_set(a, "self", per(a, spread(a, ag_neg(a, ag_mul(a, weight, g)), x, t)));
  if (!ag_needs(a, "target")) return;
  if (log_target) d = ag_mul(a, weight, ag_add(a, ag_sub(a, t, x), em_i(1)));
  else d = ag_sub(a, ag_add(a, AG_OP(a, "log", t), ag_div(a, t, t)), x);
  ag_set(a, "target", per(a, ag_mul(a, d, g)));
}

static em_x_t weighted(em_t *a, em_x_t d) {
  em_x_t w = ag_arg(a, "weight");
  return em_is_value(w) ? ag_mul(a, d, w) : d;
}

/* -(t log x + (1-t) log(1-x)): (x-t)/max(x(1-x), 1e-12); for the target log((1-x)/x). */
void ag_rule_bce(em_t *a) {
  em_x_t x = ag_arg(a, "self"), t = ag_arg(a, "target"), g = ag_g(a, 0), rest = ag_sub(a, em_i(1), x), d;
  if (ag_needs(a, "self")) {
    d = AG_OP(a, "clamp", ag_mul(a, rest, x), em_f(1e-12));
    ag_set(a, "self", per(a, weighted(a, ag_mul(a, ag_div(a, ag_sub(a, x, t), d), g))));
  }
  if (ag_needs(a, "target")) {
    d = ag_sub(a, AG_OP(a, "log", rest), AG_OP(a, "log", x));
    ag_set(a, "target", per(a, weighted(a, ag_mul(a, d, g))));
  }
}

/* With s = sigmoid(x) and the positive weight p: x gets (1-t)s - p t (1-s), the target -x + (p-1) log(1 + exp(-x)). */
void ag_rule_bce_with_logits(em_t *a) {
  em_x_t x = ag_arg(a, "self"), t = ag_arg(a, "target"), p = ag_arg(a, "pos_weight"), g = ag_g(a, 0), s, d;
  if (ag_needs(a, "self")) {
    s = AG_OP(a, "sigmoid", x);
    d = ag_sub(a, s, t);
    if (em_is_value(p)) {
      d = ag_mul(a, ag_sub(a, em_i(1), t), s);
      d = ag_sub(a, d, ag_mul(a, ag_mul(a, p, t), ag_sub(a, em_i(1), s)));
    }
    ag_set(a, "self", per(a, weighted(a, ag_mul(a, d, g))));
  }
  if (ag_needs(a, "target")) {
    d = ag_neg(a, x);
    if (em_is_value(p)) {
      /* log(1 + exp(-x)) = max(-x, 0) + log1p(exp(-|x|)) */
      s = AG_OP(a, "log1p", AG_OP(a, "exp", ag_neg(a, AG_OP(a, "abs", x))));
      s = ag_add(a, s, AG_OP(a, "relu", d));
      d = ag_add(a, d, ag_mul(a, ag_sub(a, p, em_i(1)), s));
    }
    ag_set(a, "target", per(a, weighted(a, ag_mul(a, d, g))));
  }
}

/* sum over the classes i other than the target's of max(0, margin - x_t + x_i)^p w_t / C. Each i inside its margin gets
 * the slope, the target's class minus what the others get. */
void ag_rule_multi_margin(em_t *a) {
  em_x_t x = ag_arg(a, "self"), target = ag_arg(a, "target"), w = ag_arg(a, "weight"), g = ag_g(a, 0), at, z, d, last;
  ag_type_t t = ag_type(a, x);
  int64_t minus_one = -1, sizes[2];
  sizes[0] = t.rank == 2 ? t.sizes[0] : 1;
  sizes[1] = 1;
  last = em_list(a, &minus_one, 1);
  x = t.rank == 2 ? x : ag_reshape(a, x, (int64_t[]){1, ag_product(a, t.sizes, (uint32_t)t.rank)}, 2);
  at = ag_reshape(a, target, sizes, 2);
  z = ag_sub(a, ag_add(a, x, ag_arg(a, "margin")), AG_OP(a, "gather", x, em_i(1), at));
  d = ag_number(a, ag_arg(a, "p"), 1) == 1 ? ag_add(a, ag_zeros_like(a, x), em_i(1)) : ag_mul(a, z, em_i(2));
  d = ag_where(a, ag_compare(a, "gt", z, em_i(0)), d, em_none());
  d = AG_OP(a, "scatter.value", d, em_i(1), at, em_i(0));
  if (em_is_value(w)) {
    w = AG_OP(a, "index_select", w, em_i(0), ag_reshape(a, at, sizes, 1));
    d = ag_mul(a, d, ag_reshape(a, w, sizes, 2));
  }
  if (ag_int(a, ag_arg(a, "reduction"), 1) == 1) g = ag_div(a, g, em_i(sizes[0]));
  d = ag_mul(a, d, ag_type(a, g).rank == 1 ? AG_OP(a, "unsqueeze", g, em_i(1)) : g);
  d = ag_div(a, d, em_i(ag_type(a, x).sizes[1]));
  d = AG_OP(a, "scatter_add", d, em_i(1), at, ag_neg(a, AG_OP(a, "sum.dim_IntList", d, last, em_b(1))));
  ag_set(a, "self", ag_reshape_like(a, d, ag_arg(a, "self")));
}

/* Probabilities or weights of another dtype than the scores: the derivative goes through the steps of the loss, each in
 * its dtype. */
int ag_when_one_dtype(em_t *a) {
  const int32_t dtype = ag_type(a, ag_arg(a, "self")).dtype, target = ag_type(a, ag_arg(a, "target")).dtype;
  const em_x_t w = ag_arg(a, "weight");
  return !aot_dtype_is_float(target) || (target == dtype && (!em_is_value(w) || ag_type(a, w).dtype == dtype));
}
