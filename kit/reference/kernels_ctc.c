/* Connectionist temporal classification: Graves, Fernandez, Gomez, Schmidhuber 2006, sections 4.1 and 4.2, in
 * logarithms.
 *
 * The target l of length S is read with blanks around and between: l' of length 2 S + 1. alpha(t, s) is the log
 * probability of having read l'[0 .. s] after step t, beta(t, s) that of l'[s ..] from step t on, step t included in
 * both:
 *
 *     alpha(t, s) = y(t, l'[s]) + log(e^alpha(t-1, s) + e^alpha(t-1, s-1) + e^alpha(t-1, s-2))
 *
 * where the last term is there when l'[s] is no blank and not l'[s-2]. The loss is -log(e^alpha(T-1, 2S) + e^alpha(T-1,
 * 2S-1)). Its gradient for y(t, c), which takes y as the result of a log softmax like PyTorch does:
 *
 *     e^y(t, c) - e^(log sum over s with l'[s] = c of e^(alpha(t, s) + beta(t, s)) + loss - y(t, c)) */
#include "rk_core.h"

#include <math.h>

/* The arguments that both directions share. */
typedef struct ctc {
  rk_array_t y; /* [steps, batch, classes], or [steps, classes] */
  rk_array_t targets;
  const int64_t *steps_of, *length_of;           /* a sample's */
  int64_t steps, batch, classes, blank, longest; /* longest: of the targets */
  int64_t *start;                                /* of each sample's target among targets */
} ctc_t;

static aot_status_t lengths(rk_ctx_t *c, uint32_t arg, int64_t batch, const int64_t **out) {
  rk_array_t a;
  int64_t n;
  if (c->call->args[arg].kind == AOT_ARG_VALUE) {
    AOT_TRY(rk_need_i(c, arg, &a));
    *out = a.i;
    n = a.numel;
  } else {
    n = rk_list(c, arg, out);
  }
  RK_CHECK(c, n == batch, "argument %u has %lld lengths for %lld samples", arg, (long long)n, (long long)batch);
  return AOT_OK;
}

/* y is argument `first`, then targets and the two lists of lengths. */
static aot_status_t read_call(rk_ctx_t *c, uint32_t first, int64_t blank, ctc_t *k) {
  int64_t total = 0, n, s;
  AOT_TRY(rk_need_f(c, first, &k->y));
  AOT_TRY(rk_need_i(c, first + 1, &k->targets));
  RK_CHECK(c, k->y.rank == 2 || k->y.rank == 3, "log_probs of rank %d", k->y.rank);
  k->steps = k->y.sizes[0];
  k->batch = k->y.rank == 3 ? k->y.sizes[1] : 1;
  k->classes = k->y.sizes[k->y.rank - 1];
  k->blank = blank;
  k->longest = 0;
  RK_CHECK(c, blank >= 0 && blank < k->classes, "blank %lld of %lld classes", (long long)blank, (long long)k->classes);
  RK_CHECK(c, k->targets.rank != 2 || k->targets.sizes[0] >= k->batch, "targets of %lld samples for %lld",
           (long long)k->targets.sizes[0], (long long)k->batch);
  AOT_TRY(lengths(c, first + 2, k->batch, &k->steps_of));
  AOT_TRY(lengths(c, first + 3, k->batch, &k->length_of));
  RK_SCRATCH(c, k->batch, k->start);
  for (n = 0; n < k->batch; n++) {
    int64_t row = k->targets.rank == 2 ? k->targets.sizes[1] : k->targets.numel - total;
    RK_CHECK(c, k->steps_of[n] >= 0 && k->steps_of[n] <= k->steps, "sample %lld has %lld steps of %lld", (long long)n,
             (long long)k->steps_of[n], (long long)k->steps);
    RK_CHECK(c, k->length_of[n] >= 0 && k->length_of[n] <= row,
             "sample %lld has a target of length %lld, there are %lld", (long long)n, (long long)k->length_of[n],
             (long long)row);
    k->start[n] = k->targets.rank == 2 ? n * row : total;
    for (s = 0; s < k->length_of[n]; s++) {
      int64_t t = k->targets.i[k->start[n] + s];
      RK_CHECK(c, t >= 0 && t < k->classes, "target %lld of sample %lld is out of range for %lld classes", (long long)t,
               (long long)n, (long long)k->classes);
    }
    total += k->length_of[n];
    if (k->length_of[n] > k->longest) k->longest = k->length_of[n];
  }
  return AOT_OK;
}

static double log_sum(double a, double b) {
  double m = a > b ? a : b;
  if (m == -INFINITY) return m;
  return m + log(exp(a - m) + exp(b - m));
}

/* l'[s] of a sample: blanks at even places */
static int64_t symbol(const ctc_t *k, int64_t n, int64_t s) {
  return s % 2 ? k->targets.i[k->start[n] + s / 2] : k->blank;
}

static double y_at(const ctc_t *k, int64_t t, int64_t n, int64_t c) {
  return k->y.f[(t * k->batch + n) * k->classes + c];
}

/* May s be reached from s - 2 (forwards) or s + 2? The symbols must be two different letters. */
static int may_skip(const ctc_t *k, int64_t n, int64_t s, int64_t from) {
  return symbol(k, n, s) != k->blank && symbol(k, n, s) != symbol(k, n, from);
}

/* alpha of sample n into [steps, width]; -inf where nothing leads */
static void forwards(const ctc_t *k, int64_t n, int64_t width, double *alpha) {
  int64_t last = 2 * k->length_of[n], t, s;
  for (t = 0; t < k->steps * width; t++) alpha[t] = -INFINITY;
  if (k->steps_of[n] == 0) return;
  alpha[0] = y_at(k, 0, n, k->blank);
  if (last > 0) alpha[1] = y_at(k, 0, n, symbol(k, n, 1));
  for (t = 1; t < k->steps_of[n]; t++)
    for (s = 0; s <= last; s++) {
      const double *before = alpha + (t - 1) * width;
      double sum = before[s];
      if (s > 0) sum = log_sum(sum, before[s - 1]);
      if (s > 1 && may_skip(k, n, s, s - 2)) sum = log_sum(sum, before[s - 2]);
      alpha[t * width + s] = sum + y_at(k, t, n, symbol(k, n, s));
    }
}

static double loss_of(const ctc_t *k, int64_t n, int64_t width, const double *alpha) {
  int64_t last = 2 * k->length_of[n];
  const double *end = alpha + (k->steps_of[n] - 1) * width;
  if (k->steps_of[n] == 0) return last == 0 ? 0 : INFINITY;
  return -(last == 0 ? end[0] : log_sum(end[last], end[last - 1]));
}

/* _ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity) -> loss [batch], alpha [batch,
 * steps, width] */
static aot_status_t ctc_forward(rk_ctx_t *c) {
  ctc_t k;
  rk_array_t loss, alpha;
  int64_t sizes[3], n, width = 0;
  AOT_TRY(read_call(c, 0, rk_int(c, 4, 0), &k));
  width = rk_wants(c, 1) ? rk_result(c, 1)->sizes[rk_result(c, 1)->rank - 1] : 2 * k.longest + 1;
  RK_CHECK(c, width > 2 * k.longest, "log_alpha has %lld places for targets of length %lld", (long long)width,
           (long long)k.longest);
  sizes[0] = k.batch;
  sizes[1] = k.steps;
  sizes[2] = width;
  AOT_TRY(rk_new_f(c, k.y.rank == 3, sizes, &loss));
  AOT_TRY(rk_new_f(c, 3, sizes, &alpha));
  for (n = 0; n < k.batch; n++) {
    forwards(&k, n, width, alpha.f + n * k.steps * width);
    loss.f[n] = loss_of(&k, n, width, alpha.f + n * k.steps * width);
  }
  AOT_TRY(rk_put_f(c, 0, &loss));
  return rk_put_f(c, 1, &alpha);
}

/* The step before: beta(t, s) from beta(t + 1, ..) in `after` into `beta`, added by class into sum. */
static void backwards(const ctc_t *k, int64_t n, int64_t t, const double *alpha, const double *after, double *beta,
                      double *sum) {
  int64_t last = 2 * k->length_of[n], c, s;
  int end = t == k->steps_of[n] - 1;
  for (c = 0; c < k->classes; c++) sum[c] = -INFINITY;
  for (s = 0; s <= last; s++) {
    double b = end ? (s >= last - 1 ? 0 : -INFINITY) : after[s];
    if (!end && s < last) b = log_sum(b, after[s + 1]);
    if (!end && s + 2 <= last && may_skip(k, n, s, s + 2)) b = log_sum(b, after[s + 2]);
    c = symbol(k, n, s);
    beta[s] = b + y_at(k, t, n, c);
    sum[c] = log_sum(sum[c], alpha[s] + beta[s]);
  }
}

/* _ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, loss, alpha, blank, zero_infinity) */
static aot_status_t ctc_backward(rk_ctx_t *c) {
  ctc_t k;
  rk_array_t g, loss, alpha, out;
  double *beta[2], *sum;
  int64_t n, t, i, width;
  int zero_infinity = rk_bool(c, 8, 0);
  AOT_TRY(read_call(c, 1, rk_int(c, 7, 0), &k));
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 5, &loss));
  AOT_TRY(rk_need_f(c, 6, &alpha));
  RK_CHECK(c, g.numel == k.batch && loss.numel == k.batch, "gradients or losses do not fit %lld samples",
           (long long)k.batch);
  RK_CHECK(c,
           alpha.rank == 3 && alpha.sizes[0] == k.batch && alpha.sizes[1] == k.steps && alpha.sizes[2] > 2 * k.longest,
           "log_alpha does not fit the call");
  width = alpha.sizes[2];
  AOT_TRY(rk_new_f(c, k.y.rank, k.y.sizes, &out));
  RK_SCRATCH(c, width, beta[0]);
  RK_SCRATCH(c, width, beta[1]);
  RK_SCRATCH(c, k.classes, sum);
  for (n = 0; n < k.batch; n++) {
    if (zero_infinity && isinf(loss.f[n])) continue;
    for (t = k.steps_of[n] - 1; t >= 0; t--) {
      backwards(&k, n, t, alpha.f + (n * k.steps + t) * width, beta[(t + 1) % 2], beta[t % 2], sum);
      for (i = 0; i < k.classes; i++) {
        double y = y_at(&k, t, n, i);
        out.f[(t * k.batch + n) * k.classes + i] = g.f[n] * (exp(y) - exp(sum[i] + loss.f[n] - y));
      }
    }
  }
  return rk_put_f(c, 0, &out);
}

static const rk_kernel_t rows[] = {
    {.name = "aten._ctc_loss.default", .run = ctc_forward},
    {.name = "aten._ctc_loss.Tensor", .run = ctc_forward},
    {.name = "aten._ctc_loss_backward.default", .run = ctc_backward},
    {.name = "aten._ctc_loss_backward.Tensor", .run = ctc_backward},
};
const rk_family_t rk_family_ctc = RK_FAMILY(rows);
