/* Comparisons of sizes, strides and overlap of tensor types. */
#include "same_layout.h"

int fz_same_layout(const aot_type_t *a, const aot_type_t *b) {
  int same = 1, empty = 0; /* nothing is anywhere if a size is 0 */
  if (a->kind != b->kind || a->dtype != b->dtype || a->rank != b->rank) return 0;
  for (int32_t d = 0; d < a->rank; d++) {
    if (a->sizes[d] != b->sizes[d]) return 0;
    empty |= a->sizes[d] == 0;
    same &= a->sizes[d] == 1 || a->strides[d] == b->strides[d];
  }
  return same || empty;
}

int fz_is_operand_itself(const aot_op_desc_t *d, const aot_type_t *from, const aot_type_t *to) {
  const int is_real = from->dtype != AOT_C64 && from->dtype != AOT_C128;
  if ((d->flags & AOT_OP_SELF_AT_RANK_0) && from->rank == 0 && is_real) return 1;
  return (d->flags & AOT_OP_MAYBE_SELF) && fz_same_layout(from, to) && from->offset == to->offset;
}

int fz_may_repeat(const aot_type_t *t) {
  int32_t order[AOT_MAX_RANK], n = 0;
  int64_t last = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    int32_t k = n;
    if (AOT_DIM_IS_SYM(t->strides[d])) return 1;
    if (t->sizes[d] == 1 || t->strides[d] == 0) continue;
    for (n++; k > 0 && t->strides[order[k - 1]] > t->strides[d]; k--) order[k] = order[k - 1];
    order[k] = d;
  }
  for (int32_t k = 0; k < n; k++) {
    const int64_t size = t->sizes[order[k]];
    if (t->strides[order[k]] <= last || (AOT_DIM_IS_SYM(size) && k + 1 < n)) return 1;
    if (!AOT_DIM_IS_SYM(size)) last += (size - 1) * t->strides[order[k]];
  }
  return 0;
}
