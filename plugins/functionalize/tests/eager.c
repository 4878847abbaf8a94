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
  for (int d = t->rank - 1; d >= 0; d--) t->stride[d] = step, step *= t->size[d];
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
    for (i = n; i > 0 && (t->size[order[i - 1]] == 1 ? t->size[d] > 1 : t->size[d] > 1 && t->stride[order[i - 1]] > t->stride[d]); i--)
      order[i] = order[i - 1];
    order[i] = d;
  }
  for (int i = 0; i < t->rank; i++) r.stride[order[i]] = step, step *= t->size[order[i]];
  return r;
}

static int overlaps(const eg_shape_t *t) {
  for (int64_t i = 0; i < eg_count(t); i++)
    for (int64_t k = 0; k < i; k++)
      if (eg_position(t, i) == eg_position(t, k)) return 1;
  return 0;
}

/* b's element for element n of a's shape; -1: does not broadcast. */
static int64_t broadcast(const eg_shape_t *a, const eg_shape_t *b, int64_t n) {
  int64_t at = b->offset;
  if (b->rank > a->rank) return -1;
  for (int d = a->rank - 1, e = b->rank - 1; d >= 0; d--, e--) {
    int64_t i = n % a->size[d];
    n /= a->size[d];
    if (e < 0) continue;
    if (b->size[e] != 1 && b->size[e] != a->size[d]) return -1;
    if (b->size[e] != 1) at += i * b->stride[e];
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

static dual_t compute(eg_op_t op, dual_t a, dual_t b, double number) {
  switch (op) {
    case EG_ADD: case EG_ADD_: return (dual_t){a.x + b.x, a.dx + b.dx};
    case EG_SUB: return (dual_t){a.x - b.x, a.dx - b.dx};
    case EG_MUL: case EG_MUL_: return (dual_t){a.x * b.x, a.dx * b.x + a.x * b.dx};
    case EG_MUL_SCALAR: case EG_MUL_SCALAR_: return (dual_t){a.x * number, a.dx * number};
    case EG_RELU: case EG_RELU_: return a.x > 0 ? a : (dual_t){0, 0};
    case EG_TANH: case EG_TANH_: return (dual_t){tanh(a.x), a.dx * (1 - tanh(a.x) * tanh(a.x))};
    case EG_COPY_: return b;
    case EG_FILL_: return (dual_t){number, 0};
    case EG_ZERO_: return (dual_t){0, 0};
    default: return a;
  }
}

/* A result of a's shape, element by element. */
static int pointwise(eg_world_t *w, const eg_step_t *s, const eg_tensor_t a, const eg_tensor_t *b_or_null) {
  eg_tensor_t b = b_or_null ? *b_or_null : a;
  eg_shape_t shape = dense_like(&a.at);
  dual_t in[2];
  if (overlaps(&a.at)) return 0;
  for (int64_t i = 0; i < eg_count(&a.at); i++)
    if (broadcast(&a.at, &b.at, i) < 0) return 0;
  eg_tensor_t *out = fresh(w, &shape);
  for (int64_t i = 0; i < eg_count(&shape); i++) {
    in[0] = load(w, &a, eg_position(&a.at, i));
    in[1] = load(w, &b, b_or_null ? broadcast(&a.at, &b.at, i) : eg_position(&a.at, i));
    dual_t y = compute(s->op, in[0], in[1], s->number);
    w->number[out->storage][eg_position(&shape, i)] = y.x;
    w->derivative[out->history][eg_position(&shape, i)] = s->no_grad ? 0 : y.dx;
  }
  return 1;
}

static int may_write(const eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t) {
  return !overlaps(&t->at) && (s->no_grad || !w->frozen[t->history]);
}

static void put(eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t, int64_t at, dual_t y) {
  w->number[t->storage][at] = y.x;
  if (!s->no_grad) w->derivative[t->history][at] = y.dx;
}

/* All operands are read before anything is written. */
static int write(eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t, const eg_tensor_t *b) {
  dual_t y[EG_NUMEL];
  int64_t n = eg_count(&t->at);
  if (!may_write(w, s, t)) return 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t k = b ? broadcast(&t->at, &b->at, i) : 0;
    if (k < 0) return 0;
    y[i] = compute(s->op, load(w, t, eg_position(&t->at, i)), b ? load(w, b, k) : (dual_t){0, 0}, s->number);
  }
  for (int64_t i = 0; i < n; i++) put(w, s, t, eg_position(&t->at, i), y[i]);
  add_value(w, w->tensor_of[s->a]);
  return 1;
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
    dual_t y = load(w, &t, row_element(p, &t.at, eg_count(&shape) / 2, i));
    w->number[out->storage][i] = y.x;
    w->derivative[out->history][i] = s->no_grad ? 0 : y.dx;
  }
  return 1;
}

static int index_put(eg_world_t *w, const eg_program_t *p, const eg_step_t *s, const eg_tensor_t *t, const eg_tensor_t *b) {
  eg_shape_t shape = t->at;
  dual_t y[EG_NUMEL];
  if (t->at.rank == 0 || t->at.size[0] < 2 || !may_write(w, s, t)) return 0;
  shape.size[0] = 2;
  int64_t n = eg_count(&shape);
  for (int64_t i = 0; i < n; i++) {
    int64_t k = broadcast(&shape, &b->at, i);
    if (k < 0) return 0;
    y[i] = load(w, b, k);
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
  eg_tensor_t *out = fresh(w, &shape);
  for (int64_t i = 0; i < eg_count(&shape); i++) {
    dual_t y = {0, 0};
    for (int64_t k = 0; k < t.at.size[dim]; k++) {
      dual_t x = load(w, &t, eg_position(&line, i) + k * t.at.stride[dim]);
      y.x += x.x;
      y.dx += x.dx;
    }
    w->number[out->storage][i] = y.x;
    w->derivative[out->history][i] = s->no_grad ? 0 : y.dx;
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
    out->stride[d] = out->size[d] > 1 ? eg_position(t, inner) - t->offset : inner;
    inner *= out->size[d];
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
  out->stride[dim] = dim < t->rank ? t->size[dim] * t->stride[dim] : 1;
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

/* The one view of most operators. */
static int view_shape(const eg_world_t *w, const eg_step_t *s, const eg_tensor_t *from, eg_shape_t *out) {
  const eg_shape_t *t = &from->at;
  const int64_t *p = s->p;
  switch (s->op) {
    case EG_VIEW: case EG_RESHAPE: return sizes_of(s, out) && viewed(t, out);
    case EG_FLATTEN: out->rank = 1; out->size[0] = eg_count(t); return viewed(t, out);
    case EG_TRANSPOSE: case EG_TRANSPOSE_: case EG_SWAPAXES: return swapped(t, p[0], p[1], out);
    case EG_T: case EG_T_: return t->rank == 2 && swapped(t, 0, 1, out);
    case EG_PERMUTE: return permuted(s, t, out);
    case EG_SELECT: if (!part(t, p[0], p[1], 1, 1, out)) return 0; drop_dim(out, p[0]); return 1;
    case EG_SLICE: case EG_NARROW: return part(t, p[0], p[1], p[2], s->op == EG_SLICE ? p[3] : 1, out);
    case EG_EXPAND: return expanded(s, t, out);
    case EG_UNSQUEEZE: case EG_UNSQUEEZE_: return inserted(t, p[0], out);
    case EG_SQUEEZE: case EG_SQUEEZE_: return removed(t, p[0], out);
    case EG_DIAGONAL:
      if (t->rank < 2) return 0;
      *out = *t;
      drop_dim(out, 0), drop_dim(out, 0);
      out->size[out->rank] = t->size[0] < t->size[1] ? t->size[0] : t->size[1];
      out->stride[out->rank++] = t->stride[0] + t->stride[1];
      return 1;
    case EG_AS_STRIDED:
      out->rank = 1, out->size[0] = p[0], out->stride[0] = p[1], out->offset = p[2];
      return p[2] + (p[0] - 1) * p[1] < w->numel[from->storage];
    case EG_ALIAS: case EG_DETACH: case EG_DETACH_: *out = *t; return 1;
    default: return 0;
  }
}

static int pieces(eg_world_t *w, eg_step_t *s, const eg_tensor_t t) {
  int64_t dim = s->p[0], width = s->op == EG_UNBIND ? 1 : s->p[1], start = 0;
  if (dim >= t.at.rank || t.at.size[dim] > 6) return 0;
  if (s->op == EG_CHUNK) width = (t.at.size[dim] + s->p[1] - 1) / s->p[1];
  for (; start < t.at.size[dim]; start += width) {
    eg_shape_t out;
    int64_t left = t.at.size[dim] - start;
    part(&t.at, dim, start, width < left ? width : left, 1, &out);
    if (s->op == EG_UNBIND) drop_dim(&out, dim);
    look(w, &t, &out, s->no_grad);
  }
  return 1;
}

static int in_place_view(eg_world_t *w, const eg_step_t *s, const eg_tensor_t *t) {
  eg_shape_t shape = {0};
  eg_tensor_t *self = &w->tensor[w->tensor_of[s->a]];
  if (s->no_grad || w->frozen[t->history] || !view_shape(w, s, t, &shape)) return 0;
  if (s->op == EG_DETACH_ && t->is_view) return 0; /* as PyTorch refuses */
  if (s->op == EG_DETACH_) self->history = new_history(w, w->numel[t->storage]);
  self->at = shape;
  add_value(w, w->tensor_of[s->a]);
  return 1;
}

static int maybe_copy(eg_world_t *w, const eg_step_t *s, const eg_tensor_t t) {
  eg_shape_t shape = {0}, dense = t.at;
  contiguous(&dense); /* whatever the strides of dimensions of size 1 */
  int already = 1;
  for (int d = 0; d < t.at.rank; d++) already &= t.at.size[d] == 1 || t.at.stride[d] == dense.stride[d];
  if (s->op == EG_CONTIGUOUS ? already : view_shape(w, s, &t, &shape)) {
    look(w, &t, s->op == EG_CONTIGUOUS ? &t.at : &shape, s->no_grad);
    return 1;
  }
  if (s->op == EG_CONTIGUOUS) shape = dense;
  if (eg_count(&shape) != eg_count(&t.at)) return 0;
  contiguous(&shape);
  eg_tensor_t *out = fresh(w, &shape);
  for (int64_t i = 0; i < eg_count(&shape); i++) {
    dual_t y = load(w, &t, eg_position(&t.at, i));
    w->number[out->storage][i] = y.x;
    w->derivative[out->history][i] = s->no_grad ? 0 : y.dx;
  }
  return 1;
}

/* ---- steps ---- */

static int run(eg_world_t *w, const eg_program_t *p, eg_step_t *s) {
  const eg_tensor_t *a = eg_value(w, s->a), *b = s->b >= 0 ? eg_value(w, s->b) : NULL;
  eg_shape_t shape = {0};
  switch (s->op) {
    case EG_ADD: case EG_SUB: case EG_MUL: return b && pointwise(w, s, *a, b);
    case EG_MUL_SCALAR: case EG_RELU: case EG_TANH: case EG_CLONE: return pointwise(w, s, *a, NULL);
    case EG_SUM: return sum_dim(w, s, *a);
    case EG_INDEX: return index_rows(w, p, s, *a);
    case EG_RESHAPE: case EG_FLATTEN: case EG_CONTIGUOUS: return maybe_copy(w, s, *a);
    case EG_SPLIT: case EG_UNBIND: case EG_CHUNK: return pieces(w, s, *a);
    case EG_ADD_: case EG_MUL_: case EG_COPY_: return b && write(w, s, a, b);
    case EG_MUL_SCALAR_: case EG_FILL_: case EG_ZERO_: case EG_RELU_: case EG_TANH_: return write(w, s, a, NULL);
    case EG_INDEX_PUT_: return b && index_put(w, p, s, a, b);
    case EG_T_: case EG_TRANSPOSE_: case EG_UNSQUEEZE_: case EG_SQUEEZE_: case EG_DETACH_: return in_place_view(w, s, a);
    default:
      if (!view_shape(w, s, a, &shape)) return 0;
      look(w, a, &shape, s->no_grad || s->op == EG_DETACH);
      return 1;
  }
}

int eg_run_step(eg_world_t *w, const eg_program_t *p, eg_step_t *s) {
  if (s->a >= w->n_values || s->b >= w->n_values || w->n_values + 8 >= EG_VALUES) return 0;
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
