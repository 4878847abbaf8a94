/* The operators that reduce rows: each as a few steps of loop IR. %k is what step k gives; $k the operator's argument
 * k. Formulas and special points agree with the reference kernels (kit/reference), which the tests hold them
 * against. */
#include "kit/reference/rk_core.h"
#include "loop.h"

#include <aot/assert.h>
#include <string.h>

#define W LP_T_WORK
#define S LP_T_WIDE
#define R LP_T_RESULT
#define I LP_T_WHOLE
#define B LP_T_TRUTH
#define ARG(k) (1u << (k))

/* clang-format off */
/* The last of n steps is the only result. */
#define ROWS(name_, dims_, at, n, ...) \
  {.name = name_, .dims = dims_, .dims_at = at, .n_steps = n, .n_results = 1, .results = {n - 1}, \
   .steps = {__VA_ARGS__}}
/* The same, which takes integers, too. */
#define INTS(name_, dims_, at, ints_, n, ...) \
  {.name = name_, .dims = dims_, .dims_at = at, .n_steps = n, .n_results = 1, .results = {n - 1}, .ints = ints_, \
   .steps = {__VA_ARGS__}}
#define LIKE LP_INTS_LIKE
#define WIDE LP_INTS_WIDE
/* How many elements are not 0, or the most, or the least of truth values. */
#define TRUTHS(name_, dims_, at, gives_, join) \
  {.name = name_, .dims = dims_, .dims_at = at, .n_steps = 2, .n_results = 1, .results = {1}, .gives = {gives_}, \
   .ints = LIKE, .steps = {{LP_EACH, W, B, "a != 0"}, {join, I, R, "%0"}}}
/* An extreme and the place of the first element that is it. */
#define FIRST "a == %0 || (a != a && %0 != %0) ? @ : 0x7fffffffffffffff"
#define PLACES(name_, join) \
  {.name = name_, .dims = LP_ROW_DIM, .dims_at = 1, .n_steps = 3, .n_results = 1, .results = {2}, \
   .gives = {LP_GIVES_WHOLE}, .ints = LIKE, .steps = {{join, W, W, "a"}, {LP_EACH, W, I, FIRST}, {LP_MIN, I, R, "%1"}}}
#define EXTREMES(name_, join) \
  {.name = name_, .dims = LP_ROW_DIM, .dims_at = 1, .n_steps = 3, .n_results = 2, .results = {0, 2}, \
   .gives = {LP_GIVES_LIKE, LP_GIVES_WHOLE}, .ints = LIKE, \
   .steps = {{join, W, R, "a"}, {LP_EACH, W, I, FIRST}, {LP_MIN, I, I, "%1"}}}
/* The same up to each element, of equal ones the last. */
#define RUNNING(name_, join) \
  {.name = name_, .dims = LP_ROW_DIM, .dims_at = 1, .n_steps = 3, .n_results = 2, .results = {0, 2}, \
   .gives = {LP_GIVES_LIKE, LP_GIVES_WHOLE}, .ints = LIKE, \
   .steps = {{LP_SCAN + join, W, R, "a"}, {LP_EACH, W, I, "a == %0 || (a != a && %0 != %0) ? @ : 0"}, \
             {LP_SCAN + LP_MAX, I, I, "%1"}}}
#define SOFTMAX(name) \
  ROWS(name, LP_ROW_DIM, 1, 5, {LP_MAX, W, W, "a"}, {LP_EACH, W, W, "exp(a - %0)"}, {LP_SUM, W, S, "%1"}, \
       {LP_EACH, S, W, "T(1) / %2"}, {LP_EACH, W, R, "%1 * %3"})
#define LOG_SOFTMAX(name) \
  ROWS(name, LP_ROW_DIM, 1, 5, {LP_MAX, W, W, "a"}, {LP_EACH, W, W, "exp(a - %0)"}, {LP_SUM, W, S, "%1"}, \
       {LP_EACH, S, W, "log(%2)"}, {LP_EACH, W, R, "a - %0 - %3"})
/* An infinite sum has no mean: PyTorch's running mean has inf - inf. */
#define LAYER_NORM(name_, there, absent, last) \
  {.name = name_, .need = there, .without = absent, .dims = LP_ROW_TAIL, .dims_at = 1, .n_steps = 7, .n_results = 3, \
   .results = {6, 4, 3}, .preset_at = 4, .preset = 1e-5, \
   .steps = {{LP_SUM, W, S, "a"}, {LP_EACH, S, S, "%0 - %0 == 0 ? %0 / # : T(NAN)"}, \
             {LP_SUM, S, S, "(a - %1) * (a - %1)"}, {LP_EACH, S, W, "T(1) / sqrt(%2 / # + e)"}, \
             {LP_EACH, S, W, "%1"}, {LP_EACH, W, W, "(a - %4) * %3"}, {LP_EACH, W, R, last}}}
#define LAYER_NORMS(name) \
  LAYER_NORM(name, ARG(2) | ARG(3), 0, "%5 * c + d"), LAYER_NORM(name, ARG(2), ARG(3), "%5 * c"), \
  LAYER_NORM(name, ARG(3), ARG(2), "%5 + d"), LAYER_NORM(name, 0, ARG(2) | ARG(3), "%5")
#define RMS_NORM(name_, there, absent, last) \
  {.name = name_, .need = there, .without = absent, .dims = LP_ROW_TAIL, .dims_at = 1, .n_steps = 4, .n_results = 2, \
   .results = {3, 1}, \
   .steps = {{LP_SUM, S, S, "a * a"}, {LP_EACH, S, W, "T(1) / sqrt(%0 / # + d)"}, {LP_EACH, W, W, "a * %1"}, \
             {LP_EACH, W, R, last}}}
/* Its eps, where it is absent, is that of a dtype: the reference kernel's. */
#define RMS_NORMS(name) RMS_NORM(name, ARG(2) | ARG(3), 0, "%2 * c"), RMS_NORM(name, ARG(3), ARG(2), "%2")
/* Variance over # - correction; 0 / 0 of a row of one is not a number. A row with an infinity has no variance, and in
 * PyTorch no mean next to it. */
#define VARIANCE(name_, n_results_, second, root) \
  {.name = name_, .dims = LP_ROW_DIM, .dims_at = 1, .n_steps = 5, .n_results = n_results_, .results = {3, second}, \
   .preset_at = 2, .preset = 1, \
   .steps = {{LP_SUM, W, S, "a"}, {LP_EACH, S, S, "%0 / #"}, {LP_SUM, S, S, "(a - %1) * (a - %1)"}, \
             {LP_EACH, S, R, root "(%2 / larger(# - c, T(0)))"}, {LP_EACH, S, R, "%2 != %2 ? %2 : %1"}}}

/* g: the gradient; x, w; xh: the standardized input, its mean and rstd known to the steps before. xc: the input that
 * their second sum is over, which is `scale` times xh's: so statistics that are made again are in no pass before it. */
#define NORM_GRADIENTS(g, w, xh, rstd, xc, scale, s1, s2) \
  {LP_SUM, S, S, g w}, {LP_SUM, S, S, g w " * " xc}, \
  {LP_EACH, W, R, rstd " * (" g w " - " s1 " / # - " xh " * (" scale s2 " / #))"}, \
  {LP_ACROSS, W, S, g " * " xh}, {LP_ACROSS, W, S, g}
#define NATIVE_LAYER_NORM_BACKWARD(there, absent, w) \
  {.name = "aten.native_layer_norm_backward.default", .need = there, .without = absent, .dims = LP_ROW_TAIL, \
   .dims_at = 2, .n_steps = 6, .n_results = 3, .results = {3, 4, 5}, \
   .steps = {{LP_EACH, W, W, "(b - d) * e"}, NORM_GRADIENTS("a", w, "%0", "e", "%0", "", "%1", "%2")}}
/* the statistics again */
#define LAYER_NORM_BACKWARD(there, absent, w) \
  {.name = "aot.layer_norm_backward.default", .need = there, .without = absent, .dims = LP_ROW_TAIL, .dims_at = 2, \
   .n_steps = 10, .n_results = 3, .results = {7, 8, 9}, \
   .steps = {{LP_SUM, W, S, "b"}, {LP_EACH, S, S, "%0 - %0 == 0 ? %0 / # : T(NAN)"}, \
             {LP_SUM, S, S, "(b - %1) * (b - %1)"}, {LP_EACH, S, W, "T(1) / sqrt(%2 / # + f)"}, \
             {LP_EACH, W, W, "(b - %1) * %3"}, \
             NORM_GRADIENTS("a", w, "%4", "%3", "(b - %1)", "%3 * ", "%5", "%6")}}
#define RMS_NORM_BACKWARD(there, absent, w) \
  {.name = "aot.rms_norm_backward.default", .need = there, .without = absent, .dims = LP_ROW_TAIL, .dims_at = 2, \
   .n_steps = 6, .n_results = 2, .results = {4, 5}, \
   .steps = {{LP_SUM, S, S, "b * b"}, {LP_EACH, S, W, "T(1) / sqrt(%0 / # + e)"}, {LP_EACH, W, W, "b * %1"}, \
             {LP_SUM, S, S, "a" w " * b"}, {LP_EACH, W, R, "%1 * (a" w " - %2 * (%1 * %3 / #))"}, \
             {LP_ACROSS, W, S, "a * %2"}}}
#define FUSED_RMS_NORM_BACKWARD(there, absent, w) \
  {.name = "aten._fused_rms_norm_backward.default", .need = there, .without = absent, .dims = LP_ROW_TAIL, \
   .dims_at = 2, .n_steps = 4, .n_results = 2, .results = {2, 3}, \
   .steps = {{LP_EACH, W, W, "b * d"}, {LP_SUM, S, S, "a" w " * %0"}, \
             {LP_EACH, W, R, "d * (a" w " - %0 * (%1 / #))"}, {LP_ACROSS, W, S, "a * %0"}}}

/* Cross entropy of scores and classes: the row is log(sum(exp)) - the class's score; the loss their sum, the derivative
 * softmax - one at the class. Rows of the class `ignore` count for nothing. h: see class_at. */
#define SOFTMAX_OF(x) \
  {LP_MAX, W, W, x}, {LP_EACH, W, W, "exp(" x " - %0)"}, {LP_SUM, W, S, "%1"}
#define CROSS_ENTROPY \
  {.name = "aten.cross_entropy_loss.default", .without = ARG(2), .dims = LP_ROW_LAST, .class_at = 1, .n_steps = 7, \
   .n_results = 1, .results = {6}, \
   .steps = {SOFTMAX_OF("a"), {LP_EACH, I, B, "@ == b"}, {LP_MAX, W, W, "%3 != 0 ? a : -T(INFINITY)"}, \
             {LP_EACH, I, B, "b == e"}, \
             {LP_ACROSS, S, S, "(%5 != 0 ? T(0) : log(%2) + %0 - %4) * h"}}}
#define CROSS_ENTROPY_BACKWARD \
  {.name = "aot.cross_entropy_loss_backward.default", .without = ARG(3), .dims = LP_ROW_LAST, .of = 1, .class_at = 2, \
   .n_steps = 8, .n_results = 1, .results = {7}, \
   .steps = {SOFTMAX_OF("b"), {LP_EACH, I, B, "@ == c"}, {LP_EACH, I, B, "c == f"}, {LP_EACH, S, W, "T(1) / %2"}, \
             {LP_EACH, S, W, "%4 != 0 ? T(0) : a * h"}, \
             {LP_EACH, W, R, "%4 != 0 ? T(0) : (%1 * %5 - (%3 != 0 ? T(1) : T(0))) * %6"}}}
/* The same of logarithms of probabilities; the loss's second result is how many rows count. */
#define NLL_FORWARD \
  {.name = "aten.nll_loss_forward.default", .without = ARG(2), .dims = LP_ROW_LAST, .class_at = 1, .n_steps = 5, \
   .n_results = 2, .results = {3, 4}, \
   .steps = {{LP_EACH, I, B, "@ == b"}, {LP_MAX, W, W, "%0 != 0 ? a : -T(INFINITY)"}, {LP_EACH, I, B, "b == e"}, \
             {LP_ACROSS, S, S, "(%2 != 0 ? T(0) : -%1) * h"}, {LP_ACROSS, S, S, "%2 != 0 ? T(0) : T(1)"}}}
/* Sorted by name (byte order). Rows of one name are together, the first that fits is used. */
static const lp_row_op_t rows[] = {
  CROSS_ENTROPY_BACKWARD,
  LAYER_NORM_BACKWARD(ARG(3), 0, " * d"), LAYER_NORM_BACKWARD(0, ARG(3), ""),
  RMS_NORM_BACKWARD(ARG(3) | ARG(4), 0, " * d"), RMS_NORM_BACKWARD(ARG(4), ARG(3), ""),
  RMS_NORMS("aten._fused_rms_norm.default"),
  FUSED_RMS_NORM_BACKWARD(ARG(4), 0, " * e"), FUSED_RMS_NORM_BACKWARD(0, ARG(4), ""),
  LOG_SOFTMAX("aten._log_softmax.default"),
  ROWS("aten._log_softmax_backward_data.default", LP_ROW_DIM, 2, 2, {LP_SUM, W, S, "a"},
       {LP_EACH, W, R, "a - exp(b) * %0"}),
  /* a row of -inf alone is a row of zeros */
  ROWS("aten._safe_softmax.default", LP_ROW_DIM, 1, 6, {LP_MAX, W, W, "a"},
       {LP_EACH, W, W, "%0 == -INFINITY ? T(0) : %0"},
       {LP_EACH, W, W, "exp(a - %1)"}, {LP_SUM, W, S, "%2"}, {LP_EACH, S, W, "%3 == 0 ? T(0) : T(1) / %3"},
       {LP_EACH, W, R, "%2 * %4"}),
  SOFTMAX("aten._softmax.default"),
  ROWS("aten._softmax_backward_data.default", LP_ROW_DIM, 2, 2, {LP_SUM, S, S, "a * b"},
       {LP_EACH, W, R, "b * (a - %0)"}),
  TRUTHS("aten.all.default", LP_ROW_WHOLE, 0, LP_GIVES_TRUTH, LP_MIN),
  TRUTHS("aten.all.dim", LP_ROW_DIM, 1, LP_GIVES_TRUTH, LP_MIN),
  TRUTHS("aten.all.dims", LP_ROW_DIM, 1, LP_GIVES_TRUTH, LP_MIN),
  INTS("aten.amax.default", LP_ROW_DIM, 1, LIKE, 1, {LP_MAX, W, R, "a"}),
  INTS("aten.amin.default", LP_ROW_DIM, 1, LIKE, 1, {LP_MIN, W, R, "a"}),
  {.name = "aten.aminmax.default", .dims = LP_ROW_DIM, .dims_at = 1, .n_steps = 2, .n_results = 2, .results = {0, 1},
   .ints = LIKE, .steps = {{LP_MIN, W, R, "a"}, {LP_MAX, W, R, "a"}}},
  TRUTHS("aten.any.default", LP_ROW_WHOLE, 0, LP_GIVES_TRUTH, LP_MAX),
  TRUTHS("aten.any.dim", LP_ROW_DIM, 1, LP_GIVES_TRUTH, LP_MAX),
  TRUTHS("aten.any.dims", LP_ROW_DIM, 1, LP_GIVES_TRUTH, LP_MAX),
  PLACES("aten.argmax.default", LP_MAX),
  PLACES("aten.argmin.default", LP_MIN),
  TRUTHS("aten.count_nonzero.default", LP_ROW_DIM, 1, LP_GIVES_WHOLE, LP_SUM),
  TRUTHS("aten.count_nonzero.dim_IntList", LP_ROW_DIM, 1, LP_GIVES_WHOLE, LP_SUM),
  CROSS_ENTROPY,
  RUNNING("aten.cummax.default", LP_MAX),
  RUNNING("aten.cummin.default", LP_MIN),
  INTS("aten.cumprod.default", LP_ROW_DIM, 1, WIDE, 1, {LP_SCAN + LP_PROD, W, R, "a"}),
  INTS("aten.cumsum.default", LP_ROW_DIM, 1, WIDE, 1, {LP_SCAN + LP_SUM, W, R, "a"}),
  LAYER_NORMS("aten.layer_norm.default"),
  LOG_SOFTMAX("aten.log_softmax.int"),
  ROWS("aten.logcumsumexp.default", LP_ROW_DIM, 1, 1, {LP_SCAN + LP_LOG_ADD, W, R, "a"}),
  ROWS("aten.logsumexp.default", LP_ROW_DIM, 1, 4, {LP_MAX, W, W, "a"},
       {LP_EACH, W, W, "fabs(%0) == INFINITY ? T(0) : %0"}, {LP_SUM, W, S, "exp(a - %1)"},
       {LP_EACH, S, R, "log(%2) + %1"}),
  INTS("aten.max.default", LP_ROW_WHOLE, 0, LIKE, 1, {LP_MAX, W, R, "a"}),
  EXTREMES("aten.max.dim", LP_MAX),
  ROWS("aten.mean.default", LP_ROW_WHOLE, 0, 2, {LP_SUM, W, S, "a"}, {LP_EACH, S, R, "%0 / #"}),
  ROWS("aten.mean.dim", LP_ROW_DIM, 1, 2, {LP_SUM, W, S, "a"}, {LP_EACH, S, R, "%0 / #"}),
  INTS("aten.min.default", LP_ROW_WHOLE, 0, LIKE, 1, {LP_MIN, W, R, "a"}),
  EXTREMES("aten.min.dim", LP_MIN),
  ROWS("aten.nansum.default", LP_ROW_DIM, 1, 1, {LP_SUM, W, R, "a != a ? T(0) : a"}),
  LAYER_NORMS("aten.native_layer_norm.default"),
  NATIVE_LAYER_NORM_BACKWARD(ARG(5), 0, " * f"), NATIVE_LAYER_NORM_BACKWARD(0, ARG(5), ""),
  NLL_FORWARD,
  INTS("aten.prod.default", LP_ROW_WHOLE, 0, WIDE, 1, {LP_PROD, W, R, "a"}),
  INTS("aten.prod.dim_int", LP_ROW_DIM, 1, WIDE, 1, {LP_PROD, W, R, "a"}),
  RMS_NORMS("aten.rms_norm.default"),
  SOFTMAX("aten.softmax.int"),
  VARIANCE("aten.std.correction", 1, 0, "sqrt"),
  VARIANCE("aten.std_mean.correction", 2, 4, "sqrt"),
  INTS("aten.sum.default", LP_ROW_WHOLE, 0, WIDE, 1, {LP_SUM, W, R, "a"}),
  INTS("aten.sum.dim_IntList", LP_ROW_DIM, 1, WIDE, 1, {LP_SUM, W, R, "a"}),
  VARIANCE("aten.var.correction", 1, 0, ""),
  VARIANCE("aten.var_mean.correction", 2, 4, ""),
};
/* clang-format on */
#define N_ROWS (sizeof rows / sizeof rows[0])

static int compare(const char *row, aot_str_t name) {
  int c = strncmp(row, name.data, (size_t)name.size);
  return c ? c : row[name.size] != 0;
}

const lp_row_op_t *lp_row_op_find(aot_str_t name) {
  size_t low = 0, high = N_ROWS;
  while (low < high) {
    size_t middle = (low + high) / 2;
    AOT_ASSERT(middle == 0 || strcmp(rows[middle - 1].name, rows[middle].name) <= 0); /* rows are sorted */
    if (compare(rows[middle].name, name) < 0) low = middle + 1;
    else high = middle;
  }
  return low < N_ROWS && compare(rows[low].name, name) == 0 ? &rows[low] : NULL;
}

const lp_row_op_t *lp_row_op_choose(const lp_row_op_t *op, const lp_operand_t *o, uint32_t n) {
  const char *name = op->name;
  uint32_t there = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (o[k].kind != LP_ABSENT) there |= 1u << k;
    if (o[k].kind != LP_LOAD || (op->class_at == k && k)) continue;
    if (!lp_dtype_supported(o[k].dtype) || (rk_is_int(o[k].dtype) && !op->ints)) return NULL;
  }
  for (; op < rows + N_ROWS && strcmp(op->name, name) == 0; op++)
    if ((there & op->need) == op->need && !(there & op->without)) return op;
  return NULL;
}

const lp_row_op_t *lp_row_op_across(const lp_row_op_t *op) {
  static const lp_row_op_t across = ROWS("", LP_ROW_DIM, 1, 1, {LP_ACROSS, W, S, "a"});
  return strcmp(op->name, "aten.sum.dim_IntList") == 0 ? &across : NULL;
}

int lp_row_op_gives(const lp_row_op_t *op, uint32_t r, int32_t x, int32_t dtype) {
  AOT_ASSERT(r < op->n_results && op->results[r] < op->n_steps);
  if (op->gives[r] == LP_GIVES_WHOLE) return dtype == AOT_I64;
  if (op->gives[r] == LP_GIVES_TRUTH) return dtype == AOT_BOOL;
  if (rk_is_int(x)) return dtype == (op->ints == LP_INTS_WIDE ? AOT_I64 : x);
  return dtype == x || dtype == lp_value_dtype(x);
}

int32_t lp_step_dtype(int32_t which, int32_t work, int32_t result) {
  switch (which) {
    case R: return result;
    case I: return AOT_I64;
    case B: return AOT_BOOL;
    default: return rk_is_int(work) ? AOT_I64 : which == S || work == AOT_F64 ? AOT_F64 : AOT_F32;
  }
}
