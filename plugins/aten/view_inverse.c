/* The inverse of a view: what the base is after the view has been written.
 *
 * Views that rearrange are undone by rearranging back; views that leave elements out become scatters into the old base.
 * Operators that only may be views (reshape, contiguous, to) are asked where they were; who asks has compared the layouts.
 * plugin.c gives the result the memory order of the old base. */
#include "rewrites.h"

#include <string.h>

static aot_type_t type_of(at_emit_t *e, aot_value_t v) { return at_type(e, at_v(v)); }

aot_value_t at_vi_alias(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  (void)e;
  return updated;
}

aot_value_t at_vi_reshape(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base);
  (void)index;
  return at_value(e, at_reshaped(e, at_v(updated), t.sizes, t.rank));
}

/* ---- rearrangements ---- */

aot_value_t at_vi_transpose(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  at_x a = at_in(e, "dim0"), b = at_in(e, "dim1");
  (void)index;
  (void)base;
  if (at_is_none(a)) a = at_in(e, "axis0"), b = at_in(e, "axis1");
  return at_value(e, AT(e, "transpose.int", at_v(updated), a, b));
}

aot_value_t at_vi_t(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  return at_value(e, AT(e, "t", at_v(updated)));
}

aot_value_t at_vi_mT(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  at_x x = at_v(updated);
  if (at_type(e, x).rank > 0) x = AT(e, "transpose.int", x, at_i(-2), at_i(-1));
  return at_value(e, strstr(e->row->name, "mT") ? x : AT(e, "conj_physical", x)); /* mH, adjoint */
}

/* order[i]: the dimension of the base that became dimension i. */
static aot_value_t permuted_back(at_emit_t *e, const int32_t *order, int32_t rank, aot_value_t updated) {
  int64_t back[AOT_MAX_RANK];
  int32_t d;
  for (d = 0; d < rank; d++) back[order[d]] = d;
  return at_value(e, AT(e, "permute", at_v(updated), at_list(e, back, (uint32_t)rank)));
}

aot_value_t at_vi_permute(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  const int64_t *dims;
  uint32_t n = at_in_ints(e, "dims", &dims), i;
  int32_t order[AOT_MAX_RANK];
  (void)index;
  (void)base;
  for (i = 0; i < n && i < AOT_MAX_RANK; i++) order[i] = at_wrap(e->infer, dims[i], (int32_t)n);
  return permuted_back(e, order, (int32_t)n, updated);
}

aot_value_t at_vi_numpy_T(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base);
  int32_t order[AOT_MAX_RANK], d;
  (void)index;
  for (d = 0; d < t.rank; d++) order[d] = t.rank - 1 - d;
  return permuted_back(e, order, t.rank, updated);
}

/* movedim back: sources and destinations change places */
aot_value_t at_vi_movedim(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  return at_value(e, AT(e, e->row->name, at_v(updated), at_in(e, "destination"), at_in(e, "source")));
}

/* ---- parts ---- */

aot_value_t at_vi_select(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  return at_value(e, AT(e, "select_scatter", at_v(base), at_v(updated), at_in(e, "dim"), at_in(e, "index")));
}

aot_value_t at_vi_slice(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  return at_value(e, AT(e, "slice_scatter", at_v(base), at_v(updated), at_in(e, "dim"), at_in(e, "start"), at_in(e, "end"),
                        at_in(e, "step")));
}

static aot_value_t scatter_range(at_emit_t *e, aot_value_t base, aot_value_t updated, at_x dim, int64_t start,
                                 int64_t length) {
  return at_value(e, AT(e, "slice_scatter", at_v(base), at_v(updated), dim, at_i(start), at_i(at_add(e->infer, start,
                                                                                                     length)),
                        at_i(1)));
}

aot_value_t at_vi_narrow(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base);
  int32_t dim = at_wrap(e->infer, at_in_int(e, "dim", 0), t.rank);
  int64_t start = at_in_int(e, "start", 0);
  (void)index;
  if (at_hint(e->infer, start) < 0) start = at_add(e->infer, start, t.sizes[dim]);
  return scatter_range(e, base, updated, at_in(e, "dim"), start, at_in_int(e, "length", 0));
}

/* Piece `index` of split, split_with_sizes, chunk: it starts where the pieces before it end. */
aot_value_t at_vi_split(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base), piece;
  int32_t dim = at_wrap(e->infer, at_in_int(e, "dim", 0), t.rank);
  int64_t start = 0;
  uint32_t i;
  for (i = 0; i < index; i++) {
    piece = at_result_type(e, i);
    start = at_add(e->infer, start, piece.sizes[dim]);
  }
  piece = at_result_type(e, index);
  return scatter_range(e, base, updated, at_in(e, "dim"), start, piece.sizes[dim]);
}

aot_value_t at_vi_unbind(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  return at_value(e, AT(e, "select_scatter", at_v(base), at_v(updated), at_in(e, "dim"), at_i(index)));
}

aot_value_t at_vi_diagonal(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  return at_value(e, AT(e, "diagonal_scatter", at_v(base), at_v(updated), at_in(e, "offset"), at_in(e, "dim1"), at_in(e,
                                                                                                                      "dim2")));
}

/* Is every element alone in its place? Sure where each stride, from the least on, is beyond what the dimensions before reach. */
static int lies_apart(at_infer_t *c, const aot_type_t *t) {
  int64_t size[AOT_MAX_RANK], stride[AOT_MAX_RANK], reach = 0;
  int32_t n = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    int32_t k = n;
    const int64_t n_here = at_hint(c, t->sizes[d]), step = at_hint(c, t->strides[d]);
    if (n_here == 0) return 1;
    if (n_here == 1) continue;
    for (n++; k > 0 && stride[k - 1] > step; k--) size[k] = size[k - 1], stride[k] = stride[k - 1];
    size[k] = n_here, stride[k] = step;
  }
  for (int32_t k = 0; k < n; reach += (size[k] - 1) * stride[k], k++)
    if (stride[k] <= reach) return 0;
  return 1;
}

/* One place several times has several new values. PyTorch refuses where a stride is 0; what it makes of others goes by the order in
 * which a kernel takes the elements. */
aot_value_t at_vi_as_strided(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t view = at_result_type(e, 0);
  (void)index;
  if (!lies_apart(e->infer, &view)) {
    at_emit_fail(e, "clone the view before writing it", "a write through %s: several elements are one in memory", e->row->name);
    return aot_no_value();
  }
  return at_value(e, AT(e, "as_strided_scatter", at_v(base), at_v(updated), at_in(e, "size"), at_in(e, "stride"),
                        at_in(e, "storage_offset")));
}

aot_value_t at_vi_view_dtype(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base);
  (void)index;
  return at_value(e, AT(e, "view.dtype", at_v(updated), at_dtype_of(t.dtype)));
}

/* ---- views with elements that stand for one another ---- */

aot_value_t at_vi_expand(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t from = type_of(e, base), to = at_result_type(e, index);
  if (at_same_shape(e, &from, to.sizes, to.rank)) return updated;
  if (at_hint(e->infer, at_numel(e->infer, from.sizes, from.rank)) == at_hint(e->infer, at_numel(e->infer, to.sizes,
                                                                                                 to.rank)))
    return at_value(e, at_reshaped(e, at_v(updated), from.sizes, from.rank));
  at_emit_fail(e, "clone the expanded tensor before writing it", "a write through %s: several elements are one in memory",
               e->row->name);
  return aot_no_value();
}

/* Element k of all windows is a slice of the base. Windows that overlap cannot be written back: one place has several values. */
aot_value_t at_vi_unfold(at_emit_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base), view = at_result_type(e, 0);
  int64_t window = at_in_int(e, "size", 1), step = at_in_int(e, "step", 1);
  at_x whole = at_v(base);
  (void)index;
  if (t.rank == 0) return window ? at_value(e, AT(e, "select.int", at_v(updated), at_i(0), at_i(0))) : base;
  int32_t dim = at_wrap(e->infer, at_in_int(e, "dimension", 0), t.rank);
  if (step < window && view.sizes[dim] != 1) {
    at_emit_fail(e, "clone the windows before writing them", "a write through unfold with windows of %lld by %lld",
                 (long long)window, (long long)step);
    return aot_no_value();
  }
  int64_t last = at_mul(e->infer, at_sub(e->infer, view.sizes[dim], 1), step);
  for (int64_t k = 0; k < window; k++) {
    at_x slice = AT(e, "select.int", at_v(updated), at_i(t.rank), at_i(k));
    whole = AT(e, "slice_scatter", whole, slice, at_i(dim), at_i(k), at_i(at_add(e->infer, last, k + 1)), at_i(step));
  }
  return at_value(e, whole);
}
