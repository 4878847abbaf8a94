/* Dropout and its relatives: draw, compare, multiply. The mask of kept elements is bool, so a partition may save it for
 * a byte an element or draw it again; autograd differentiates the products. With p = 1 everything is multiplied by 0,
 * as PyTorch does.
 *
 * alpha (Klambauer et al., Self-Normalizing Neural Networks, 2017): what falls away becomes the lower bound of selu,
 * and all is scaled so that mean and variance stay. With A = 1.7580993408473766 and a = 1 / sqrt((A^2 p + 1)(1 - p)) it
 * is y = a x keep + a A (keep - 1) + a A p. rrelu: y = x where x > 0, else r x with r uniform in [lower, upper). */
#include "random_rules.h"

#include <math.h>

static double probability(em_t *e, const char *name) {
  const double p = em_in_float(e, name, 0.5);
  if (!(p >= 0 && p <= 1))
    em_fail(e, AOT_E_INVALID, "", "%.*s: the probability must lie between 0 and 1, got %g", (int)e->desc->name.size,
            e->desc->name.data, p);
  return p;
}

static void give(em_t *e, em_x_t x, aot_value_t *out) { *out = em_value(e, x); }

/* x with each element stored with probability 1 - p, and scaled so that the mean stays. p in (0, 1). */
static em_x_t kept(em_t *e, em_x_t x, em_x_t mask, double p) {
  return EM(e, "mul.Scalar", EM(e, "mul.Tensor", x, mask), em_f(1.0 / (1.0 - p)));
}

/* One element for each [batch, channel]; the memory of out->sizes is `sizes`. */
static aot_type_t by_channel(em_t *e, em_x_t x, int64_t *sizes) {
  aot_type_t t = em_type(e, x);
  if (t.rank < 2)
    em_fail(e, AOT_E_INVALID, "", "%.*s takes a tensor with at least 2 dimensions, got %d", (int)e->desc->name.size,
            e->desc->name.data, (int)t.rank);
  for (int32_t d = 0; e->status == AOT_OK && d < t.rank; d++) sizes[d] = d < 2 ? t.sizes[d] : 1;
  t.sizes = sizes;
  return t;
}

/* Not in training, or p is 0 or 1: nothing is drawn. */
static int is_certain(em_t *e, em_x_t x, double p, aot_value_t *out) {
  if (!em_in_bool(e, "train", 1) || p == 0) return give(e, x, out), 1;
  if (p == 1) return give(e, EM(e, "mul.Scalar", x, em_f(0)), out), 1;
  return e->status != AOT_OK;
}

void rg_dropout(em_t *e, aot_value_t *out) {
  const em_x_t x = em_in(e, "input");
  const double p = probability(e, "p");
  if (is_certain(e, x, p, out)) return;
  const aot_type_t t = em_type(e, x);
  give(e, kept(e, x, rg_chance(e, &t, 1.0 - p), p), out);
}

void rg_native_dropout(em_t *e, aot_value_t *out) {
  const em_x_t x = em_in(e, "input");
  const double p = probability(e, "p");
  const int is_on = em_in_bool(e, "train", 1) && p != 0;
  if (is_certain(e, x, p, out)) {
    give(e, EM(e, "full_like", x, em_b(!is_on), em_dtype(AOT_BOOL)), out + 1);
    return;
  }
  const aot_type_t t = em_type(e, x);
  const em_x_t mask = rg_chance(e, &t, 1.0 - p);
  give(e, kept(e, x, mask, p), out);
  give(e, mask, out + 1);
}

/* Its p is the probability to keep; the mask has bytes. */
void rg_fused_dropout(em_t *e, aot_value_t *out) {
  const em_x_t x = em_in(e, "self");
  const double p = probability(e, "p");
  const aot_type_t t = em_type(e, x);
  const em_x_t mask = p > 0 ? rg_chance(e, &t, p) : EM(e, "full_like", x, em_b(0), em_dtype(AOT_BOOL));
  give(e, EM(e, "mul.Scalar", EM(e, "mul.Tensor", x, mask), em_f(p > 0 ? 1.0 / p : 0.0)), out);
  give(e, em_cast(e, mask, em_result_type(e, 1).dtype), out + 1);
}

void rg_feature_dropout(em_t *e, aot_value_t *out) {
  int64_t sizes[AOT_MAX_RANK];
  const em_x_t x = em_in(e, "input");
  const double p = probability(e, "p");
  if (is_certain(e, x, p, out)) return;
  const aot_type_t t = by_channel(e, x, sizes);
  give(e, kept(e, x, rg_chance(e, &t, 1.0 - p), p), out);
}

static void alpha(em_t *e, em_x_t x, const aot_type_t *shape, double p, aot_value_t *out) {
  const double lower = 1.7580993408473766, a = 1.0 / sqrt((lower * lower * p + 1.0) * (1.0 - p));
  const em_x_t keep = em_cast(e, rg_chance(e, shape, 1.0 - p), em_type(e, x).dtype);
  const em_x_t floor = EM(e, "mul.Scalar", EM(e, "add.Scalar", keep, em_f(-1.0)), em_f(lower * a));
  const em_x_t product = EM(e, "mul.Tensor", x, EM(e, "mul.Scalar", keep, em_f(a)));
  give(e, EM(e, "add.Tensor", product, EM(e, "add.Scalar", floor, em_f(lower * a * p))), out);
}

void rg_alpha_dropout(em_t *e, aot_value_t *out) {
  const em_x_t x = em_in(e, "input");
  const double p = probability(e, "p");
  if (is_certain(e, x, p, out)) return;
  const aot_type_t t = em_type(e, x);
  alpha(e, x, &t, p, out);
}

void rg_feature_alpha_dropout(em_t *e, aot_value_t *out) {
  int64_t sizes[AOT_MAX_RANK];
  const em_x_t x = em_in(e, "input");
  const double p = probability(e, "p");
  if (is_certain(e, x, p, out)) return;
  const aot_type_t t = by_channel(e, x, sizes);
  alpha(e, x, &t, p, out);
}

/* rrelu; rrelu_with_noise and its functional form, whose second result is the noise that its backward reads. */
void rg_rrelu(em_t *e, aot_value_t *out) {
  const em_x_t x = em_in(e, "self");
  const double lower = em_in_float(e, "lower", 0.125), upper = em_in_float(e, "upper", 1.0 / 3.0);
  const aot_type_t t = em_type(e, x);
  if (!em_in_bool(e, "training", 0)) {
    give(e, EM(e, "leaky_relu", x, em_f((lower + upper) / 2)), out);
    if (e->info.n_results > 1) give(e, em_in(e, "noise"), out + 1);
    return;
  }
  if (lower > upper)
    em_fail(e, AOT_E_INVALID, "", "%.*s: 'lower' is %g, more than 'upper', %g", (int)e->desc->name.size,
            e->desc->name.data, lower, upper);
  const em_x_t u = EM(e, "mul.Scalar", rg_uniform(e, &t, t.dtype == AOT_F64 ? AOT_F64 : AOT_F32), em_f(upper - lower));
  const em_x_t slope = em_cast(e, EM(e, "add.Scalar", u, em_f(lower)), t.dtype);
  const em_x_t noise = EM(e, "where.ScalarOther", EM(e, "le.Scalar", x, em_i(0)), slope, em_f(1.0));
  give(e, EM(e, "mul.Tensor", x, noise), out);
  if (e->info.n_results > 1) give(e, noise, out + 1);
}
