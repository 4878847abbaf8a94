/* Complex numbers: what is made of two parts, and views of the parts. */
#include "view_geometry.h"

#include <aot/inline.h>

/* complex(real, imag), polar(abs, angle): two tensors of one floating dtype */
void at_shape_complex(at_infer_t *c) {
  aot_type_t t[2];
  t[0] = at_tensor(c, c->desc->args[0].name.data[0] == 'r' ? "real" : "abs");
  t[1] = at_tensor(c, c->desc->args[0].name.data[0] == 'r' ? "imag" : "angle");
  if (t[0].dtype != t[1].dtype || (t[0].dtype != AOT_F32 && t[0].dtype != AOT_F64))
    at_fail(c, "the two parts are %s and %s, not both f32 or both f64", aot_dtype_name(t[0].dtype),
            aot_dtype_name(t[1].dtype));
  at_put_pointwise(c, t[0].dtype == AOT_F64 ? AOT_C128 : AOT_C64, t, 2);
}

/* The parts in a view: strides and offset count elements half as large. */
static at_view_t parts(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t d;
  if (!aot_dtype_is_complex(v.base.dtype)) at_fail(c, "dtype %s is not complex", aot_dtype_name(v.base.dtype));
  v.base.dtype = aot_dtype_part(v.base.dtype);
  v.offset = at_mul(c, v.offset, 2);
  for (d = 0; d < v.rank; d++) v.strides[d] = at_mul(c, v.strides[d], 2);
  return v;
}

void at_shape_view_as_real(at_infer_t *c) {
  at_view_t v = parts(c);
  at_view_insert(&v, v.rank, 2, 1);
  at_view_result(c, &v);
}

void at_shape_real_part(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  if (aot_dtype_is_complex(v.base.dtype)) v = parts(c);
  at_view_result(c, &v);
}

void at_shape_imaginary_part(at_infer_t *c) {
  at_view_t v = parts(c);
  v.offset = at_add(c, v.offset, 1);
  at_view_result(c, &v);
}

/* In a functional program the pairs may be anywhere: then it is a copy. */
void at_shape_view_as_complex(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t last = v.rank - 1, dtype = v.base.dtype == AOT_F32 ? AOT_C64 : AOT_C128, d, lies_well;
  if (v.base.dtype != AOT_F32 && v.base.dtype != AOT_F64)
    at_fail(c, "dtype %s is no part of a complex one", aot_dtype_name(v.base.dtype));
  else if (v.rank == 0 || at_differs(c, v.sizes[last], 2)) at_fail(c, "the last dimension is not of size 2");
  if (c->status != AOT_OK) return;
  lies_well = at_same_stride(c, v.strides[last], 1) && at_hint(c, v.offset) % 2 == 0;
  for (d = 0; d < last; d++) lies_well = lies_well && (at_hint(c, v.strides[d]) % 2 == 0 || at_same(c, v.sizes[d], 1));
  if (!lies_well) {
    at_put(c, dtype, v.sizes, last);
    return;
  }
  v.base.dtype = dtype;
  v.offset = at_floordiv(c, v.offset, 2);
  for (d = 0; d < last; d++) v.strides[d] = at_floordiv(c, v.strides[d], 2);
  at_view_drop(&v, last);
  at_view_result(c, &v);
}
