/* Forms of values, node by node. Numbers in affine form are a geometry, `start` the offset and `steps` the strides: a
 * view of the tensor has the view of its geometry for a form, by the very functions that views of memory go by.
 * Whatever an operator's row does not know stays unknown; so does what grows beyond SMALL, so that sums cannot
 * overflow. */
#include "affine_values.h"

#include "kit/reference/rk_core.h"
#include "kit/loops/loop_print.h"
#include <aot/assert.h>
#include <math.h>
#include <string.h>

#define SMALL (INT64_C(1) << 30)

typedef struct affine_traversal {
  lw_build_t *b; /* b->node: the node whose result is requested */
  lw_form_t **of;
} affine_traversal_t;

enum { ADD = 1, SUBTRACT, MULTIPLY, EQUAL, DIFFER, BELOW, AT_MOST, ABOVE, AT_LEAST, BOTH, EITHER };

/* ---- forms ---- */

static int is_small(int64_t v) { return v >= -SMALL && v <= SMALL; }
static int is_constant(const lw_form_t *f) { return f->kind == LW_FORM_CHOICE && f->yes == f->no; }

static lw_form_t constant(double v) { return (lw_form_t){.kind = LW_FORM_CHOICE, .yes = v, .no = v}; }

/* Of the same sizes, 0 everywhere. */
static lw_form_t zeros(const lw_form_t *like) {
  lw_form_t out = {.kind = LW_FORM_CHOICE, .rank = like->rank};
  memcpy(out.sizes, like->sizes, sizeof out.sizes);
  return out;
}

/* The same form with the sizes of t, which it broadcasts to. */
static lw_form_t spread(const lw_form_t *f, const lw_tensor_t *t) {
  lw_form_t out = *f;
  const int32_t ahead = t->rank - f->rank;
  AOT_ASSERT(ahead >= 0);
  out.rank = t->rank;
  memcpy(out.sizes, t->sizes, sizeof out.sizes);
  for (int32_t d = 0; d < t->rank; d++) out.steps[d] = d < ahead ? 0 : f->steps[d - ahead];
  return out;
}

static int as_numbers(const lw_form_t *f, lw_form_t *out) {
  *out = *f;
  if (f->kind == LW_FORM_NUMBERS) return 1;
  if (!is_constant(f) || f->yes != floor(f->yes) || fabs(f->yes) > (double)SMALL) return 0;
  out->kind = LW_FORM_NUMBERS;
  out->start = (int64_t)f->yes;
  memset(out->steps, 0, sizeof out->steps);
  return 1;
}

/* The least and the greatest number. */
static void range_of(const lw_form_t *f, int64_t *low, int64_t *high) {
  *low = *high = f->start;
  for (int32_t d = 0; d < f->rank; d++) {
    const int64_t way = f->steps[d] * (f->sizes[d] - 1);
    if (way < 0) *low += way;
    else *high += way;
  }
}

/* v as elements of that dtype are; 0: unknown. */
static int hold(double *v, int32_t dtype, int is_integer) {
  if (isnan(*v)) return 0;
  if (is_integer) return *v == trunc(*v) && fabs(*v) <= (double)SMALL;
  *v = dtype == AOT_BOOL ? *v != 0 : rk_round_to(*v, dtype);
  return 1;
}

/* As a tensor of t's type holds it, in one form only: a choice that is always the same is a constant. 0: unknown. */
static int settle(lw_form_t *f, const lw_tensor_t *t) {
  const int is_integer = t->dtype == AOT_I64 || t->dtype == AOT_I32;
  int has_steps = 0;
  AOT_ASSERT(f->kind == LW_FORM_NUMBERS || f->kind == LW_FORM_CHOICE);
  if (f->rank != t->rank || !is_small(f->start)) return 0;
  for (int32_t d = 0; d < f->rank; d++) {
    f->sizes[d] = t->sizes[d];
    if (f->sizes[d] < 1 || !is_small(f->sizes[d])) return 0;
    if (f->sizes[d] == 1) f->steps[d] = 0;
    if (!is_small(f->steps[d]) || !is_small(f->steps[d] * (f->sizes[d] - 1))) return 0;
    has_steps |= f->steps[d] != 0;
  }
  if (f->kind == LW_FORM_NUMBERS && !has_steps) {
    f->yes = f->no = (double)f->start;
    f->kind = LW_FORM_CHOICE;
  }
  if (f->kind == LW_FORM_NUMBERS) return is_integer;
  if (!is_integer && t->dtype != AOT_BOOL && !lp_is_float(t->dtype)) return 0;
  if (!hold(&f->yes, t->dtype, is_integer) || !hold(&f->no, t->dtype, is_integer)) return 0;
  int64_t low, high;
  range_of(f, &low, &high);
  if (low >= 0) f->no = f->yes;
  if (high < 0) f->yes = f->no;
  if (!is_constant(f)) return 1;
  f->start = 0;
  memset(f->steps, 0, sizeof f->steps);
  return 1;
}

/* ---- arguments ---- */

static const lw_tensor_t *result(const affine_traversal_t *w) { return lw_type(w->b, 0); }

static int is_integer_arg(const affine_traversal_t *w, uint32_t k) {
  const aot_snap_arg_t *a = lw_arg(w->b, k);
  return a->kind == AOT_ARG_INT ||
         (a->kind == AOT_ARG_VALUE && lw_value(w->b, (uint32_t)a->i)->kind == AOT_TYPE_SYMINT);
}

/* A tensor's form, or a number's. */
static int read_arg(const affine_traversal_t *w, uint32_t k, lw_form_t *out) {
  const aot_snap_arg_t *a = lw_arg(w->b, k);
  const lw_form_t *known = a->kind == AOT_ARG_VALUE ? w->of[(uint32_t)a->i - w->b->value_begin] : NULL;
  if (known) *out = *known;
  else if (is_integer_arg(w, k) || a->kind == AOT_ARG_BOOL) *out = constant((double)lw_arg_int(w->b, k, 0));
  else if (a->kind == AOT_ARG_FLOAT) *out = constant(lw_arg_float(w->b, k, 0));
  else return 0;
  return 1;
}

/* The factor of the second operand, argument 2, is none. */
static int has_no_factor(const affine_traversal_t *w) {
  const int32_t kind = lw_arg(w->b, 2)->kind;
  return kind == AOT_ARG_NONE || ((kind == AOT_ARG_INT || kind == AOT_ARG_FLOAT) && lw_arg_float(w->b, 2, 1) == 1);
}

static int read_spread(const affine_traversal_t *w, uint32_t k, lw_form_t *out) {
  lw_form_t f;
  if (!read_arg(w, k, &f) || f.rank > result(w)->rank) return 0;
  *out = spread(&f, result(w));
  return 1;
}

static int read_dim(const affine_traversal_t *w, uint32_t k, int64_t preset, int32_t rank, int32_t *out) {
  int64_t d = lw_arg_int(w->b, k, preset);
  if (d < 0) d += rank;
  *out = (int32_t)d;
  return d >= 0 && d < rank;
}

/* ---- numbers by numbers ---- */

static double apply(int how, double a, double b) {
  switch (how) {
    case ADD: return a + b;
    case SUBTRACT: return a - b;
    case MULTIPLY: return a * b;
    case EQUAL: return a == b;
    case DIFFER: return a != b;
    case BELOW: return a < b;
    case AT_MOST: return a <= b;
    case ABOVE: return a > b;
    case AT_LEAST: return a >= b;
    case BOTH: return a != 0 && b != 0;
    case EITHER: return a != 0 || b != 0;
    default: return NAN;
  }
}

/* x + factor * y */
static lw_form_t combined(const lw_form_t *x, const lw_form_t *y, int64_t factor) {
  AOT_ASSERT(x->rank == y->rank);
  lw_form_t out = *x;
  out.start += factor * y->start;
  for (int32_t d = 0; d < x->rank; d++) out.steps[d] += factor * y->steps[d];
  return out;
}

/* 1 where the numbers are at least `least`, or where they are not. */
static lw_form_t choice(lw_form_t numbers, int64_t least, int is_where) {
  AOT_ASSERT(numbers.kind == LW_FORM_NUMBERS);
  numbers.kind = LW_FORM_CHOICE;
  numbers.start -= least;
  numbers.yes = is_where;
  numbers.no = !is_where;
  return numbers;
}

static int compare(int how, const lw_form_t *x, const lw_form_t *y, lw_form_t *out) {
  const lw_form_t d = combined(x, y, -1);
  int64_t low, high;
  switch (how) {
    case BELOW: *out = choice(d, 0, 0); return 1;
    case AT_MOST: *out = choice(d, 1, 0); return 1;
    case ABOVE: *out = choice(d, 1, 1); return 1;
    case AT_LEAST: *out = choice(d, 0, 1); return 1;
    default: break;
  }
  range_of(&d, &low, &high);
  if (low <= 0 && high >= 0 && low != high) return 0;
  *out = zeros(x);
  out->yes = out->no = (how == EQUAL) == (low == 0 && high == 0);
  return 1;
}

/* Choices by conditions that imply each other: `steps` are the same. */
static int join_choices(int how, const lw_form_t *x, const lw_form_t *y, lw_form_t *out) {
  AOT_ASSERT(x->kind == LW_FORM_CHOICE && y->kind == LW_FORM_CHOICE && x->rank == y->rank);
  if (memcmp(x->steps, y->steps, sizeof x->steps) || x->yes != 1 || y->yes != 1 || x->no != 0 || y->no != 0) return 0;
  const int is_x_stricter = x->start < y->start;
  *out = (how == BOTH) == is_x_stricter ? *x : *y;
  return how == BOTH || how == EITHER;
}

static int by_numbers(int how, const lw_form_t *x, const lw_form_t *y, lw_form_t *out) {
  lw_form_t nx, ny;
  if (!as_numbers(x, &nx) || !as_numbers(y, &ny)) return 0;
  if (how == ADD || how == SUBTRACT) {
    *out = combined(&nx, &ny, how == ADD ? 1 : -1);
    return 1;
  }
  if (how == MULTIPLY && (is_constant(x) || is_constant(y))) {
    const lw_form_t none = zeros(x);
    *out = is_constant(x) ? combined(&none, &ny, nx.start) : combined(&none, &nx, ny.start);
    out->kind = LW_FORM_NUMBERS;
    return 1;
  }
  return how >= EQUAL && how <= AT_LEAST && compare(how, &nx, &ny, out);
}

/* ---- operators; each gives the form of its one result ---- */

static int binary(const affine_traversal_t *w, int how, lw_form_t *out) {
  lw_form_t x, y;
  if (!read_spread(w, 0, &x) || !read_spread(w, 1, &y) || !has_no_factor(w)) return 0;
  if ((how == BOTH || how == EITHER) && result(w)->dtype != AOT_BOOL) return 0; /* bits of integers */
  if (is_constant(&y) && x.kind == LW_FORM_CHOICE) {
    *out = x;
    out->yes = apply(how, x.yes, y.yes);
    out->no = apply(how, x.no, y.yes);
    return 1;
  }
  if (is_constant(&x) && y.kind == LW_FORM_CHOICE) {
    *out = y;
    out->yes = apply(how, x.yes, y.yes);
    out->no = apply(how, x.yes, y.no);
    return 1;
  }
  if (x.kind == LW_FORM_CHOICE && y.kind == LW_FORM_CHOICE) return join_choices(how, &x, &y, out);
  return by_numbers(how, &x, &y, out);
}

/* other - self */
static int reversed(const affine_traversal_t *w, int how, lw_form_t *out) {
  lw_form_t self, other;
  if (!read_spread(w, 0, &self) || !read_spread(w, 1, &other) || !has_no_factor(w)) return 0;
  if (!is_constant(&other) || self.kind != LW_FORM_CHOICE) return by_numbers(how, &other, &self, out);
  *out = self;
  out->yes = other.yes - self.yes;
  out->no = other.yes - self.no;
  return 1;
}

static int logical_not(const affine_traversal_t *w, int how, lw_form_t *out) {
  if (result(w)->dtype != AOT_BOOL || !read_arg(w, 0, out) || out->kind != LW_FORM_CHOICE) return 0;
  (void)how;
  out->yes = out->yes == 0;
  out->no = out->no == 0;
  return 1;
}

/* `then` where the condition holds, else `otherwise` */
static int selected(const lw_form_t *condition, const lw_form_t *then, const lw_form_t *otherwise, lw_form_t *out) {
  if (is_constant(condition)) *out = condition->yes != 0 ? *then : *otherwise;
  else if (condition->kind != LW_FORM_CHOICE || !is_constant(then) || !is_constant(otherwise)) return 0;
  else {
    *out = *condition;
    out->yes = condition->yes != 0 ? then->yes : otherwise->yes;
    out->no = condition->no != 0 ? then->yes : otherwise->yes;
  }
  return 1;
}

static int where(const affine_traversal_t *w, int how, lw_form_t *out) {
  lw_form_t condition, x, y;
  (void)how;
  return read_spread(w, 0, &condition) && read_spread(w, 1, &x) && read_spread(w, 2, &y) &&
         selected(&condition, &x, &y, out);
}

static int masked_fill(const affine_traversal_t *w, int how, lw_form_t *out) {
  lw_form_t self, condition, value;
  (void)how;
  return read_spread(w, 0, &self) && read_spread(w, 1, &condition) && read_spread(w, 2, &value) &&
         selected(&condition, &value, &self, out);
}

/* arange(end), (start, end), (start, end, step) */
static int range(const affine_traversal_t *w, int first, lw_form_t *out) {
  for (int k = 0; k <= first; k++)
    if (!is_integer_arg(w, (uint32_t)k)) return 0;
  *out = (lw_form_t){.kind = LW_FORM_NUMBERS, .rank = 1, .sizes = {result(w)->sizes[0]}};
  out->start = first ? lw_arg_int(w->b, 0, 0) : 0;
  out->steps[0] = first == 2 ? lw_arg_int(w->b, 2, 1) : 1;
  return 1;
}

/* Filled with argument k. */
static int filled(const affine_traversal_t *w, int k, lw_form_t *out) {
  return lw_arg(w->b, (uint32_t)k)->kind != AOT_ARG_VALUE && read_spread(w, (uint32_t)k, out);
}
static int filled_with(const affine_traversal_t *w, int number, lw_form_t *out) {
  const lw_form_t f = constant(number);
  *out = spread(&f, result(w));
  return 1;
}

/* tril: j <= i + diagonal; triu: j >= i + diagonal */
static int triangle(const affine_traversal_t *w, int is_upper, lw_form_t *out) {
  lw_form_t self;
  if (!read_arg(w, 0, &self) || !is_constant(&self) || self.rank < 2) return 0;
  const int64_t diagonal = lw_arg_int(w->b, 1, 0);
  *out = self;
  out->start = is_upper ? -diagonal : diagonal;
  out->steps[out->rank - 1] = is_upper ? 1 : -1;
  out->steps[out->rank - 2] = is_upper ? -1 : 1;
  out->no = 0;
  return is_small(diagonal);
}

/* Of one number everywhere: its multiples. */
static int running_sum(const affine_traversal_t *w, int how, lw_form_t *out) {
  lw_form_t self, step;
  int32_t d;
  (void)how;
  if (!read_arg(w, 0, &self) || !is_constant(&self) || !as_numbers(&self, &step)) return 0;
  if (!read_dim(w, 1, 0, self.rank, &d)) return 0;
  *out = step;
  out->steps[d] = step.start;
  return 1;
}

/* The same elements, in another type or memory. */
static int same(const affine_traversal_t *w, int how, lw_form_t *out) {
  (void)how;
  return read_arg(w, 0, out);
}

/* What are contiguous continues where the one before it ends. */
static int joined(const affine_traversal_t *w, int how, lw_form_t *out) {
  const aot_snap_arg_t *list = lw_arg(w->b, 0);
  const uint32_t *rows = AOT_SNAP_ROWS(w->b->s, uint32_t, operands) + list->i;
  lw_form_t first = {0}, f;
  int64_t at = 0, step = 0;
  int32_t d;
  (void)how;
  if (list->kind != AOT_ARG_VALUES || !read_dim(w, 1, 0, result(w)->rank, &d)) return 0;
  for (uint32_t k = 0; k < list->n; k++) {
    const lw_form_t *piece = rows[k] == AOT_NO_ID ? NULL : w->of[rows[k] - w->b->value_begin];
    if (!piece || piece->rank != result(w)->rank || !as_numbers(piece, &f)) return 0;
    if (k == 0) first = f;
    if (k == 1 && first.sizes[d] == 1) first.steps[d] = f.start - first.start; /* the only step that can be */
    if (k == 0 || k == 1) step = first.steps[d];
    if (f.sizes[d] == 1) f.steps[d] = step;
    if (f.start != first.start + at * step || memcmp(f.steps, first.steps, sizeof f.steps)) return 0;
    at += f.sizes[d];
  }
  *out = first;
  return list->n > 0;
}

/* diff(self, n=1, dim=-1, prepend): of even numbers their step, if what comes before is even, too. */
static int difference(const affine_traversal_t *w, int how, lw_form_t *out) {
  lw_form_t self, before, f;
  int32_t d;
  (void)how;
  if (!read_arg(w, 0, &f) || !as_numbers(&f, &self) || !read_dim(w, 2, -1, self.rank, &d)) return 0;
  if (lw_arg_int(w->b, 1, 1) != 1 || lw_arg(w->b, 4)->kind != AOT_ARG_NONE) return 0;
  const int64_t step = self.steps[d];
  if (lw_arg(w->b, 3)->kind != AOT_ARG_NONE) {
    if (!read_arg(w, 3, &f) || f.rank != self.rank || f.sizes[d] != 1 || !as_numbers(&f, &before)) return 0;
    before.steps[d] = step;
    if (before.start != self.start - step || memcmp(before.steps, self.steps, sizeof self.steps)) return 0;
  }
  *out = zeros(&self);
  out->yes = out->no = (double)step;
  return 1;
}

/* self[indices], all of its dimensions by numbers in range: the form of the form. */
static int indexed(const affine_traversal_t *w, int how, lw_form_t *out) {
  const aot_snap_arg_t *list = lw_arg(w->b, 1);
  const uint32_t *rows = AOT_SNAP_ROWS(w->b->s, uint32_t, operands) + list->i;
  lw_form_t self;
  (void)how;
  if (list->kind != AOT_ARG_VALUES || !read_arg(w, 0, &self) || list->n != (uint32_t)self.rank) return 0;
  *out = zeros(&self);
  out->kind = self.kind;
  out->start = self.start;
  out->yes = self.yes;
  out->no = self.no;
  out->rank = result(w)->rank;
  for (uint32_t d = 0; d < list->n; d++) {
    const lw_form_t *f = rows[d] == AOT_NO_ID ? NULL : w->of[rows[d] - w->b->value_begin];
    lw_form_t index;
    int64_t low, high;
    if (!f || lw_value(w->b, rows[d])->t.dtype == AOT_BOOL || f->rank > result(w)->rank || !as_numbers(f, &index))
      return 0;
    range_of(&index, &low, &high);
    if (low < 0 || high >= self.sizes[d]) return 0;
    index = spread(&index, result(w));
    *out = combined(out, &index, self.steps[d]);
  }
  return 1;
}

static int viewed(const affine_traversal_t *w, lw_form_t *out) {
  lw_build_t *b = w->b;
  rk_tensor_t base, view;
  rk_call_t call = {.n_args = b->node->n_args, .results = &view, .n_results = 1};
  rk_error_t error;
  rk_arg_t *args;
  lw_form_t self;
  int64_t low, high;
  if (lw_arg(b, 0)->kind != AOT_ARG_VALUE || !read_arg(w, 0, &self) || lw_rk_args(b, &args) != AOT_OK) return 0;
  range_of(&self, &low, &high);
  base = *args[0].u.tensor;
  base.offset = self.start - low; /* as memory that begins at the least number */
  AOT_ASSERT(base.offset >= 0 && low <= high);
  base.nbytes = (uint64_t)(high - low + 1) * aot_dtype_size(base.dtype);
  memcpy(base.strides, self.steps, sizeof base.strides);
  args[0].u.tensor = &base;
  call.args = args;
  if (rk_view(lw_op(b)->kernel, &call, &error) != AOT_OK || view.dtype != result(w)->dtype) return 0;
  *out = self;
  out->rank = view.rank;
  out->start = view.offset + low;
  memcpy(out->sizes, view.sizes, sizeof out->sizes);
  memcpy(out->steps, view.strides, sizeof out->steps);
  return 1;
}

static const struct {
  const char *op;
  int (*form)(const affine_traversal_t *w, int how, lw_form_t *out);
  int how;
} rows[] = {
    {"aten.arange.default", range, 0},
    {"aten.arange.start", range, 1},
    {"aten.arange.start_step", range, 2},
    {"aten.ones.default", filled_with, 1},
    {"aten.zeros.default", filled_with, 0},
    {"aten.new_ones.default", filled_with, 1},
    {"aten.new_zeros.default", filled_with, 0},
    {"aten.ones_like.default", filled_with, 1},
    {"aten.zeros_like.default", filled_with, 0},
    {"aten.full.default", filled, 1},
    {"aten.full_like.default", filled, 1},
    {"aten.new_full.default", filled, 2},
    {"aten.scalar_tensor.default", filled, 0},
    {"aten.fill.Scalar", filled, 1},
    {"aten.add.Tensor", binary, ADD},
    {"aten.add.Scalar", binary, ADD},
    {"aten.sub.Tensor", binary, SUBTRACT},
    {"aten.sub.Scalar", binary, SUBTRACT},
    {"aten.mul.Tensor", binary, MULTIPLY},
    {"aten.mul.Scalar", binary, MULTIPLY},
    {"aten.rsub.Scalar", reversed, SUBTRACT},
    {"aten.rsub.Tensor", reversed, SUBTRACT},
    {"aten.eq.Tensor", binary, EQUAL},
    {"aten.eq.Scalar", binary, EQUAL},
    {"aten.ne.Tensor", binary, DIFFER},
    {"aten.ne.Scalar", binary, DIFFER},
    {"aten.lt.Tensor", binary, BELOW},
    {"aten.lt.Scalar", binary, BELOW},
    {"aten.le.Tensor", binary, AT_MOST},
    {"aten.le.Scalar", binary, AT_MOST},
    {"aten.gt.Tensor", binary, ABOVE},
    {"aten.gt.Scalar", binary, ABOVE},
    {"aten.ge.Tensor", binary, AT_LEAST},
    {"aten.ge.Scalar", binary, AT_LEAST},
    {"aten.logical_and.default", binary, BOTH},
    {"aten.bitwise_and.Tensor", binary, BOTH},
    {"aten.__and__.Tensor", binary, BOTH},
    {"aten.logical_or.default", binary, EITHER},
    {"aten.bitwise_or.Tensor", binary, EITHER},
    {"aten.__or__.Tensor", binary, EITHER},
    {"aten.logical_not.default", logical_not, 0},
    {"aten.bitwise_not.default", logical_not, 0},
    {"aten.where.self", where, 0},
    {"aten.where.ScalarSelf", where, 0},
    {"aten.where.ScalarOther", where, 0},
    {"aten.where.Scalar", where, 0},
    {"aten.masked_fill.Scalar", masked_fill, 0},
    {"aten.masked_fill.Tensor", masked_fill, 0},
    {"aten.tril.default", triangle, 0},
    {"aten.triu.default", triangle, 1},
    {"aten.cumsum.default", running_sum, 0},
    {"aten.cat.default", joined, 0},
    {"aten.diff.default", difference, 0},
    {"aten.index.Tensor", indexed, 0},
    {"aten._to_copy.default", same, 0},
    {"aten.clone.default", same, 0},
    {"aten.lift_fresh_copy.default", same, 0},
};

/* ---- the walk ---- */

static int find_row(const lw_build_t *b, const aot_snap_op_t *op) {
  const aot_str_t name = aot_snap_text(b->s, op->name);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (aot_str_eq(name, aot_str(rows[i].op))) return (int)i;
  return -1;
}

static int form_of_result(const affine_traversal_t *w, int row, lw_form_t *out) {
  const lw_build_t *b = w->b;
  const rk_kernel_t *kernel = lw_op(b)->kernel;
  if (b->node->n_results != 1 || !result(w)->dtype) return 0;
  if (row >= 0) return rows[row].form(w, rows[row].how, out) && settle(out, result(w));
  return kernel && rk_is_view(kernel) && !rk_needs_storage(kernel) && viewed(w, out) && settle(out, result(w));
}

/* NULL: no memory for it; then nothing is known. */
static lw_form_t **find_forms(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_node_t *at = b->node;
  affine_traversal_t w = {b, lw_pool_alloc(b->pool, ((uint64_t)b->n_values + 1) * sizeof *w.of)};
  int *row_of = lw_pool_alloc(b->pool, ((uint64_t)b->s->ops.count + 1) * sizeof *row_of);
  if (!w.of || !row_of) return NULL;
  for (uint32_t o = 1; o < b->s->ops.count; o++) row_of[o] = find_row(b, AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops) + o);
  for (uint32_t i = 0; i < b->graph->n_nodes; i++) {
    lw_form_t f = {0}, *kept;
    b->node = &nodes[i];
    if (!form_of_result(&w, row_of[b->node->op], &f)) continue;
    kept = lw_pool_alloc(b->pool, sizeof *kept);
    if (!kept) break;
    AOT_ASSERT(!w.of[b->node->result_begin - b->value_begin]); /* a value has one maker */
    *kept = f;
    w.of[b->node->result_begin - b->value_begin] = kept;
  }
  b->node = at;
  return w.of;
}

const lw_form_t *lw_form_of(lw_build_t *b, uint32_t k) {
  const aot_snap_arg_t *a = lw_arg(b, k);
  if (a->kind != AOT_ARG_VALUE) return NULL;
  if (b->forms_in != b->graph) b->forms = find_forms(b);
  b->forms_in = b->graph;
  return b->forms ? b->forms[(uint32_t)a->i - b->value_begin] : NULL;
}
