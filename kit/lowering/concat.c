/* Joining tensors (cat, stack): every part is copied to its place in the result, converted when dtypes differ; unless
 * it is made there (concat_in_place.c). */
#include "concat.h"

#include <aot/assert.h>

/* [0], which cat takes next to tensors of any rank, for code that begins a list with it. */
static int is_nothing(const lw_tensor_t *t, const lw_tensor_t *whole) {
  return t->rank == 1 && t->sizes[0] == 0 && whole->rank != 1;
}

/* Tensors of a list argument; 0: an element that is none. */
static uint32_t read_parts(const lw_build_t *b, int is_stack, lw_join_t *out) {
  const aot_snap_arg_t *a = lw_arg(b, 0);
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + a->i;
  uint32_t n = 0;
  if (a->kind != AOT_ARG_VALUES || a->n > LW_MOST_JOINED) return 0;
  for (uint32_t k = 0; k < a->n; k++) {
    if (rows[k] == AOT_NO_ID || lw_value(b, rows[k])->kind != AOT_TYPE_TENSOR) return 0;
    if (!is_stack && is_nothing(&lw_value(b, rows[k])->t, lw_type(b, 0))) continue;
    out->parts[n] = &lw_value(b, rows[k])->t;
    out->rows[n++] = rows[k];
  }
  return n;
}

/* cat, stack(tensors, dim). 0: parts that do not fit their result, or get imaginary parts there. */
static int read_join(const lw_build_t *b, int is_stack, lw_join_t *out) {
  const lw_tensor_t *whole = lw_type(b, 0);
  int64_t total = 0;
  out->n = read_parts(b, is_stack, out);
  out->is_stack = is_stack;
  out->dim = lw_arg_int(b, 1, 0);
  if (out->dim < 0) out->dim += whole->rank;
  if (!out->n || out->dim < 0 || out->dim >= whole->rank) return 0;
  for (uint32_t k = 0; k < out->n; k++) {
    if (out->parts[k]->rank != whole->rank - is_stack) return 0;
    if (aot_dtype_is_complex(whole->dtype) && out->parts[k]->dtype != whole->dtype) return 0;
    total += is_stack ? 1 : out->parts[k]->sizes[out->dim];
    for (int32_t d = 0; d < whole->rank; d++)
      if (d != out->dim && out->parts[k]->sizes[is_stack && d > out->dim ? d - 1 : d] != whole->sizes[d]) return 0;
  }
  return total == whole->sizes[out->dim];
}

lw_tensor_t lw_place_in(const lw_tensor_t *whole, const lw_join_t *j, uint32_t k, int64_t *at) {
  lw_tensor_t place = *whole;
  AOT_ASSERT(k < j->n && j->dim >= 0 && j->dim < whole->rank && *at < whole->sizes[j->dim] + (j->is_stack ? 0 : 1));
  place.offset += *at * whole->strides[j->dim];
  *at += j->is_stack ? 1 : j->parts[k]->sizes[j->dim];
  if (!j->is_stack) {
    place.sizes[j->dim] = j->parts[k]->sizes[j->dim];
    return place;
  }
  for (int64_t d = j->dim; d + 1 < whole->rank; d++) {
    place.sizes[d] = place.sizes[d + 1];
    place.strides[d] = place.strides[d + 1];
  }
  place.rank--;
  return place;
}

/* ---- nodes ---- */

aot_status_t lw_lower_join(lw_build_t *b, const lw_join_t *j) {
  lw_tensor_t whole;
  int64_t at = 0;
  const lw_tensor_t *place = lw_place_of(b, 0);
  if (place) lw_bind(b, 0, place);
  else AOT_TRY(lw_result(b, 0, &whole));
  whole = *lw_type(b, 0);
  for (uint32_t k = 0; k < j->n; k++) {
    const lw_tensor_t to = lw_place_in(&whole, j, k, &at);
    if (j->parts[k]->storage == to.storage && lw_same_geometry(j->parts[k], &to)) continue; /* it was made there */
    AOT_TRY(lw_copy(b, &to, j->parts[k]));
  }
  AOT_ASSERT(at == whole.sizes[j->dim]); /* parts fill it */
  return AOT_OK;
}

static aot_status_t lower_cat(lw_build_t *b) {
  lw_join_t j;
  return read_join(b, 0, &j) ? lw_lower_join(b, &j) : LW_DECLINED;
}

static aot_status_t lower_stack(lw_build_t *b) {
  lw_join_t j;
  return read_join(b, 1, &j) ? lw_lower_join(b, &j) : LW_DECLINED;
}

int lw_is_join(const lw_build_t *b) { return lw_op(b)->lower == lower_cat || lw_op(b)->lower == lower_stack; }
int lw_read_join(const lw_build_t *b, lw_join_t *out) { return read_join(b, lw_op(b)->lower == lower_stack, out); }

static const lw_lowering_t rows[] = {
    {"aten.cat.default", lower_cat},
    {"aten.stack.default", lower_stack},
};
const lw_lowering_table_t lw_lowerings_joins = LW_TABLE(rows);
