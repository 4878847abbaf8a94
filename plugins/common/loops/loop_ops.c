/* The pointwise operators that loops can hold: name, how the computing dtype is found, expression for floats, for
 * integers. Positions are the schema's; an absent argument reads as 0, so rows that need to know list the positions
 * that must be there. Formulas agree with the reference kernels (common/kernels), which the tests hold them against. */
#include "common/kernels/rk_core.h"
#include "common/loops/loop.h"
#include "common/random/philox.h"

#include <aot/inline.h>
#include <string.h>

#define RESULT 1  /* computed in the result's dtype */
#define COMPARE 2 /* in the promoted dtype of the operands */
#define SELF 3    /* in the dtype of the first tensor */
#define DRAW 4    /* as RESULT; a draw from seed and offset */

struct lp_op {
  const char *name;
  int32_t kind;
  const char *f, *i;      /* NULL: not for floats, not for integers */
  const char *word;       /* the string argument that the row is for; NULL: any */
  uint32_t need, without; /* argument positions, as bits, that must be there or absent */
  int32_t not_for;        /* a dtype of the result that the formula does not hold for; 0: none */
};

/* clang-format off */
#define ROW(name, kind, f, i) {"aten." name, kind, f, i, NULL, 0, 0, 0}
#define BOTH(name, kind, text) {"aten." name, kind, text, text, NULL, 0, 0, 0}
#define FLOAT(name, text) {"aten." name ".default", RESULT, text, NULL, NULL, 0, 0, 0}
/* clang-format on */
#define ADD "$0 + $2 * $1"
#define SUB "$0 - $2 * $1"
#define RSUB "$1 - $2 * $0"
#define LERP "@abs($2) < T(0.5) ? $0 + $2 * ($1 - $0) : $1 - ($1 - $0) * (T(1) - $2)"
#define DRAWN(name, f, i)                                                                                              \
  { "aot.philox_" name ".default", DRAW, f, i, NULL, 0, 0, 0 }
#define CLAMP(name)                                                                                                    \
  {"aten." name, RESULT, "@min(@max($0, $1), $2)", "@min(@max($0, $1), $2)", NULL, 6, 0, 0},                           \
      {"aten." name, RESULT, "@max($0, $1)", "@max($0, $1)", NULL, 2, 4, 0}, {                                         \
    "aten." name, RESULT, "@min($0, $2)", "@min($0, $2)", NULL, 4, 2, 0                                                \
  }

/* Sorted by name (byte order): lp_op_find halves. Rows of one name stand together, the first that fits is taken. */
static const lp_op_t rows[] = {
    DRAWN("bits", NULL, "(int64_t)($3 >> 1)"),
    DRAWN("normal", "$3", NULL),
    DRAWN("randint", NULL, "(int64_t)((uint64_t)$3 + lp_below($5, (uint64_t)$4 - (uint64_t)$3))"),
    DRAWN("uniform", "@unit($3)", NULL),
    FLOAT("_prelu_kernel", "$0 > 0 ? $0 : $0 * $1"),
    BOTH("_to_copy.default", RESULT, "$0"),
    ROW("abs.default", RESULT, "@abs($0)", "$0 < 0 ? -$0 : $0"),
    FLOAT("acos", "@acos($0)"),
    FLOAT("acosh", "@acosh($0)"),
    BOTH("add.Scalar", RESULT, ADD),
    BOTH("add.Tensor", RESULT, ADD),
    ROW("addcdiv.default", RESULT, "$0 + $3 * $1 / $2", NULL),
    BOTH("addcmul.default", RESULT, "$0 + $3 * $1 * $2"),
    FLOAT("asin", "@asin($0)"),
    FLOAT("asinh", "@asinh($0)"),
    FLOAT("atan", "@atan($0)"),
    FLOAT("atan2", "@atan2($0, $1)"),
    FLOAT("atanh", "@atanh($0)"),
    ROW("bitwise_and.Scalar", RESULT, NULL, "$0 & $1"),
    ROW("bitwise_and.Tensor", RESULT, NULL, "$0 & $1"),
    ROW("bitwise_or.Scalar", RESULT, NULL, "$0 | $1"),
    ROW("bitwise_or.Tensor", RESULT, NULL, "$0 | $1"),
    ROW("bitwise_xor.Scalar", RESULT, NULL, "$0 ^ $1"),
    ROW("bitwise_xor.Tensor", RESULT, NULL, "$0 ^ $1"),
    ROW("ceil.default", RESULT, "@ceil($0)", "$0"),
    CLAMP("clamp.Tensor"),
    CLAMP("clamp.default"),
    BOTH("clamp_max.Tensor", RESULT, "@min($0, $1)"),
    BOTH("clamp_max.default", RESULT, "@min($0, $1)"),
    BOTH("clamp_min.Tensor", RESULT, "@max($0, $1)"),
    BOTH("clamp_min.default", RESULT, "@max($0, $1)"),
    BOTH("clone.default", RESULT, "$0"),
    BOTH("copy.default", RESULT, "$1"),
    FLOAT("cos", "@cos($0)"),
    FLOAT("cosh", "@cosh($0)"),
    ROW("div.Scalar", RESULT, "$0 / $1", NULL),
    ROW("div.Tensor", RESULT, "$0 / $1", NULL),
    FLOAT("elu", "$0 < 0 ? $1 * $2 * @expm1($0 * $3) : $0 * $2"),
    BOTH("eq.Scalar", COMPARE, "$0 == $1"),
    BOTH("eq.Tensor", COMPARE, "$0 == $1"),
    FLOAT("erf", "@erf($0)"),
    FLOAT("erfc", "@erfc($0)"),
    FLOAT("exp", "@exp($0)"),
    FLOAT("exp2", "@exp2($0)"),
    FLOAT("expm1", "@expm1($0)"),
    BOTH("fill.Scalar", RESULT, "$1"),
    BOTH("fill.Tensor", RESULT, "$1"),
    ROW("floor.default", RESULT, "@floor($0)", "$0"),
    FLOAT("frac", "$0 - @trunc($0)"),
    BOTH("full.default", RESULT, "$1"),
    BOTH("full_like.default", RESULT, "$1"),
    BOTH("ge.Scalar", COMPARE, "$0 >= $1"),
    BOTH("ge.Tensor", COMPARE, "$0 >= $1"),
    {"aten.gelu.default", RESULT, "$0 * @gelu_gate($0)", NULL, "tanh", 0, 0, 0},
    {"aten.gelu.default", RESULT, "$0 * @normal_or_nan($0)", NULL, "none", 0, 0, AOT_F16},
    {"aten.gelu_backward.default", RESULT, "@gelu_tanh_backward($0, $1)", NULL, "tanh", 0, 0, 0},
    {"aten.gelu_backward.default", RESULT, "@gelu_backward($0, $1)", NULL, "none", 0, 0, 0},
    BOTH("gt.Scalar", COMPARE, "$0 > $1"),
    BOTH("gt.Tensor", COMPARE, "$0 > $1"),
    FLOAT("hardsigmoid", "@min(@max($0 + T(3), T(0)), T(6)) / T(6)"),
    FLOAT("hardswish", "$0 * @min(@max($0 + T(3), T(0)), T(6)) / T(6)"),
    FLOAT("hardtanh", "@min(@max($0, $1), $2)"),
    ROW("isnan.default", SELF, "$0 != $0", "$0 != $0"),
    BOTH("le.Scalar", COMPARE, "$0 <= $1"),
    BOTH("le.Tensor", COMPARE, "$0 <= $1"),
    FLOAT("leaky_relu", "$0 > 0 ? $0 : $0 * $1"),
    ROW("lerp.Scalar", RESULT, LERP, NULL),
    ROW("lerp.Tensor", RESULT, LERP, NULL),
    FLOAT("log", "@log($0)"),
    FLOAT("log10", "@log10($0)"),
    FLOAT("log1p", "@log1p($0)"),
    FLOAT("log2", "@log2($0)"),
    BOTH("logical_and.default", COMPARE, "$0 != 0 && $1 != 0"),
    BOTH("logical_not.default", COMPARE, "$0 == 0"),
    BOTH("logical_or.default", COMPARE, "$0 != 0 || $1 != 0"),
    BOTH("logical_xor.default", COMPARE, "($0 != 0) != ($1 != 0)"),
    BOTH("lt.Scalar", COMPARE, "$0 < $1"),
    BOTH("lt.Tensor", COMPARE, "$0 < $1"),
    BOTH("masked_fill.Scalar", RESULT, "$1 != 0 ? $2 : $0"),
    BOTH("masked_fill.Tensor", RESULT, "$1 != 0 ? $2 : $0"),
    BOTH("maximum.default", RESULT, "@max($0, $1)"),
    BOTH("minimum.default", RESULT, "@min($0, $1)"),
    BOTH("mul.Scalar", RESULT, "$0 * $1"),
    BOTH("mul.Tensor", RESULT, "$0 * $1"),
    BOTH("ne.Scalar", COMPARE, "$0 != $1"),
    BOTH("ne.Tensor", COMPARE, "$0 != $1"),
    BOTH("neg.default", RESULT, "-$0"),
    BOTH("ones.default", RESULT, "1"),
    BOTH("ones_like.default", RESULT, "1"),
    ROW("pow.Scalar", RESULT, "@pow($0, $1)", NULL),
    ROW("pow.Tensor_Scalar", RESULT, "@pow_number($0, $1)", NULL),
    ROW("pow.Tensor_Tensor", RESULT, "@pow($0, $1)", NULL),
    FLOAT("reciprocal", "T(1) / $0"),
    ROW("relu.default", RESULT, "$0 < 0 ? T(0) : $0", "$0 > 0 ? $0 : 0"),
    ROW("round.default", RESULT, "@round($0)", "$0"),
    FLOAT("rsqrt", "T(1) / @sqrt($0)"),
    BOTH("rsub.Scalar", RESULT, RSUB),
    BOTH("rsub.Tensor", RESULT, RSUB),
    BOTH("scalar_tensor.default", RESULT, "$0"),
    FLOAT("sigmoid", "@sigmoid($0)"),
    FLOAT("sigmoid_backward", "$0 * (T(1) - $1) * $1"),
    BOTH("sign.default", RESULT, "($0 > 0) - ($0 < 0)"),
    FLOAT("silu", "$0 * @sigmoid($0)"),
    FLOAT("silu_backward", "@silu_backward($0, $1)"),
    FLOAT("sin", "@sin($0)"),
    FLOAT("sinh", "@sinh($0)"),
    FLOAT("sqrt", "@sqrt($0)"),
    BOTH("square.default", RESULT, "$0 * $0"),
    BOTH("sub.Scalar", RESULT, SUB),
    BOTH("sub.Tensor", RESULT, SUB),
    FLOAT("tan", "@tan($0)"),
    FLOAT("tanh", "@tanh($0)"),
    FLOAT("tanh_backward", "$0 * (T(1) - $1 * $1)"),
    BOTH("threshold.default", RESULT, "$0 <= $1 ? $2 : $0"),
    BOTH("threshold_backward.default", RESULT, "$1 <= $2 ? 0 : $0"),
    ROW("trunc.default", RESULT, "@trunc($0)", "$0"),
    BOTH("where.Scalar", RESULT, "$0 != 0 ? $1 : $2"),
    BOTH("where.ScalarOther", RESULT, "$0 != 0 ? $1 : $2"),
    BOTH("where.ScalarSelf", RESULT, "$0 != 0 ? $1 : $2"),
    BOTH("where.self", RESULT, "$0 != 0 ? $1 : $2"),
    BOTH("zeros.default", RESULT, "0"),
    BOTH("zeros_like.default", RESULT, "0"),
};
#define N_ROWS (sizeof rows / sizeof rows[0])

static int compare(const char *row, aot_str_t name) {
  int c = strncmp(row, name.data, (size_t)name.size);
  return c ? c : row[name.size] != 0;
}

const lp_op_t *lp_op_find(aot_str_t name) {
  size_t low = 0, high = N_ROWS;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (compare(rows[middle].name, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low < N_ROWS && compare(rows[low].name, name) == 0 ? &rows[low] : NULL;
}

int32_t lp_op_draws(const lp_op_t *op, int32_t result, lp_draw_t *out) {
  int narrow = result == AOT_F32;
  if (op->kind != DRAW) return 0;
  if (strcmp(op->name, "aot.philox_normal.default") == 0) {
    out->fill = narrow ? ph_run_normal32 : ph_run_normal64;
    return result;
  }
  out->fill = narrow ? ph_run_words32 : ph_run_words64;
  return narrow ? AOT_U32 : AOT_U64;
}

int lp_dtype_supported(int32_t d) {
  return d == AOT_F32 || d == AOT_F64 || d == AOT_F16 || d == AOT_BF16 || d == AOT_BOOL || d == AOT_U8 || d == AOT_I8 ||
         d == AOT_I16 || d == AOT_I32 || d == AOT_I64;
}

static int category(int32_t dtype) { return dtype == AOT_BOOL ? 0 : rk_is_int(dtype) ? 1 : 2; }

/* c10::result_type: the highest category wins; within it tensors with dimensions, then 0-dim tensors, then numbers. */
static int32_t promoted(const lp_operand_t *o, uint32_t n) {
  int32_t by_class[3] = {0, 0, 0};
  int top = -1;
  for (uint32_t k = 0; k < n; k++) {
    int32_t c = o[k].kind != LP_LOAD ? 2 : o[k].rank == 0, d = o[k].dtype;
    if (o[k].kind == LP_ABSENT) continue;
    if (c == 2) d = o[k].kind == LP_FLOAT ? AOT_F32 : o[k].kind == LP_INT ? AOT_I64 : AOT_BOOL;
    if (!by_class[c] || category(d) > category(by_class[c])) by_class[c] = d;
    else if (category(d) == category(by_class[c])) by_class[c] = rk_promote(d, by_class[c]);
    if (category(d) > top) top = category(d);
  }
  for (int c = 0; c < 3; c++)
    if (by_class[c] && category(by_class[c]) == top) return by_class[c];
  return AOT_F32;
}

static int32_t computing(const lp_op_t *op, const lp_operand_t *o, uint32_t n, int32_t result) {
  int32_t d = result;
  if (op->kind == COMPARE) d = promoted(o, n);
  for (uint32_t k = n; op->kind == SELF && k-- > 0;)
    if (o[k].kind == LP_LOAD) d = o[k].dtype;
  if (op->kind != COMPARE) d = lp_value_dtype(d);
  return d == AOT_BOOL || !rk_is_int(d) ? d : AOT_I64;
}

/* Of halves, arithmetic rounds a first operand of a wider dtype (of rank 0: others promote), and draws are not made. */
static int fits_half(const lp_op_t *op, const lp_operand_t *o, uint32_t n, int32_t result) {
  if (lp_value_dtype(result) == result) return 1;
  if (op->kind == DRAW || op->not_for == result) return 0;
  return !n || o[0].kind != LP_LOAD || o[0].dtype == result || !op->f || strcmp(op->f, "$0") == 0 ||
         !strstr(op->f, "$0");
}

static int fits(const lp_op_t *op, const lp_operand_t *o, uint32_t n, aot_str_t word) {
  uint32_t there = 0;
  for (uint32_t k = 0; k < n; k++)
    if (o[k].kind != LP_ABSENT) there |= 1u << k;
  return (there & op->need) == op->need && !(there & op->without) && (!op->word || aot_str_eq(aot_str(op->word), word));
}

const char *lp_choose(const lp_op_t *op, const lp_operand_t *o, uint32_t n, aot_str_t word, int32_t result,
                      int32_t *out_compute) {
  const char *name = op->name;
  for (uint32_t k = 0; k < n; k++)
    if (o[k].kind == LP_LOAD && !lp_dtype_supported(o[k].dtype)) return NULL;
  if (!lp_dtype_supported(result)) return NULL;
  for (; op < rows + N_ROWS && strcmp(op->name, name) == 0; op++)
    if (fits(op, o, n, word)) {
      *out_compute = computing(op, o, n, result);
      return !fits_half(op, o, n, result) ? NULL : rk_is_int(*out_compute) ? op->i : op->f;
    }
  return NULL;
}
