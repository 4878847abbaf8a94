/* Dropout and its relatives: draw, compare, multiply. The mask of kept elements is bool, so a partition may save it for a
 * byte an element or draw it again; autograd differentiates the products. With p = 1 everything is multiplied by 0, as
 * PyTorch does.
 *
 * alpha (Klambauer et al., Self-Normalizing Neural Networks, 2017): what falls away becomes the lower bound of selu, and all
 * is scaled so that mean and variance stay. With A = 1.7580993408473766 and a = 1 / sqrt((A^2 p + 1)(1 - p)) it is y = a x
 * keep + a A (keep - 1) + a A p. rrelu: y = x where x > 0, else r x with r uniform in [lower, upper). */
#include "random_rules.h"

#include <math.h>

static double probability(rg_emit_t *e, const char *name) {
  const double p = rg_in_float(e, name, 0.5);
  if (!(p >= 0 && p <= 1))
    rg_fail(e, AOT_E_INVALID, "", "%.*s: the probability must lie between 0 and 1, got %g", (int)e->desc->name.size,
            e->desc->name.data, p);
  return p;
}

static void give(rg_emit_t *e, rg_x x, aot_value_t *out) { *out = rg_value(e, x); }

/* x with each element kept with probability 1 - p, and scaled so that the mean stays. p in (0, 1). */
static rg_x kept(rg_emit_t *e, rg_x x, rg_x mask, double p) {
  return RG(e, "mul.Scalar", RG(e, "mul.Tensor", x, mask), rg_f(1.0 / (1.0 - p)));
}

/* One element for each [batch, channel]; the memory of out->sizes is `sizes`. */
static aot_type_t by_channel(rg_emit_t *e, rg_x x, int64_t *sizes) {
  aot_type_t t = rg_type(e, x);
  if (t.rank < 2)
    rg_fail(e, AOT_E_INVALID, "", "%.*s takes a tensor with at least 2 dimensions, got %d", (int)e->desc->name.size,
            e->desc->name.data, (int)t.rank);
  for (int32_t d = 0; e->status == AOT_OK && d < t.rank; d++) sizes[d] = d < 2 ? t.sizes[d] : 1;
  t.sizes = sizes;
  return t;
}

/* Not in training, or p is 0 or 1: nothing is drawn. */
static int is_certain(rg_emit_t *e, rg_x x, double p, aot_value_t *out) {
  if (!rg_in_bool(e, "train", 1) || p == 0) return give(e, x, out), 1;
  if (p == 1) return give(e, RG(e, "mul.Scalar", x, rg_f(0)), out), 1;
  return e->status != AOT_OK;
}

void rg_dropout(rg_emit_t *e, aot_value_t *out) {
  const rg_x x = rg_in(e, "input");
  const double p = probability(e, "p");
  if (is_certain(e, x, p, out)) return;
  const aot_type_t t = rg_type(e, x);
  give(e, kept(e, x, rg_chance(e, &t, 1.0 - p), p), out);
}

void rg_native_dropout(rg_emit_t *e, aot_value_t *out) {
  const rg_x x = rg_in(e, "input");
  const double p = probability(e, "p");
  const int is_on = rg_in_bool(e, "train", 1) && p != 0;
  if (is_certain(e, x, p, out)) {
    give(e, RG(e, "full_like", x, rg_b(!is_on), rg_dtype(AOT_BOOL)), out + 1);
    return;
  }
  const aot_type_t t = rg_type(e, x);
  const rg_x mask = rg_chance(e, &t, 1.0 - p);
  give(e, kept(e, x, mask, p), out);
  give(e, mask, out + 1);
}

/* Its p is the probability to keep; the mask has bytes. */
void rg_fused_dropout(rg_emit_t *e, aot_value_t *out) {
  const rg_x x = rg_in(e, "self");
  const double p = probability(e, "p");
  const aot_type_t t = rg_type(e, x);
  const rg_x mask = p > 0 ? rg_chance(e, &t, p) : RG(e, "full_like", x, rg_b(0), rg_dtype(AOT_BOOL));
  give(e, RG(e, "mul.Scalar", RG(e, "mul.Tensor", x, mask), rg_f(p > 0 ? 1.0 / p : 0.0)), out);
  give(e, rg_cast(e, mask, rg_result_type(e, 1).dtype), out + 1);
}

void rg_feature_dropout(rg_emit_t *e, aot_value_t *out) {
  int64_t sizes[AOT_MAX_RANK];
  const rg_x x = rg_in(e, "input");
  const double p = probability(e, "p");
  if (is_certain(e, x, p, out)) return;
  const aot_type_t t = by_channel(e, x, sizes);
  give(e, kept(e, x, rg_chance(e, &t, 1.0 - p), p), out);
}

static void alpha(rg_emit_t *e, rg_x x, const aot_type_t *shape, double p, aot_value_t *out) {
  const double lower = 1.7580993408473766, a = 1.0 / sqrt((lower * lower * p + 1.0) * (1.0 - p));
  const rg_x keep = rg_cast(e, rg_chance(e, shape, 1.0 - p), rg_type(e, x).dtype);
  const rg_x floor = RG(e, "mul.Scalar", RG(e, "add.Scalar", keep, rg_f(-1.0)), rg_f(lower * a));
  const rg_x product = RG(e, "mul.Tensor", x, RG(e, "mul.Scalar", keep, rg_f(a)));
  give(e, RG(e, "add.Tensor", product, RG(e, "add.Scalar", floor, rg_f(lower * a * p))), out);
}

void rg_alpha_dropout(rg_emit_t *e, aot_value_t *out) {
  const rg_x x = rg_in(e, "input");
  const double p = probability(e, "p");
  if (is_certain(e, x, p, out)) return;
  const aot_type_t t = rg_type(e, x);
  alpha(e, x, &t, p, out);
}

void rg_feature_alpha_dropout(rg_emit_t *e, aot_value_t *out) {
  int64_t sizes[AOT_MAX_RANK];
  const rg_x x = rg_in(e, "input");
  const double p = probability(e, "p");
  if (is_certain(e, x, p, out)) return;
  const aot_type_t t = by_channel(e, x, sizes);
  alpha(e, x, &t, p, out);
}

/* rrelu; rrelu_with_noise and its functional form, whose second result is the noise that its backward reads. */
void rg_rrelu(rg_emit_t *e, aot_value_t *out) {
  const rg_x x = rg_in(e, "self");
  const double lower = rg_in_float(e, "lower", 0.125), upper = rg_in_float(e, "upper", 1.0 / 3.0);
  const aot_type_t t = rg_type(e, x);
  if (!rg_in_bool(e, "training", 0)) {
    give(e, RG(e, "leaky_relu", x, rg_f((lower + upper) / 2)), out);
    if (e->info.n_results > 1) give(e, rg_in(e, "noise"), out + 1);
    return;
  }
  if (lower > upper)
    rg_fail(e, AOT_E_INVALID, "", "%.*s: 'lower' is %g, more than 'upper', %g", (int)e->desc->name.size, e->desc->name.data,
            lower, upper);
  const rg_x u = RG(e, "mul.Scalar", rg_uniform(e, &t, t.dtype == AOT_F64 ? AOT_F64 : AOT_F32), rg_f(upper - lower));
  const rg_x slope = rg_cast(e, RG(e, "add.Scalar", u, rg_f(lower)), t.dtype);
  const rg_x noise = RG(e, "where.ScalarOther", RG(e, "le.Scalar", x, rg_i(0)), slope, rg_f(1.0));
  give(e, RG(e, "mul.Tensor", x, noise), out);
  if (e->info.n_results > 1) give(e, noise, out + 1);
}
