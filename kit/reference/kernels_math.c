/* Functions of one or two floats that are more than a formula of scalar.def. Evaluated in double, stored with one
 * rounding. */
#include "rk_pointwise.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
/* clang-format off */
#define F(name, expression) static double name##_f(const double *x, const pw_par_t *p) { (void)p; return expression; }
#define I(name, expression) static int64_t name##_i(const int64_t *x, const pw_par_t *p) { (void)p; return expression; }
/* clang-format on */

F(ceil, ceil(x[0]))
F(floor, floor(x[0]))
F(trunc, trunc(x[0]))
F(round, nearbyint(x[0]))
I(same, x[0])
F(square, x[0] * x[0])
I(square, (int64_t)((uint64_t)x[0] * (uint64_t)x[0]))
F(angle, x[0] != x[0] ? x[0] : x[0] < 0 ? PI : 0)
/* mul(self, pow(2, other)): the power has other's dtype, float for integers; float64 next to a float64 self when other
 * is of integers or 0-dim */
static double ldexp_f(const double *x, const pw_par_t *p) {
  int32_t other = rk_is_int(p->dtypes[1]) ? AOT_F32 : p->dtypes[1];
  int wide = p->dtypes[0] == AOT_F64 && (rk_is_int(p->dtypes[1]) || p->single & 2u);
  return x[0] * rk_round_to(exp2(x[1]), wide ? AOT_F64 : other);
}

/* a log(b), 0 where a is; the logarithm of a half is rounded before it is multiplied, as c10's std::log of f16 or bf16
 * is. */
static double times_log(double a, double b, double log_of_b, const pw_par_t *p) {
  if (b != b) return b;
  return a == 0 ? 0 : a * (aot_dtype_size(p->dtype) == 2 ? rk_round_to(log_of_b, p->dtype) : log_of_b);
}
static double xlogy_f(const double *x, const pw_par_t *p) { return times_log(x[0], x[1], log(x[1]), p); }
static double xlog1py_f(const double *x, const pw_par_t *p) { return times_log(x[0], x[1], log1p(x[1]), p); }

/* The next bfloat16: the upper half of a float's bits counts up with its magnitude. */
static double next_bfloat16(float from, double to) {
  uint32_t bits;
  if (from != from || to != to) return NAN;
  if ((double)from == to) return to;
  memcpy(&bits, &from, sizeof bits);
  if (from == 0) bits = to > 0 ? 0x00010000u : 0x80010000u;
  else bits += (from < to) == (from > 0) ? 0x10000u : 0xffff0000u;
  memcpy(&from, &bits, sizeof bits);
  return from;
}

/* nextafter in the operand's own width */
static double nextafter_f(const double *x, const pw_par_t *p) {
  if (p->dtype == AOT_BF16) return next_bfloat16((float)x[0], x[1]);
  return p->dtype == AOT_F64 ? nextafter(x[0], x[1]) : (double)nextafterf((float)x[0], (float)x[1]);
}

/* round(self, *, decimals): PyTorch scales by a power of ten, rounds, and scales back */
static double round_decimals_f(const double *x, const pw_par_t *p) {
  double ten = rk_round_to(pow(10, fabs(x[1])), p->dtype == AOT_F64 ? AOT_F64 : AOT_F32);
  int32_t work = p->dtype == AOT_F64 ? AOT_F64 : AOT_F32;
  if (x[1] == 0) return nearbyint(x[0]);
  return x[1] < 0 ? nearbyint(rk_round_to(x[0] / ten, work)) * ten : nearbyint(rk_round_to(x[0] * ten, work)) / ten;
}

static double log_add(double a, double b) {
  double high = a > b ? a : b;
  if (a != a || b != b) return NAN;
  return isinf(high) ? (a == b || high > 0 ? high : a + b) : high + log1p(exp(-fabs(a - b)));
}
F(logaddexp, log_add(x[0], x[1]))
F(logaddexp2, log_add(x[0] * log(2.0), x[1] * log(2.0)) / log(2.0))

/* logit(self, eps?): log(v / (1 - v)), each step in the dtype, which matters where the quotient is near 1 */
static double logit_f(const double *x, const pw_par_t *p) {
  double v = x[0];
  if (p->present & 2u) v = v < x[1] ? x[1] : v > 1 - x[1] ? 1 - x[1] : v;
  if (aot_dtype_size(p->dtype) != 2) return log(v / (1 - v));
  return log(rk_round_to(v / rk_round_to(1 - v, p->dtype), p->dtype));
}

/* nan_to_num(self, nan?, posinf?, neginf?) */
static double nan_to_num_f(const double *x, const pw_par_t *p) {
  static const double float_max = 3.4028234663852886e38, half_max = 65504, double_max = 1.7976931348623157e308;
  static const double bf16_max = 3.3895313892515355e38;
  double largest = p->dtype == AOT_F64    ? double_max
                   : p->dtype == AOT_F16  ? half_max
                   : p->dtype == AOT_BF16 ? bf16_max
                                          : float_max;
  if (x[0] != x[0]) return p->present & 2u ? x[1] : 0;
  if (x[0] == INFINITY) return p->present & 4u ? x[2] : largest;
  if (x[0] == -INFINITY) return p->present & 8u ? x[3] : -largest;
  return x[0];
}
I(nan_to_num, x[0])

/* Inverse error function: a rational start (Giles 2010 in spirit, here Winitzki's form), then Newton steps on erf. */
static double inverse_erf(double y) {
  double a = 0.147, l, u, x;
  if (y <= -1 || y >= 1) return y == 1 ? INFINITY : y == -1 ? -INFINITY : NAN;
  l = log1p(-y * y);
  u = 2 / (PI * a) + l / 2;
  x = copysign(sqrt(sqrt(u * u - l / a) - u), y);
  for (int k = 0; k < 4; k++) {
    double error = fabs(x) > 1 ? (1 - fabs(y) - erfc(fabs(x))) * (y < 0 ? -1 : 1) : erf(x) - y;
    x -= error / (2 / sqrt(PI) * exp(-x * x));
  }
  return x;
}
F(erfinv, inverse_erf(x[0]))

/* psi: reflection, recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.18) */
static double digamma(double x) {
  double sum = 0, r;
  if (x == 0) return copysign(INFINITY, -x);
  if (x < 0) return x == floor(x) ? NAN : digamma(1 - x) - PI / tan(PI * x);
  for (; x < 10; x += 1) sum -= 1 / x;
  r = 1 / (x * x);
  return sum + log(x) - 0.5 / x -
         r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * 691.0 / 32760)))));
}
F(digamma, digamma(x[0]))

/* mvlgamma(self, p) */
static double mvlgamma_f(const double *x, const pw_par_t *p) {
  double sum = x[1] * (x[1] - 1) / 4 * log(PI);
  (void)p;
  for (int64_t j = 0; j < x[1] && !isnan(sum); j++) sum += lgamma(x[0] - (double)j * 0.5);
  return sum;
}

/* frexp(self) -> (mantissa in [0.5, 1), exponent) */
static aot_status_t frexp_parts(rk_ctx_t *c) {
  rk_array_t x, exponent;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_new_i(c, x.rank, x.sizes, &exponent));
  for (int64_t k = 0; k < x.numel; k++) {
    int e = 0;
    x.f[k] = frexp(x.f[k], &e);
    exponent.i[k] = e;
  }
  AOT_TRY(rk_put_f(c, 0, &x));
  return rk_put_i(c, 1, &exponent);
}

#define UNARY(name) PW(#name ".default", PW_RESULT, name##_f, NULL)
static const rk_kernel_t rows[] = {
    UNARY(erfinv),
    UNARY(digamma),
    UNARY(mvlgamma),
    UNARY(angle),
    UNARY(logaddexp),
    UNARY(logaddexp2),
    UNARY(logit),
    UNARY(nextafter),
    PW("ceil.default", PW_RESULT, ceil_f, same_i),
    PW("floor.default", PW_RESULT, floor_f, same_i),
    PW("trunc.default", PW_RESULT, trunc_f, same_i),
    PW("fix.default", PW_RESULT, trunc_f, same_i),
    PW("round.default", PW_RESULT, round_f, same_i),
    PW("round.decimals", PW_RESULT, round_decimals_f, same_i),
    PW("square.default", PW_RESULT, square_f, square_i),
    PW("ldexp.Tensor", PW_RESULT, ldexp_f, NULL),
    PW("special_xlog1py.default", PW_CAST, xlog1py_f, NULL),
    PW("xlogy.Scalar_Other", PW_CAST, xlogy_f, NULL),
    PW("xlogy.Scalar_Self", PW_CAST, xlogy_f, NULL),
    PW("xlogy.Tensor", PW_CAST, xlogy_f, NULL),
    PW("nan_to_num.default", PW_RESULT, nan_to_num_f, nan_to_num_i),
    {"aten.frexp.Tensor", frexp_parts, NULL, NULL, 0},
};
const rk_family_t rk_family_math = RK_FAMILY(rows);
