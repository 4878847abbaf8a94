/* Tensors out of nothing: full, zeros, arange, rand, and their likenesses. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <math.h>

static int32_t factory_dtype(at_infer_t *c, int32_t otherwise) {
  if (at_has(c, "device")) {
    c->device = aot_device_of(at_int(c, "device"));
    c->device_index = aot_device_index_of(at_int(c, "device"));
  }
  return at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : otherwise;
}

/* The sizes that an argument lists; fails if no tensor has them. */
static uint32_t given_sizes(at_infer_t *c, const char *name, const int64_t **out) {
  uint32_t n = at_ints(c, name, out), i;
  if (n > AOT_MAX_RANK) at_fail(c, "a tensor of rank %u, more than %d", n, AOT_MAX_RANK);
  for (i = 0; i < n && c->status == AOT_OK; i++)
    if (at_below(c, (*out)[i], 0)) at_fail(c, "size %lld", (long long)at_hint(c, (*out)[i]));
  return n;
}

static void put_sized(at_infer_t *c, int32_t dtype) {
  const int64_t *sizes;
  uint32_t n = given_sizes(c, "size", &sizes);
  aot_type_t t = {.kind = AOT_TYPE_TENSOR};
  int64_t *strides;
  if (c->status != AOT_OK) return;
  strides = at_dims(c, (int32_t)n);
  t.sizes = sizes;
  t.rank = (int32_t)n;
  at_strides_contiguous(c, sizes, t.rank, strides);
  t.strides = strides;
  if (at_has(c, "memory_format")) at_strides_for_format(c, &t, at_int(c, "memory_format"), strides);
  at_put_strided(c, dtype, sizes, strides, t.rank);
}

void at_shape_factory(at_infer_t *c) { put_sized(c, factory_dtype(c, AOT_F32)); }
void at_shape_factory_int(at_infer_t *c) { put_sized(c, factory_dtype(c, AOT_I64)); }

void at_shape_full(at_infer_t *c) { put_sized(c, factory_dtype(c, at_operand(c, "fill_value").dtype)); }

void at_shape_scalar_tensor(at_infer_t *c) { at_put(c, factory_dtype(c, AOT_F32), NULL, 0); }

/* new_full, new_zeros, ..: sizes given, dtype and device those of self */
void at_shape_new(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  put_sized(c, factory_dtype(c, t.dtype));
}

void at_shape_factory_like(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *strides = at_dims(c, t.rank);
  int32_t dtype = factory_dtype(c, t.dtype);
  at_strides_for_format(c, &t, at_has(c, "memory_format") ? at_int(c, "memory_format") : AOT_MEMORY_PRESERVE, strides);
  at_put_strided(c, dtype, t.sizes, strides, t.rank);
}

void at_shape_empty_strided(at_infer_t *c) {
  const int64_t *sizes, *strides;
  uint32_t n = at_ints(c, "size", &sizes), m = at_ints(c, "stride", &strides);
  aot_type_t self = at_operand(c, "self");
  if (n != m) at_fail(c, "%u sizes and %u strides", n, m);
  at_put_strided(c, factory_dtype(c, self.kind == AOT_TYPE_TENSOR ? self.dtype : AOT_F32), sizes, strides, (int32_t)n);
}

void at_put_permuted(at_infer_t *c, int32_t dtype, const char *size) {
  const int64_t *sizes, *order;
  uint32_t n = given_sizes(c, size, &sizes), m = at_ints(c, "physical_layout", &order), i;
  int64_t *strides, step = 1;
  if (n != m) at_fail(c, "physical_layout names %u of %u dimensions", m, n);
  if (c->status != AOT_OK) return;
  at_dim_mask(c, order, m, (int32_t)n);
  strides = at_dims(c, (int32_t)n);
  for (i = n; i-- > 0 && c->status == AOT_OK;) {
    int32_t d = at_wrap(c, order[i], (int32_t)n);
    strides[d] = step;
    step = at_mul(c, step, at_max(c, sizes[d], 1));
  }
  if (c->status == AOT_OK) at_put_strided(c, dtype, sizes, strides, (int32_t)n);
}

void at_shape_empty_permuted(at_infer_t *c) { at_put_permuted(c, factory_dtype(c, AOT_F32), "size"); }

/* ---- ranges ---- */

static double number(at_infer_t *c, const aot_arg_t *a, double otherwise) {
  if (a->kind == AOT_ARG_FLOAT) return a->u.f;
  if (a->kind == AOT_ARG_INT || a->kind == AOT_ARG_BOOL) return (double)at_hint(c, a->u.i);
  return otherwise;
}

/* ceil((end - start) / step): exact in integers, which may be symbolic; in double otherwise. Fractions are cut off for
 * int64 before they count, for other integers after, as in PyTorch. */
static int64_t range_length(at_infer_t *c, int32_t dtype) {
  const aot_arg_t *start = at_arg(c, "start"), *end = at_arg(c, "end"), *step = at_arg(c, "step");
  int exact =
      dtype == AOT_I64 || (end->kind != AOT_ARG_FLOAT && start->kind != AOT_ARG_FLOAT && step->kind != AOT_ARG_FLOAT);
  double by = number(c, step, 1), span = number(c, end, 0) - number(c, start, 0);
  if (exact) by = trunc(by), span = trunc(number(c, end, 0)) - trunc(number(c, start, 0));
  if (by == 0 || (span < 0) != (by < 0)) {
    if (by == 0 || span != 0) at_fail(c, "arange from %g to %g by %g", number(c, start, 0), number(c, end, 0), by);
    return 0;
  }
  if (exact) {
    int64_t from = at_has(c, "start") ? at_int(c, "start") : 0, to = at_int(c, "end");
    int64_t s = at_has(c, "step") ? at_int(c, "step") : 1;
    if (s == 1) return at_sub(c, to, from);
    return s > 0 ? at_floordiv(c, at_add(c, at_sub(c, to, from), s - 1), s)
                 : at_floordiv(c, at_add(c, at_sub(c, from, to), -s - 1), -s);
  }
  double length = ceil(span / by);
  if (!(length < 9223372036854775808.0)) {
    at_fail(c, "arange from %g to %g by %g", number(c, start, 0), number(c, end, 0), by);
    return 0;
  }
  return (int64_t)length;
}

/* windows of signal processing */
void at_shape_signal_window(at_infer_t *c) {
  int64_t *sizes = at_dims(c, 1);
  int32_t dtype = factory_dtype(c, AOT_F32);
  sizes[0] = at_int(c, "window_length");
  if (sizes[0] < 0 || at_is_integral(dtype) || aot_dtype_is_complex(dtype))
    at_fail(c, "%s of %lld elements of %s", c->row->name, (long long)sizes[0], aot_dtype_name(dtype));
  at_put(c, dtype, sizes, 1);
}

void at_shape_arange(at_infer_t *c) {
  int any_float = at_operand(c, "start").kind == AOT_TYPE_SYMFLOAT || at_operand(c, "end").kind == AOT_TYPE_SYMFLOAT ||
                  at_operand(c, "step").kind == AOT_TYPE_SYMFLOAT;
  int32_t dtype = factory_dtype(c, any_float ? AOT_F32 : AOT_I64);
  int64_t *sizes = at_dims(c, 1);
  sizes[0] = range_length(c, dtype);
  at_put(c, dtype, sizes, 1);
}

void at_shape_linspace(at_infer_t *c) {
  int64_t *sizes = at_dims(c, 1);
  sizes[0] = at_int(c, "steps");
  at_put(c, factory_dtype(c, AOT_F32), sizes, 1);
}

void at_shape_eye(at_infer_t *c) {
  int64_t *sizes = at_dims(c, 2);
  sizes[0] = at_int(c, "n");
  sizes[1] = at_has(c, "m") ? at_int(c, "m") : sizes[0];
  at_put(c, factory_dtype(c, AOT_F32), sizes, 2);
}

void at_shape_randperm(at_infer_t *c) {
  int64_t *sizes = at_dims(c, 1);
  sizes[0] = at_int(c, "n");
  at_put(c, factory_dtype(c, AOT_I64), sizes, 1);
}

static int64_t between(int64_t x, int64_t least, int64_t most) { return x < least ? least : x > most ? most : x; }

/* tril_indices, triu_indices: how many (row, column) pairs are on that side of the diagonal */
void at_shape_tri_indices(at_infer_t *c) {
  int64_t rows = at_int(c, "row"), columns = at_int(c, "col"), offset = at_int(c, "offset"), left, begin, end;
  int64_t *sizes = at_dims(c, 2);
  int lower = c->row->name[sizeof "aten.tri" - 1] == 'l';
  if (rows < 0 || columns < 0 || rows > INT32_MAX || columns > INT32_MAX)
    at_fail(c, "%s of %lld rows and %lld columns: each may be 0 to 2147483647", c->row->name, (long long)rows,
            (long long)columns);
  if (c->status != AOT_OK) return;
  /* row r has r + offset columns left of the border, */
  offset = between(offset, -rows - 1, columns + 1) + (lower ? 1 : 0);
  begin = between(-offset, 0, rows);        /* from this row on more than none */
  end = between(columns - offset, 0, rows); /* and from this one all */
  left = (begin + end - 1 + 2 * offset) * (end - begin) / 2 + (rows - end) * columns;
  sizes[0] = 2;
  sizes[1] = lower ? left : rows * columns - left;
  at_put(c, factory_dtype(c, AOT_I64), sizes, 2);
}
