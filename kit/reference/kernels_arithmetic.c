/* Arithmetic, comparisons, logic, bits and choice: operators with an exact integer form.
 *
 * Integer arithmetic wraps, as PyTorch's does; floor and trunc division by zero of integers is an error there and gives
 * 0 here. Float floor division follows div_floor of PyTorch's BinaryOpsKernel (fmod first, so that the quotient is
 * exact). */
#include "rk_pointwise.h"
#include <aot/inline.h>
#include <math.h>

/* clang-format off */
#define F(name, expression) static double name##_f(const double *x, const pw_par_t *p) { (void)p; return expression; }
#define I(name, expression) static int64_t name##_i(const int64_t *x, const pw_par_t *p) { (void)p; return expression; }
/* clang-format on */
#define U(v) ((uint64_t)(v))
#define BOTH(name, expression) F(name, expression) I(name, expression)

F(add, x[0] + x[2] * x[1])
I(add, (int64_t)(U(x[0]) + U(x[2]) * U(x[1])))
F(sub, x[0] - x[2] * x[1])
I(sub, (int64_t)(U(x[0]) - U(x[2]) * U(x[1])))
F(rsub, x[1] - x[2] * x[0])
I(rsub, (int64_t)(U(x[1]) - U(x[2]) * U(x[0])))
F(mul, x[0] * x[1])
I(mul, (int64_t)(U(x[0]) * U(x[1])))
F(div, x[0] / x[1])
BOTH(where, x[0] != 0 ? x[1] : x[2])
F(neg, -x[0])
I(neg, (int64_t)(0 - U(x[0])))
F(abs, fabs(x[0]))
I(abs, x[0] < 0 ? (int64_t)(0 - U(x[0])) : x[0])
BOTH(sign, (x[0] > 0) - (x[0] < 0))
F(positive, x[0])
I(positive, x[0])

static double div_floor(double a, double b) {
  double rest, quotient;
  if (b == 0) return a / b;
  rest = fmod(a, b);
  quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign(0, a / b);
  rest = floor(quotient);
  return quotient - rest > 0.5 ? rest + 1 : rest;
}

static int64_t int_div(int64_t a, int64_t b, int is_floor) {
  int64_t q;
  if (b == 0) return 0;
  if (b == -1) return (int64_t)(0 - U(a));
  q = a / b;
  return q - (is_floor && a % b != 0 && (a < 0) != (b < 0));
}

/* rounding modes of div */
static const char *const div_words[] = {"trunc", "floor", NULL};
static double div_mode_f(const double *x, const pw_par_t *p) {
  if (p->mode == 2) return div_floor(x[0], x[1]);
  if (p->mode != 1) return x[0] / x[1];
  /* the quotient of two half tensors is rounded before it is cut; with one divisor for all, in float */
  return trunc(rk_round_to(x[0] / x[1], aot_dtype_size(p->dtype) == 2 && p->single & 2u ? AOT_F32 : p->dtype));
}
static int64_t div_mode_i(const int64_t *x, const pw_par_t *p) { return int_div(x[0], x[1], p->mode == 2); }
F(floor_divide, div_floor(x[0], x[1]))
I(floor_divide, int_div(x[0], x[1], 1))

F(fmod, fmod(x[0], x[1]))
I(fmod, x[1] == 0 || x[1] == -1 ? 0 : x[0] % x[1])
static double remainder_f(const double *x, const pw_par_t *p) {
  double rest = fmod(x[0], x[1]);
  (void)p;
  return rest != 0 && (x[1] < 0) != (rest < 0) ? rest + x[1] : rest;
}
static int64_t remainder_i(const int64_t *x, const pw_par_t *p) {
  int64_t rest = x[1] == 0 || x[1] == -1 ? 0 : x[0] % x[1];
  (void)p;
  return rest != 0 && (x[1] < 0) != (rest < 0) ? rest + x[1] : rest;
}

F(pow, pow(x[0], x[1]))
/* By a number: one half is PyTorch's square root, which of -inf is NaN and of -0 is -0. */
F(pow_number, x[1] == 0.5 ? sqrt(x[0]) : x[1] == -0.5 ? 1 / sqrt(x[0]) : pow(x[0], x[1]))
static int64_t pow_i(const int64_t *x, const pw_par_t *p) {
  uint64_t base = U(x[0]), power = 1;
  (void)p;
  if (x[1] < 0) return x[0] == 1 ? 1 : x[0] == -1 ? (x[1] & 1 ? -1 : 1) : 0;
  for (int64_t e = x[1]; e; e >>= 1, base *= base)
    if (e & 1) power *= base;
  return (int64_t)power;
}

static double choose(double a, double b, int take_max) {
  if (a != a || b != b) return NAN;
  return (take_max ? a < b : a > b) ? b : a; /* of equal ones the first: clamp keeps the sign of its zero */
}
F(maximum, choose(x[0], x[1], 1))
I(maximum, x[0] > x[1] ? x[0] : x[1])
F(minimum, choose(x[0], x[1], 0))
I(minimum, x[0] < x[1] ? x[0] : x[1])
F(fmax, fmax(x[0], x[1]))
F(fmin, fmin(x[0], x[1]))

/* The only bound of clamp, if it is the number NaN, bounds nothing, as in PyTorch; one in a tensor, and clamp_min's,
 * gives NaN. */
static int bounds_nothing(const double *x, const pw_par_t *p, uint32_t k) { return p->dtypes[k] == 0 && x[k] != x[k]; }

/* clamp(self, min?, max?): NaN stays, min > max gives max */
static double clamp_f(const double *x, const pw_par_t *p) {
  double v = x[0];
  if ((p->present & 6u) != 6u && bounds_nothing(x, p, p->present & 2u ? 1 : 2)) return v;
  if (p->present & 2u) v = v != v || x[1] != x[1] ? NAN : v < x[1] ? x[1] : v;
  if (p->present & 4u) v = v != v || x[2] != x[2] ? NAN : v > x[2] ? x[2] : v;
  return v;
}
static int64_t clamp_i(const int64_t *x, const pw_par_t *p) {
  int64_t v = x[0];
  if (p->present & 2u && v < x[1]) v = x[1];
  if (p->present & 4u && v > x[2]) v = x[2];
  return v;
}

BOTH(eq, x[0] == x[1])
BOTH(ne, x[0] != x[1])
BOTH(lt, x[0] < x[1])
BOTH(le, x[0] <= x[1])
BOTH(gt, x[0] > x[1])
BOTH(ge, x[0] >= x[1])
BOTH(logical_and, x[0] != 0 && x[1] != 0)
BOTH(logical_or, x[0] != 0 || x[1] != 0)
BOTH(logical_xor, (x[0] != 0) != (x[1] != 0))
BOTH(logical_not, x[0] == 0)
F(isnan, x[0] != x[0])
F(isinf, isinf(x[0]) != 0)
F(isfinite, isfinite(x[0]) != 0)
F(isposinf, x[0] == INFINITY)
F(isneginf, x[0] == -INFINITY)
I(never, x[0] != x[0])
I(always, x[0] == x[0])
F(signbit, signbit(x[0]) != 0)
I(signbit, x[0] < 0)

I(bitwise_and, x[0] & x[1])
I(bitwise_or, x[0] | x[1])
I(bitwise_xor, x[0] ^ x[1])
static int64_t bitwise_not_i(const int64_t *x, const pw_par_t *p) { return p->dtype == AOT_BOOL ? x[0] == 0 : ~x[0]; }

/* Shifts by the width or more, or by a negative number, give 0 or the sign. */
static int64_t shift_left_i(const int64_t *x, const pw_par_t *p) {
  int64_t width = (int64_t)aot_dtype_size(p->dtype) * 8;
  return x[1] < 0 || x[1] >= width ? 0 : (int64_t)(U(x[0]) << x[1]);
}
static int64_t shift_right_i(const int64_t *x, const pw_par_t *p) {
  int64_t width = (int64_t)aot_dtype_size(p->dtype) * 8;
  return x[0] >> (x[1] < 0 || x[1] >= width ? 63 : x[1]);
}

static int64_t gcd_i(const int64_t *x, const pw_par_t *p) {
  uint64_t a = U(x[0] < 0 ? -x[0] : x[0]), b = U(x[1] < 0 ? -x[1] : x[1]);
  (void)p;
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return (int64_t)a;
}
static int64_t lcm_i(const int64_t *x, const pw_par_t *p) {
  int64_t g = gcd_i(x, p), product = g ? x[0] / g * x[1] : 0;
  return product < 0 ? -product : product;
}

F(addcmul, x[0] + x[3] * x[1] * x[2])
I(addcmul, (int64_t)(U(x[0]) + U(x[3]) * U(x[1]) * U(x[2])))
F(addcdiv, x[0] + x[3] * x[1] / x[2])
/* at::native::lerp: from the nearer end */
F(lerp, fabs(x[2]) < 0.5 ? x[0] + x[2] * (x[1] - x[0]) : x[1] - (x[1] - x[0]) * (1 - x[2]))
/* masked_fill(self, mask, value), fill(self, value), copy(self, src) */
BOTH(masked_fill, x[1] != 0 ? x[2] : x[0])
BOTH(second, x[1])
F(heaviside, x[0] == 0 ? x[1] : x[0] > 0)
I(heaviside, x[0] == 0 ? x[1] : x[0] > 0)
F(relu, x[0] < 0 ? 0 : x[0]) /* -0 stays, as in PyTorch */
I(relu, x[0] > 0 ? x[0] : 0)
BOTH(threshold, x[0] <= x[1] ? x[2] : x[0])
/* native_dropout_backward(grad, mask, scale) */
F(dropout_backward, x[0] * x[1] * x[2])

static const rk_kernel_t rows[] = {
    PW("add.Tensor", PW_CAST, add_f, add_i),
    PW("add.Scalar", PW_CAST, add_f, add_i),
    PW("sub.Tensor", PW_CAST, sub_f, sub_i),
    PW("sub.Scalar", PW_CAST, sub_f, sub_i),
    PW("rsub.Tensor", PW_CAST, rsub_f, rsub_i),
    PW("rsub.Scalar", PW_CAST, rsub_f, rsub_i),
    PW("mul.Tensor", PW_FACTOR, mul_f, mul_i),
    PW("mul.Scalar", PW_FACTOR, mul_f, mul_i),
    PW("div.Tensor", PW_FACTOR, div_f, NULL),
    PW("div.Scalar", PW_FACTOR, div_f, NULL),
    PW_WORDS("div.Tensor_mode", PW_FACTOR, div_mode_f, div_mode_i, div_words),
    PW_WORDS("div.Scalar_mode", PW_FACTOR, div_mode_f, div_mode_i, div_words),
    PW("floor_divide.default", PW_FACTOR, floor_divide_f, floor_divide_i),
    PW("floor_divide.Scalar", PW_FACTOR, floor_divide_f, floor_divide_i),
    PW("fmod.Tensor", PW_CAST, fmod_f, fmod_i),
    PW("fmod.Scalar", PW_CAST, fmod_f, fmod_i),
    PW("remainder.Tensor", PW_CAST, remainder_f, remainder_i),
    PW("remainder.Scalar", PW_CAST, remainder_f, remainder_i),
    PW("remainder.Scalar_Tensor", PW_CAST, remainder_f, remainder_i),
    PW("pow.Tensor_Scalar", PW_CAST, pow_number_f, pow_i),
    PW("pow.Tensor_Tensor", PW_CAST, pow_f, pow_i),
    PW("pow.Scalar", PW_CAST, pow_f, pow_i),
    PW("maximum.default", PW_RESULT, maximum_f, maximum_i),
    PW("minimum.default", PW_RESULT, minimum_f, minimum_i),
    PW("max.other", PW_RESULT, maximum_f, maximum_i),
    PW("min.other", PW_RESULT, minimum_f, minimum_i),
    PW("fmax.default", PW_RESULT, fmax_f, maximum_i),
    PW("fmin.default", PW_RESULT, fmin_f, minimum_i),
    PW("clamp.default", PW_RESULT, clamp_f, clamp_i),
    PW("clamp.Tensor", PW_RESULT, clamp_f, clamp_i),
    PW("clip.default", PW_RESULT, clamp_f, clamp_i),
    PW("clip.Tensor", PW_RESULT, clamp_f, clamp_i),
    PW("clamp_min.default", PW_RESULT, maximum_f, maximum_i),
    PW("clamp_min.Tensor", PW_RESULT, maximum_f, maximum_i),
    PW("clamp_max.default", PW_RESULT, minimum_f, minimum_i),
    PW("clamp_max.Tensor", PW_RESULT, minimum_f, minimum_i),
    PW("where.self", PW_RESULT, where_f, where_i),
    PW("where.ScalarSelf", PW_RESULT, where_f, where_i),
    PW("where.ScalarOther", PW_RESULT, where_f, where_i),
    PW("where.Scalar", PW_RESULT, where_f, where_i),
    PW("neg.default", PW_RESULT, neg_f, neg_i),
    PW("negative.default", PW_RESULT, neg_f, neg_i),
    PW("abs.default", PW_RESULT, abs_f, abs_i),
    PW("positive.default", PW_RESULT, positive_f, positive_i),
    PW("sign.default", PW_RESULT, sign_f, sign_i),
    PW("sgn.default", PW_RESULT, sign_f, sign_i),
    /* second names */
    PW("subtract.Tensor", PW_CAST, sub_f, sub_i),
    PW("multiply.Tensor", PW_FACTOR, mul_f, mul_i),
    PW("divide.Tensor", PW_FACTOR, div_f, NULL),
    PW("true_divide.Tensor", PW_FACTOR, div_f, NULL),
    PW("absolute.default", PW_RESULT, abs_f, abs_i),
    PW("greater.Tensor", PW_COMPARE, gt_f, gt_i),
    PW("greater_equal.Tensor", PW_COMPARE, ge_f, ge_i),
    PW("less.Tensor", PW_COMPARE, lt_f, lt_i),
    PW("less_equal.Tensor", PW_COMPARE, le_f, le_i),
    PW("not_equal.Tensor", PW_COMPARE, ne_f, ne_i),
    PW("eq.Tensor", PW_COMPARE, eq_f, eq_i),
    PW("eq.Scalar", PW_COMPARE, eq_f, eq_i),
    PW("ne.Tensor", PW_COMPARE, ne_f, ne_i),
    PW("ne.Scalar", PW_COMPARE, ne_f, ne_i),
    PW("lt.Tensor", PW_COMPARE, lt_f, lt_i),
    PW("lt.Scalar", PW_COMPARE, lt_f, lt_i),
    PW("le.Tensor", PW_COMPARE, le_f, le_i),
    PW("le.Scalar", PW_COMPARE, le_f, le_i),
    PW("gt.Tensor", PW_COMPARE, gt_f, gt_i),
    PW("gt.Scalar", PW_COMPARE, gt_f, gt_i),
    PW("ge.Tensor", PW_COMPARE, ge_f, ge_i),
    PW("ge.Scalar", PW_COMPARE, ge_f, ge_i),
    PW("logical_and.default", PW_COMPARE, logical_and_f, logical_and_i),
    PW("logical_or.default", PW_COMPARE, logical_or_f, logical_or_i),
    PW("logical_xor.default", PW_COMPARE, logical_xor_f, logical_xor_i),
    PW("logical_not.default", PW_COMPARE, logical_not_f, logical_not_i),
    PW("isnan.default", PW_SELF, isnan_f, never_i),
    PW("isinf.default", PW_SELF, isinf_f, never_i),
    PW("isfinite.default", PW_SELF, isfinite_f, always_i),
    PW("isposinf.default", PW_SELF, isposinf_f, never_i),
    PW("isneginf.default", PW_SELF, isneginf_f, never_i),
    PW("signbit.default", PW_SELF, signbit_f, signbit_i),
    PW("bitwise_and.Tensor", PW_RESULT, NULL, bitwise_and_i),
    PW("bitwise_and.Scalar", PW_RESULT, NULL, bitwise_and_i),
    PW("bitwise_and.Scalar_Tensor", PW_RESULT, NULL, bitwise_and_i),
    PW("bitwise_or.Tensor", PW_RESULT, NULL, bitwise_or_i),
    PW("bitwise_or.Scalar", PW_RESULT, NULL, bitwise_or_i),
    PW("bitwise_or.Scalar_Tensor", PW_RESULT, NULL, bitwise_or_i),
    PW("bitwise_xor.Tensor", PW_RESULT, NULL, bitwise_xor_i),
    PW("bitwise_xor.Scalar", PW_RESULT, NULL, bitwise_xor_i),
    PW("bitwise_xor.Scalar_Tensor", PW_RESULT, NULL, bitwise_xor_i),
    PW("bitwise_not.default", PW_RESULT, NULL, bitwise_not_i),
    PW("bitwise_left_shift.Tensor", PW_RESULT, NULL, shift_left_i),
    PW("bitwise_left_shift.Tensor_Scalar", PW_RESULT, NULL, shift_left_i),
    PW("bitwise_right_shift.Tensor", PW_RESULT, NULL, shift_right_i),
    PW("bitwise_right_shift.Tensor_Scalar", PW_RESULT, NULL, shift_right_i),
    PW("gcd.default", PW_RESULT, NULL, gcd_i),
    PW("lcm.default", PW_RESULT, NULL, lcm_i),
    PW("addcmul.default", PW_RESULT, addcmul_f, addcmul_i),
    PW("addcdiv.default", PW_RESULT, addcdiv_f, NULL),
    PW("lerp.Scalar", PW_RESULT, lerp_f, NULL),
    PW("lerp.Tensor", PW_RESULT, lerp_f, NULL),
    PW("masked_fill.Scalar", PW_RESULT, masked_fill_f, masked_fill_i),
    PW("masked_fill.Tensor", PW_RESULT, masked_fill_f, masked_fill_i),
    PW("fill.Scalar", PW_RESULT, second_f, second_i),
    PW("fill.Tensor", PW_RESULT, second_f, second_i),
    PW("heaviside.default", PW_RESULT, heaviside_f, heaviside_i),
    PW("relu.default", PW_RESULT, relu_f, relu_i),
    PW("threshold.default", PW_RESULT, threshold_f, threshold_i),
    PW("native_dropout_backward.default", PW_RESULT, dropout_backward_f, NULL),
};
const rk_family_t rk_family_arithmetic = RK_FAMILY(rows);
