/* Results whose size or value only the run can determine: each brings a new symbol into the shape environment. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

/* [n, rank] in column order, as PyTorch lays it out: a column is the coordinates of one dimension. */
void at_shape_nonzero(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *sizes = at_dims(c, 2), *strides = at_dims(c, 2);
  sizes[0] = at_unknown(c, 0, at_numel(c, t.sizes, t.rank));
  sizes[1] = t.rank;
  strides[0] = 1;
  strides[1] = sizes[0];
  at_put_strided(c, AOT_I64, sizes, strides, 2);
}

/* where, nonzero_numpy: the columns of nonzero; a tensor without dimensions has one */
void at_shape_coordinates(at_infer_t *c) {
  aot_type_t t = at_tensor(c, at_has(c, "condition") ? "condition" : "self");
  int64_t *n = at_dims(c, 1);
  int32_t d;
  n[0] = at_unknown(c, 0, at_numel(c, t.sizes, t.rank));
  for (d = 0; d < (t.rank ? t.rank : 1); d++) at_put(c, AOT_I64, n, 1);
}

void at_shape_masked_select(at_infer_t *c) {
  aot_type_t pair[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), *n = at_dims(c, 1);
  int32_t rank;
  pair[0] = at_tensor(c, "self");
  pair[1] = at_tensor(c, "mask");
  if (pair[1].dtype != AOT_BOOL) at_fail(c, "the mask must be bool, not %s", aot_dtype_name(pair[1].dtype));
  rank = at_broadcast(c, pair, 2, sizes);
  n[0] = at_unknown(c, 0, at_numel(c, sizes, rank));
  at_put(c, pair[0].dtype, n, 1);
}

/* _unique2, unique_consecutive, unique_dim. What is not requested is empty; along a dimension everything is given.
 * Dimension 0 of a vector counts as none for unique_consecutive (aten/src/ATen/native/Unique.cpp). */
void at_shape_unique(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int sorts = aot_str_eq(aot_str(c->row->name), aot_str("aten.unique_dim.default"));
  int has_dim = at_has(c, "dim") && (sorts || !(t.rank == 1 && at_int(c, "dim") == 0)), always = has_dim;
  int32_t dim = has_dim ? at_wrap(c, at_int(c, "dim"), t.rank) : 0;
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), *n = at_dims(c, 1), *length = at_dims(c, 1),
          *nothing = at_dims(c, 1);
  int64_t whole = has_dim ? (t.rank ? t.sizes[dim] : 1) : at_numel(c, t.sizes, t.rank);
  int inverse = always || at_bool(c, "return_inverse"), counts = always || at_bool(c, "return_counts");
  n[0] = at_unknown(c, !AOT_DIM_IS_SYM(whole) && whole > 0, whole);
  length[0] = whole;
  nothing[0] = 0;
  if (has_dim && t.rank) {
    sizes[dim] = n[0];
    at_put(c, t.dtype, sizes, t.rank);
  } else {
    at_put(c, t.dtype, n, 1);
  }
  if (inverse && !has_dim) at_put(c, AOT_I64, t.sizes, t.rank);
  else at_put(c, AOT_I64, inverse ? length : nothing, 1);
  at_put(c, AOT_I64, counts ? n : nothing, 1);
}

/* float32 weights are summed in float32, others in float64; of no numbers there are counts alone. */
void at_shape_bincount(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), w = at_operand(c, "weights");
  int64_t *n = at_dims(c, 1);
  if (t.rank != 1) at_fail(c, "bincount takes a tensor of rank 1, not %d", (int)t.rank);
  if (!at_is_integral(t.dtype) || t.dtype == AOT_BOOL)
    at_fail(c, "bincount takes integers, not %s", aot_dtype_name(t.dtype));
  n[0] = at_unknown(c, at_int(c, "minlength"), INT64_MAX);
  at_put(c, w.kind != AOT_TYPE_TENSOR || t.sizes[0] == 0 ? AOT_I64 : w.dtype == AOT_F32 ? AOT_F32 : AOT_F64, n, 1);
}

static int64_t output_size(at_infer_t *c) {
  return at_has(c, "output_size") ? at_int(c, "output_size") : at_unknown(c, 0, INT64_MAX);
}

void at_shape_repeat_rows(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "repeats");
  int64_t *n = at_dims(c, 1);
  if (t.rank != 1) at_fail(c, "repeats must have rank 1, not %d", (int)t.rank);
  if (t.dtype != AOT_I64 && t.dtype != AOT_I32)
    at_fail(c, "repeats must be int64 or int32, not %s", aot_dtype_name(t.dtype));
  n[0] = output_size(c);
  at_put(c, t.dtype, n, 1);
}

/* repeat_interleave.self_Tensor: without dim self is flat */
void at_shape_repeat_interleave_counts(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), *n = at_dims(c, 1);
  n[0] = output_size(c);
  if (at_has(c, "dim") && t.rank) {
    sizes[at_wrap(c, at_int(c, "dim"), t.rank)] = n[0];
    at_put(c, t.dtype, sizes, t.rank);
  } else {
    at_put(c, t.dtype, n, 1);
  }
}

/* item: a float, an integer or a bool of the run. Integers stay below what dimensions can hold. */
void at_shape_item(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), out;
  int64_t n = at_numel(c, t.sizes, t.rank);
  memset(&out, 0, sizeof out);
  if (at_differs(c, n, 1)) at_fail(c, "a tensor of %lld elements is no number", (long long)at_hint(c, n));
  if (aot_dtype_is_complex(t.dtype)) at_fail(c, "complex numbers are not supported");
  if (t.dtype == AOT_BOOL) {
    out.kind = AOT_TYPE_SYMBOOL;
    out.expr = at_unknown(c, 0, 1);
  } else if (at_is_integral(t.dtype)) {
    out.kind = AOT_TYPE_SYMINT;
    out.expr = at_unknown(c, 1 - AOT_DIM_SYM, AOT_DIM_SYM - 1);
  } else {
    out.kind = AOT_TYPE_SYMFLOAT;
  }
  at_put_type(c, &out);
}

/* equal, allclose: one bool for two whole tensors */
void at_shape_verdict(at_infer_t *c) {
  aot_type_t out, a = at_tensor(c, "self"), b = at_tensor(c, "other");
  int64_t sizes[AOT_MAX_RANK];
  aot_type_t pair[2];
  pair[0] = a;
  pair[1] = b;
  if (strstr(c->row->name, "allclose")) {
    if (a.dtype != b.dtype) at_fail(c, "allclose of %s and %s", aot_dtype_name(a.dtype), aot_dtype_name(b.dtype));
    at_broadcast(c, pair, 2, sizes);
  }
  memset(&out, 0, sizeof out);
  out.kind = AOT_TYPE_SYMBOOL;
  out.expr = at_unknown(c, 0, 1);
  at_put_type(c, &out);
}

/* Arithmetic on numbers: what Python makes of them. */
static int32_t number_kind(const char *name, int any_float) {
  static const struct {
    const char *end;
    int32_t kind;
  } rows[] = {
      {".eq", AOT_TYPE_SYMBOOL},         {".ne", AOT_TYPE_SYMBOOL},       {".lt", AOT_TYPE_SYMBOOL},
      {".le", AOT_TYPE_SYMBOOL},         {".gt", AOT_TYPE_SYMBOOL},       {".ge", AOT_TYPE_SYMBOOL},
      {".sym_not", AOT_TYPE_SYMBOOL},    {".trunc", AOT_TYPE_SYMINT},     {".floor", AOT_TYPE_SYMINT},
      {".ceil", AOT_TYPE_SYMINT},        {".sym_int", AOT_TYPE_SYMINT},   {".truediv", AOT_TYPE_SYMFLOAT},
      {".sym_float", AOT_TYPE_SYMFLOAT}, {"sym_sqrt", AOT_TYPE_SYMFLOAT},
  };
  size_t n = strlen(name), k;
  for (k = 0; k < sizeof rows / sizeof rows[0]; k++)
    if (n > strlen(rows[k].end) && strcmp(name + n - strlen(rows[k].end), rows[k].end) == 0) return rows[k].kind;
  return any_float ? AOT_TYPE_SYMFLOAT : AOT_TYPE_SYMINT;
}

void at_shape_number(at_infer_t *c) {
  aot_type_t out;
  uint32_t i;
  int any_float = 0;
  memset(&out, 0, sizeof out);
  for (i = 0; i < c->n_args; i++) {
    aot_type_t t = at_operand_of(c, &c->args[i]);
    if (t.kind == AOT_TYPE_TENSOR) at_fail(c, "argument %u is a tensor where a number is expected", i);
    any_float |= t.kind == AOT_TYPE_SYMFLOAT;
  }
  out.kind = number_kind(c->row->name, any_float);
  if (out.kind == AOT_TYPE_SYMBOOL) out.expr = at_unknown(c, 0, 1);
  if (out.kind == AOT_TYPE_SYMINT) out.expr = at_unknown(c, 1 - AOT_DIM_SYM, AOT_DIM_SYM - 1);
  at_put_type(c, &out);
}

/* ---- tokens that order assertions ---- */

void at_shape_make_dep_token(at_infer_t *c) {
  at_put(c, at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : AOT_F32, NULL, 0);
}

void at_shape_dep_token(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "dep_token");
  at_put(c, t.dtype, t.sizes, t.rank);
}
