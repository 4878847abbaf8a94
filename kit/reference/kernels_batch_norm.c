/* Batch norm in all its forms, and its derivatives.
 *
 * Per channel (dimension 1). Training: mean and biased variance over the other dimensions, running statistics updated
 * with the unbiased variance, r = (1 - momentum) * r + momentum * new. Evaluation: the running statistics. Backward in
 * training (operators.md): gx = w * invstd * (g - mean(g) - xh * mean(g * xh)); in evaluation gx = g * w * invstd.
 * Forms that update running statistics in place are functional by the time a backend sees them: the updated ones are
 * results 3 and 4 of _native_batch_norm_legit_functional. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>

typedef struct batch {
  rk_array_t x, w, b, running_mean, running_var;
  int64_t channels, space, count; /* count: elements of a channel */
  double *mean, *invstd, *var;
} batch_t;

static aot_status_t channel_array(rk_ctx_t *c, uint32_t arg, int64_t channels, rk_array_t *out) {
  AOT_TRY(rk_get_f(c, arg, out));
  RK_CHECK(c, !out->f || out->numel == channels, "argument %u has %lld elements for %lld channels", arg,
           (long long)out->numel, (long long)channels);
  return AOT_OK;
}

static aot_status_t read_input(rk_ctx_t *c, uint32_t arg, batch_t *b) {
  AOT_TRY(rk_need_f(c, arg, &b->x));
  RK_CHECK(c, b->x.rank >= 2, "rank %d is less than 2", b->x.rank);
  b->channels = b->x.sizes[1];
  b->space = 1;
  for (int32_t d = 2; d < b->x.rank; d++) b->space *= b->x.sizes[d];
  b->count = b->x.sizes[0] * b->space;
  RK_SCRATCH(c, b->channels, b->mean);
  RK_SCRATCH(c, b->channels, b->invstd);
  RK_SCRATCH(c, b->channels, b->var);
  return AOT_OK;
}

static int64_t channel_of(const batch_t *b, int64_t e) { return e / b->space % b->channels; }

static void batch_statistics(batch_t *b, double eps) {
  double n = (double)b->count;
  for (int64_t e = 0; e < b->x.numel; e++) b->mean[channel_of(b, e)] += b->x.f[e];
  for (int64_t k = 0; k < b->channels; k++) b->mean[k] /= n;
  for (int64_t e = 0; e < b->x.numel; e++) {
    int64_t k = channel_of(b, e);
    b->var[k] += (b->x.f[e] - b->mean[k]) * (b->x.f[e] - b->mean[k]);
  }
  for (int64_t k = 0; k < b->channels; k++) b->invstd[k] = 1 / sqrt(b->var[k] / n + eps);
}

static aot_status_t running_statistics(rk_ctx_t *c, batch_t *b, double eps) {
  RK_CHECK(c, b->running_mean.f && b->running_var.f, "evaluation needs running statistics");
  for (int64_t k = 0; k < b->channels; k++) {
    b->mean[k] = b->running_mean.f[k];
    b->invstd[k] = 1 / sqrt(b->running_var.f[k] + eps);
  }
  return AOT_OK;
}

static aot_status_t put_channels(rk_ctx_t *c, uint32_t result, double *v, int64_t n) {
  rk_array_t a = {0};
  a.rank = 1;
  a.sizes[0] = a.numel = n;
  a.f = v;
  return rk_put_f(c, result, &a);
}

static aot_status_t put_normalised(rk_ctx_t *c, const batch_t *b) {
  rk_array_t y;
  AOT_TRY(rk_new_f(c, b->x.rank, b->x.sizes, &y));
  for (int64_t e = 0; e < y.numel; e++) {
    int64_t k = channel_of(b, e);
    y.f[e] = (b->x.f[e] - b->mean[k]) * b->invstd[k] * (b->w.f ? b->w.f[k] : 1) + (b->b.f ? b->b.f[k] : 0);
  }
  return rk_put_f(c, 0, &y);
}

/* Results 1 and 2; the CPU kernel gives empty ones in evaluation, which is what the declared result then says. */
static aot_status_t put_saved(rk_ctx_t *c, const batch_t *b) {
  for (uint32_t r = 1; r <= 2; r++) {
    if (!rk_wants(c, r) || rk_numel(rk_result(c, r)) == 0) continue;
    AOT_TRY(put_channels(c, r, r == 1 ? b->mean : b->invstd, b->channels));
  }
  return AOT_OK;
}

static aot_status_t put_running(rk_ctx_t *c, const batch_t *b, double momentum, int training) {
  double *mean, *var;
  if (!rk_wants(c, 3) && !rk_wants(c, 4)) return AOT_OK;
  RK_CHECK(c, b->running_mean.f && b->running_var.f, "there are no running statistics to update");
  RK_SCRATCH(c, b->channels, mean);
  RK_SCRATCH(c, b->channels, var);
  for (int64_t k = 0; k < b->channels; k++) {
    double m = training && b->count > 0 ? momentum : 0; /* a batch of nothing changes nothing */
    double unbiased = training ? b->var[k] / (double)(b->count - 1) : 0;
    mean[k] = m == 0 ? b->running_mean.f[k] : (1 - m) * b->running_mean.f[k] + m * b->mean[k];
    var[k] = m == 0 ? b->running_var.f[k] : (1 - m) * b->running_var.f[k] + m * unbiased;
  }
  AOT_TRY(put_channels(c, 3, mean, b->channels));
  return put_channels(c, 4, var, b->channels);
}

/* input, weight, bias, [running_mean, running_var], [training], momentum, eps */
static aot_status_t batch_norm(rk_ctx_t *c, int has_running, int training_arg, uint32_t momentum_arg) {
  batch_t b = {0};
  int training = training_arg >= 0 && rk_bool(c, (uint32_t)training_arg, 0);
  double momentum = rk_float(c, momentum_arg, 0.1), eps = rk_float(c, momentum_arg + 1, 1e-5);
  AOT_TRY(read_input(c, 0, &b));
  AOT_TRY(channel_array(c, 1, b.channels, &b.w));
  AOT_TRY(channel_array(c, 2, b.channels, &b.b));
  if (has_running) {
    AOT_TRY(channel_array(c, 3, b.channels, &b.running_mean));
    AOT_TRY(channel_array(c, 4, b.channels, &b.running_var));
  }
  if (training || !has_running) batch_statistics(&b, eps);
  else AOT_TRY(running_statistics(c, &b, eps));
  AOT_TRY(put_saved(c, &b));
  AOT_TRY(put_running(c, &b, momentum, training));
  return put_normalised(c, &b);
}
static aot_status_t with_running(rk_ctx_t *c) { return batch_norm(c, 1, 5, 6); }
static aot_status_t no_stats(rk_ctx_t *c) { return batch_norm(c, 0, 3, 4); }
static aot_status_t no_training(rk_ctx_t *c) { return batch_norm(c, 1, -1, 5); }

static aot_status_t backward(rk_ctx_t *c, batch_t *b, const rk_array_t *g, int training) {
  rk_array_t gx;
  double *sum, *dot, n = (double)b->count;
  RK_CHECK(c, rk_same_sizes(g, &b->x), "gradient and input differ in shape");
  AOT_TRY(rk_new_f(c, g->rank, g->sizes, &gx));
  RK_SCRATCH(c, b->channels, sum);
  RK_SCRATCH(c, b->channels, dot);
  for (int64_t e = 0; e < g->numel; e++) {
    int64_t k = channel_of(b, e);
    sum[k] += g->f[e];
    dot[k] += g->f[e] * (b->x.f[e] - b->mean[k]) * b->invstd[k];
  }
  for (int64_t e = 0; e < g->numel; e++) {
    int64_t k = channel_of(b, e);
    double xh = (b->x.f[e] - b->mean[k]) * b->invstd[k], v = g->f[e];
    if (training) v -= sum[k] / n + xh * dot[k] / n;
    gx.f[e] = v * b->invstd[k] * (b->w.f ? b->w.f[k] : 1);
  }
  AOT_TRY(rk_put_f(c, 0, &gx));
  AOT_TRY(put_channels(c, 1, dot, b->channels));
  return put_channels(c, 2, sum, b->channels);
}

static aot_status_t take_saved(rk_ctx_t *c, batch_t *b, uint32_t mean_arg, uint32_t invstd_arg) {
  rk_array_t mean, invstd;
  AOT_TRY(channel_array(c, mean_arg, b->channels, &mean));
  AOT_TRY(channel_array(c, invstd_arg, b->channels, &invstd));
  RK_CHECK(c, mean.f && invstd.f, "the saved statistics are absent");
  b->mean = mean.f;
  b->invstd = invstd.f;
  return AOT_OK;
}

/* native_batch_norm_backward(grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps,
 * mask) */
static aot_status_t native_batch_norm_backward(rk_ctx_t *c) {
  batch_t b = {0};
  rk_array_t g;
  int training = rk_bool(c, 7, 0);
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_input(c, 1, &b));
  AOT_TRY(channel_array(c, 2, b.channels, &b.w));
  if (training) AOT_TRY(take_saved(c, &b, 5, 6));
  else {
    AOT_TRY(channel_array(c, 3, b.channels, &b.running_mean));
    AOT_TRY(channel_array(c, 4, b.channels, &b.running_var));
    AOT_TRY(running_statistics(c, &b, rk_float(c, 8, 1e-5)));
  }
  return backward(c, &b, &g, training);
}

/* aot.batch_norm_backward(grad, input, weight, save_mean, save_invstd, training, running_mean, running_var, eps) */
static aot_status_t fused_backward(rk_ctx_t *c) {
  batch_t b = {0};
  rk_array_t g;
  int training = rk_bool(c, 5, 0);
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(read_input(c, 1, &b));
  AOT_TRY(channel_array(c, 2, b.channels, &b.w));
  if (training) AOT_TRY(take_saved(c, &b, 3, 4));
  else {
    AOT_TRY(channel_array(c, 6, b.channels, &b.running_mean));
    AOT_TRY(channel_array(c, 7, b.channels, &b.running_var));
    AOT_TRY(running_statistics(c, &b, rk_float(c, 8, 1e-5)));
  }
  return backward(c, &b, &g, training);
}

#define ROW(name, fn)                                                                                                  \
  { name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("aten.batch_norm.default", with_running),
    ROW("aten.native_batch_norm.default", with_running),
    ROW("aten._native_batch_norm_legit.default", with_running),
    ROW("aten._native_batch_norm_legit.no_stats", no_stats),
    ROW("aten._native_batch_norm_legit_functional.default", with_running),
    ROW("aten._native_batch_norm_legit_no_training.default", no_training),
    ROW("aten.native_batch_norm_backward.default", native_batch_norm_backward),
    ROW("aot.batch_norm_backward", fused_backward),
    ROW("aot.batch_norm_backward.default", fused_backward),
};
const rk_family_t rk_family_batch_norm = RK_FAMILY(rows);
