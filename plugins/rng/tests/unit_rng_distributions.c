/* Every operator that draws, through functionalize, rng and a backend: is what comes out a sample of its distribution?
 * Two steps a program (more for permutations), which must not resemble each other; backend-ref and backend-cpu have to
 * draw the same. The checks and their bound: kit/random/random_checks.h. */
#include "kit/random/random_checks.h"

#include <aot/inline.h>
#include <include/aothost.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 40000, STEPS = 2, MAX_STEPS = 4800 };

/* How far off, in deviations; the worst of what is checked. x: all numbers of all steps. */
typedef double check_fn(double *x, uint64_t n, const double *p);
typedef struct program {
  const char *name, *body; /* gives %y */
  check_fn *check;
  double p[4];
  uint32_t steps; /* 0: STEPS */
} program_t;

/* ---- checks ---- */

static double worse(double a, double b) { return a != a || fabs(a) > fabs(b) ? a : b; }

static double is_uniform(double *x, uint64_t n, const double *p) {
  for (uint64_t k = 0; k < n; k++)
    if (!(x[k] >= p[0] && x[k] < p[1])) return INFINITY;
  double z = rc_mean_and_variance(x, n, (p[0] + p[1]) / 2, (p[1] - p[0]) * (p[1] - p[0]) / 12, 1.8);
  return worse(z, rc_kolmogorov_smirnov(x, n, rc_uniform_cdf, p));
}

static double is_normal(double *x, uint64_t n, const double *p) {
  double z = rc_mean_and_variance(x, n, p[0], p[1] * p[1], 3);
  return worse(z, rc_kolmogorov_smirnov(x, n, rc_normal_cdf, p));
}

/* Narrow dtypes: the mean and the variance alone. */
static double has_moments(double *x, uint64_t n, const double *p) {
  return rc_mean_and_variance(x, n, p[0], p[1], p[2]);
}

static double is_log_normal(double *x, uint64_t n, const double *p) {
  return rc_kolmogorov_smirnov(x, n, rc_log_normal_cdf, p);
}
static double is_exponential(double *x, uint64_t n, const double *p) {
  return rc_kolmogorov_smirnov(x, n, rc_exponential_cdf, p);
}
static double is_gamma(double *x, uint64_t n, const double *p) { return rc_kolmogorov_smirnov(x, n, rc_gamma_cdf, p); }

static double is_cauchy(double *x, uint64_t n, const double *p) {
  uint64_t below = 0, within = 0; /* half of the numbers are within sigma of the median */
  for (uint64_t k = 0; k < n; k++) {
    below += x[k] < p[0];
    within += fabs(x[k] - p[0]) < p[1];
  }
  double z = worse(rc_rate(below, n, 0.5), rc_rate(within, n, 0.5));
  return worse(z, rc_kolmogorov_smirnov(x, n, rc_cauchy_cdf, p));
}

static double is_geometric(double *x, uint64_t n, const double *p) {
  return rc_masses(x, n, rc_geometric_mass, p, 1, 100);
}
static double is_poisson(double *x, uint64_t n, const double *p) { return rc_masses(x, n, rc_poisson_mass, p, 0, 100); }
static double is_binomial(double *x, uint64_t n, const double *p) {
  return rc_masses(x, n, rc_binomial_mass, p, 0, 100);
}

static double equal_mass(double k, const double *p) { return k < p[1] ? 1 / (p[1] - p[0]) : 0; }
static double is_range(double *x, uint64_t n, const double *p) {
  return rc_masses(x, n, equal_mass, p, p[0], (uint32_t)(p[1] - p[0]));
}

/* p[0]: the chance of the value p[1]; everything else is p[2]. */
static double is_either(double *x, uint64_t n, const double *p) {
  uint64_t first = 0;
  for (uint64_t k = 0; k < n; k++) {
    int is_first = fabs(x[k] - p[1]) < 1e-6 * (1 + fabs(p[1]));
    if (!is_first && fabs(x[k] - p[2]) > 1e-6 * (1 + fabs(p[2]))) return INFINITY;
    first += (uint64_t)is_first;
  }
  return worse(rc_rate(first, n, p[0]), rc_correlation(x, x + 1, n - 1));
}

/* Channels of p[3] elements, each all of one value; then as is_either. */
static double is_either_by_channel(double *x, uint64_t n, const double *p) {
  uint64_t size = (uint64_t)p[3];
  for (uint64_t k = 0; k < n; k++)
    if (x[k] != x[k / size * size]) return INFINITY;
  for (uint64_t k = 0; k < n / size; k++) x[k] = x[k * size];
  return is_either(x, n / size, p);
}

/* Indices with weights 1, 2, 3, 4. */
static double weight_mass(double k, const double *p) { return k < 4 ? (k + 1) / 10 + 0 * p[0] : 0; }
static double is_weighted(double *x, uint64_t n, const double *p) {
  return worse(rc_masses(x, n, weight_mass, p, 0, 4), rc_correlation(x, x + 1, n - 1));
}

/* Pairs drawn without replacement: P(i, j) = w(i) w(j) / (1 - w(i)). */
static double is_weighted_pairs(double *x, uint64_t n, const double *p) {
  double counts[16] = {0}, expected[16];
  (void)p;
  for (uint64_t k = 0; k < n; k += 2) {
    if (!(x[k] >= 0 && x[k] < 4 && x[k + 1] >= 0 && x[k + 1] < 4) || x[k] == x[k + 1]) return INFINITY;
    counts[(int)x[k] * 4 + (int)x[k + 1]]++;
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      expected[4 * i + j] = i == j ? 0 : (double)n / 2 * ((i + 1) / 10.0) * ((j + 1) / 10.0) / (1 - (i + 1) / 10.0);
  return rc_chi_square(counts, expected, 16);
}

/* All 24 orders of 4 are as frequent. */
static double is_permutation(double *x, uint64_t n, const double *p) {
  double counts[256] = {0}, used[24], expected[24];
  uint32_t n_used = 0;
  (void)p;
  for (uint64_t k = 0; k < n; k += 4) {
    unsigned seen = 0, code = 0;
    for (int i = 0; i < 4; i++) {
      seen |= 1u << (unsigned)x[k + (uint64_t)i];
      code = code * 4 + (unsigned)x[k + (uint64_t)i];
    }
    if (seen != 15) return INFINITY;
    counts[code]++;
  }
  for (uint32_t c = 0; c < 256; c++)
    if (counts[c] > 0) {
      used[n_used] = counts[c];
      expected[n_used++] = (double)n / 4 / 24;
    }
  return n_used == 24 ? rc_chi_square(used, expected, 24) : INFINITY;
}

/* A permutation of n / STEPS numbers a step, in no order. */
static double is_shuffled(double *x, uint64_t n, const double *p) {
  uint64_t half = n / STEPS;
  char *seen = calloc(half, 1);
  (void)p;
  for (uint64_t k = 0; k < half && seen; k++) {
    if (!(x[k] >= 0 && x[k] < (double)half) || seen[(uint64_t)x[k]]) return INFINITY;
    seen[(uint64_t)x[k]] = 1;
  }
  free(seen);
  return worse(rc_correlation(x, x + 1, half - 1), rc_correlation(x, x + half, half));
}

/* Rows of three that add up to 1; the first with a beta distribution: mean a / s, variance a (s - a) / (s^2 (s +
 * 1)). */
static double is_dirichlet(double *x, uint64_t n, const double *p) {
  double a = p[0], s = p[0] + p[1] + p[2];
  for (uint64_t k = 0; k < n; k += 3)
    if (fabs(x[k] + x[k + 1] + x[k + 2] - 1) > 1e-5) return INFINITY;
  for (uint64_t k = 0; k < n / 3; k++) x[k] = x[3 * k];
  double kurtosis =
      3 + 6 * ((s - 2 * a) * (s - 2 * a) * (s + 1) - a * (s - a) * (s + 2)) / (a * (s - a) * (s + 2) * (s + 3));
  return rc_mean_and_variance(x, n / 3, a / s, a * (s - a) / (s * s * (s + 1)), kurtosis);
}

/* ---- programs ---- */

#define FULL(value) "%x = aten.full.default [200, 200], " value "\n"
#define FULL_AS(value, dtype) "%x = aten.full.default [200, 200], " value ", dtype=" dtype "\n"
#define WEIGHTS "%w = aten.arange.start 1.0, 5.0\n"

/* clang-format off */
static const program_t programs[] = {
    {"rand", "%y = aten.rand.default [200, 200]\n", is_uniform, {0, 1}, 0},
    {"rand f64", "%y = aten.rand.default [200, 200], dtype=f64\n", is_uniform, {0, 1}, 0},
    {"rand bf16", "%y = aten.rand.default [200, 200], dtype=bf16\n", has_moments, {255.0 / 512, (1 - 0x1p-16) / 12,
        1.8}, 0},
    {"rand.generator", "%y = aten.rand.generator [200, 200], generator=none\n", is_uniform, {0, 1}, 0},
    {"rand_like", FULL("0.0") "%y = aten.rand_like.default %x\n", is_uniform, {0, 1}, 0},
    {"rand_like, transposed", FULL("0.0") "%t = aten.t.default %x\n%y = aten.rand_like.default %t\n", is_uniform, {0,
        1}, 0},
    {"uniform", FULL("0.0") "%y = aten.uniform.default %x, -2.0, 3.0\n", is_uniform, {-2, 3}, 0},
    {"uniform_", FULL("0.0") "%y = aten.uniform_.default %x, -2.0, 3.0\n", is_uniform, {-2, 3}, 0},
    {"randn", "%y = aten.randn.default [200, 200]\n", is_normal, {0, 1}, 0},
    {"randn f64", "%y = aten.randn.default [200, 200], dtype=f64\n", is_normal, {0, 1}, 0},
    {"randn f16", "%y = aten.randn.default [200, 200], dtype=f16\n", has_moments, {0, 1, 3}, 0},
    {"randn_like", FULL("0.0") "%y = aten.randn_like.default %x\n", is_normal, {0, 1}, 0},
    {"normal.float_float", "%y = aten.normal.float_float 1.0, 2.0, [200, 200]\n", is_normal, {1, 2}, 0},
    {"normal.Tensor_float", FULL("-3.0") "%y = aten.normal.Tensor_float %x, 2.0\n", is_normal, {-3, 2}, 0},
    {"normal.float_Tensor", FULL("0.5") "%y = aten.normal.float_Tensor 4.0, %x\n", is_normal, {4, 0.5}, 0},
    {"normal.Tensor_Tensor, broadcast",
     FULL("0.5") "%m = aten.full.default [200, 1], 7.0\n%y = aten.normal.Tensor_Tensor %m, %x\n", is_normal, {7, 0.5},
     0},
    {"normal_", FULL("0.0") "%y = aten.normal_.default %x, 1.0, 3.0\n", is_normal, {1, 3}, 0},
    {"log_normal", FULL("0.0") "%y = aten.log_normal.default %x, 0.5, 0.3\n", is_log_normal, {0.5, 0.3}, 0},
    {"log_normal_", FULL("0.0") "%y = aten.log_normal_.default %x\n", is_log_normal, {1, 2}, 0},
    {"exponential", FULL("0.0") "%y = aten.exponential.default %x, 2.5\n", is_exponential, {2.5}, 0},
    {"exponential_ f64", FULL_AS("0.0", "f64") "%y = aten.exponential_.default %x\n", is_exponential, {1}, 0},
    {"cauchy", FULL("0.0") "%y = aten.cauchy.default %x, 1.0, 2.0\n", is_cauchy, {1, 2}, 0},
    {"cauchy_", FULL("0.0") "%y = aten.cauchy_.default %x\n", is_cauchy, {0, 1}, 0},
    {"geometric", FULL("0.0") "%y = aten.geometric.default %x, 0.3\n", is_geometric, {0.3}, 0},
    {"geometric_ i64", FULL_AS("0", "i64") "%y = aten.geometric_.default %x, 0.8\n", is_geometric, {0.8}, 0},
    {"bernoulli of chances", FULL("0.3") "%y = aten.bernoulli.default %x\n", is_either, {0.3, 1, 0}, 0},
    {"bernoulli.p", FULL("0.0") "%y = aten.bernoulli.p %x, 0.7\n", is_either, {0.7, 1, 0}, 0},
    {"bernoulli.Tensor",
     FULL_AS("0", "i64") "%p = aten.full.default [200, 200], 0.2\n%y = aten.bernoulli.Tensor %x, %p\n", is_either,
     {0.2, 1, 0}, 0},
    {"bernoulli_.float", FULL("0.0") "%y = aten.bernoulli_.float %x\n", is_either, {0.5, 1, 0}, 0},
    {"bernoulli_.Tensor",
     FULL("0.0") "%p = aten.full.default [200, 200], 0.9, dtype=f64\n%y = aten.bernoulli_.Tensor %x, %p\n", is_either,
     {0.9, 1, 0}, 0},
    {"randint", "%y = aten.randint.default 10, [200, 200]\n", is_range, {0, 10}, 0},
    {"randint.low", "%y = aten.randint.low -3, 4, [200, 200], dtype=i32\n", is_range, {-3, 4}, 0},
    {"randint_like", FULL("0.0") "%y = aten.randint_like.default %x, 6\n", is_range, {0, 6}, 0},
    {"randint_like.low_dtype", FULL("0.0") "%y = aten.randint_like.low_dtype %x, -2, 2, dtype=i64\n", is_range, {-2,
        2}, 0},
    {"random.from", FULL_AS("0", "i64") "%y = aten.random.from %x, 5, 12\n", is_range, {5, 12}, 0},
    {"random_.to", FULL("0.0") "%y = aten.random_.to %x, 9\n", is_range, {0, 9}, 0},
    {"random_ i64", FULL_AS("0", "i64") "%y = aten.random_.default %x\n", is_uniform, {0, 0x1p63}, 0},
    {"random_ bool", FULL_AS("false", "bool") "%y = aten.random_.default %x\n", is_either, {0.5, 1, 0}, 0},
    {"poisson", FULL("3.0") "%y = aten.poisson.default %x\n", is_poisson, {3}, 0},
    {"poisson, large", FULL("30.0") "%y = aten.poisson.default %x\n", is_poisson, {30}, 0},
    {"binomial", FULL("20.0") "%p = aten.full.default [200, 200], 0.3\n%y = aten.binomial.default %x, %p\n",
     is_binomial, {20, 0.3}, 0},
    {"_standard_gamma", FULL("2.5") "%y = aten._standard_gamma.default %x\n", is_gamma, {2.5}, 0},
    {"_sample_dirichlet",
     "%w = aten.arange.start 1.0, 4.0\n%x = aten.expand.default %w, [20000, 3]\n%y = aten._sample_dirichlet.default %x\n", is_dirichlet,
     {1, 2, 3}, 0},
    {"dropout", FULL("2.0") "%y = aten.dropout.default %x, 0.1, true\n", is_either, {0.1, 0, 2 / 0.9}, 0},
    {"dropout_", FULL("2.0") "%y = aten.dropout_.default %x, 0.6, true\n", is_either, {0.6, 0, 5}, 0},
    {"native_dropout", FULL("2.0") "%y, %m = aten.native_dropout.default %x, 0.25, true\n", is_either, {0.25, 0,
        2 / 0.75}, 0},
    {"native_dropout's mask", FULL("2.0") "%z, %y = aten.native_dropout.default %x, 0.25, true\n", is_either, {0.75, 1,
        0}, 0},
    {"_fused_dropout", FULL("2.0") "%y, %m = aten._fused_dropout.default %x, 0.8\n", is_either, {0.2, 0, 2.5}, 0},
    {"feature_dropout", "%x = aten.full.default [40, 100, 10], 1.0\n%y = aten.feature_dropout.default %x, 0.3, true\n",
     is_either_by_channel, {0.3, 0, 1 / 0.7, 10}, 0},
    {"alpha_dropout", "%x = aten.randn.default [200, 200]\n%y = aten.alpha_dropout.default %x, 0.2, true\n",
     has_moments, {0, 1, 2.26}, 0},
    {"feature_alpha_dropout of zeros: what falls away, and what stays",
     "%x = aten.full.default [40, 100, 10], 0.0\n%y = aten.feature_alpha_dropout.default %x, 0.3, true\n",
     is_either_by_channel,
     {0.3, -1.05954816, 0.45409207, 10}, 0},
    {"rrelu below zero", FULL("-1.0") "%z = aten.rrelu.default %x, 0.1, 0.4, true\n%y = aten.neg.default %z\n",
     is_uniform, {0.1, 0.4}, 0},
    {"rrelu above zero", FULL("3.0") "%u = aten.rand.default [200, 200]\n%z = aten.rrelu.default %x, 0.1, 0.4, true\n"
     "%d = aten.sub.Tensor %z, %x\n%y = aten.add.Tensor %u, %d\n", is_uniform, {0, 1}, 0},
    {"the slopes of rrelu_with_noise",
     FULL("-1.0") "%n = aten.full.default [200, 200], 0.0\n%z = aten.rrelu_with_noise.default %x, %n, 0.1, 0.4, true\n"
     "%y = aten.clone.default %n\n", is_uniform, {0.1, 0.4}, 0},
    {"randperm of 4", "%y = aten.randperm.default 4\n", is_permutation, {0}, MAX_STEPS},
    {"randperm of many", "%y = aten.randperm.default 20000\n", is_shuffled, {0}, 0},
    {"multinomial with replacement", WEIGHTS "%y = aten.multinomial.default %w, 40000, true\n", is_weighted, {0}, 0},
    {"multinomial of rows", WEIGHTS "%r = aten.expand.default %w, [20000, 4]\n%y = aten.multinomial.default %r, 1\n",
     is_weighted, {0}, 0},
    {"multinomial without replacement", WEIGHTS "%r = aten.expand.default %w, [20000, 4]\n%y = aten.multinomial.default %r, 2\n",
     is_weighted_pairs, {0}, 0},
    /* equal scores over 8 keys, the values a diagonal: the result is the masked and scaled probability of each key */
    {"attention with dropout",
     "%q = aten.full.default [25, 8, 25, 8], 0.0\n%e = aten.eye.default 8\n%v = aten.expand.default %e, [25, 8, 8, 8]\n"
     "%k = aten.clone.default %v\n%y = aten.scaled_dot_product_attention.default %q, %k, %v, none, 0.2\n", is_either,
     {0.2, 0, 0.125 / 0.8}, 0},
    /* the first layer gives eight ones, each stored with 3/4 and scaled by 4/3; the second adds up 3/4 of them */
    {"dropout between the layers of a recurrent network",
     "%x = aten.full.default [1, 20000, 1], 1.0\n%h = aten.full.default [2, 20000, 8], 0.0\n%w = aten.full.default [8, 1], 1.0\n"
     "%u = aten.full.default [8, 8], 0.0\n%v = aten.full.default [8, 8], 0.75\n"
     "%z, %s = aten.rnn_relu.input %x, %h, [%w, %u, %v, %u], false, 2, 0.25, true, false, false\n%y = aten.select.int %z, 2, 3\n",
     is_binomial, {8, 0.75}, 0},
};
/* clang-format on */

/* ---- running ---- */

static aothost_t *open_program(const program_t *p, const char *backend) {
  char folder[] = "/tmp/unit-distributions-XXXXXX", pipeline[64], model[64];
  const aothost_config_t config = {.struct_size = sizeof config};
  aothost_t *h = NULL;
  assert_non_null(mkdtemp(folder));
  snprintf(pipeline, sizeof pipeline, "%s/p.yaml", folder);
  snprintf(model, sizeof model, "%s/m.ir", folder);
  FILE *f = fopen(model, "w");
  assert_non_null(f);
  fprintf(f, "aot 1\nproperties imported\n\ngraph @f forward {\n%sout user_output 0 = %%y\n}\n", p->body);
  fclose(f);
  f = fopen(pipeline, "w");
  assert_non_null(f);
  fprintf(f, "aot: 1\nmodel: {path: m.ir}\nstages:\n  - use: functionalize\n  - use: rng\n  - {use: %s}\n", backend);
  fclose(f);
  if (aothost_open(pipeline, &config, &h) != AOT_OK || aothost_compile(h, AOTHOST_NO_CACHE) != AOT_OK)
    fail_msg("%s, %s: %s", p->name, backend, aothost_messages(h));
  unlink(pipeline);
  unlink(model);
  rmdir(folder);
  return h;
}

static double element(const aot_tensor_t *t, int64_t i) {
  int64_t at = t->offset;
  uint16_t half;
  for (int32_t d = t->rank - 1; d >= 0; i /= t->sizes[d], d--) at += i % t->sizes[d] * t->strides[d];
  switch (t->dtype) {
    case AOT_F32: return (double)((const float *)t->data)[at];
    case AOT_F64: return ((const double *)t->data)[at];
    case AOT_I64: return (double)((const int64_t *)t->data)[at];
    case AOT_I32: return (double)((const int32_t *)t->data)[at];
    case AOT_F16:
      half = ((const uint16_t *)t->data)[at];
      return (half & 0x8000 ? -1 : 1) *
             ldexp((half & 1023) + (half & 0x7C00 ? 1024 : 0), (half & 0x7C00 ? (half >> 10 & 31) : 1) - 25);
    case AOT_BF16: {
      uint32_t bits = (uint32_t)((const uint16_t *)t->data)[at] << 16;
      float f;
      memcpy(&f, &bits, sizeof f);
      return (double)f;
    }
    default: return (double)((const uint8_t *)t->data)[at];
  }
}

/* The numbers of all steps, one after the other; free them. */
static double *draw(const program_t *p, const char *backend, uint64_t *out_n) {
  aothost_t *h = open_program(p, backend);
  uint32_t steps = p->steps ? p->steps : STEPS;
  double *x = NULL;
  assert_int_equal(aothost_seed(h, 2026, 0), AOT_OK);
  *out_n = 0;
  for (uint32_t s = 0; s < steps; s++) {
    aot_tensor_t y;
    uint64_t n = 1;
    if (aothost_forward(h, NULL, 0) != AOT_OK) fail_msg("%s, %s: %s", p->name, backend, aothost_messages(h));
    assert_int_equal(aothost_get(h, "output.0", &y), AOT_OK);
    for (int32_t d = 0; d < y.rank; d++) n *= (uint64_t)y.sizes[d];
    if (!x) x = malloc(n * steps * sizeof *x);
    assert_non_null(x);
    for (uint64_t k = 0; k < n; k++) x[*out_n + k] = element(&y, (int64_t)k);
    *out_n += n;
  }
  aothost_close(h);
  return x;
}

/* Two steps are two samples; tails are drawn in, so that they do not decide alone. */
static double likeness_of_steps(const double *x, uint64_t n) {
  double *bounded = malloc(n * sizeof *bounded), size = 0, z;
  assert_non_null(bounded);
  for (uint64_t k = 0; k < n; k++) size += fabs(x[k]) / (double)n;
  for (uint64_t k = 0; k < n; k++) bounded[k] = atan(x[k] / size);
  z = rc_correlation(bounded, bounded + n / 2, n / 2);
  free(bounded);
  return z;
}

/* Numbers of one step that depend on each other, or that are not all of one distribution, have no plain correlation. */
static int is_plain(const program_t *p) {
  return !p->steps && p->check != is_either_by_channel && p->check != is_dirichlet;
}

static void every_operator_draws_its_distribution(void **state) {
  unsigned n_bad = 0;
  (void)state;
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    uint64_t n, m;
    double *x = draw(&programs[i], "backend-ref", &n), *y = draw(&programs[i], "backend-cpu", &m), z, alike;
    assert_int_equal(n, m);
    for (uint64_t k = 0; k < n; k++)
      if (!(fabs(x[k] - y[k]) <= 2e-5 * (1 + fabs(x[k]))))
        fail_msg("%s, element %llu: %.9g by backend-ref, %.9g by backend-cpu", programs[i].name, (unsigned long long)k,
                 x[k], y[k]);
    alike = is_plain(&programs[i]) ? likeness_of_steps(x, n) : 0;
    z = programs[i].check(x, n, programs[i].p);
    if (!(fabs(z) < RC_BOUND && fabs(alike) < RC_BOUND)) {
      print_message("%s: off by %.2f deviations; one step and the next correlate by %.2f\n", programs[i].name, z,
                    alike);
      n_bad++;
    }
    free(x);
    free(y);
  }
  assert_int_equal(n_bad, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_operator_draws_its_distribution)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
