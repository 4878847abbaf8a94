/* The kernels of explicit draws: is each result a sample of its distribution, and are samples of other elements, draws,
 * offsets and seeds independent? Bounds: random_checks.h. */
#include "kit/reference/rk.h"
#include "kit/random/philox.h"
#include "kit/random/random_checks.h"
#include <aot/inline.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { N = 1 << 16 };

typedef struct draw {
  const char *op;
  int32_t dtype;
  int64_t low, high;   /* randint */
  double rate, second; /* poisson: rate; gamma: shape; binomial: count, probability */
} draw_t;

static double load(const void *data, int32_t dtype, int64_t k) {
  const char *at = (const char *)data + k * (int64_t)aot_dtype_size(dtype);
  uint16_t h;
  uint32_t bits;
  float f;
  double d;
  int64_t i;
  switch (dtype) {
    case AOT_F64: memcpy(&d, at, 8); return d;
    case AOT_F32: memcpy(&f, at, 4); return (double)f;
    case AOT_BF16:
      memcpy(&h, at, 2);
      bits = (uint32_t)h << 16;
      memcpy(&f, &bits, 4);
      return (double)f;
    case AOT_F16: /* no subnormals but multiples of 2^-11 and common normals are met */
      memcpy(&h, at, 2);
      d = (h & 0x7C00) ? ldexp((h & 1023) + 1024, ((h >> 10) & 31) - 25) : ldexp(h & 1023, -24);
      return h & 0x8000 ? -d : d;
    default: memcpy(&i, at, 8); return (double)i;
  }
}

/* N numbers of the draw, as double. */
static void sample_raw(const draw_t *d, int64_t seed, int64_t offset, int64_t number, void *out) {
  static double parameters[2][N];
  const int64_t sizes[2] = {N / 256, 256};
  rk_tensor_t key[2] = {{.data = &seed, .nbytes = 8, .dtype = AOT_I64},
                        {.data = &offset, .nbytes = 8, .dtype = AOT_I64}},
              given[2];
  rk_tensor_t result = {
      .data = out,
      .nbytes = N * aot_dtype_size(d->dtype),
      .dtype = d->dtype,
      .rank = 2,
      .sizes = {N / 256, 256},
      .strides = {256, 1},
  };
  rk_arg_t args[7] = {rk_arg_of_tensor(&key[0]), rk_arg_of_tensor(&key[1]), rk_arg_of_int(number),
                      rk_arg_of_ints(sizes, 2)};
  rk_call_t call = {args, 4, &result, 1};
  rk_error_t error;
  if (strstr(d->op, "randint")) {
    args[3] = rk_arg_of_int(d->low);
    args[4] = rk_arg_of_int(d->high);
    args[5] = rk_arg_of_ints(sizes, 2);
    call.n_args = 6;
  }
  for (int k = 0; k < 2 && d->rate > 0; k++) {
    for (int i = 0; i < N; i++) parameters[k][i] = k ? d->second : d->rate;
    given[k] = result;
    given[k].data = parameters[k];
    given[k].dtype = AOT_F64;
    given[k].nbytes = sizeof parameters[k];
    args[3 + k] = rk_arg_of_tensor(&given[k]);
    call.n_args = strstr(d->op, "binomial") ? 5 : 4;
  }
  if (rk_run(rk_find(aot_str(d->op)), &call, &error) != AOT_OK) fail_msg("%s", error.text);
}

static void sample(const draw_t *d, int64_t seed, int64_t offset, int64_t number, double *out) {
  static double raw[N];
  sample_raw(d, seed, offset, number, raw);
  for (int k = 0; k < N; k++) out[k] = load(raw, d->dtype, k);
}

static void expect(const draw_t *d, const char *what, double z) {
  if (!(fabs(z) < RC_BOUND))
    fail_msg("%s %s, %g, %g: %s is off by %.2f deviations", d->op, aot_dtype_name(d->dtype), d->rate, d->second, what,
             z);
}

static double in_bins(const double *x, double low, double width, uint32_t n_bins) {
  double counts[1024] = {0}, expected[1024];
  assert_true(n_bins <= 1024);
  for (int k = 0; k < N; k++) {
    double bin = floor((x[k] - low) / width);
    if (!(bin >= 0 && bin < n_bins)) return INFINITY;
    counts[(uint32_t)bin]++;
  }
  for (uint32_t b = 0; b < n_bins; b++) expected[b] = (double)N / n_bins;
  return rc_chi_square(counts, expected, n_bins);
}

/* clang-format off */
#define DRAW(name, type) {.op = "aot.philox_" name ".default", .dtype = type}
#define IN_ALL(name) {DRAW(name, AOT_F32), DRAW(name, AOT_F64), DRAW(name, AOT_F16), DRAW(name, AOT_BF16)}
/* clang-format on */
static const draw_t uniforms[] = IN_ALL("uniform"), normals[] = IN_ALL("normal");

/* A narrow dtype's numbers are multiples of its spacing s: in the mean s / 2 below what they represent. */
static void uniform_numbers(void **state) {
  static double x[N];
  (void)state;
  for (int64_t seed = 0; seed < 3; seed++)
    for (size_t t = 0; t < sizeof uniforms / sizeof *uniforms; t++) {
      double s = uniforms[t].dtype == AOT_F16 ? 0x1p-11 : uniforms[t].dtype == AOT_BF16 ? 0x1p-8 : 0;
      sample(&uniforms[t], seed, 100, 0, x);
      for (int k = 0; k < N; k++) assert_true(x[k] >= 0 && x[k] < 1);
      expect(&uniforms[t], "the frequency of 256 bins", in_bins(x, 0, 1.0 / 256, 256));
      expect(&uniforms[t], "mean or variance", rc_mean_and_variance(x, N, (1 - s) / 2, (1 - s * s) / 12, 1.8));
      for (int lag = 1; lag <= 8; lag++)
        expect(&uniforms[t], "correlation along elements", rc_correlation(x, x + lag, N - lag));
      expect(&uniforms[t], "correlation along rows", rc_correlation(x, x + 256, N - 256));
      if (s == 0)
        expect(&uniforms[t], "the distribution", rc_kolmogorov_smirnov(x, N, rc_uniform_cdf, (const double[]){0, 1}));
    }
}

static void normal_numbers(void **state) {
  static double x[N], squares[N];
  (void)state;
  for (int64_t seed = 0; seed < 3; seed++)
    for (size_t t = 0; t < sizeof normals / sizeof *normals; t++) {
      int narrow = normals[t].dtype == AOT_F16 || normals[t].dtype == AOT_BF16;
      sample(&normals[t], seed, 100, 1, x);
      expect(&normals[t], "mean or variance", rc_mean_and_variance(x, N, 0, 1, 3));
      expect(&normals[t], "skewness or kurtosis", rc_normal_shape(x, N));
      for (int k = 0; k < N; k++) squares[k] = x[k] * x[k];
      for (int lag = 1; lag <= 8; lag++) {
        expect(&normals[t], "correlation along elements", rc_correlation(x, x + lag, N - lag));
        expect(&normals[t], "correlation of squares along elements", rc_correlation(squares, squares + lag, N - lag));
      }
      if (!narrow)
        expect(&normals[t], "the distribution", rc_kolmogorov_smirnov(x, N, rc_normal_cdf, (const double[]){0, 1}));
    }
}

/* The same elements under neighbouring draw numbers, offsets and seeds, and seeds and offsets that differ in an
 * upper bit. */
static void neighbours_are_independent(void **state) {
  static const struct {
    const char *what;
    int64_t seed, offset, number;
  } others[] = {{"correlation over draws", 5, 9, 3},
                {"correlation over offsets", 5, 13, 2},
                {"correlation over seeds", 6, 9, 2},
                {"correlation over upper bits of seeds", 5 + (INT64_C(1) << 40), 9, 2},
                {"correlation with the negative seed", -5, 9, 2},
                {"correlation over upper bits of offsets", 5, 9 + (INT64_C(1) << 50), 2}};
  static double x[N], y[N];
  const draw_t *kinds[] = {&uniforms[0], &uniforms[1], &normals[0], &normals[1]};
  (void)state;
  for (size_t t = 0; t < sizeof kinds / sizeof *kinds; t++)
    for (size_t o = 0; o < sizeof others / sizeof *others; o++) {
      sample(kinds[t], 5, 9, 2, x);
      sample(kinds[t], others[o].seed, others[o].offset, others[o].number, y);
      expect(kinds[t], others[o].what, rc_correlation(x, y, N));
      for (int k = 0; k < N; k++) {
        x[k] *= x[k];
        y[k] *= y[k];
      }
      expect(kinds[t], "correlation of the squares", rc_correlation(x, y, N));
    }
}

/* Offset and draw number are one counter: a step may hand out draw numbers or move the offset. */
static void offset_and_draw_number_add(void **state) {
  static double x[N], y[N];
  (void)state;
  sample(&normals[0], 5, 40, 2, x);
  sample(&normals[0], 5, 2, 40, y);
  assert_memory_equal(x, y, sizeof x);
  sample(&uniforms[1], 5, INT64_MAX, 2, x); /* it wraps */
  sample(&uniforms[1], 5, INT64_MIN + 1, 0, y);
  assert_memory_equal(x, y, sizeof x);
}

static void whole_numbers(void **state) {
/* clang-format off */
#define RANGE(type, from, to) {.op = "aot.philox_randint.default", .dtype = type, .low = from, .high = to}
  static const draw_t table[] = {RANGE(AOT_I64, 0, 10),   RANGE(AOT_I64, -3, 4),
                                 RANGE(AOT_I64, 7, 1031), RANGE(AOT_F32, 0, 2),
                                 RANGE(AOT_I64, -(INT64_C(3) << 60), INT64_C(3) << 60), RANGE(AOT_I64, INT64_MIN,
                                     INT64_MAX)};
  /* clang-format on */
  static double x[N];
  (void)state;
  for (size_t t = 0; t < sizeof table / sizeof *table; t++)
    for (int64_t seed = 0; seed < 3; seed++) {
      double range = (double)table[t].high - (double)table[t].low;
      uint32_t n_bins = range <= 1024 ? (uint32_t)range : 768; /* 768: thirds, which a remainder of 2^64 would prefer */
      sample(&table[t], seed, 11, 0, x);
      expect(&table[t], "the frequency of bins", in_bins(x, (double)table[t].low, range / n_bins, n_bins));
      for (int lag = 1; lag <= 4; lag++)
        expect(&table[t], "correlation along elements", rc_correlation(x, x + lag, N - lag));
    }
  const draw_t one = RANGE(AOT_I64, 6, 7);
  sample(&one, 1, 1, 0, x);
  for (int k = 0; k < N; k++) assert_true(x[k] == 6);
}

static void sort_keys(void **state) {
  static const draw_t bits = {.op = "aot.philox_bits.default", .dtype = AOT_I64};
  static int64_t raw[N];
  static double x[N];
  (void)state;
  for (int64_t seed = 0; seed < 3; seed++) {
    sample_raw(&bits, seed, 3, 3, raw);
    for (int bit = 0; bit < 63; bit++) {
      uint64_t ones = 0;
      for (int k = 0; k < N; k++) ones += (uint64_t)raw[k] >> bit & 1;
      expect(&bits, "the frequency of a bit", rc_rate(ones, N, 0.5));
    }
    for (int k = 0; k < N; k++) {
      assert_true(raw[k] >= 0);
      x[k] = (double)(raw[k] & 255);
    }
    expect(&bits, "the frequency of the low byte", in_bins(x, 0, 1, 256));
    for (int k = 0; k < N; k++) x[k] = (double)(raw[k] >> 55);
    expect(&bits, "the frequency of the high byte", in_bins(x, 0, 1, 256));
  }
}

static void samplers(void **state) {
  static const double rates[] = {0.01, 0.3, 3, 9.99, 10, 12.5, 50, 700}, large[] = {1e4, 1e6, 1e9};
  static const double shapes[] = {0.05, 0.4, 1, 2.5, 50, 1e4};
  static const double trials[][2] = {{1, 0.3},   {10, 0.5},  {20, 0.1},     {20, 0.97},
                                     {100, 0.3}, {100, 0.7}, {1000, 0.004}, {5000, 0.2}};
  static double x[N];
  (void)state;
  for (size_t t = 0; t < sizeof rates / sizeof *rates; t++) {
    const draw_t d = {.op = "aot.philox_poisson.default", .dtype = AOT_F64, .rate = rates[t]};
    sample(&d, 1, (int64_t)t, 0, x);
    expect(&d, "mean or variance", rc_mean_and_variance(x, N, rates[t], rates[t], 3 + 1 / rates[t]));
    expect(&d, "the frequencies", rc_masses(x, N, rc_poisson_mass, &rates[t], 0, 1024));
    expect(&d, "correlation along elements", rc_correlation(x, x + 1, N - 1));
  }
  for (size_t t = 0; t < sizeof large / sizeof *large; t++) {
    const draw_t d = {.op = "aot.philox_poisson.default", .dtype = AOT_F64, .rate = large[t]};
    sample(&d, 2, (int64_t)t, 0, x);
    expect(&d, "mean or variance", rc_mean_and_variance(x, N, large[t], large[t], 3 + 1 / large[t]));
  }
  for (size_t t = 0; t < sizeof shapes / sizeof *shapes; t++) {
    const draw_t d = {.op = "aot.philox_gamma.default", .dtype = AOT_F64, .rate = shapes[t]};
    sample(&d, 3, (int64_t)t, 0, x);
    expect(&d, "mean or variance", rc_mean_and_variance(x, N, shapes[t], shapes[t], 3 + 6 / shapes[t]));
    expect(&d, "correlation along elements", rc_correlation(x, x + 1, N - 1));
    expect(&d, "the distribution", rc_kolmogorov_smirnov(x, N, rc_gamma_cdf, &shapes[t]));
  }
  for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
    const draw_t d = {
        .op = "aot.philox_binomial.default", .dtype = AOT_F64, .rate = trials[t][0], .second = trials[t][1]};
    double npq = trials[t][0] * trials[t][1] * (1 - trials[t][1]);
    sample(&d, 4, (int64_t)t, 0, x);
    expect(&d, "mean or variance",
           rc_mean_and_variance(x, N, trials[t][0] * trials[t][1], npq,
                                3 + (1 - 6 * trials[t][1] * (1 - trials[t][1])) / npq));
    expect(&d, "the frequencies", rc_masses(x, N, rc_binomial_mass, trials[t], 0, 2000));
  }
}

/* Ends of the parameters, element by element. */
static void parameters_at_their_ends(void **state) {
  double rates[5] = {0, 1e-300, 1e15, INFINITY, NAN}, shapes[4] = {0, 1e-6, 1e15, INFINITY};
  double counts[6] = {0, 5, 5, 5, 7.9, NAN}, chances[6] = {0.5, 0, 1, 2, 1, 0.5}, got[6];
  int64_t zero = 0;
  rk_tensor_t key = {.data = &zero, .nbytes = 8, .dtype = AOT_I64};
  rk_tensor_t result = {.data = got, .nbytes = sizeof got, .dtype = AOT_F64, .rank = 1, .sizes = {5}, .strides = {1}},
              x = result, y;
  rk_arg_t args[5] = {rk_arg_of_tensor(&key), rk_arg_of_tensor(&key), rk_arg_of_int(0), rk_arg_of_tensor(&x),
                      rk_arg_of_tensor(&y)};
  rk_call_t call = {args, 4, &result, 1};
  rk_error_t error;
  (void)state;
  x.data = rates;
  assert_int_equal(rk_run(rk_find(aot_str("aot.philox_poisson.default")), &call, &error), AOT_OK);
  assert_true(got[0] == 0 && got[1] == 0 && fabs(got[2] - 1e15) < 1e9 && got[3] == INFINITY && isnan(got[4]));
  rates[2] = -1;
  assert_int_equal(rk_run(rk_find(aot_str("aot.philox_poisson.default")), &call, &error), AOT_E_INVALID);
  assert_non_null(strstr(error.text, "the rate -1 at element 2 is negative"));
  x.data = shapes;
  x.sizes[0] = result.sizes[0] = 4;
  assert_int_equal(rk_run(rk_find(aot_str("aot.philox_gamma.default")), &call, &error), AOT_OK);
  assert_true(got[0] == 0x1p-1022 && got[1] > 0 && fabs(got[2] / 1e15 - 1) < 1e-6 && got[3] == INFINITY);
  y = x;
  x.data = counts;
  y.data = chances;
  x.sizes[0] = y.sizes[0] = result.sizes[0] = 6;
  call.n_args = 5;
  assert_int_equal(rk_run(rk_find(aot_str("aot.philox_binomial.default")), &call, &error), AOT_OK);
  assert_true(got[0] == 0 && got[1] == 0 && got[2] == 5 && got[3] == 5 && got[4] == 7 && isnan(got[5]));
}

/* The checks themselves: they refuse what is nearly right. */
static void checks_can_fail(void **state) {
  static double x[N], y[N];
  (void)state;
  for (int k = 0; k < N; k++) x[k] = ph_unit64(ph_bits(1, 2, (uint64_t)k), 53);
  for (int k = 0; k < N; k++) y[k] = x[k] * 0.98;
  assert_true(fabs(in_bins(y, 0, 1.0 / 256, 256)) > RC_BOUND);
  assert_true(fabs(rc_kolmogorov_smirnov(y, N, rc_uniform_cdf, (const double[]){0, 1})) > RC_BOUND);
  for (int k = 0; k < N; k++) y[k] = ((double)k + 0.5) / N; /* too even to be random */
  assert_true(in_bins(y, 0, 1.0 / 256, 256) < -RC_BOUND);
  for (int k = 0; k + 1 < N; k++) y[k] = x[k] + 0.05 * x[k + 1];
  assert_true(fabs(rc_correlation(y, y + 1, N - 2)) > RC_BOUND);
  assert_true(fabs(rc_mean_and_variance(x, N, 0.49, 1.0 / 12, 1.8)) > RC_BOUND);
  assert_true(fabs(rc_normal_shape(x, N)) > RC_BOUND);
  assert_true(fabs(rc_rate(N / 2, N, 0.49)) > RC_BOUND);
  for (int k = 0; k < N; k++) y[k] = floor(x[k] * 4);
  assert_true(fabs(rc_masses(y, N, rc_poisson_mass, (const double[]){1.5}, 0, 20)) > RC_BOUND);
}

int main(void) {
  /* clang-format off */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(uniform_numbers),        cmocka_unit_test(normal_numbers),
      cmocka_unit_test(neighbours_are_independent), cmocka_unit_test(offset_and_draw_number_add),
      cmocka_unit_test(whole_numbers),          cmocka_unit_test(sort_keys),
      cmocka_unit_test(samplers),               cmocka_unit_test(parameters_at_their_ends),
      cmocka_unit_test(checks_can_fail),
  };
  /* clang-format on */
  return cmocka_run_group_tests(tests, NULL, NULL);
}
