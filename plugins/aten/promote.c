/* Type promotion, PyTorch's rules (aten/src/ATen/native/TypeProperties.cpp, c10/core/ScalarType.cpp).
 *
 * Operands fall in three classes: tensors with dimensions, 0-dim tensors, Python numbers. The kind (bool < int < float
 * < complex) is the highest of all; within it the classes decide in that order. So int32[3] + 1.5 is float32, half[3] +
 * a float64 0-dim tensor is half, int8[3] + 300 is int8. */
#include "shape.h"

#include <aot/inline.h>

int at_is_integral(int32_t dtype) { return !aot_dtype_is_float(dtype) && !aot_dtype_is_complex(dtype); }

int32_t at_accumulate_dtype(int32_t dtype) { return dtype == AOT_F16 || dtype == AOT_BF16 ? AOT_F32 : dtype; }

/* Place in the order of floats; f16 and bf16 share one and meet in f32. */
static int float_rank(int32_t dtype) {
  switch (dtype) {
    case AOT_F16:
    case AOT_BF16: return 1;
    case AOT_F32:
    case AOT_C64: return 2;
    default: return 3; /* f64, c128 */
  }
}

static int32_t promote_ints(at_infer_t *c, int32_t a, int32_t b) {
  static const int32_t order[] = {AOT_U8, AOT_I8, AOT_I16, AOT_I32, AOT_I64};
  int ia = -1, ib = -1, i;
  if (a == AOT_BOOL) return b;
  if (b == AOT_BOOL) return a;
  for (i = 0; i < 5; i++) {
    if (order[i] == a) ia = i;
    if (order[i] == b) ib = i;
  }
  if (ia < 0 || ib < 0) {
    at_fail(c, "%s and %s do not promote", aot_dtype_name(a), aot_dtype_name(b));
    return a;
  }
  if (ia + ib == 1) return AOT_I16; /* u8 with i8 */
  return order[ia > ib ? ia : ib];
}

int32_t at_promote_pair(at_infer_t *c, int32_t a, int32_t b) {
  int rank;
  if (a == b || b == 0) return a;
  if (a == 0) return b;
  if (at_is_integral(a) && at_is_integral(b)) return promote_ints(c, a, b);
  if (at_is_integral(a)) return b;
  if (at_is_integral(b)) return a;
  rank = float_rank(a) > float_rank(b) ? float_rank(a) : float_rank(b);
  if (aot_dtype_is_complex(a) || aot_dtype_is_complex(b)) return rank == 3 ? AOT_C128 : AOT_C64;
  if (rank == 1) return AOT_F32;
  return rank == 2 ? AOT_F32 : AOT_F64;
}

static int32_t to_complex(int32_t dtype) { return dtype == AOT_F64 || dtype == AOT_C128 ? AOT_C128 : AOT_C64; }

/* combine_categories of TypeProperties.cpp: `high` is of a class that wins within its kind. */
static int32_t combine(at_infer_t *c, int32_t high, int32_t low) {
  if (high == 0 || low == 0) return high == 0 ? low : high;
  if (aot_dtype_is_complex(high)) return high;
  if (aot_dtype_is_float(high)) return aot_dtype_is_complex(low) ? to_complex(high) : high;
  if (high == AOT_BOOL || !at_is_integral(low)) return at_promote_pair(c, high, low);
  return high;
}

int32_t at_promote(at_infer_t *c, const aot_type_t *operands, uint32_t n) {
  int32_t dims = 0, zeros = 0, numbers = 0;
  uint32_t i;
  for (i = 0; i < n; i++) {
    const aot_type_t *t = &operands[i];
    if (t->kind == AOT_TYPE_NONE) continue;
    if (t->kind != AOT_TYPE_TENSOR) numbers = at_promote_pair(c, numbers, t->dtype);
    else if (t->rank > 0) dims = at_promote_pair(c, dims, t->dtype);
    else zeros = at_promote_pair(c, zeros, t->dtype);
  }
  return combine(c, dims, combine(c, zeros, numbers));
}
