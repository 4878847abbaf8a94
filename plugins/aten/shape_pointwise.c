/* Elementwise operators: broadcast shape, promoted dtype, layout of the operands. What differs is the dtype: the
 * promoted one, promoted and made floating, bool, or that of the first operand. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

#define MAX_OPERANDS 16

typedef struct operands {
  aot_type_t t[MAX_OPERANDS];
  uint32_t n;        /* of promotion */
  uint32_t n_layout; /* the first of them also shape the result */
} operands_t;

/* Scalar arguments that take part in promotion; of these, the ones that PyTorch wraps in a tensor shape the layout
 * too. */
static int promotes(aot_str_t name, int *out_wrapped) {
  static const char *const wrapped[] = {"other", "self"};
  static const char *const unwrapped[] = {"exponent", "min", "max"};
  size_t i;
  *out_wrapped = 1;
  for (i = 0; i < 2; i++)
    if (aot_str_eq(name, aot_str(wrapped[i]))) return 1;
  *out_wrapped = 0;
  for (i = 0; i < 3; i++)
    if (aot_str_eq(name, aot_str(unwrapped[i]))) return 1;
  return 0;
}

static operands_t collect(at_infer_t *c) {
  operands_t o;
  aot_type_t tail[MAX_OPERANDS];
  uint32_t n_tail = 0, i;
  memset(&o, 0, sizeof o);
  for (i = 0; i < c->desc->n_args && o.n + n_tail < MAX_OPERANDS; i++) {
    const aot_schema_arg_t *s = &c->desc->args[i];
    int wrapped = 1;
    aot_type_t t;
    if (s->flags & AOT_SARG_LIST) continue;
    if (s->type != AOT_STYPE_TENSOR && !(s->type == AOT_STYPE_SCALAR && promotes(s->name, &wrapped))) continue;
    t = at_operand_of(c, i < c->n_args ? &c->args[i] : &s->preset);
    if (t.kind == AOT_TYPE_NONE) continue;
    if (wrapped) o.t[o.n++] = t;
    else tail[n_tail++] = t;
  }
  o.n_layout = o.n;
  for (i = 0; i < n_tail; i++) o.t[o.n++] = tail[i];
  return o;
}

static int32_t floating(int32_t dtype) { return at_is_integral(dtype) ? AOT_F32 : dtype; }

static void put(at_infer_t *c, const operands_t *o, int32_t dtype) { at_put_pointwise(c, dtype, o->t, o->n_layout); }

void at_shape_promote(at_infer_t *c) {
  operands_t o = collect(c);
  put(c, &o, at_promote(c, o.t, o.n));
}

/* The operand that layouts go by is the second one. */
void at_shape_threshold_backward(at_infer_t *c) {
  const aot_type_t t[] = {at_tensor(c, "self"), at_tensor(c, "grad_output")};
  at_put_pointwise(c, at_promote(c, t, 2), t, 2);
}

/* square, which is pow(self, 2): of bools, integers */
void at_shape_promote_number(at_infer_t *c) {
  operands_t o = collect(c);
  int32_t dtype = at_promote(c, o.t, o.n);
  put(c, &o, dtype == AOT_BOOL ? AOT_I64 : dtype);
}

void at_shape_promote_float(at_infer_t *c) {
  operands_t o = collect(c);
  put(c, &o, floating(at_promote(c, o.t, o.n)));
}

/* A sum of p terms, and a derivative of p nodes. */
void at_shape_mvlgamma(at_infer_t *c) {
  const int64_t p = at_int(c, "p");
  if (p < 1 || p > 65536) at_fail(c, "%s with p = %lld; it may be 1 to 65536", c->row->name, (long long)p);
  at_shape_promote_float(c);
}

void at_shape_bool(at_infer_t *c) {
  operands_t o = collect(c);
  put(c, &o, AOT_BOOL);
}

/* The dtype of the first operand, whatever the others are. */
void at_shape_first(at_infer_t *c) {
  operands_t o = collect(c);
  put(c, &o, o.t[0].dtype);
}

void at_shape_abs(at_infer_t *c) {
  operands_t o = collect(c);
  int32_t d = o.t[0].dtype;
  put(c, &o, aot_dtype_part(d));
}

void at_shape_angle(at_infer_t *c) {
  operands_t o = collect(c);
  int32_t d = o.t[0].dtype;
  put(c, &o, floating(aot_dtype_part(d)));
}

void at_shape_bitwise(at_infer_t *c) {
  operands_t o = collect(c);
  int32_t dtype = at_promote(c, o.t, o.n);
  if (!at_is_integral(dtype)) at_fail(c, "bitwise operators take integers and bool, not %s", aot_dtype_name(dtype));
  put(c, &o, dtype);
}

void at_shape_div_mode(at_infer_t *c) {
  operands_t o = collect(c);
  int32_t dtype = at_promote(c, o.t, o.n);
  put(c, &o, at_has(c, "rounding_mode") ? dtype : floating(dtype));
}

/* The condition shapes the result but does not promote. */
void at_shape_where(at_infer_t *c) {
  operands_t o;
  o.t[0] = at_tensor(c, "condition");
  o.t[1] = at_operand(c, "self");
  o.t[2] = at_operand(c, "other");
  o.n = o.n_layout = 3;
  put(c, &o, at_promote(c, o.t + 1, 2));
}

void at_shape_masked_fill(at_infer_t *c) {
  aot_type_t t[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank;
  t[0] = at_tensor(c, "self");
  t[1] = at_tensor(c, "mask");
  if (t[1].dtype != AOT_BOOL) at_fail(c, "the mask must be bool, not %s", aot_dtype_name(t[1].dtype));
  rank = at_broadcast(c, t, 2, sizes);
  at_put(c, t[0].dtype, sizes, rank);
}

/* A writing elementwise operator: the result is the tensor it wrote, and the others broadcast to it. */
void at_shape_inplace(at_infer_t *c) {
  operands_t o = collect(c);
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int32_t rank = at_broadcast(c, o.t, o.n_layout, sizes), d;
  int same = rank == o.t[0].rank;
  for (d = 0; same && d < rank; d++) same = !at_differs(c, sizes[d], o.t[0].sizes[d]);
  if (!same) {
    char text[2][120];
    at_fail(c, "operands of shape [%s] do not fit the written tensor's [%s]",
            at_dims_text(c, sizes, rank, text[0], 120), at_dims_text(c, o.t[0].sizes, o.t[0].rank, text[1], 120));
  }
  at_put_type(c, &o.t[0]);
}

/* A writing operator whose other operands have shapes of their own. */
void at_shape_self(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_put_type(c, &t);
}

void at_shape_fill_diagonal(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t d;
  if (t.rank < 2) at_fail(c, "fill_diagonal_ takes a tensor of rank 2 or more, not %d", (int)t.rank);
  for (d = 1; t.rank > 2 && d < t.rank; d++)
    if (at_differs(c, t.sizes[0], t.sizes[d]))
      at_fail(c, "fill_diagonal_ of rank %d: dimensions differ in size", (int)t.rank);
  at_put_type(c, &t);
}

void at_shape_clone(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *strides = at_dims(c, t.rank);
  int32_t dtype = at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : t.dtype;
  if (at_has(c, "device")) {
    c->device = aot_device_of(at_int(c, "device"));
    c->device_index = aot_device_index_of(at_int(c, "device"));
  }
  at_strides_for_format(c, &t, at_has(c, "memory_format") ? at_int(c, "memory_format") : AOT_MEMORY_PRESERVE, strides);
  at_put_strided(c, dtype, t.sizes, strides, t.rank);
}

/* src broadcast to self; the result is self with other contents. */
void at_shape_copy(at_infer_t *c) {
  aot_type_t t[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  t[0] = at_tensor(c, "self");
  t[1] = at_operand(c, "src");
  if (at_broadcast(c, t, 2, sizes) > t[0].rank)
    at_fail(c, "copy of a tensor of rank %d to one of rank %d", (int)t[1].rank, (int)t[0].rank);
  at_put_like(c, &t[0], t[0].dtype);
}

/* Fresh, of self's shape, dtype and layout. */
void at_shape_like_self(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_put_like(c, &t, t.dtype);
}

void at_shape_in_format_of_self(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_put_in_format_of(c, &t, t.sizes, t.dtype);
}

void at_shape_native_dropout(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "input");
  at_put_like(c, &t, t.dtype);
  at_put_like(c, &t, AOT_BOOL);
}

/* A product with a float: integer gradients become float32. */
void at_shape_native_dropout_backward(at_infer_t *c) {
  operands_t o = collect(c);
  put(c, &o, floating(at_promote(c, o.t, o.n)));
}

void at_shape_dropout(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "input");
  if (at_bool(c, "train")) at_put_like(c, &t, t.dtype);
  else at_put_type(c, &t);
}

void at_shape_isin(at_infer_t *c) {
  aot_type_t t = at_operand(c, at_has(c, "elements") ? "elements" : "element");
  if (t.kind == AOT_TYPE_TENSOR) at_put_like(c, &t, AOT_BOOL);
  else at_put(c, AOT_BOOL, t.sizes, 0);
}

void at_shape_log_sigmoid_forward(at_infer_t *c) {
  static const int64_t empty[1] = {0};
  aot_type_t t = at_tensor(c, "self");
  at_put_like(c, &t, t.dtype);
  if (t.device == AOT_DEVICE_CPU) at_put_like(c, &t, t.dtype);
  else at_put(c, t.dtype, empty, 1);
}

void at_shape_glu(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), t.rank);
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank);
  if (t.rank == 0 || at_differs(c, at_mod(c, sizes[dim], 2), 0)) at_fail(c, "glu halves a dimension of even size");
  else sizes[dim] = at_floordiv(c, sizes[dim], 2);
  t.sizes = sizes; /* of each half, which is a view */
  at_put_pointwise(c, t.dtype, &t, 1);
}

void at_shape_prelu_backward(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), w = at_tensor(c, "weight");
  at_put_like(c, &t, t.dtype);
  at_put_like(c, &t, w.dtype);
}

/* masked_scatter: self and mask broadcast together */
void at_shape_masked_scatter(at_infer_t *c) {
  aot_type_t t[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  t[0] = at_tensor(c, "self");
  t[1] = at_tensor(c, "mask");
  at_put(c, t[0].dtype, sizes, at_broadcast(c, t, 2, sizes));
}

void at_shape_frexp(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_put_like(c, &t, t.dtype);
  at_put_like(c, &t, AOT_I32);
}
