/* Losses and their derivatives. Reduction: 0 none, 1 mean, 2 sum.
 *
 * Elementwise losses are rows of (term, slope) over broadcast inputs. Classification losses are written once, on a
 * coefficient vector per sample: the loss is -sum_c coef[c] * logp[c], where coef is the target's weight (class
 * targets), the smoothed target (label smoothing) or the target itself (probabilities). Then the derivative of cross
 * entropy is sum(coef) * softmax - coef. Divisors of the mean: operators.md section 4. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>

#define REDUCE_NONE 0
#define REDUCE_MEAN 1

/* ---- elementwise ---- */

/* x, target, weight (1 when absent), second weight, parameter; the dtype that PyTorch keeps terms in before it sums
 * them */
typedef struct term {
  double x, t, w, w2, p;
  int32_t dtype;
} term_t;
typedef double (*term_fn)(const term_t *e);

static double mse(const term_t *e) { return (e->x - e->t) * (e->x - e->t); }
static double mse_slope(const term_t *e) { return 2 * (e->x - e->t); }
static double l1(const term_t *e) { return fabs(e->x - e->t); }
static double sign(double v) { return (v > 0) - (v < 0); }
static double l1_slope(const term_t *e) { return sign(e->x - e->t); }
static double smooth_l1(const term_t *e) {
  double d = fabs(e->x - e->t);
  return d < e->p ? 0.5 * d * d / e->p : d - 0.5 * e->p;
}
static double smooth_l1_slope(const term_t *e) {
  double d = e->x - e->t;
  return fabs(d) < e->p ? d / e->p : sign(d);
}
static double huber(const term_t *e) {
  double d = fabs(e->x - e->t);
  return d <= e->p ? 0.5 * d * d : e->p * (d - 0.5 * e->p);
}
static double huber_slope(const term_t *e) {
  double d = e->x - e->t;
  return fabs(d) <= e->p ? d : e->p * sign(d);
}
static double bce(const term_t *e) {
  return -e->w * rk_round_to(e->t * fmax(log(e->x), -100) + (1 - e->t) * fmax(log1p(-e->x), -100), e->dtype);
}
static double bce_slope(const term_t *e) { return e->w * (e->x - e->t) / fmax((1 - e->x) * e->x, 1e-12); }
static double softplus(double v) { return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)); }
/* (1-t)*x + (1 + (pw-1)*t) * softplus(-x) */
static double bce_logits(const term_t *e) {
  return e->w * ((1 - e->t) * e->x + (1 + (e->w2 - 1) * e->t) * softplus(-e->x));
}
/* overflows as there */
static double soft_margin(const term_t *e) { return log1p(rk_round_to(exp(-e->t * e->x), e->dtype)); }
static double soft_margin_slope(const term_t *e) { return -e->t / (1 + exp(e->t * e->x)); }
static double xlogy(double a, double b) { return a == 0 ? 0 : a * log(b); }
/* p: log_target */
static double kl(const term_t *e) { return e->p != 0 ? exp(e->t) * (e->t - e->x) : xlogy(e->t, e->t) - e->t * e->x; }

typedef struct loss_row {
  term_fn f;
  int8_t grad, self, weight, weight2, reduction, parameter; /* argument numbers, -1: none; target follows self */
  double preset;
} loss_row_t;

static aot_status_t add_input(rk_ctx_t *c, int arg, rk_iter_t *it, const rk_tensor_t **out, int32_t *slot) {
  *out = NULL;
  if (arg < 0) return AOT_OK;
  AOT_TRY(rk_tensor_of(c, (uint32_t)arg, out));
  if (!*out) return AOT_OK;
  *slot = it->n_tensors;
  RK_CHECK(c, rk_iter_add(it, *out), "argument %d does not broadcast to the loss", arg);
  return AOT_OK;
}

static int32_t broadcast_shape(const rk_tensor_t *a, const rk_tensor_t *b, int64_t *sizes) {
  int32_t rank = a->rank > b->rank ? a->rank : b->rank;
  for (int32_t d = 0; d < rank; d++) {
    int64_t sa = d < rank - a->rank ? 1 : a->sizes[d - (rank - a->rank)],
            sb = d < rank - b->rank ? 1 : b->sizes[d - (rank - b->rank)];
    sizes[d] = sa == 1 ? sb : sa;
  }
  return rank;
}

/* Both directions: without grad the terms, reduced; with grad the slopes times it. */
static aot_status_t elementwise(rk_ctx_t *c) {
  const loss_row_t *row = c->kernel->row;
  const rk_tensor_t *in[5], *x, *t;
  int32_t slot[5] = {0}, rank;
  int args[5];
  int64_t sizes[AOT_MAX_RANK], reduction = rk_int(c, (uint32_t)row->reduction, 1), n = 0;
  rk_iter_t it;
  rk_array_t out, total;
  term_t e = {0, 0, 1, 1, 0, rk_result_dtype(c, 0)};
  double sum = 0, factor = 1;
  args[0] = row->self;
  args[1] = row->self + 1;
  args[2] = row->weight;
  args[3] = row->weight2;
  args[4] = row->grad;
  AOT_TRY(rk_need_tensor(c, (uint32_t)args[0], &x));
  AOT_TRY(rk_need_tensor(c, (uint32_t)args[1], &t));
  rank = broadcast_shape(x, t, sizes);
  rk_iter_init(&it, rank, sizes);
  for (int k = 0; k < 5; k++) AOT_TRY(add_input(c, args[k], &it, &in[k], &slot[k]));
  RK_CHECK(c, row->grad < 0 || in[4], "the gradient is absent");
  AOT_TRY(rk_new_f(c, rank, sizes, &out));
  if (row->parameter >= 0) e.p = rk_float(c, (uint32_t)row->parameter, row->preset);
  if (row->grad >= 0 && reduction == REDUCE_MEAN) factor = 1 / (double)out.numel;
  for (; it.more; rk_iter_next(&it))
    for (int64_t k = 0; k < it.run; k++) {
      double v[5] = {0, 0, 1, 1, 1};
      for (int s = 0; s < 5; s++)
        if (in[s]) rk_load_run_f(in[s], it.at[slot[s]] + k * it.step[slot[s]], 1, 1, &v[s]);
      e.x = v[0];
      e.t = v[1];
      e.w = v[2];
      e.w2 = v[3];
      sum += out.f[n++] = rk_round_to(row->f(&e) * v[4] * factor, e.dtype);
    }
  if (row->grad >= 0 || reduction == REDUCE_NONE) return rk_put_f(c, 0, &out);
  AOT_TRY(rk_new_f(c, 0, NULL, &total));
  total.f[0] = reduction == REDUCE_MEAN ? sum / (double)out.numel : sum;
  return rk_put_f(c, 0, &total);
}

/* ---- classification ---- */

typedef struct classes {
  rk_array_t x, w, soft;                    /* soft: probability targets */
  rk_array_t target;                        /* class targets */
  int64_t outer, n, inner, samples, ignore; /* sample p = o * inner + i */
  double smoothing, divisor;
  int is_mixed; /* scores, probabilities or weights of several dtypes: PyTorch rounds on the way to the widest */
  int64_t reduction;
  double *logp, *coef; /* of one sample */
} classes_t;

/* self, target, weight, reduction, ignore_index, and maybe label_smoothing, from argument `first` on */
static aot_status_t read_classes(rk_ctx_t *c, uint32_t first, int has_smoothing, classes_t *k) {
  const rk_tensor_t *target;
  AOT_TRY(rk_need_f(c, first, &k->x));
  AOT_TRY(rk_need_tensor(c, first + 1, &target));
  AOT_TRY(rk_get_f(c, first + 2, &k->w));
  k->reduction = rk_int(c, first + 3, 1);
  k->ignore = rk_int(c, first + 4, -100);
  k->smoothing = has_smoothing ? rk_float(c, first + 5, 0) : 0;
  RK_CHECK(c, k->x.rank >= 1, "the input is 0-dim");
  rk_around(&k->x, k->x.rank == 1 ? 0 : 1, &k->outer, &k->n, &k->inner);
  k->samples = k->outer * k->inner;
  RK_CHECK(c, !k->w.f || k->w.numel == k->n, "%lld weights for %lld classes", (long long)k->w.numel, (long long)k->n);
  if (!rk_is_int(target->dtype)) {
    AOT_TRY(rk_dense_f(c, target, &k->soft));
    k->is_mixed = k->soft.dtype != k->x.dtype || (k->w.f && k->w.dtype != k->x.dtype);
    RK_CHECK(c, k->soft.numel == k->x.numel, "probability targets need the input's shape");
  } else {
    AOT_TRY(rk_dense_i(c, target, &k->target));
    RK_CHECK(c, k->target.numel == k->samples, "%lld targets for %lld samples", (long long)k->target.numel,
             (long long)k->samples);
  }
  RK_SCRATCH(c, k->n, k->logp);
  RK_SCRATCH(c, k->n, k->coef);
  return AOT_OK;
}

static double weight_of(const classes_t *k, int64_t class_number) { return k->w.f ? k->w.f[class_number] : 1; }
static int64_t place(const classes_t *k, int64_t sample, int64_t class_number) {
  return (sample / k->inner * k->n + class_number) * k->inner + sample % k->inner;
}

/* The target of a sample, checked; *kept is 0 when it is ignored. */
static aot_status_t target_of(rk_ctx_t *c, const classes_t *k, int64_t sample, int64_t *out, int *kept) {
  *out = k->target.i[sample];
  *kept = *out != k->ignore;
  RK_CHECK(c, !*kept || (*out >= 0 && *out < k->n), "target %lld of sample %lld is out of range for %lld classes",
           (long long)*out, (long long)sample, (long long)k->n);
  return AOT_OK;
}

static aot_status_t coefficients(rk_ctx_t *c, classes_t *k, int64_t sample) {
  double share = k->smoothing / (double)k->n;
  int64_t t;
  int kept;
  if (k->soft.f) {
    for (int64_t j = 0; j < k->n; j++) {
      double mass = k->soft.f[place(k, sample, j)];
      if (k->is_mixed && k->smoothing != 0)
        mass = rk_round_to(rk_round_to(mass * (1 - k->smoothing), k->soft.dtype) + rk_round_to(share, k->soft.dtype),
                           k->soft.dtype);
      else mass = mass * (1 - k->smoothing) + share;
      k->coef[j] = weight_of(k, j) * mass;
    }
    return AOT_OK;
  }
  AOT_TRY(target_of(c, k, sample, &t, &kept));
  for (int64_t j = 0; j < k->n; j++) k->coef[j] = kept ? share * weight_of(k, j) : 0;
  if (kept) k->coef[t] += (1 - k->smoothing) * weight_of(k, t);
  return AOT_OK;
}

static void log_softmax(classes_t *k, int64_t sample) {
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < k->n; j++) top = fmax(top, k->x.f[place(k, sample, j)]);
  for (int64_t j = 0; j < k->n; j++) sum += exp(k->x.f[place(k, sample, j)] - top);
  sum = log(sum) + top;
  for (int64_t j = 0; j < k->n; j++) {
    k->logp[j] = k->x.f[place(k, sample, j)] - sum;
    if (k->is_mixed) k->logp[j] = rk_round_to(k->logp[j], k->x.dtype);
  }
}

/* What the mean divides by: kept weights, or samples for probability targets. */
static aot_status_t divisor(rk_ctx_t *c, classes_t *k) {
  int64_t t;
  int kept;
  k->divisor = k->soft.f ? (double)k->samples : 0;
  for (int64_t s = 0; !k->soft.f && s < k->samples; s++) {
    AOT_TRY(target_of(c, k, s, &t, &kept));
    if (kept) k->divisor += weight_of(k, t);
  }
  return AOT_OK;
}

/* Losses of the samples, reduced, to result 0. The shape without reduction is the input's without its class
 * dimension. */
static aot_status_t put_losses(rk_ctx_t *c, const classes_t *k, double *loss) {
  rk_array_t a = {0};
  double sum = 0;
  for (int32_t d = 0; d < k->x.rank; d++)
    if (d != (k->x.rank == 1 ? 0 : 1)) a.sizes[a.rank++] = k->x.sizes[d];
  a.numel = k->samples;
  a.f = loss;
  if (k->reduction == REDUCE_NONE) return rk_put_f(c, 0, &a);
  for (int64_t s = 0; s < k->samples; s++) sum += loss[s];
  if (k->reduction == REDUCE_MEAN) sum /= k->divisor;
  a.rank = 0;
  a.f = &sum;
  return rk_put_f(c, 0, &a);
}

/* The mean of smoothed losses whose weights add up to 0. PyTorch divides the losses of the targets and those of all
 * classes by it, each by itself: infinities of opposite signs are NaN. */
static aot_status_t mean_over_nothing(rk_ctx_t *c, classes_t *k) {
  rk_array_t a = {.numel = 1};
  double of_targets = 0, of_all = 0;
  for (int64_t s = 0; s < k->samples; s++) {
    int64_t t;
    int kept;
    AOT_TRY(target_of(c, k, s, &t, &kept));
    if (!kept) continue;
    log_softmax(k, s);
    of_targets -= weight_of(k, t) * k->logp[t];
    for (int64_t j = 0; j < k->n; j++) of_all -= weight_of(k, j) * k->logp[j];
  }
  double mean = (1 - k->smoothing) * (of_targets / k->divisor) + k->smoothing / (double)k->n * (of_all / k->divisor);
  a.f = &mean;
  return rk_put_f(c, 0, &a);
}

static aot_status_t cross_entropy(rk_ctx_t *c) {
  classes_t k = {0};
  double *loss;
  AOT_TRY(read_classes(c, 0, 1, &k));
  AOT_TRY(divisor(c, &k));
  if (k.reduction == REDUCE_MEAN && !k.soft.f && k.smoothing != 0 && k.divisor == 0) return mean_over_nothing(c, &k);
  RK_SCRATCH(c, k.samples, loss);
  for (int64_t s = 0; s < k.samples; s++) {
    AOT_TRY(coefficients(c, &k, s));
    log_softmax(&k, s);
    for (int64_t j = 0; j < k.n; j++)
      if (k.coef[j] != 0) loss[s] -= k.coef[j] * k.logp[j];
  }
  return put_losses(c, &k, loss);
}

/* The gradient of sample s: an element of a none-reduction's, or the one number, divided for the mean. */
static double upstream(const classes_t *k, const rk_array_t *g, int64_t s) {
  if (k->reduction == REDUCE_NONE) return g->f[s];
  return k->reduction == REDUCE_MEAN ? g->f[0] / k->divisor : g->f[0];
}

/* aot.cross_entropy_loss_backward(grad, self, target, weight, reduction, ignore_index, label_smoothing) */
static aot_status_t cross_entropy_backward(rk_ctx_t *c) {
  classes_t k = {0};
  rk_array_t g, gx;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_classes(c, 1, 1, &k));
  AOT_TRY(divisor(c, &k));
  RK_CHECK(c, g.numel == (k.reduction == REDUCE_NONE ? k.samples : 1), "the gradient has %lld elements",
           (long long)g.numel);
  AOT_TRY(rk_new_f(c, k.x.rank, k.x.sizes, &gx));
  for (int64_t s = 0; s < k.samples; s++) {
    double total = 0, up = upstream(&k, &g, s);
    AOT_TRY(coefficients(c, &k, s));
    log_softmax(&k, s);
    for (int64_t j = 0; j < k.n; j++) total += k.coef[j];
    if (total == 0 && !k.soft.f) continue; /* ignored: also when the mean divides by 0 */
    for (int64_t j = 0; j < k.n; j++) gx.f[place(&k, s, j)] = up * (total * exp(k.logp[j]) - k.coef[j]);
  }
  return rk_put_f(c, 0, &gx);
}

/* nll_loss_forward(self, target, weight, reduction, ignore_index) -> (output, total_weight); the composites give the
 * first */
static aot_status_t nll_forward(rk_ctx_t *c) {
  classes_t k = {0};
  rk_array_t total = {0};
  double *loss, kept_weight;
  AOT_TRY(read_classes(c, 0, 0, &k));
  RK_CHECK(c, k.target.i, "targets must be class numbers");
  AOT_TRY(divisor(c, &k));
  RK_SCRATCH(c, k.samples, loss);
  for (int64_t s = 0; s < k.samples; s++) {
    int64_t t;
    int kept;
    AOT_TRY(target_of(c, &k, s, &t, &kept));
    loss[s] = kept ? -weight_of(&k, t) * k.x.f[place(&k, s, t)] : 0;
  }
  kept_weight = k.reduction == REDUCE_NONE && k.x.rank > 1 ? 0 : k.divisor; /* a lone sample always counts */
  total.numel = 1;
  total.f = &kept_weight;
  AOT_TRY(rk_put_f(c, 1, &total));
  return put_losses(c, &k, loss);
}

/* nll_loss_backward(grad, self, target, weight, reduction, ignore_index, total_weight) */
static aot_status_t nll_backward(rk_ctx_t *c) {
  classes_t k = {0};
  rk_array_t g, gx, total;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_classes(c, 1, 0, &k));
  RK_CHECK(c, k.target.i, "targets must be class numbers");
  AOT_TRY(rk_need_f(c, 6, &total));
  k.divisor = total.numel ? total.f[0] : 0;
  RK_CHECK(c, g.numel == (k.reduction == REDUCE_NONE ? k.samples : 1), "the gradient has %lld elements",
           (long long)g.numel);
  AOT_TRY(rk_new_f(c, k.x.rank, k.x.sizes, &gx));
  for (int64_t s = 0; s < k.samples; s++) {
    int64_t t;
    int kept;
    AOT_TRY(target_of(c, &k, s, &t, &kept));
    if (kept) gx.f[place(&k, s, t)] = -weight_of(&k, t) * upstream(&k, &g, s);
  }
  return rk_put_f(c, 0, &gx);
}

/* ---- margins over classes ---- */

/* multi_margin_loss(self, target, p, margin, weight, reduction) */
static aot_status_t multi_margin(rk_ctx_t *c) {
  rk_array_t x, t, w, out = {0};
  int64_t samples, n, p = rk_int(c, 2, 1), reduction = rk_int(c, 5, 1);
  double margin = rk_float(c, 3, 1), *loss, sum = 0;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_need_i(c, 1, &t));
  AOT_TRY(rk_get_f(c, 4, &w));
  RK_CHECK(c, x.rank <= 2, "rank %d is more than 2", x.rank);
  n = x.rank ? x.sizes[x.rank - 1] : 1;
  samples = x.rank == 2 ? x.sizes[0] : 1;
  RK_CHECK(c, t.numel == samples && (!w.f || w.numel == n), "targets or weights do not fit");
  RK_SCRATCH(c, samples, loss);
  for (int64_t s = 0; s < samples; s++) {
    RK_CHECK(c, t.i[s] >= 0 && t.i[s] < n, "target %lld is out of range for %lld classes", (long long)t.i[s],
             (long long)n);
    for (int64_t j = 0; j < n; j++) {
      double z = margin - x.f[s * n + t.i[s]] + x.f[s * n + j];
      if (j != t.i[s] && z > 0) loss[s] += (p == 1 ? z : z * z) * (w.f ? w.f[t.i[s]] : 1);
    }
    sum += loss[s] /= (double)n;
  }
  out.rank = reduction == REDUCE_NONE && t.rank ? 1 : 0;
  out.sizes[0] = samples;
  out.f = loss;
  if (reduction != REDUCE_NONE) {
    if (reduction == REDUCE_MEAN) sum /= (double)samples;
    out.f = &sum;
  }
  return rk_put_f(c, 0, &out);
}

/* multilabel_margin_loss_forward(self, target, reduction) -> (output, is_target): target lists end at -1 */
static aot_status_t multilabel_margin(rk_ctx_t *c) {
  rk_array_t x, t, is_target, out = {0};
  int64_t samples, n, reduction = rk_int(c, 2, 1);
  double *loss, sum = 0;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_need_i(c, 1, &t));
  RK_CHECK(c, rk_same_sizes(&x, &t) && x.rank <= 2, "input and target differ in shape");
  n = x.rank ? x.sizes[x.rank - 1] : 1;
  samples = n ? x.numel / n : 0;
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &is_target));
  RK_SCRATCH(c, samples, loss);
  for (int64_t s = 0; s < samples; s++) {
    const int64_t *list = t.i + s * n;
    double *mark = is_target.f + s * n;
    for (int64_t k = 0; k < n && list[k] >= 0; k++) {
      RK_CHECK(c, list[k] < n, "target %lld is out of range for %lld classes", (long long)list[k], (long long)n);
      mark[list[k]] = 1;
    }
    for (int64_t k = 0; k < n && list[k] >= 0; k++)
      for (int64_t j = 0; j < n; j++) {
        double z = 1 - x.f[s * n + list[k]] + x.f[s * n + j];
        if (mark[j] == 0 && z > 0) loss[s] += z;
      }
    sum += loss[s] /= (double)n;
  }
  if (rk_wants(c, 1)) AOT_TRY(rk_put_f(c, 1, &is_target));
  out.rank = reduction == REDUCE_NONE && x.rank == 2 ? 1 : 0;
  out.sizes[0] = samples;
  out.f = loss;
  if (reduction != REDUCE_NONE) {
    if (reduction == REDUCE_MEAN) sum /= (double)samples;
    out.f = &sum;
  }
  return rk_put_f(c, 0, &out);
}

/* multilabel_margin_loss_backward(grad, self, target, reduction, is_target) */
static aot_status_t multilabel_margin_backward(rk_ctx_t *c) {
  rk_array_t g, x, t, is_target, gx;
  int64_t n, samples, reduction = rk_int(c, 3, 1);
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &x));
  AOT_TRY(rk_need_i(c, 2, &t));
  AOT_TRY(rk_need_f(c, 4, &is_target));
  n = x.rank ? x.sizes[x.rank - 1] : 1;
  samples = n ? x.numel / n : 0;
  RK_CHECK(c, rk_same_sizes(&x, &t) && is_target.numel == x.numel, "input, target and marks differ in shape");
  RK_CHECK(c, g.numel == (reduction == REDUCE_NONE && x.rank == 2 ? samples : 1), "the gradient has %lld elements",
           (long long)g.numel);
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &gx));
  for (int64_t s = 0; s < samples; s++) {
    const double up = g.f[g.numel > 1 ? s : 0] / (double)n / (reduction == REDUCE_MEAN ? (double)samples : 1);
    for (int64_t k = 0; k < n && t.i[s * n + k] >= 0; k++) {
      const int64_t target = s * n + t.i[s * n + k];
      RK_CHECK(c, t.i[s * n + k] < n, "target %lld is out of range for %lld classes", (long long)t.i[s * n + k],
               (long long)n);
      for (int64_t j = s * n; j < (s + 1) * n; j++) {
        if (is_target.f[j] != 0 || !(1 - x.f[target] + x.f[j] > 0)) continue;
        gx.f[target] -= up;
        gx.f[j] += up;
      }
    }
  }
  return rk_put_f(c, 0, &gx);
}

#define ELEMENT(name, f, grad, self, weight, weight2, reduction, parameter, preset)                                    \
  {                                                                                                                    \
    "aten." name ".default", elementwise, NULL,                                                                        \
        &(const loss_row_t){f, grad, self, weight, weight2, reduction, parameter, preset}, 0                           \
  }
#define ROW(name, fn)                                                                                                  \
  { name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ELEMENT("mse_loss", mse, -1, 0, -1, -1, 2, -1, 0),
    ELEMENT("mse_loss_backward", mse_slope, 0, 1, -1, -1, 3, -1, 0),
    ELEMENT("l1_loss", l1, -1, 0, -1, -1, 2, -1, 0),
    ELEMENT("l1_loss_backward", l1_slope, 0, 1, -1, -1, 3, -1, 0),
    ELEMENT("smooth_l1_loss", smooth_l1, -1, 0, -1, -1, 2, 3, 1),
    ELEMENT("smooth_l1_loss_backward", smooth_l1_slope, 0, 1, -1, -1, 3, 4, 1),
    ELEMENT("huber_loss", huber, -1, 0, -1, -1, 2, 3, 1),
    ELEMENT("huber_loss_backward", huber_slope, 0, 1, -1, -1, 3, 4, 1),
    ELEMENT("binary_cross_entropy", bce, -1, 0, 2, -1, 3, -1, 0),
    ELEMENT("binary_cross_entropy_backward", bce_slope, 0, 1, 3, -1, 4, -1, 0),
    ELEMENT("binary_cross_entropy_with_logits", bce_logits, -1, 0, 2, 3, 4, -1, 0),
    ELEMENT("soft_margin_loss", soft_margin, -1, 0, -1, -1, 2, -1, 0),
    ELEMENT("soft_margin_loss_backward", soft_margin_slope, 0, 1, -1, -1, 3, -1, 0),
    ELEMENT("kl_div", kl, -1, 0, -1, -1, 2, 3, 0),
    ROW("aten.cross_entropy_loss.default", cross_entropy),
    ROW("aot.cross_entropy_loss_backward", cross_entropy_backward),
    ROW("aot.cross_entropy_loss_backward.default", cross_entropy_backward),
    ROW("aten.nll_loss.default", nll_forward),
    ROW("aten.nll_loss_nd.default", nll_forward),
    ROW("aten.nll_loss2d.default", nll_forward),
    ROW("aten.nll_loss_forward.default", nll_forward),
    ROW("aten.nll_loss2d_forward.default", nll_forward),
    ROW("aten.nll_loss_backward.default", nll_backward),
    ROW("aten.nll_loss2d_backward.default", nll_backward),
    ROW("aten.multi_margin_loss.default", multi_margin),
    ROW("aten.multilabel_margin_loss_forward.default", multilabel_margin),
    ROW("aten.multilabel_margin_loss.default", multilabel_margin),
    ROW("aten.multilabel_margin_loss_backward.default", multilabel_margin_backward),
};
const rk_family_t rk_family_loss = RK_FAMILY(rows);
