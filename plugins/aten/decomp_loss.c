/* Losses, in terms of log_softmax, gather, where and arithmetic; their gradients. Half inputs are computed in float32.
 *
 * Class losses. Classes are in dim 1, in dim 0 of an input without batch. A target equal to ignore_index counts for
 * nothing; it is replaced by class 0 before it is used as an index. Letters: t safe target, k stored, a = w[t] k the
 * weight of a row. */
#include "at_formula.h"

#include <string.h>

em_x_t at_reduced(em_t *e, em_x_t x, int64_t reduction) {
  aot_type_t t = TYPE(x);
  int64_t dims[AOT_MAX_RANK];
  int32_t d;
  if (reduction == 0) return x;
  for (d = 0; d < t.rank; d++) dims[d] = d;
  x = at_summed(e, x, dims, (uint32_t)t.rank, 0);
  return reduction == 1 ? DIV(x, em_i(at_numel(at_infer(e), t.sizes, t.rank))) : x;
}

static em_x_t sum_all(em_t *e, em_x_t x) { return at_reduced(e, x, 2); }

/* ---- class losses ---- */

typedef struct rows {
  int32_t dim, rank;
  int64_t n_classes;
  em_x_t target, kept, weight; /* weight: a, of the target's shape */
  em_x_t class_weight;         /* along dim, or None */
} rows_t;

static rows_t class_rows(em_t *e, em_x_t x) {
  rows_t r;
  aot_type_t t = TYPE(x);
  em_x_t target = IN("target"), w = at_math(e, IN("weight"));
  r.rank = t.rank;
  r.dim = t.rank > 1 ? 1 : 0;
  r.n_classes = t.sizes[r.dim];
  r.kept = NE(target, IN("ignore_index"));
  r.target = WHERE(r.kept, target, em_i(0));
  r.class_weight = em_is_none(w) ? w : at_along(e, w, r.dim, t.rank);
  if (em_is_none(w)) {
    r.weight = em_cast(e, r.kept, t.dtype);
  } else {
    uint32_t id = VAL(r.target).id;
    r.weight = WHERE(r.kept, EM(e, "index.Tensor", w, aot_arg_values(&id, 1)), em_f(0.0));
  }
  return r;
}

/* x at the target class, of the target's shape */
static em_x_t at_target(em_t *e, const rows_t *r, em_x_t x) {
  return EM(e, "squeeze.dim", EM(e, "gather", x, em_i(r->dim), at_unsqueeze(e, r->target, r->dim)), em_i(r->dim));
}

/* Minus the weighted logarithm at the class, of the target's shape. By choice: 0 times what an ignored row has at class
 * 0, an infinity for one, would be NaN, and so would be its derivative where the mean divides by 0. */
static em_x_t row_losses(em_t *e, const rows_t *r, em_x_t logp) {
  em_x_t loss = NEG(at_target(e, r, logp));
  if (!em_is_none(r->class_weight)) loss = MUL(loss, r->weight);
  return WHERE(r->kept, loss, em_f(0.0));
}

static em_x_t class_reduced(em_t *e, const rows_t *r, em_x_t loss, int64_t reduction) {
  if (reduction == 0) return loss;
  loss = sum_all(e, loss);
  return reduction == 1 ? DIV(loss, sum_all(e, r->weight)) : loss;
}

/* The gradient g of the loss as one factor per row, divided by `total` for the mean, and 0 for an ignored row: the mean
 * over ignored rows alone has total 0 and an infinite factor, which PyTorch's kernels never multiply. */
static em_x_t row_factor(em_t *e, const rows_t *r, em_x_t g, int64_t reduction, em_x_t total) {
  return WHERE(r->kept, reduction == 1 ? DIV(g, total) : g, em_f(0.0));
}

static em_x_t one_hot(em_t *e, const rows_t *r) {
  em_x_t classes = at_along(e, at_range(e, r->n_classes, r->target), r->dim, r->rank);
  return EQ(at_unsqueeze(e, r->target, r->dim), classes);
}

aot_status_t at_dc_nll_loss(em_t *e, aot_value_t *out) {
  em_x_t logp = at_math(e, IN("self"));
  rows_t r = class_rows(e, logp);
  int64_t reduction = at_in_int(e, "reduction", 1);
  em_x_t loss = row_losses(e, &r, logp);
  at_give_cast(e, class_reduced(e, &r, loss, reduction), out);
  if (e->desc->n_results == 2) { /* nll_loss_forward: the sum of the weights, 0 for a batch without reduction */
    aot_type_t t = at_result_type(e, 1);
    out[1] = VAL(reduction == 0 && r.rank > 1 ? at_filled(e, NULL, 0, em_f(0.0), t.dtype, logp)
                                              : em_cast(e, sum_all(e, r.weight), t.dtype));
  }
  return e->status;
}

aot_status_t at_dc_nll_loss_backward(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), g = at_math(e, IN("grad_output"));
  rows_t r = class_rows(e, x);
  em_x_t factor = row_factor(e, &r, g, at_in_int(e, "reduction", 1), at_math(e, IN("total_weight")));
  em_x_t at_class = NEG(at_unsqueeze(e, MUL(r.weight, factor), r.dim));
  return at_give_cast(e, WHERE(one_hot(e, &r), at_class, em_f(0.0)), out);
}

/* ---- cross entropy ---- */

/* Probabilities as targets, smoothed, and the class weights: what -logp is multiplied by. */
static em_x_t target_mass(em_t *e, em_x_t x, int32_t dim, double smoothing) {
  em_x_t t = at_math(e, IN("target")), w = at_math(e, IN("weight"));
  if (smoothing != 0.0) t = ADD(MUL(t, em_f(1.0 - smoothing)), DIV(em_f(smoothing), em_i(TYPE(x).sizes[dim])));
  return em_is_none(w) ? t : MUL(t, at_along(e, w, dim, TYPE(x).rank));
}

static int64_t batch_of(em_t *e, em_x_t x, int32_t dim) {
  aot_type_t t = TYPE(x);
  int64_t n = 1;
  int32_t d;
  for (d = 0; d < t.rank; d++)
    if (d != dim) n = at_mul(at_infer(e), n, t.sizes[d]);
  return n;
}

static em_x_t sum_classes(em_t *e, em_x_t x, int32_t dim, int keep) {
  int64_t d = dim;
  return at_summed(e, x, &d, 1, keep);
}

/* Scores, probabilities and weights of several dtypes: PyTorch rounds logarithms to the dtype of the scores, what is
 * smoothed to that of the probabilities, before they are multiplied. */
static int is_mixed(em_t *e) {
  em_x_t w = IN("weight");
  int32_t dtype = TYPE(IN("self")).dtype;
  return TYPE(IN("target")).dtype != dtype || (!em_is_none(w) && TYPE(w).dtype != dtype);
}

static em_x_t mixed_terms(em_t *e, int32_t dim, double smoothing) {
  em_x_t x = IN("self"), t = IN("target"), w = IN("weight");
  if (smoothing != 0.0) t = ADD(MUL(t, em_f(1.0 - smoothing)), em_f(smoothing / (double)TYPE(x).sizes[dim]));
  t = MUL(EM(e, "_log_softmax", x, em_i(dim), em_b(0)), t);
  return em_is_none(w) ? t : MUL(t, at_along(e, w, dim, TYPE(x).rank));
}

static aot_status_t cross_entropy_of_mass(em_t *e, em_x_t x, int32_t dim, double smoothing, aot_value_t *out) {
  int64_t reduction = at_in_int(e, "reduction", 1);
  em_x_t loss =
      is_mixed(e) ? mixed_terms(e, dim, smoothing) : MUL(at_log_softmax(e, x, dim), target_mass(e, x, dim, smoothing));
  loss = NEG(sum_classes(e, loss, dim, 0));
  if (reduction == 0) return at_give_cast(e, loss, out);
  loss = sum_all(e, loss);
  return at_give_cast(e, reduction == 1 ? DIV(loss, em_i(batch_of(e, x, dim))) : loss, out);
}

aot_status_t at_dc_cross_entropy(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), logp, loss;
  int32_t dim = TYPE(x).rank > 1 ? 1 : 0;
  double smoothing = em_in_float(e, "label_smoothing", 0.0);
  rows_t r;
  if (aot_dtype_is_float(TYPE(IN("target")).dtype)) return cross_entropy_of_mass(e, x, dim, smoothing, out);
  r = class_rows(e, x);
  logp = at_log_softmax(e, x, dim);
  int64_t reduction = at_in_int(e, "reduction", 1);
  loss = class_reduced(e, &r, row_losses(e, &r, logp), reduction);
  if (smoothing != 0.0) {
    em_x_t each = em_is_none(r.class_weight) ? logp : MUL(logp, r.class_weight);
    em_x_t smooth = WHERE(r.kept, NEG(sum_classes(e, each, dim, 0)), em_f(0.0));
    /* each mean by itself: where the weights add up to 0, infinities of opposite signs are NaN */
    smooth = class_reduced(e, &r, smooth, reduction);
    loss = ADD(MUL(loss, em_f(1.0 - smoothing)), MUL(smooth, DIV(em_f(smoothing), em_i(r.n_classes))));
  }
  return at_give_cast(e, loss, out);
}

/* Indices: per row  a (1 - s) (p - onehot) + s/C (p sum(w) - w), times the row's factor; probabilities: p sum(m) - m,
 * with m the target mass. */
aot_status_t at_dc_cross_entropy_backward(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), g = at_math(e, IN("grad")), p, slope;
  int32_t dim = TYPE(x).rank > 1 ? 1 : 0;
  double smoothing = em_in_float(e, "label_smoothing", 0.0);
  int64_t reduction = at_in_int(e, "reduction", 1);
  rows_t r;
  p = at_softmax(e, x, dim);
  if (aot_dtype_is_float(TYPE(IN("target")).dtype)) {
    em_x_t mass = target_mass(e, x, dim, smoothing);
    slope = SUB(MUL(p, sum_classes(e, mass, dim, 1)), mass);
    if (reduction == 0) g = at_unsqueeze(e, g, dim);
    else if (reduction == 1) g = DIV(g, em_i(batch_of(e, x, dim)));
    return at_give_cast(e, MUL(slope, g), out);
  }
  r = class_rows(e, x);
  slope = MUL(SUB(p, em_cast(e, one_hot(e, &r), TYPE(x).dtype)), at_unsqueeze(e, r.weight, dim));
  if (smoothing != 0.0) {
    em_x_t w = r.class_weight;
    em_x_t each = em_is_none(w) ? SUB(MUL(p, em_i(r.n_classes)), em_f(1.0)) : SUB(MUL(p, sum_classes(e, w, dim, 1)), w);
    slope = ADD(MUL(slope, em_f(1.0 - smoothing)), MUL(each, DIV(em_f(smoothing), em_i(r.n_classes))));
  }
  g = at_unsqueeze(e, row_factor(e, &r, g, reduction, sum_all(e, r.weight)), dim);
  return at_give_cast(e, MUL(slope, g), out);
}

/* ---- elementwise losses ---- */

static em_x_t difference(em_t *e) { return SUB(at_math(e, IN("self")), at_math(e, IN("target"))); }

static aot_status_t give_reduced(em_t *e, em_x_t loss, aot_value_t *out) {
  return at_give_cast(e, at_reduced(e, loss, at_in_int(e, "reduction", 1)), out);
}

aot_status_t at_dc_mse_loss(em_t *e, aot_value_t *out) {
  em_x_t d = difference(e);
  return give_reduced(e, MUL(d, d), out);
}

aot_status_t at_dc_l1_loss(em_t *e, aot_value_t *out) { return give_reduced(e, ABS(difference(e)), out); }

/* Below the border b quadratic: smooth l1 d^2 / (2 b), huber d^2 / 2; beyond linear: |d| - b/2, b (|d| - b/2). */
aot_status_t at_dc_huber_loss(em_t *e, aot_value_t *out) {
  int huber = at_in_has(e, "delta");
  double b = em_in_float(e, huber ? "delta" : "beta", 1.0);
  em_x_t d = ABS(difference(e)), near, far;
  if (b == 0.0) return give_reduced(e, d, out);
  near = MUL(MUL(d, d), em_f(huber ? 0.5 : 0.5 / b));
  far = SUB(d, em_f(0.5 * b));
  return give_reduced(e, WHERE(LT(d, em_f(b)), near, huber ? MUL(far, em_f(b)) : far), out);
}

/* A gradient of the reduced loss, brought to the elements. */
static em_x_t element_gradient(em_t *e, em_x_t slope) {
  em_x_t g = at_math(e, IN("grad_output"));
  aot_type_t t = TYPE(slope);
  if (at_in_int(e, "reduction", 1) == 1) g = DIV(g, em_i(at_numel(at_infer(e), t.sizes, t.rank)));
  return MUL(slope, g);
}

aot_status_t at_dc_mse_loss_backward(em_t *e, aot_value_t *out) {
  return at_give_cast(e, element_gradient(e, MUL(difference(e), em_f(2.0))), out);
}

aot_status_t at_dc_huber_loss_backward(em_t *e, aot_value_t *out) {
  int huber = at_in_has(e, "delta");
  double b = em_in_float(e, huber ? "delta" : "beta", 1.0);
  em_x_t d = difference(e), sign = EM(e, "sign", d), slope;
  if (huber) slope = WHERE(LE(ABS(d), em_f(b)), d, MUL(sign, em_f(b)));
  else slope = b == 0.0 ? sign : WHERE(LT(ABS(d), em_f(b)), DIV(d, em_f(b)), sign);
  return at_give_cast(e, element_gradient(e, slope), out);
}

/* t (log t - x), 0 where t is 0; or exp(t) (t - x) for logarithms as targets */
aot_status_t at_dc_kl_div(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), t = at_math(e, IN("target"));
  if (at_in_int(e, "log_target", 0)) return give_reduced(e, MUL(EXP(t), SUB(t, x)), out);
  return give_reduced(e, SUB(WHERE(EQ(t, em_f(0.0)), em_f(0.0), MUL(t, LOG(t))), MUL(t, x)), out);
}

static em_x_t log_from(em_t *e, em_x_t x) { return EM(e, "clamp", LOG(x), em_f(-100.0)); }

aot_status_t at_dc_bce(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), t = at_math(e, IN("target")), one = em_f(1.0), loss;
  loss = SUB(MUL(SUB(t, one), log_from(e, SUB(one, x))), MUL(t, log_from(e, x)));
  if (at_in_has(e, "weight")) loss = MUL(loss, at_math(e, IN("weight")));
  return give_reduced(e, loss, out);
}

aot_status_t at_dc_bce_backward(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), t = at_math(e, IN("target"));
  em_x_t slope = DIV(SUB(x, t), EM(e, "clamp", MUL(SUB(em_f(1.0), x), x), em_f(1e-12)));
  if (at_in_has(e, "weight")) slope = MUL(slope, at_math(e, IN("weight")));
  return at_give_cast(e, element_gradient(e, slope), out);
}

/* (1 - t) x + (1 + (p - 1) t) (log(1 + exp(-|x|)) + max(-x, 0)), p the weight of positives */
aot_status_t at_dc_bce_with_logits(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), t = at_math(e, IN("target")), one = em_f(1.0);
  em_x_t tail = ADD(LOG1P(EXP(NEG(ABS(x)))), EM(e, "clamp", NEG(x), em_f(0.0))), loss;
  if (at_in_has(e, "pos_weight")) tail = MUL(tail, ADD(MUL(SUB(at_math(e, IN("pos_weight")), one), t), one));
  loss = ADD(MUL(SUB(one, t), x), tail);
  if (at_in_has(e, "weight")) loss = MUL(loss, at_math(e, IN("weight")));
  return give_reduced(e, loss, out);
}

aot_status_t at_dc_soft_margin_loss(em_t *e, aot_value_t *out) {
  em_x_t z = NEG(MUL(at_math(e, IN("target")), at_math(e, IN("self"))));
  return give_reduced(e, LOG1P(EXP(z)), out);
}
