/* The same elements in the same order under other sizes. */
#include "shape_rules.h"

/* Sizes with -1 replaced. Factors that are on both sides cancel, so that symbolic sizes stay what they were. */
static void infer_sizes(at_infer_t *c, const aot_type_t *t, const int64_t *wanted, int32_t rank, int64_t *out) {
  uint32_t cancelled = 0;
  int32_t hole = -1, d, k;
  int64_t rest = 1, numel = 1;
  if (rank > AOT_MAX_RANK) at_fail(c, "a view of rank %d, more than %d", (int)rank, AOT_MAX_RANK);
  for (d = 0; d < rank && c->status == AOT_OK; d++) {
    out[d] = wanted[d];
    if (wanted[d] == -1) {
      if (hole >= 0) at_fail(c, "only one size of a view can be -1");
      hole = d;
      continue;
    }
    for (k = 0; k < t->rank; k++)
      if (!(cancelled >> k & 1) && t->sizes[k] == wanted[d] && wanted[d] != 0) break;
    if (k < t->rank) cancelled |= 1u << k;
    else rest = at_mul(c, rest, wanted[d]);
  }
  for (k = 0; k < t->rank; k++)
    if (!(cancelled >> k & 1)) numel = at_mul(c, numel, t->sizes[k]);
  if (c->status != AOT_OK) return;
  if (hole >= 0) {
    char text[2][110];
    if (at_same(c, rest, 0) || at_differs(c, at_mod(c, numel, rest), 0))
      at_fail(c, "[%s] elements do not divide into rows of [%s]", at_dims_text(c, &numel, 1, text[0], 110),
              at_dims_text(c, &rest, 1, text[1], 110));
    else out[hole] = at_floordiv(c, numel, rest);
  } else if (at_differs(c, numel, rest)) {
    char text[2][110];
    at_fail(c, "a view of shape [%s] of a tensor of shape [%s]", at_dims_text(c, wanted, rank, text[0], 110),
            at_dims_text(c, t->sizes, t->rank, text[1], 110));
  }
}

/* A view where the layout allows it, a contiguous copy otherwise: in a functional program views may be queried of
 * tensors whose layout has changed since tracing, and view means reshape. */
static void put_reshaped(at_infer_t *c, const aot_type_t *t, const int64_t *sizes, int32_t rank) {
  int64_t *strides = at_dims(c, AOT_MAX_RANK);
  if (c->status != AOT_OK) return;
  if (at_view_strides(c, t, sizes, rank, strides)) at_put_view(c, t, sizes, strides, rank, t->offset);
  else at_put(c, t->dtype, sizes, rank);
}

static void reshape_by(at_infer_t *c, const char *name) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t *wanted;
  int32_t rank = (int32_t)at_ints(c, name, &wanted);
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  infer_sizes(c, &t, wanted, rank, sizes);
  put_reshaped(c, &t, sizes, rank);
}

void at_shape_view(at_infer_t *c) { reshape_by(c, "size"); }
void at_shape_reshape(at_infer_t *c) { reshape_by(c, "shape"); }

void at_shape_view_as(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), other = at_tensor(c, "other");
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  infer_sizes(c, &t, other.sizes, other.rank, sizes);
  put_reshaped(c, &t, sizes, other.rank);
}

void at_shape_flatten(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t first = at_has(c, "start_dim") ? at_wrap(c, at_int(c, "start_dim"), t.rank) : 0;
  int32_t last = at_has(c, "end_dim") ? at_wrap(c, at_int(c, "end_dim"), t.rank) : t.rank - 1, d, rank = 0;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), merged = 1;
  static const int64_t one[1] = {1};
  if (t.rank == 0) {
    put_reshaped(c, &t, one, 1);
    return;
  }
  if (first > last) at_fail(c, "flatten from dim %d to dim %d", (int)first, (int)last);
  if (first == last) {
    at_put_view(c, &t, t.sizes, t.strides, t.rank, t.offset);
    return;
  }
  for (d = 0; d < t.rank; d++) {
    if (d >= first && d <= last) merged = at_mul(c, merged, t.sizes[d]);
    if (d == last) sizes[rank++] = merged;
    else if (d < first || d > last) sizes[rank++] = t.sizes[d];
  }
  put_reshaped(c, &t, sizes, rank);
}

void at_shape_unflatten(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), one = t;
  int32_t dim = at_wrap(c, at_int(c, "dim"), t.rank), d, k = 0;
  const int64_t *parts;
  int32_t n = (int32_t)at_ints(c, "sizes", &parts);
  int64_t *sizes = at_dims(c, 2 * AOT_MAX_RANK);
  if (t.rank == 0 || t.rank + n - 1 > AOT_MAX_RANK) at_fail(c, "unflatten of a tensor of rank %d", (int)t.rank);
  if (c->status != AOT_OK) return;
  one.rank = 1; /* -1 is what is left of this dimension, whatever the others are */
  one.sizes = t.sizes + dim;
  for (d = 0; d < t.rank; d++) {
    if (d != dim) sizes[k++] = t.sizes[d];
    else infer_sizes(c, &one, parts, n, sizes + k), k += n;
  }
  if (c->status == AOT_OK) put_reshaped(c, &t, sizes, k);
}
