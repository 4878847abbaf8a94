/* Activations and their derivatives, as far as they are more than a formula of scalar.def. Closed forms: operators.md
 * section 4 and PyTorch's Activation.cpp. Argument positions are the schemas': threshold_backward(grad, self,
 * threshold), elu(self, alpha, scale, input_scale), .. */
#include "rk_pointwise.h"
#include "scalar_functions.h"
#include <aot/inline.h>
#include <math.h>

/* clang-format off */
#define F(name, expression) static double name##_f(const double *x, const pw_par_t *p) { (void)p; return expression; }
/* clang-format on */
#define SQRT_HALF 0.70710678118654752440
#define SQRT_2_OVER_PI 0.79788456080286535588
#define INV_SQRT_2PI 0.39894228040143267794

/* clamp's order: with min above max the result is max */
static double hardtanh_f(const double *x, const pw_par_t *p) {
  double v = x[0] < x[1] ? x[1] : x[0];
  (void)p;
  return x[1] != x[1] || x[2] != x[2] ? NAN : v > x[2] ? x[2] : v;
}
static int64_t hardtanh_i(const int64_t *x, const pw_par_t *p) {
  int64_t v = x[0] < x[1] ? x[1] : x[0];
  (void)p;
  return v > x[2] ? x[2] : v;
}

static const char *const gelu_words[] = {"none", "tanh", NULL};
static double gelu_inner(double v) { return SQRT_2_OVER_PI * (v + 0.044715 * v * v * v); }
/* The kernel that PyTorch has for float32 and bfloat16 (oneDNN's) makes NaN of inf. */
static double gelu_f(const double *x, const pw_par_t *p) {
  if (p->mode == 2) return 0.5 * x[0] * (1 + tanh(gelu_inner(x[0])));
  if (x[0] == INFINITY && (p->dtype == AOT_F32 || p->dtype == AOT_BF16)) return NAN;
  return 0.5 * x[0] * erfc(-x[0] * SQRT_HALF);
}

static double gelu_backward_f(const double *x, const pw_par_t *p) {
  double v = x[1], t;
  if (p->mode != 2) return x[0] * (0.5 * erfc(-v * SQRT_HALF) + v * INV_SQRT_2PI * exp(-0.5 * v * v));
  t = tanh(gelu_inner(v));
  return x[0] * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * SQRT_2_OVER_PI * (1 + 3 * 0.044715 * v * v));
}
F(threshold_backward, x[1] <= x[2] ? 0 : x[0])
static int64_t threshold_backward_i(const int64_t *x, const pw_par_t *p) {
  (void)p;
  return x[1] <= x[2] ? 0 : x[0];
}
/* elu_backward(grad, alpha, scale, input_scale, is_result, self_or_result) */
static double elu_backward_f(const double *x, const pw_par_t *p) {
  double v = x[5];
  (void)p;
  if (!(v <= 0)) return x[0] * x[2]; /* nan too */
  return x[4] != 0 ? x[0] * x[3] * (v + x[1] * x[2]) : x[0] * x[3] * x[1] * x[2] * exp(v * x[3]);
}
/* logit_backward(grad, self, eps?) */
static double logit_backward_f(const double *x, const pw_par_t *p) {
  if (p->present & 4u && (x[1] < x[2] || x[1] > 1 - x[2])) return 0;
  if (!(p->present & 4u) && (x[1] < 0 || x[1] > 1)) return NAN;
  return x[0] / (fabs(x[1]) * (1 - x[1])); /* at -0 as at 0 */
}

/* log_sigmoid_forward(self) -> (output, buffer): the CPU's buffer holds exp(-|x|). */
static aot_status_t log_sigmoid_forward(rk_ctx_t *c) {
  rk_array_t x;
  AOT_TRY(rk_need_f(c, 0, &x));
  if (rk_wants(c, 1) && rk_numel(rk_result(c, 1)) == x.numel && rk_result(c, 1)->rank == x.rank) {
    rk_array_t buffer;
    AOT_TRY(rk_new_f(c, x.rank, x.sizes, &buffer));
    for (int64_t k = 0; k < x.numel; k++) buffer.f[k] = exp(-fabs(x.f[k]));
    AOT_TRY(rk_put_f(c, 1, &buffer));
  }
  for (int64_t k = 0; k < x.numel; k++) x.f[k] = fmin(x.f[k], 0) - log1p(exp(-fabs(x.f[k])));
  return rk_put_f(c, 0, &x);
}

/* glu(self, dim) = a * sigmoid(b) of the halves; glu_backward(grad, self, dim). */
static aot_status_t glu(rk_ctx_t *c) {
  rk_array_t x, y;
  int32_t dim;
  int64_t outer, size, inner;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_dim(c, rk_int(c, 1, -1), x.rank, &dim));
  rk_around(&x, dim, &outer, &size, &inner);
  RK_CHECK(c, x.rank && size % 2 == 0, "dimension %d of size %lld cannot be halved", dim, (long long)size);
  x.sizes[dim] = size / 2;
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &y));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < size / 2 * inner; k++)
      y.f[o * (size / 2) * inner + k] = x.f[o * size * inner + k] * sigmoid(x.f[(o * size + size / 2) * inner + k]);
  return rk_put_f(c, 0, &y);
}

static aot_status_t glu_backward(rk_ctx_t *c) {
  rk_array_t g, x, y;
  int32_t dim;
  int64_t outer, size, inner, half;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &x));
  AOT_TRY(rk_dim(c, rk_int(c, 2, -1), x.rank, &dim));
  rk_around(&x, dim, &outer, &size, &inner);
  half = size / 2 * inner;
  RK_CHECK(c, x.rank && size % 2 == 0 && g.numel * 2 == x.numel, "gradient and input do not fit");
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &y));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < half; k++) {
      double s = sigmoid(x.f[(2 * o + 1) * half + k]), up = g.f[o * half + k];
      y.f[2 * o * half + k] = up * s;
      y.f[(2 * o + 1) * half + k] = up * x.f[2 * o * half + k] * s * (1 - s);
    }
  return rk_put_f(c, 0, &y);
}

/* prelu(self, weight): one weight, or one a channel */
static aot_status_t prelu_channels(rk_ctx_t *c) {
  rk_array_t x, w;
  int64_t channels, space = 1;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_need_f(c, 1, &w));
  channels = x.rank >= 2 ? x.sizes[1] : 1;
  for (int32_t d = 2; d < x.rank; d++) space *= x.sizes[d];
  RK_CHECK(c, w.numel == 1 || w.numel == channels, "%lld weights for %lld channels", (long long)w.numel,
           (long long)channels);
  for (int64_t k = 0; k < x.numel; k++)
    if (!(x.f[k] > 0)) x.f[k] *= w.f[w.numel == 1 ? 0 : k / space % channels];
  return rk_put_f(c, 0, &x);
}

/* _prelu_kernel_backward(grad, self, weight) -> (grad self, grad weight before summing) */
static aot_status_t prelu_backward(rk_ctx_t *c) {
  rk_array_t g, x, w;
  const rk_tensor_t *wt;
  rk_iter_t it;
  int64_t n = 0;
  AOT_TRY(rk_need_f(c, 0, &g));
  AOT_TRY(rk_need_f(c, 1, &x));
  AOT_TRY(rk_need_tensor(c, 2, &wt));
  RK_CHECK(c, rk_same_sizes(&g, &x), "gradient and input differ in shape");
  AOT_TRY(rk_new_f(c, x.rank, x.sizes, &w));
  rk_iter_init(&it, x.rank, x.sizes);
  RK_CHECK(c, rk_iter_add(&it, wt), "weight does not broadcast to the input");
  for (; it.more; rk_iter_next(&it), n += it.run) rk_load_run_f(wt, it.at[0], it.step[0], it.run, w.f + n);
  for (int64_t k = 0; k < x.numel; k++) {
    double up = g.f[k];
    g.f[k] = x.f[k] > 0 ? up : up * w.f[k];
    w.f[k] = x.f[k] > 0 ? 0 : up * x.f[k];
  }
  AOT_TRY(rk_put_f(c, 0, &g));
  return rk_put_f(c, 1, &w);
}

#define ACT(name) PW(#name ".default", PW_RESULT, name##_f, NULL)
static const rk_kernel_t rows[] = {
    PW("hardtanh.default", PW_RESULT, hardtanh_f, hardtanh_i),
    PW_WORDS("gelu.default", PW_RESULT, gelu_f, NULL, gelu_words),
    PW_WORDS("gelu_backward.default", PW_RESULT, gelu_backward_f, NULL, gelu_words),
    PW("threshold_backward.default", PW_RESULT, threshold_backward_f, threshold_backward_i),
    ACT(elu_backward),
    ACT(logit_backward),
    {"aten.log_sigmoid_forward.default", log_sigmoid_forward, NULL, NULL, 0},
    {"aten.glu.default", glu, NULL, NULL, 0},
    {"aten.glu_backward.default", glu_backward, NULL, NULL, 0},
    {"aten.prelu.default", prelu_channels, NULL, NULL, 0},
    {"aten._prelu_kernel_backward.default", prelu_backward, NULL, NULL, 0},
};
const rk_family_t rk_family_activation = RK_FAMILY(rows);
