/* Ragged groups of rows: embedding bags, segments. Sizes of the by-products are what PyTorch's kernels leave
 * (EmbeddingBag.cpp): an empty tensor where they skip one. */
#include "shape_rules.h"

#include <aot/inline.h>

static void check_rank(at_infer_t *c, const char *name, const aot_type_t *t, int32_t rank) {
  if (t->rank != rank) at_fail(c, "%s: '%s' must have rank %d, not %d", c->row->name, name, (int)rank, (int)t->rank);
}

/* Sums of whole rows take a way that needs no by-products. */
static int sums_fast(at_infer_t *c, const aot_type_t *weight, int padded) {
  aot_type_t scale = at_operand(c, "per_sample_weights");
  int32_t d = weight->dtype;
  if (padded || at_int(c, "mode") != 0 || (d != AOT_F32 && d != AOT_F16 && d != AOT_BF16)) return 0;
  if (scale.kind == AOT_TYPE_TENSOR && scale.rank == 1 && !at_same_stride(c, scale.strides[0], 1)) return 0;
  return at_same_stride(c, weight->strides[1], 1);
}

/* (output, bag of each index, indices of each bag, row of each maximum) */
static void put_bags(at_infer_t *c, int padded, int forward_only) {
  aot_type_t weight = at_tensor(c, "weight"), indices = at_tensor(c, "indices"), offsets = at_tensor(c, "offsets");
  int32_t whole = indices.dtype == AOT_I64 || offsets.dtype == AOT_I64 ? AOT_I64 : AOT_I32;
  int64_t mode = at_int(c, "mode"), *sizes = at_dims(c, 2), *zero = at_dims(c, 1), *counted = at_dims(c, 1);
  check_rank(c, "weight", &weight, 2);
  check_rank(c, "indices", &indices, 1);
  check_rank(c, "offsets", &offsets, 1);
  if (mode < 0 || mode > 2)
    at_fail(c, "%s: mode is 0 (sum), 1 (mean) or 2 (max), not %lld", c->row->name, (long long)mode);
  if (mode != 0 && at_has(c, "per_sample_weights"))
    at_fail(c, "%s: per_sample_weights need mode 0 (sum)", c->row->name);
  if (c->status != AOT_OK) return;
  sizes[0] = at_bool(c, "include_last_offset") ? at_sub(c, offsets.sizes[0], 1) : offsets.sizes[0];
  sizes[1] = weight.sizes[1];
  if (at_below(c, sizes[0], 0)) at_fail(c, "%s: include_last_offset without an offset", c->row->name);
  zero[0] = 0;
  counted[0] = forward_only && mode == 0 ? offsets.sizes[0] : sizes[0];
  at_put(c, weight.dtype, sizes, 2);
  at_put(c, whole, sums_fast(c, &weight, padded) ? zero : indices.sizes, 1);
  at_put(c, whole, counted, 1);
  if (mode == 2) at_put(c, whole, sizes, 2);
  else at_put(c, whole, counted, 1);
}

void at_shape_embedding_bag(at_infer_t *c) {
  put_bags(c, at_has(c, "padding_idx") && at_int(c, "padding_idx") >= 0, 0);
}
void at_shape_embedding_bag_forward_only(at_infer_t *c) {
  put_bags(c, at_has(c, "padding_idx") && at_int(c, "padding_idx") >= 0, 1);
}
/* embedding_bag: a padding_idx that is given may count from the end */
void at_shape_embedding_bag_padded(at_infer_t *c) { put_bags(c, at_has(c, "padding_idx"), 0); }

void at_shape_embedding_bag_backward(at_infer_t *c) {
  aot_type_t g = at_tensor(c, "grad");
  int64_t *sizes = at_dims(c, 2);
  check_rank(c, "grad", &g, 2);
  if (c->status != AOT_OK) return;
  sizes[0] = at_int(c, "num_weights");
  sizes[1] = g.sizes[1];
  at_put(c, g.dtype, sizes, 2);
}

void at_shape_embedding_bag_weights_backward(at_infer_t *c) {
  aot_type_t g = at_tensor(c, "grad"), indices = at_tensor(c, "indices");
  check_rank(c, "grad", &g, 2);
  check_rank(c, "indices", &indices, 1);
  at_put(c, g.dtype, indices.sizes, 1);
}

/* Segments of dimension `axis`: as many as lengths, one less than offsets; the dimensions before it come from them. */
void at_shape_segment_reduce(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "data"), l;
  int64_t axis = at_int(c, "axis"), *sizes = at_dims_copy(c, x.sizes, x.rank);
  int by_lengths = at_has(c, "lengths");
  if (at_has(c, "indices")) at_fail(c, "segment_reduce by indices is not supported, nor is it in PyTorch");
  if (!by_lengths && !at_has(c, "offsets")) at_fail(c, "segment_reduce needs lengths or offsets");
  if (axis < 0 || axis >= x.rank) at_fail(c, "axis %lld is out of range for rank %d", (long long)axis, (int)x.rank);
  if (c->status != AOT_OK) return;
  l = at_tensor(c, by_lengths ? "lengths" : "offsets");
  check_rank(c, by_lengths ? "lengths" : "offsets", &l, (int32_t)axis + 1);
  if (c->status != AOT_OK) return;
  sizes[axis] = by_lengths ? l.sizes[axis] : at_sub(c, l.sizes[axis], 1);
  at_put(c, x.dtype, sizes, x.rank);
}

void at_shape_like_data(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "data");
  at_put(c, x.dtype, x.sizes, x.rank);
}
