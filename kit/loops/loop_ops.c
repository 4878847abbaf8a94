/* The pointwise operators that loops can hold: name, how the computing dtype is found, expression for floats, for
 * integers; those of floats alone are rows of scalar.def. Positions are the schema's; an absent argument reads as 0, so
 * rows that need to know list the positions that must be there. Formulas agree with the reference kernels
 * (kit/reference), which the tests hold them against. */
#include "kit/reference/rk_core.h"
#include "loop.h"
#include "kit/random/philox.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <string.h>

#define RESULT 1  /* computed in the result's dtype */
#define COMPARE 2 /* in the promoted dtype of the operands */
#define SELF 3    /* in the dtype of the first tensor */
#define DRAW 4    /* as RESULT; a draw from seed and offset */
/* As RESULT, floats in double; a function of its element's number, for which argument 0, or 1, is. */
#define COUNT 5
#define COUNT_FROM 6
/* As RESULT. Next to f16 or bf16, PyTorch's kernels round some operands that are wider, a number or a tensor of rank 0,
 * to the half first, and read others as floats (rk_pointwise.h), and those of a GPU differ (measured on an H100,
 * PyTorch
 * 2.11):
 *
 *            numbers, CPU | GPU   tensors of rank 0, CPU | GPU
 *   RESULT   floats | floats      rounded | rounded
 *   CAST     rounded | rounded    rounded | rounded
 *   FACTOR   floats | floats      floats, if second | rounded
 *   TERM     rounded | floats     rounded | rounded
 *   BOUND    floats | rounded     rounded | rounded
 *   STEPS    as CAST; on a CPU the formula is rounded within, which the reference kernel does */
#define CAST 7
#define FACTOR 8
#define TERM 9
#define BOUND 10
#define STEPS 11

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
/* clang-format on */
#define ADD "a + c * b"
#define SUB "a - c * b"
#define RSUB "b - c * a"
#define LERP "fabs(c) < T(0.5) ? a + c * (b - a) : b - (b - a) * (T(1) - c)"
#define TIMES_LOG(log) "b != b ? b : a == 0 ? T(0) : a * " log "(b)"
#define DRAWN(name, f, i)                                                                                              \
  { "aot.philox_" name ".default", DRAW, f, i, NULL, 0, 0, 0 }
#define CLAMP(name)                                                                                                    \
  {"aten." name, RESULT, "lesser(larger(a, b), c)", "lesser(larger(a, b), c)", NULL, 6, 0, 0},                         \
      {"aten." name, RESULT, "larger(a, b)", "larger(a, b)", NULL, 2, 4, 0}, {                                         \
    "aten." name, RESULT, "lesser(a, c)", "lesser(a, c)", NULL, 4, 2, 0                                                \
  }

/* Sorted by name (byte order): lp_op_find halves. Rows of one name are together, the first that fits is used. */
static const lp_op_t rows[] = {
    DRAWN("bits", NULL, "(int64_t)(d >> 1)"),
    DRAWN("normal", "d", NULL),
    DRAWN("randint", NULL, "(int64_t)((uint64_t)d + below(f, (uint64_t)e - (uint64_t)d))"),
    DRAWN("uniform", "unit(d)", NULL),
    BOTH("_conj_physical.default", RESULT, "a"),
    BOTH("_to_copy.default", RESULT, "a"),
    ROW("abs.default", RESULT, "fabs(a)", "a < 0 ? -a : a"),
    ROW("absolute.default", RESULT, "fabs(a)", "a < 0 ? -a : a"),
    BOTH("add.Scalar", TERM, ADD),
    BOTH("add.Tensor", TERM, ADD),
    ROW("addcdiv.default", RESULT, "a + d * b / c", NULL),
    BOTH("addcmul.default", RESULT, "a + d * b * c"),
    {"aten.arange.default", COUNT, "a", "a", NULL, 0, 0, AOT_BOOL},
    {"aten.arange.start", COUNT_FROM, "a + b", "a + b", NULL, 0, 0, AOT_BOOL},
    {"aten.arange.start_step", COUNT_FROM, "a + c * b", "a + c * b", NULL, 4, 0, AOT_BOOL},
    {"aten.arange.start_step", COUNT_FROM, "a + b", "a + b", NULL, 0, 4, AOT_BOOL},
    ROW("bitwise_and.Scalar", RESULT, NULL, "a & b"),
    ROW("bitwise_and.Tensor", RESULT, NULL, "a & b"),
    {"aten.bitwise_not.default", RESULT, NULL, "~a", NULL, 0, 0, AOT_BOOL},
    {"aten.bitwise_not.default", RESULT, NULL, "a == 0", NULL, 0, 0, 0},
    ROW("bitwise_or.Scalar", RESULT, NULL, "a | b"),
    ROW("bitwise_or.Tensor", RESULT, NULL, "a | b"),
    ROW("bitwise_xor.Scalar", RESULT, NULL, "a ^ b"),
    ROW("bitwise_xor.Tensor", RESULT, NULL, "a ^ b"),
    ROW("ceil.default", RESULT, "ceil(a)", "a"),
    CLAMP("clamp.Tensor"),
    CLAMP("clamp.default"),
    BOTH("clamp_max.Tensor", RESULT, "lesser(a, b)"),
    BOTH("clamp_max.default", RESULT, "lesser(a, b)"),
    BOTH("clamp_min.Tensor", RESULT, "larger(a, b)"),
    BOTH("clamp_min.default", RESULT, "larger(a, b)"),
    CLAMP("clip.default"),
    BOTH("clone.default", RESULT, "a"),
    BOTH("conj_physical.default", RESULT, "a"),
    BOTH("copy.default", RESULT, "b"),
    ROW("div.Scalar", FACTOR, "a / b", NULL),
    ROW("div.Tensor", FACTOR, "a / b", NULL),
    ROW("divide.Tensor", FACTOR, "a / b", NULL),
    BOTH("eq.Scalar", COMPARE, "a == b"),
    BOTH("eq.Tensor", COMPARE, "a == b"),
    BOTH("fill.Scalar", RESULT, "b"),
    BOTH("fill.Tensor", RESULT, "b"),
    ROW("floor.default", RESULT, "floor(a)", "a"),
    ROW("fmax.default", RESULT, "a != a ? b : b > a ? b : a", "a > b ? a : b"),
    ROW("fmin.default", RESULT, "a != a ? b : b < a ? b : a", "a < b ? a : b"),
    BOTH("full.default", RESULT, "b"),
    BOTH("full_like.default", RESULT, "b"),
    BOTH("ge.Scalar", COMPARE, "a >= b"),
    BOTH("ge.Tensor", COMPARE, "a >= b"),
    {"aten.gelu.default", RESULT, "a * gelu_gate(a)", NULL, "tanh", 0, 0, 0},
    {"aten.gelu.default", RESULT, "a * normal_or_nan(a)", NULL, "none", 0, 0, AOT_F16},
    {"aten.gelu.default", RESULT, "a * normal(a)", NULL, "none", 0, 0, 0},
    {"aten.gelu_backward.default", RESULT, "gelu_tanh_backward(a, b)", NULL, "tanh", 0, 0, 0},
    {"aten.gelu_backward.default", RESULT, "gelu_backward(a, b)", NULL, "none", 0, 0, 0},
    BOTH("greater.Tensor", COMPARE, "a > b"),
    BOTH("greater_equal.Tensor", COMPARE, "a >= b"),
    BOTH("gt.Scalar", COMPARE, "a > b"),
    BOTH("gt.Tensor", COMPARE, "a > b"),
    ROW("hardtanh.default", RESULT, "lesser(larger(a, b), c)", NULL),
    BOTH("heaviside.default", RESULT, "a == 0 ? b : a > 0"),
    ROW("isfinite.default", SELF, "a - a == 0", "1"),
    ROW("isinf.default", SELF, "fabs(a) == INFINITY", "0"),
    ROW("isnan.default", SELF, "a != a", "a != a"),
    ROW("isneginf.default", SELF, "-a == INFINITY", "0"),
    ROW("isposinf.default", SELF, "a == INFINITY", "0"),
    BOTH("le.Scalar", COMPARE, "a <= b"),
    BOTH("le.Tensor", COMPARE, "a <= b"),
    ROW("lerp.Scalar", RESULT, LERP, NULL),
    ROW("lerp.Tensor", RESULT, LERP, NULL),
    BOTH("less.Tensor", COMPARE, "a < b"),
    BOTH("less_equal.Tensor", COMPARE, "a <= b"),
    BOTH("logical_and.default", COMPARE, "a != 0 && b != 0"),
    BOTH("logical_not.default", COMPARE, "a == 0"),
    BOTH("logical_or.default", COMPARE, "a != 0 || b != 0"),
    BOTH("logical_xor.default", COMPARE, "(a != 0) != (b != 0)"),
    BOTH("lt.Scalar", COMPARE, "a < b"),
    BOTH("lt.Tensor", COMPARE, "a < b"),
    BOTH("masked_fill.Scalar", RESULT, "b != 0 ? c : a"),
    BOTH("masked_fill.Tensor", RESULT, "b != 0 ? c : a"),
    BOTH("max.other", RESULT, "larger(a, b)"),
    BOTH("maximum.default", RESULT, "larger(a, b)"),
    BOTH("min.other", RESULT, "lesser(a, b)"),
    BOTH("minimum.default", RESULT, "lesser(a, b)"),
    BOTH("mul.Scalar", FACTOR, "a * b"),
    BOTH("mul.Tensor", FACTOR, "a * b"),
    BOTH("multiply.Tensor", FACTOR, "a * b"),
    ROW("native_dropout_backward.default", RESULT, "a * b * c", NULL),
    BOTH("ne.Scalar", COMPARE, "a != b"),
    BOTH("ne.Tensor", COMPARE, "a != b"),
    BOTH("neg.default", RESULT, "-a"),
    BOTH("negative.default", RESULT, "-a"),
    BOTH("not_equal.Tensor", COMPARE, "a != b"),
    BOTH("ones.default", RESULT, "1"),
    BOTH("ones_like.default", RESULT, "1"),
    ROW("pow.Scalar", CAST, "pow(a, b)", NULL),
    ROW("pow.Tensor_Scalar", CAST, "pow_number(a, b)", NULL),
    ROW("pow.Tensor_Tensor", CAST, "pow(a, b)", NULL),
    ROW("relu.default", RESULT, "a < 0 ? T(0) : a", "a > 0 ? a : 0"),
    ROW("round.default", RESULT, "round(a)", "a"),
    BOTH("rsub.Scalar", TERM, RSUB),
    BOTH("rsub.Tensor", TERM, RSUB),
    BOTH("scalar_tensor.default", RESULT, "a"),
    BOTH("sgn.default", RESULT, "(a > 0) - (a < 0)"),
    BOTH("sign.default", RESULT, "(a > 0) - (a < 0)"),
    ROW("signbit.default", SELF, "copysign(T(1), a) < 0", "a < 0"),
    ROW("special_xlog1py.default", STEPS, TIMES_LOG("log1p"), NULL),
    BOTH("square.default", RESULT, "a * a"),
    BOTH("sub.Scalar", TERM, SUB),
    BOTH("sub.Tensor", TERM, SUB),
    BOTH("subtract.Tensor", TERM, SUB),
    BOTH("threshold.default", BOUND, "a <= b ? c : a"),
    BOTH("threshold_backward.default", BOUND, "b <= c ? 0 : a"),
    ROW("true_divide.Tensor", FACTOR, "a / b", NULL),
    ROW("trunc.default", RESULT, "trunc(a)", "a"),
    BOTH("where.Scalar", RESULT, "a != 0 ? b : c"),
    BOTH("where.ScalarOther", RESULT, "a != 0 ? b : c"),
    BOTH("where.ScalarSelf", RESULT, "a != 0 ? b : c"),
    BOTH("where.self", RESULT, "a != 0 ? b : c"),
    ROW("xlogy.Scalar_Other", STEPS, TIMES_LOG("log"), NULL),
    ROW("xlogy.Scalar_Self", STEPS, TIMES_LOG("log"), NULL),
    ROW("xlogy.Tensor", STEPS, TIMES_LOG("log"), NULL),
    BOTH("zeros.default", RESULT, "0"),
    BOTH("zeros_like.default", RESULT, "0"),
    {NULL, 0, NULL, NULL, NULL, 0, 0, 0},
};
#define SCALAR(id, name, n, formula) {name, RESULT, #formula, NULL, NULL, 0, 0, 0},
#define SCALAR_CAST(id, name, n, formula) {name, CAST, #formula, NULL, NULL, 0, 0, 0},
#define SCALAR_BOUND(id, name, n, formula) {name, BOUND, #formula, NULL, NULL, 0, 0, 0},
/* clang-format off */
static const lp_op_t scalar_rows[] = {
#include "kit/reference/scalar.def"
    {NULL, 0, NULL, NULL, NULL, 0, 0, 0},
};
/* clang-format on */

static int compare(const char *row, aot_str_t name) {
  int c = strncmp(row, name.data, (size_t)name.size);
  return c ? c : row[name.size] != 0;
}

static const lp_op_t *find(const lp_op_t *table, size_t n, aot_str_t name) {
  size_t low = 0, high = n;
  while (low < high) {
    size_t middle = (low + high) / 2;
    AOT_ASSERT(middle == 0 || strcmp(table[middle - 1].name, table[middle].name) <= 0); /* rows are sorted */
    if (compare(table[middle].name, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low < n && compare(table[low].name, name) == 0 ? &table[low] : NULL;
}

const lp_op_t *lp_op_find(aot_str_t name) {
  const lp_op_t *op = find(rows, sizeof rows / sizeof *rows - 1, name);
  return op ? op : find(scalar_rows, sizeof scalar_rows / sizeof *scalar_rows - 1, name);
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

int32_t lp_op_counts(const lp_op_t *op) { return op->kind == COUNT ? 0 : op->kind == COUNT_FROM ? 1 : -1; }

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
  if (lp_op_counts(op) >= 0 && !rk_is_int(d)) d = AOT_F64;
  return d == AOT_BOOL || !rk_is_int(d) ? d : AOT_I64;
}

/* Is it a value of that half, whatever it is? A bool, as a choice has it, is. */
static int is_of_half(const lp_operand_t *o, int32_t half) {
  if (o->kind == LP_LOAD) return o->dtype == half || o->dtype == AOT_BOOL;
  return o->number != o->number || rk_round_to(o->number, half) == o->number;
}

static int is_rounded(const lp_op_t *op, const lp_operand_t *o, uint32_t k, int on_gpu) {
  if (o->kind == LP_LOAD) return !(op->kind == FACTOR && !on_gpu && k == 1 && o->rank == 0);
  return op->kind == CAST || op->kind == STEPS || op->kind == (on_gpu ? BOUND : TERM);
}

/* The dtype in which a formula of f16 or bf16 is computed: float, where its operands are halves or may be wider; the
 * half, where all are to be rounded to it. 0: some are and some are not; or it is left to the reference kernel. */
static int32_t computing_half(const lp_op_t *op, const lp_operand_t *o, uint32_t n, int32_t half, int on_gpu) {
  int n_rounded = 0, n_wide = 0;
  if (op->kind == DRAW || (op->kind == STEPS && !on_gpu)) return 0;
  for (uint32_t k = 0; op->f && op->f[1] && k < n; k++) { /* a formula of one letter is a copy, and rounds once */
    if (o[k].kind == LP_ABSENT || !lp_reads(op->f, LP_TK_ARG, k) || is_of_half(&o[k], half)) continue;
    if (is_rounded(op, &o[k], k, on_gpu)) n_rounded++;
    else n_wide++;
  }
  return !n_rounded ? AOT_F32 : !n_wide ? half : 0;
}

static int fits(const lp_op_t *op, const lp_operand_t *o, uint32_t n, aot_str_t word, int32_t result) {
  uint32_t there = 0;
  AOT_ASSERT(n <= 32); /* a bit each */
  if (op->not_for && op->not_for == result) return 0;
  for (uint32_t k = 0; lp_op_counts(op) >= 0 && rk_is_int(result) && k < n && k < 3; k++)
    if (o[k].kind == LP_FLOAT) return 0; /* cut before they are added, which the reference kernel does */
  for (uint32_t k = 0; k < n; k++)
    if (o[k].kind != LP_ABSENT) there |= 1u << k;
  return (there & op->need) == op->need && !(there & op->without) && (!op->word || aot_str_eq(aot_str(op->word), word));
}

const char *lp_choose(const lp_op_t *op, const lp_operand_t *o, uint32_t n, aot_str_t word, int32_t result, int on_gpu,
                      int32_t *out_compute) {
  const char *name = op->name;
  for (uint32_t k = 0; k < n; k++)
    if (o[k].kind == LP_LOAD && !lp_dtype_supported(o[k].dtype)) return NULL;
  if (!lp_dtype_supported(result)) return NULL;
  for (; op->name && strcmp(op->name, name) == 0; op++)
    if (fits(op, o, n, word, result)) {
      *out_compute = computing(op, o, n, result);
      if (lp_value_dtype(result) != result && *out_compute == AOT_F32)
        *out_compute = computing_half(op, o, n, result, on_gpu);
      return !*out_compute ? NULL : rk_is_int(*out_compute) ? op->i : op->f;
    }
  return NULL;
}
