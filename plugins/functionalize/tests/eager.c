#include "eager.h"

#include <math.h>
#include <string.h>

int64_t eg_count(const eg_shape_t *t) {
  int64_t n = 1;
  for (int d = 0; d < t->rank; d++) n *= t->size[d];
  return n;
}

int64_t eg_position(const eg_shape_t *t, int64_t n) {
  int64_t at = t->offset;
  for (int d = t->rank - 1; d >= 0; d--) at += n % t->size[d] * t->stride[d], n /= t->size[d];
  return at;
}

const eg_tensor_t *eg_value(const eg_world_t *w, int value) { return &w->tensor[w->tensor_of[value]]; }

static void contiguous(eg_shape_t *t) {
  int64_t step = 1;
  t->offset = 0;
  for (int d = t->rank - 1; d >= 0; d--) t->stride[d] = step, step *= t->size[d] ? t->size[d] : 1;
}

/* Dense, in the order of t's strides. */
static eg_shape_t dense_like(const eg_shape_t *t) {
  eg_shape_t r = *t;
  int order[EG_RANK];
  int64_t step = 1;
  contiguous(&r);
  for (int d = 0; d < t->rank; d++)
    if (t->size[d] > 1 && t->stride[d] == 0) return r;
  for (int d = t->rank - 1, n = 0, i; d >= 0; d--, n++) { /* fastest first */
    for (i = n; i > 0 && (t->size[order[i - 1]] == 1 ? t->size[d] > 1
                                                     : t->size[d] > 1 && t->stride[order[i - 1]] > t->stride[d]);
         i--)
      order[i] = order[i - 1];
    order[i] = d;
  }
  for (int i = 0; i < t->rank; i++) r.stride[order[i]] = step, step *= t->size[order[i]] ? t->size[order[i]] : 1;
  return r;
}

static int overlaps(const eg_shape_t *t) {
  for (int64_t i = 0; i < eg_count(t); i++)
    for (int64_t k = 0; k < i; k++)
      if (eg_position(t, i) == eg_position(t, k)) return 1;
  return 0;
}

static int broadcasts(const eg_shape_t *a, const eg_shape_t *b) {
  if (b->rank > a->rank) return 0;
  for (int d = a->rank - 1, e = b->rank - 1; e >= 0; d--, e--)
    if (b->size[e] != 1 && b->size[e] != a->size[d]) return 0;
  return 1;
}

/* b's element for element n of a's shape, to which it broadcasts. */
static int64_t broadcast(const eg_shape_t *a, const eg_shape_t *b, int64_t n) {
  int64_t at = b->offset;
  for (int d = a->rank - 1, e = b->rank - 1; e >= 0; d--, e--) {
    at += b->size[e] != 1 ? n % a->size[d] * b->stride[e] : 0;
    n /= a->size[d];
  }
  return at;
}

/* ---- making values ---- */

static int new_history(eg_world_t *w, int numel) {
  memset(w->derivative[w->n_histories], 0, sizeof(double) * (size_t)numel);
  w->frozen[w->n_histories] = 0;
  return w->n_histories++;
}

static int add_value(eg_world_t *w, int tensor) {
  w->tensor_of[w->n_values] = tensor;
  w->made[w->n_values] = w->tensor[tensor].at;
  return w->n_values++;
}

static eg_tensor_t *fresh(eg_world_t *w, const eg_shape_t *shape) {
  eg_tensor_t t = {.at = *shape, .storage = w->n_storages};
  int numel = (int)eg_count(shape);
  w->numel[w->n_storages++] = numel;
  t.history = new_history(w, numel);
  w->tensor[w->n_tensors] = t;
  add_value(w, w->n_tensors);
  return &w->tensor[w->n_tensors++];
}

static void look(eg_world_t *w, const eg_tensor_t *from, const eg_shape_t *shape, int cut) {
  eg_tensor_t t = *from;
  t.at = *shape;
  t.is_view = 1;
  t.shares_history = !cut;
  if (cut) t.history = new_history(w, w->numel[from->storage]);
  w->tensor[w->n_tensors] = t;
  add_value(w, w->n_tensors++);
}

void eg_begin(eg_world_t *w, const eg_program_t *p) {
  w->n_storages = w->n_histories = w->n_values = w->n_tensors = 0;
  for (int i = 0; i < p->n_inputs; i++) {
    const eg_input_t *in = &p->input[i];
    eg_tensor_t *t = fresh(w, &in->at);
    w->numel[t->storage] = in->numel;
    memcpy(w->number[t->storage], in->data, sizeof in->data);
    memset(w->derivative[t->history], 0, sizeof w->derivative[0]);
    if (in->requires_grad) memcpy(w->derivative[t->history], in->direction, sizeof in->direction);
    w->frozen[t->history] = in->requires_grad;
  }
}

/* ---- numbers ---- */

typedef struct dual {
  double x, dx;
} dual_t;

static dual_t load(const eg_world_t *w, const eg_tensor_t *t, int64_t at) {
  return (dual_t){w->number[t->storage][at], w->derivative[t->history][at]};
}

/* Under no_grad numbers change and history stays. */
static void put(eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t, int64_t at, dual_t y) {
  eg_dtype_t dtype = t->at.dtype;
  w->number[t->storage][at] = dtype == EG_F64 ? y.x : dtype == EG_I64 ? trunc(y.x) : y.x != 0;
  if (!s->no_grad && dtype == EG_F64) w->derivative[t->history][at] = y.dx;
}

static int is_out(eg_op_t op) { return op >= EG_ADD_OUT && op <= EG_TANH_OUT; }

/* The dtype of what is computed; -1: the operator does not take these. */
static int result_dtype(eg_op_t op, eg_dtype_t a, eg_dtype_t b) {
  switch (op) {
    /* clang-format off */
    case EG_ADD: case EG_SUB: case EG_MUL: case EG_ADD_: case EG_SUB_: case EG_MUL_: case EG_ADD_OUT: case EG_MUL_OUT:
      /* clang-format on */
      return a == EG_BOOL || b == EG_BOOL ? -1 : a == EG_I64 && b == EG_I64 ? EG_I64 : EG_F64;
    /* clang-format off */
    case EG_RELU: case EG_RELU_: case EG_NEG_: case EG_NEG_OUT: return a == EG_BOOL ? -1 : (int)a;
    case EG_GT: return a == EG_BOOL ? -1 : EG_BOOL;
    case EG_MASKED_FILL_: return a == EG_F64 && b == EG_BOOL ? EG_F64 : -1;
    case EG_ADDCMUL_: case EG_LERP_: return a == EG_F64 && b == EG_F64 ? EG_F64 : -1;
    case EG_CLONE: case EG_COPY_: case EG_FILL_: case EG_ZERO_: return (int)a;
    /* clang-format on */
    default: return a == EG_F64 ? EG_F64 : -1;
  }
}

static dual_t compute(eg_op_t op, dual_t a, dual_t b, double number) {
  switch (op) {
    /* clang-format off */
    case EG_ADD: case EG_ADD_: case EG_ADD_OUT: return (dual_t){a.x + b.x, a.dx + b.dx};
    case EG_SUB: case EG_SUB_: return (dual_t){a.x - b.x, a.dx - b.dx};
    case EG_MUL: case EG_MUL_: case EG_MUL_OUT: return (dual_t){a.x * b.x, a.dx * b.x + a.x * b.dx};
    case EG_MUL_SCALAR: case EG_MUL_SCALAR_: return (dual_t){a.x * number, a.dx * number};
    case EG_RELU: case EG_RELU_: return a.x > 0 ? a : (dual_t){0, 0};
    case EG_ADDCMUL_: return (dual_t){a.x + number * b.x * b.x, a.dx + 2 * number * b.x * b.dx};
    case EG_LERP_: return (dual_t){a.x + number * (b.x - a.x), a.dx + number * (b.dx - a.dx)};
    case EG_NEG_: case EG_NEG_OUT: return (dual_t){-a.x, -a.dx};
    case EG_SIN_: return (dual_t){sin(a.x), cos(a.x) * a.dx};
    case EG_GT: return (dual_t){a.x > number, 0};
    case EG_MASKED_FILL_: return b.x != 0 ? (dual_t){number, 0} : a;
    case EG_TANH: case EG_TANH_: case EG_TANH_OUT: return (dual_t){tanh(a.x), a.dx * (1 - tanh(a.x) * tanh(a.x))};
    case EG_COPY_: return b;
    case EG_FILL_: return (dual_t){number, 0};
    case EG_ZERO_: return (dual_t){0, 0};
    /* clang-format on */
    default: return a;
  }
}

/* A result of a's shape, element by element. */
static int pointwise(eg_world_t *w, const eg_step_t *s, const eg_tensor_t a, const eg_tensor_t *b_or_null) {
  eg_tensor_t b = b_or_null ? *b_or_null : a;
  eg_shape_t shape = dense_like(&a.at);
  int dtype = result_dtype(s->op, a.at.dtype, b.at.dtype);
  if (overlaps(&a.at) || dtype < 0 || !broadcasts(&a.at, &b.at)) return 0;
  shape.dtype = (eg_dtype_t)dtype;
  eg_tensor_t *out = fresh(w, &shape);
  for (int64_t i = 0; i < eg_count(&shape); i++) {
    dual_t x = load(w, &a, eg_position(&a.at, i));
    dual_t y = load(w, &b, b_or_null ? broadcast(&a.at, &b.at, i) : eg_position(&a.at, i));
    put(w, s, out, eg_position(&shape, i), compute(s->op, x, y, s->number));
  }
  return 1;
}

static int may_write(const eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t) {
  return !overlaps(&t->at) && (s->no_grad || !w->frozen[t->history]);
}

/* y, in row-major order, into t. */
static int put_all(eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t, const dual_t *y) {
  for (int64_t i = 0; i < eg_count(&t->at); i++) put(w, s, t, eg_position(&t->at, i), y[i]);
  add_value(w, w->tensor_of[is_out(s->op) ? s->c : s->a]);
  return 1;
}

/* Into `to`, which is a itself or, for out=, a tensor of its sizes. All operands are read before anything is
 * written. */
static int write(eg_world_t *w, const eg_step_t *s, const eg_tensor_t *a, const eg_tensor_t *b, const eg_tensor_t *to) {
  dual_t y[EG_NUMEL];
  int dtype = result_dtype(s->op, a->at.dtype, b ? b->at.dtype : a->at.dtype);
  if (!may_write(w, s, to) || dtype < 0 || to->at.rank != a->at.rank || (b && !broadcasts(&a->at, &b->at))) return 0;
  if (to->at.dtype == EG_BOOL ? dtype != EG_BOOL : to->at.dtype == EG_I64 && dtype == EG_F64) return 0;
  for (int d = 0; d < a->at.rank; d++)
    if (to->at.size[d] != a->at.size[d]) return 0;
  for (int64_t i = 0, n = eg_count(&a->at); i < n; i++) {
    dual_t other = b ? load(w, b, broadcast(&a->at, &b->at, i)) : (dual_t){0, 0};
    y[i] = compute(s->op, load(w, a, eg_position(&a->at, i)), other, s->number);
  }
  return put_all(w, s, to, y);
}

/* triu_, tril_: diagonal p[1]; cumsum_: along p[0] */
static int write_by_place(eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t) {
  dual_t y[EG_NUMEL];
  int64_t inner = 1, rows, columns;
  int dim = s->op == EG_CUMSUM_ ? (int)s->p[0] : t->at.rank - 1;
  if (!may_write(w, s, t) || dim >= t->at.rank || (s->op == EG_CUMSUM_ ? t->at.dtype == EG_BOOL : t->at.rank < 2))
    return 0;
  for (int d = dim + 1; d < t->at.rank; d++) inner *= t->at.size[d];
  columns = t->at.size[dim], rows = dim ? t->at.size[dim - 1] : 1;
  for (int64_t i = 0; i < eg_count(&t->at); i++) {
    int64_t column = i / inner % columns, above = column - i / inner / columns % rows;
    dual_t x = load(w, t, eg_position(&t->at, i));
    if (s->op == EG_CUMSUM_) y[i] = column ? (dual_t){y[i - inner].x + x.x, y[i - inner].dx + x.dx} : x;
    else y[i] = (s->op == EG_TRIU_ ? above >= s->p[1] : above <= s->p[1]) ? x : (dual_t){0, 0};
  }
  return put_all(w, s, t, y);
}

/* ---- rows by number ---- */

static int64_t row_element(const eg_program_t *p, const eg_shape_t *t, int64_t rest, int64_t n) {
  eg_shape_t row = *t;
  row.offset += p->index[n / rest] * t->stride[0];
  row.size[0] = 1;
  return eg_position(&row, n % rest);
}

static int index_rows(eg_world_t *w, const eg_program_t *p, const eg_step_t *s, const eg_tensor_t t) {
  eg_shape_t shape = t.at;
  if (t.at.rank == 0 || t.at.size[0] < 2) return 0;
  shape.size[0] = 2;
  contiguous(&shape);
  eg_tensor_t *out = fresh(w, &shape);
  for (int64_t i = 0; i < eg_count(&shape); i++) {
    put(w, s, out, i, load(w, &t, row_element(p, &t.at, eg_count(&shape) / 2, i)));
  }
  return 1;
}

/* index_put_ broadcasts its values; index_add_ and index_copy_ want them whole; index_fill_ takes a number. */
static int write_rows(eg_world_t *w, const eg_program_t *p, const eg_step_t *s, const eg_tensor_t *t,
                      const eg_tensor_t *b) {
  eg_shape_t shape = t->at;
  dual_t y[EG_NUMEL];
  int adds = s->op == EG_INDEX_PUT_ADD_ || s->op == EG_INDEX_ADD_,
      whole = s->op == EG_INDEX_ADD_ || s->op == EG_INDEX_COPY_;
  if (t->at.rank == 0 || t->at.size[0] < 2 || !may_write(w, s, t)) return 0;
  if (b ? b->at.dtype != t->at.dtype || (adds && t->at.dtype == EG_BOOL) : t->at.dtype != EG_F64) return 0;
  shape.size[0] = 2;
  int64_t n = eg_count(&shape);
  if (b && !broadcasts(&shape, &b->at)) return 0;
  if (whole && (b->at.rank != shape.rank || eg_count(&b->at) != n)) return 0;
  for (int64_t i = 0; i < n; i++) {
    y[i] = b ? load(w, b, broadcast(&shape, &b->at, i)) : (dual_t){s->number, 0};
    dual_t old = load(w, t, row_element(p, &t->at, n / 2, i));
    if (adds) y[i] = (dual_t){old.x + y[i].x, old.dx + y[i].dx};
  }
  for (int64_t i = 0; i < n; i++) put(w, s, t, row_element(p, &t->at, n / 2, i), y[i]);
  add_value(w, w->tensor_of[s->a]);
  return 1;
}

static int sum_dim(eg_world_t *w, const eg_step_t *s, const eg_tensor_t t) {
  int dim = (int)s->p[0];
  eg_shape_t shape = t.at, line = t.at;
  if (dim >= t.at.rank) return 0;
  shape.rank--;
  for (int d = dim; d < shape.rank; d++) shape.size[d] = t.at.size[d + 1];
  line.size[dim] = 1;
  contiguous(&shape);
  if (shape.dtype == EG_BOOL) shape.dtype = EG_I64;
  eg_tensor_t *out = fresh(w, &shape);
  for (int64_t i = 0; i < eg_count(&shape); i++) {
    dual_t y = {0, 0};
    for (int64_t k = 0; k < t.at.size[dim]; k++) {
      dual_t x = load(w, &t, eg_position(&line, i) + k * t.at.stride[dim]);
      y.x += x.x;
      y.dx += x.dx;
    }
    put(w, s, out, i, y);
  }
  return 1;
}

/* ---- views: 1 and *out, or 0 ---- */

/* Strides by trial: each new dimension's stride is what its index makes of the old positions. */
static int viewed(const eg_shape_t *t, eg_shape_t *out) {
  int64_t n = eg_count(t), inner = 1;
  if (eg_count(out) != n) return 0;
  out->offset = t->offset;
  for (int d = out->rank - 1; d >= 0; d--) {
    out->stride[d] = out->size[d] > 1 && n > 0 ? eg_position(t, inner) - t->offset : inner;
    inner *= out->size[d] ? out->size[d] : 1;
  }
  for (int64_t i = 0; i < n; i++)
    if (eg_position(t, i) != eg_position(out, i)) return 0;
  return 1;
}

static int sizes_of(const eg_step_t *s, eg_shape_t *out) {
  out->rank = (int)s->p[0];
  for (int d = 0; d < out->rank; d++) out->size[d] = s->p[1 + d];
  return 1;
}

static int swapped(const eg_shape_t *t, int64_t i, int64_t k, eg_shape_t *out) {
  if (i >= t->rank || k >= t->rank) return 0;
  *out = *t;
  out->size[i] = t->size[k], out->stride[i] = t->stride[k];
  out->size[k] = t->size[i], out->stride[k] = t->stride[i];
  return 1;
}

static void drop_dim(eg_shape_t *t, int64_t dim) {
  for (t->rank--; dim < t->rank; dim++) t->size[dim] = t->size[dim + 1], t->stride[dim] = t->stride[dim + 1];
}

static int part(const eg_shape_t *t, int64_t dim, int64_t start, int64_t length, int64_t step, eg_shape_t *out) {
  *out = *t;
  if (dim >= t->rank || start >= t->size[dim] || length < 1) return 0;
  out->offset += start * t->stride[dim];
  out->size[dim] = length;
  out->stride[dim] *= step;
  return start + (length - 1) * step < t->size[dim];
}

static int expanded(const eg_step_t *s, const eg_shape_t *t, eg_shape_t *out) {
  sizes_of(s, out);
  out->offset = t->offset;
  if (out->rank < t->rank) return 0;
  for (int d = out->rank - 1, e = t->rank - 1; d >= 0; d--, e--) {
    out->stride[d] = e >= 0 && t->size[e] == out->size[d] ? t->stride[e] : 0;
    if (e >= 0 && t->size[e] != out->size[d] && t->size[e] != 1) return 0;
  }
  return eg_count(out) <= EG_NUMEL;
}

static int inserted(const eg_shape_t *t, int64_t dim, eg_shape_t *out) {
  if (t->rank == EG_RANK || dim > t->rank) return 0;
  *out = *t;
  for (int64_t d = out->rank++; d > dim; d--) out->size[d] = t->size[d - 1], out->stride[d] = t->stride[d - 1];
  out->stride[dim] = dim < t->rank ? t->size[dim] * t->stride[dim] : 1; /* as PyTorch: 0 where the size is 0 */
  out->size[dim] = 1;
  return 1;
}

static int removed(const eg_shape_t *t, int64_t dim, eg_shape_t *out) {
  if (dim >= t->rank) return 0;
  *out = *t;
  if (t->size[dim] == 1) drop_dim(out, dim);
  return 1;
}

static int permuted(const eg_step_t *s, const eg_shape_t *t, eg_shape_t *out) {
  *out = *t;
  if (s->p[0] != t->rank) return 0;
  for (int d = 0; d < t->rank; d++) out->size[d] = t->size[s->p[1 + d]], out->stride[d] = t->stride[s->p[1 + d]];
  return 1;
}

static int moved(const eg_shape_t *t, int64_t from, int64_t to, eg_shape_t *out) {
  if (from >= t->rank || to >= t->rank) return 0;
  *out = *t;
  for (int64_t d = from; d != to; d += from < to ? 1 : -1) {
    int64_t next = from < to ? d + 1 : d - 1;
    out->size[d] = t->size[next], out->stride[d] = t->stride[next];
  }
  out->size[to] = t->size[from], out->stride[to] = t->stride[from];
  return 1;
}

static int unflattened(const eg_shape_t *t, int64_t dim, int64_t outer, eg_shape_t *out) {
  if (dim >= t->rank || t->rank == EG_RANK || t->size[dim] == 0 || t->size[dim] % outer != 0) return 0;
  *out = *t;
  for (int64_t d = out->rank++; d > dim; d--) out->size[d] = t->size[d - 1], out->stride[d] = t->stride[d - 1];
  out->size[dim] = outer;
  out->size[dim + 1] = t->size[dim] / outer;
  out->stride[dim] = t->stride[dim] * out->size[dim + 1];
  return 1;
}

static int windows(const eg_shape_t *t, int64_t dim, int64_t size, int64_t step, eg_shape_t *out) {
  if (dim >= t->rank || t->rank == EG_RANK || size > t->size[dim]) return 0;
  *out = *t;
  out->size[out->rank] = size;
  out->stride[out->rank++] = t->stride[dim];
  out->size[dim] = (t->size[dim] - size) / step + 1;
  out->stride[dim] *= step;
  return eg_count(out) <= EG_NUMEL;
}

static int diagonal(const eg_shape_t *t, int64_t above, int64_t i, int64_t k, eg_shape_t *out) {
  if (i >= t->rank || k >= t->rank || i == k) return 0;
  int64_t rows = t->size[i] + (above < 0 ? above : 0), columns = t->size[k] - (above > 0 ? above : 0);
  *out = *t;
  drop_dim(out, i > k ? i : k), drop_dim(out, i > k ? k : i);
  out->offset += above < 0 ? -above * t->stride[i] : above * t->stride[k];
  out->size[out->rank] = rows < columns ? rows : columns;
  out->stride[out->rank++] = t->stride[i] + t->stride[k];
  return rows > 0 && columns > 0;
}

static int without_ones(const eg_shape_t *t, eg_shape_t *out) {
  *out = *t;
  for (int d = t->rank - 1; d >= 0; d--)
    if (t->size[d] == 1) drop_dim(out, d);
  return 1;
}

/* The one view of most operators. */
static int view_shape(const eg_world_t *w, const eg_step_t *s, const eg_tensor_t *from, eg_shape_t *out) {
  const eg_shape_t *t = &from->at;
  const int64_t *p = s->p;
  out->dtype = t->dtype;
  switch (s->op) {
    /* clang-format off */
    case EG_VIEW: case EG_RESHAPE: return sizes_of(s, out) && viewed(t, out);
    case EG_FLATTEN: case EG_RAVEL: out->rank = 1; out->size[0] = eg_count(t); return viewed(t, out);
    case EG_TRANSPOSE: case EG_TRANSPOSE_: case EG_SWAPAXES: case EG_SWAPAXES_: return swapped(t, p[0], p[1], out);
    case EG_T: case EG_T_: return t->rank == 2 && swapped(t, 0, 1, out);
    case EG_MT: return t->rank > 1 && swapped(t, t->rank - 2, t->rank - 1, out);
    case EG_PERMUTE: return permuted(s, t, out);
    case EG_MOVEDIM: return moved(t, p[0], p[1], out);
    case EG_UNFLATTEN: return unflattened(t, p[0], p[1], out);
    case EG_UNFOLD: return windows(t, p[0], p[1], p[2], out);
    case EG_DIAGONAL: return diagonal(t, p[2] - 1, p[0], p[1], out);
    case EG_SQUEEZE_ALL: case EG_SQUEEZE_ALL_: return without_ones(t, out);
    case EG_SELECT: if (!part(t, p[0], p[1], 1, 1, out)) return 0; drop_dim(out, p[0]); return 1;
    case EG_SLICE: case EG_NARROW: return part(t, p[0], p[1], p[2], s->op == EG_SLICE ? p[3] : 1, out);
    case EG_EXPAND: return expanded(s, t, out);
    case EG_UNSQUEEZE: case EG_UNSQUEEZE_: return inserted(t, p[0], out);
    case EG_SQUEEZE: case EG_SQUEEZE_: return removed(t, p[0], out);
    /* clang-format on */
    case EG_AS_STRIDED:
      out->rank = 1, out->size[0] = p[0], out->stride[0] = p[1], out->offset = p[2];
      return p[2] + (p[0] - 1) * p[1] < w->numel[from->storage];
    /* clang-format off */
    case EG_ALIAS: case EG_DETACH: case EG_DETACH_: *out = *t; return 1;
    /* clang-format on */
    default: return 0;
  }
}

/* How wide piece k of a dimension of n elements is. */
static int64_t piece(const eg_step_t *s, int64_t n, int64_t k) {
  switch (s->op) {
    case EG_UNBIND: return 1;
    case EG_CHUNK: return (n + s->p[1] - 1) / s->p[1];
    case EG_SPLIT_SIZES: return k == 0 ? s->p[1] : n - s->p[1];
    case EG_TENSOR_SPLIT: return n / s->p[1] + (k < n % s->p[1]);
    default: return s->p[1];
  }
}

static int pieces(eg_world_t *w, eg_step_t *s, const eg_tensor_t t) {
  int64_t dim = s->p[0], width;
  if (dim >= t.at.rank || t.at.size[dim] > 6 || t.at.size[dim] == 0) return 0;
  if ((s->op == EG_SPLIT_SIZES || s->op == EG_TENSOR_SPLIT) && s->p[1] >= t.at.size[dim]) return 0;
  for (int64_t start = 0, k = 0; start < t.at.size[dim]; start += width, k++) {
    eg_shape_t out;
    int64_t left = t.at.size[dim] - start;
    width = piece(s, t.at.size[dim], k);
    part(&t.at, dim, start, width < left ? width : left, 1, &out);
    if (s->op == EG_UNBIND) drop_dim(&out, dim);
    look(w, &t, &out, s->no_grad);
  }
  return 1;
}

/* t_ under no_grad, of equal sizes, goes unseen: the element at each place keeps the history of the one that was
 * there. */
static void keep_history_in_place(eg_world_t *w, eg_tensor_t *self, const eg_shape_t *now) {
  const int was = self->history;
  if (self->shares_history || self->at.rank != now->rank) return;
  if (memcmp(self->at.size, now->size, sizeof now->size[0] * (size_t)now->rank)) return;
  self->history = new_history(w, w->numel[self->storage]);
  w->frozen[self->history] = w->frozen[was];
  for (int64_t i = 0; i < eg_count(now); i++)
    w->derivative[self->history][eg_position(now, i)] = w->derivative[was][eg_position(&self->at, i)];
}

static int in_place_view(eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t) {
  eg_shape_t shape = {0};
  eg_tensor_t *self = &w->tensor[w->tensor_of[s->a]];
  if ((w->frozen[t->history] && (!s->no_grad || s->op == EG_DETACH_)) || !view_shape(w, s, t, &shape)) return 0;
  if (s->op == EG_DETACH_ && t->is_view) return 0; /* as PyTorch refuses */
  if (s->op == EG_DETACH_) self->history = new_history(w, w->numel[t->storage]);
  else if (s->no_grad) keep_history_in_place(w, self, &shape);
  self->at = shape;
  add_value(w, w->tensor_of[s->a]);
  return 1;
}

static int copy_as(eg_world_t *w, const eg_step_t *s, const eg_tensor_t t, const eg_shape_t *shape) {
  eg_tensor_t *out = fresh(w, shape);
  for (int64_t i = 0; i < eg_count(shape); i++)
    put(w, s, out, eg_position(shape, i), load(w, &t, eg_position(&t.at, i)));
  return 1;
}

/* The tensor itself, by another name: whatever it becomes by the one, it is by the other. */
static int itself(eg_world_t *w, const eg_step_t *s) {
  add_value(w, w->tensor_of[s->a]);
  return 1;
}

/* A view where the layout allows one; the tensor itself where there is nothing to do. */
static int maybe_copy(eg_world_t *w, const eg_step_t *s, const eg_tensor_t t) {
  eg_shape_t shape = {0}, dense = t.at;
  contiguous(&dense); /* whatever the strides of dimensions of size 1 */
  int already = 1;    /* a tensor without elements is contiguous */
  for (int d = 0; d < t.at.rank; d++)
    already &= t.at.size[d] == 1 || t.at.stride[d] == dense.stride[d] || eg_count(&t.at) == 0;
  if ((s->op == EG_CONTIGUOUS && already) || (s->op == EG_FLATTEN && t.at.rank == 1)) return itself(w, s);
  const int fits = s->op != EG_CONTIGUOUS && view_shape(w, s, &t, &shape);
  if (fits && (s->op != EG_RAVEL || already)) { /* ravel requests a contiguous tensor first */
    look(w, &t, &shape, s->no_grad);
    return 1;
  }
  if (s->op == EG_CONTIGUOUS) shape = dense;
  if (eg_count(&shape) != eg_count(&t.at)) return 0;
  contiguous(&shape);
  return copy_as(w, s, t, &shape);
}

/* to is the same tensor where the dtype is already requested; _to_copy copies always. */
static int converted(eg_world_t *w, const eg_step_t *s, const eg_tensor_t t) {
  eg_shape_t shape = dense_like(&t.at);
  if (s->op == EG_TO && s->p[0] == (int64_t)t.at.dtype) return itself(w, s);
  shape.dtype = (eg_dtype_t)s->p[0];
  return !overlaps(&t.at) && copy_as(w, s, t, &shape);
}

/* ---- steps ---- */

static int run(eg_world_t *w, const eg_program_t *p, eg_step_t *s) {
  const eg_tensor_t *a = eg_value(w, s->a), *b = s->b >= 0 ? eg_value(w, s->b) : NULL;
  const eg_tensor_t *to = s->c >= 0 ? eg_value(w, s->c) : a;
  eg_shape_t shape = {0};
  switch (s->op) {
    /* clang-format off */
    case EG_ADD: case EG_SUB: case EG_MUL: return b && pointwise(w, s, *a, b);
    case EG_MUL_SCALAR: case EG_RELU: case EG_TANH: case EG_CLONE: case EG_GT: return pointwise(w, s, *a, NULL);
    case EG_SUM: return sum_dim(w, s, *a);
    case EG_INDEX: return index_rows(w, p, s, *a);
    case EG_RESHAPE: case EG_FLATTEN: case EG_RAVEL: case EG_CONTIGUOUS: return maybe_copy(w, s, *a);
    case EG_TO: case EG_TO_COPY: return converted(w, s, *a);
    case EG_SPLIT: case EG_SPLIT_SIZES: case EG_TENSOR_SPLIT: case EG_UNBIND: case EG_CHUNK: return pieces(w, s, *a);
    case EG_ADD_: case EG_SUB_: case EG_MUL_: case EG_ADDCMUL_: case EG_LERP_: case EG_COPY_: case EG_MASKED_FILL_:
    case EG_ADD_OUT: case EG_MUL_OUT: return b && write(w, s, a, b, to);
    case EG_MUL_SCALAR_: case EG_FILL_: case EG_ZERO_: case EG_RELU_: case EG_TANH_: case EG_NEG_: case EG_SIN_:
    case EG_NEG_OUT: case EG_TANH_OUT: return write(w, s, a, NULL, to);
    case EG_TRIU_: case EG_TRIL_: case EG_CUMSUM_: return write_by_place(w, s, a);
    case EG_INDEX_PUT_: case EG_INDEX_PUT_ADD_: case EG_INDEX_ADD_: case EG_INDEX_COPY_: return b && write_rows(w, p,
        s, a, b);
    case EG_INDEX_FILL_: return write_rows(w, p, s, a, NULL);
    case EG_T_: case EG_TRANSPOSE_: case EG_SWAPAXES_: case EG_UNSQUEEZE_: case EG_SQUEEZE_: case EG_SQUEEZE_ALL_: case EG_DETACH_:
      /* clang-format on */
      return in_place_view(w, s, a);
    default:
      if (!view_shape(w, s, a, &shape)) return 0;
      look(w, a, &shape, s->no_grad || s->op == EG_DETACH);
      return 1;
  }
}

int eg_run_step(eg_world_t *w, const eg_program_t *p, eg_step_t *s) {
  if (s->a >= w->n_values || s->b >= w->n_values || s->c >= w->n_values || w->n_values + 8 >= EG_VALUES) return 0;
  s->first = w->n_values;
  if (!run(w, p, s)) return 0;
  s->n_results = w->n_values - s->first;
  return 1;
}

int eg_run(eg_world_t *w, eg_program_t *p) {
  eg_begin(w, p);
  for (int i = 0; i < p->n_steps; i++)
    if (!eg_run_step(w, p, &p->step[i])) return 0;
  return 1;
}
