/* Joining tensors: every part is copied to its place in the result, converted when dtypes differ. */
#include "lower.h"

/* Tensors of a list argument; 0: an element that is none. */
static uint32_t parts(const lw_build_t *b, const lw_tensor_t **out, uint32_t capacity) {
  const aot_snap_arg_t *a = lw_arg(b, 0);
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + a->i;
  if (a->kind != AOT_ARG_VALUES || a->n > capacity) return 0;
  for (uint32_t k = 0; k < a->n; k++) {
    if (rows[k] == AOT_NO_ID || lw_value(b, rows[k])->kind != AOT_TYPE_TENSOR) return 0;
    out[k] = &lw_value(b, rows[k])->t;
  }
  return a->n;
}

enum { MAX_PARTS = 256 };

/* cat, stack(tensors, dim); stack: every part is one index of a new dimension */
static aot_status_t join(lw_build_t *b, int stack) {
  const lw_tensor_t *part[MAX_PARTS];
  lw_tensor_t out, place;
  uint32_t n = parts(b, part, MAX_PARTS);
  int32_t rank = lw_type(b, 0)->rank;
  int64_t dim = lw_arg_int(b, 1, 0), at = 0, total = 0;
  if (dim < 0) dim += rank;
  if (!n || dim < 0 || dim >= rank) return LW_DECLINED;
  for (uint32_t k = 0; k < n; k++) {
    if (part[k]->rank != rank - stack) return LW_DECLINED; /* the empty tensor that old code begins with */
    total += stack ? 1 : part[k]->sizes[dim];
    for (int32_t d = 0; d < rank; d++)
      if (d != dim && part[k]->sizes[stack && d > dim ? d - 1 : d] != lw_type(b, 0)->sizes[d]) return LW_DECLINED;
  }
  if (total != lw_type(b, 0)->sizes[dim]) return LW_DECLINED;
  AOT_TRY(lw_result(b, 0, &out));
  for (uint32_t k = 0; k < n; k++) {
    place = out;
    place.offset += at * out.strides[dim];
    at += stack ? 1 : part[k]->sizes[dim];
    if (stack) { /* the new dimension goes from the place */
      for (int64_t d = dim; d + 1 < rank; d++) {
        place.sizes[d] = place.sizes[d + 1];
        place.strides[d] = place.strides[d + 1];
      }
      place.rank--;
    } else {
      place.sizes[dim] = part[k]->sizes[dim];
    }
    AOT_TRY(lw_copy(b, &place, part[k]));
  }
  return AOT_OK;
}

static aot_status_t lower_cat(lw_build_t *b) { return join(b, 0); }
static aot_status_t lower_stack(lw_build_t *b) { return join(b, 1); }

static const lw_lowering_t rows[] = {
    {"aten.cat.default", lower_cat},
    {"aten.stack.default", lower_stack},
};
const lw_lowering_table_t lw_lowerings_joins = LW_TABLE(rows);
