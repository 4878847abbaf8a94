#include "emit_layout.h"

int64_t em_hint(const em_t *e, int64_t dim) { return e->host->graph->dim_hint(e->prog, dim); }

int64_t em_numel(const em_t *e, const aot_type_t *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= em_hint(e, t->sizes[d]);
  return n;
}

/* From the outermost in memory to the innermost. */
static void memory_order(const em_t *e, const int64_t *strides, int32_t rank, int64_t *order) {
  for (int32_t d = 0; d < rank; d++) {
    const int64_t stride = em_hint(e, strides[d]);
    int32_t at = d;
    for (; at > 0 && em_hint(e, strides[order[at - 1]]) < stride; at--) order[at] = order[at - 1];
    order[at] = d;
  }
}

em_x_t em_in_order(em_t *e, em_x_t x, const int64_t *strides, int32_t rank) {
  const em_x_t contiguous = aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS);
  int64_t order[AOT_MAX_RANK], back[AOT_MAX_RANK];
  int moved = 0;
  memory_order(e, strides, rank, order);
  for (int32_t i = 0; i < rank; i++) back[order[i]] = i, moved |= order[i] != i;
  if (!moved) return EM(e, "clone", x, contiguous);
  const em_x_t outermost_first = EM(e, "permute", x, aot_arg_ints(order, (uint32_t)rank));
  const em_x_t dense = EM(e, "clone", outermost_first, contiguous);
  return EM(e, "permute", dense, aot_arg_ints(back, (uint32_t)rank));
}

em_x_t em_filled(em_t *e, const aot_type_t *like, em_x_t number) {
  int64_t order[AOT_MAX_RANK], back[AOT_MAX_RANK], sizes[AOT_MAX_RANK];
  const uint32_t rank = (uint32_t)like->rank;
  const em_x_t device = like->device == AOT_DEVICE_CPU ? em_none() : em_device(like->device, like->device_index);
  int moved = 0;
  if (e->status != AOT_OK) return em_none();
  memory_order(e, like->strides, like->rank, order);
  for (uint32_t i = 0; i < rank; i++) {
    sizes[i] = like->sizes[order[i]];
    back[order[i]] = i;
    moved |= order[i] != i;
  }
  const em_x_t full = EM(e, "full", aot_arg_ints(sizes, rank), number, em_dtype(like->dtype), em_none(), device);
  return moved ? EM(e, "permute", full, aot_arg_ints(back, rank)) : full;
}

/* No gaps, no overlaps. */
static int is_dense(const em_t *e, const aot_type_t *t) {
  int64_t order[AOT_MAX_RANK], dense = 1;
  memory_order(e, t->strides, t->rank, order);
  for (int32_t i = t->rank; i-- > 0;) {
    const int64_t size = em_hint(e, t->sizes[order[i]]);
    if (size != 1 && em_hint(e, t->strides[order[i]]) != dense) return 0;
    dense *= size;
  }
  return 1;
}

int em_lies_alike(const em_t *e, const aot_type_t *a, const aot_type_t *b) {
  for (int32_t d = 0; d < a->rank; d++)
    if (em_hint(e, a->sizes[d]) == 0) return 1;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != 1 && a->strides[d] != b->strides[d] && em_hint(e, a->strides[d]) != em_hint(e, b->strides[d]))
      return 0;
  return 1;
}

int64_t em_channels_last(int32_t rank) { return rank == 5 ? AOT_MEMORY_CHANNELS_LAST_3D : AOT_MEMORY_CHANNELS_LAST; }

int em_lies_channels_last(const em_t *e, const aot_type_t *t) {
  int64_t dense = 1;
  for (int32_t k = 0; k < t->rank; k++) {
    const int32_t d = k == 0 ? 1 : k == t->rank - 1 ? 0 : t->rank - k;
    const int64_t size = em_hint(e, t->sizes[d]);
    if (size != 1 && em_hint(e, t->strides[d]) != dense) return 0;
    dense *= size;
  }
  return 1;
}

em_x_t em_in_format(em_t *e, em_x_t x, int64_t format) {
  return EM(e, "clone", x, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, format));
}

em_x_t em_laid_out(em_t *e, em_x_t x, const aot_type_t *like) {
  const aot_type_t t = em_type(e, x);
  if (e->status != AOT_OK || t.kind != AOT_TYPE_TENSOR || t.rank != like->rank || em_lies_alike(e, &t, like)) return x;
  return is_dense(e, like) ? em_in_order(e, x, like->strides, t.rank) : x;
}
