/* The inverse of a view: what the base is after the view has been written.
 *
 * Views that rearrange are undone by rearranging back; views that leave elements out become scatters into the old base.
 * Operators that only may be views (reshape, contiguous, to) are queried where they were; the caller has compared the
 * layouts.
 * plugin.c gives the result the memory order of the old base. */
#include "rewrites.h"

#include <string.h>

static aot_type_t type_of(em_t *e, aot_value_t v) { return at_type(e, em_v(v)); }

aot_value_t at_vi_alias(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  (void)e;
  return updated;
}

aot_value_t at_vi_reshape(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base);
  (void)index;
  return em_value(e, at_reshaped(e, em_v(updated), t.sizes, t.rank));
}

/* ---- rearrangements ---- */

aot_value_t at_vi_transpose(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  em_x_t a = em_in(e, "dim0"), b = em_in(e, "dim1");
  (void)index;
  (void)base;
  if (em_is_none(a)) a = em_in(e, "axis0"), b = em_in(e, "axis1");
  return em_value(e, EM(e, "transpose.int", em_v(updated), a, b));
}

aot_value_t at_vi_t(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  return em_value(e, EM(e, "t", em_v(updated)));
}

aot_value_t at_vi_mT(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  em_x_t x = em_v(updated);
  if (at_type(e, x).rank > 0) x = EM(e, "transpose.int", x, em_i(-2), em_i(-1));
  return em_value(e, strstr(at_name(e), "mT") ? x : EM(e, "conj_physical", x)); /* mH, adjoint */
}

/* order[i]: the dimension of the base that became dimension i. */
static aot_value_t permuted_back(em_t *e, const int32_t *order, int32_t rank, aot_value_t updated) {
  int64_t back[AOT_MAX_RANK];
  int32_t d;
  for (d = 0; d < rank; d++) back[order[d]] = d;
  return em_value(e, EM(e, "permute", em_v(updated), em_list(e, back, (uint32_t)rank)));
}

aot_value_t at_vi_permute(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  const int64_t *dims;
  uint32_t n = at_in_ints(e, "dims", &dims), i;
  int32_t order[AOT_MAX_RANK];
  (void)index;
  (void)base;
  for (i = 0; i < n && i < AOT_MAX_RANK; i++) order[i] = at_wrap(at_infer(e), dims[i], (int32_t)n);
  return permuted_back(e, order, (int32_t)n, updated);
}

aot_value_t at_vi_numpy_T(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base);
  int32_t order[AOT_MAX_RANK], d;
  (void)index;
  for (d = 0; d < t.rank; d++) order[d] = t.rank - 1 - d;
  return permuted_back(e, order, t.rank, updated);
}

/* movedim back: sources and destinations change places */
aot_value_t at_vi_movedim(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  (void)base;
  return em_value(e, EM(e, at_name(e), em_v(updated), em_in(e, "destination"), em_in(e, "source")));
}

/* ---- parts ---- */

aot_value_t at_vi_select(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  return em_value(e, EM(e, "select_scatter", em_v(base), em_v(updated), em_in(e, "dim"), em_in(e, "index")));
}

aot_value_t at_vi_slice(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  return em_value(e, EM(e, "slice_scatter", em_v(base), em_v(updated), em_in(e, "dim"), em_in(e, "start"),
                        em_in(e, "end"), em_in(e, "step")));
}

static aot_value_t scatter_range(em_t *e, aot_value_t base, aot_value_t updated, em_x_t dim, int64_t start,
                                 int64_t length) {
  return em_value(e, EM(e, "slice_scatter", em_v(base), em_v(updated), dim, em_i(start),
                        em_i(at_add(at_infer(e), start, length)), em_i(1)));
}

aot_value_t at_vi_narrow(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base);
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), t.rank);
  int64_t start = at_in_int(e, "start", 0);
  (void)index;
  start = at_wrapped(at_infer(e), start, t.sizes[dim]);
  return scatter_range(e, base, updated, em_in(e, "dim"), start, at_in_int(e, "length", 0));
}

/* Piece `index` of split, split_with_sizes, chunk: it starts where the pieces before it end. */
aot_value_t at_vi_split(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base), piece;
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dim", 0), t.rank);
  int64_t start = 0;
  uint32_t i;
  for (i = 0; i < index; i++) {
    piece = at_result_type(e, i);
    start = at_add(at_infer(e), start, piece.sizes[dim]);
  }
  piece = at_result_type(e, index);
  return scatter_range(e, base, updated, em_in(e, "dim"), start, piece.sizes[dim]);
}

aot_value_t at_vi_unbind(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  return em_value(e, EM(e, "select_scatter", em_v(base), em_v(updated), em_in(e, "dim"), em_i(index)));
}

aot_value_t at_vi_diagonal(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  (void)index;
  return em_value(
      e, EM(e, "diagonal_scatter", em_v(base), em_v(updated), em_in(e, "offset"), em_in(e, "dim1"), em_in(e, "dim2")));
}

/* Is every element alone in its place? Sure where each stride, from the least on, is beyond what the dimensions
 * before reach. */
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

/* One place several times has several new values. PyTorch refuses where a stride is 0; what it makes of others goes by
 * the order in which a kernel takes the elements. */
aot_value_t at_vi_as_strided(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t view = at_result_type(e, 0);
  (void)index;
  if (!lies_apart(at_infer(e), &view)) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "clone the view before writing it",
            "a write through %s: several elements are one in memory", at_name(e));
    return aot_no_value();
  }
  return em_value(e, EM(e, "as_strided_scatter", em_v(base), em_v(updated), em_in(e, "size"), em_in(e, "stride"),
                        em_in(e, "storage_offset")));
}

aot_value_t at_vi_view_dtype(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base);
  (void)index;
  return em_value(e, EM(e, "view.dtype", em_v(updated), em_dtype(t.dtype)));
}

/* ---- views with elements that represent one another ---- */

aot_value_t at_vi_expand(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t from = type_of(e, base), to = at_result_type(e, index);
  if (at_same_shape(e, &from, to.sizes, to.rank)) return updated;
  if (at_same(at_infer(e), at_numel(at_infer(e), from.sizes, from.rank), at_numel(at_infer(e), to.sizes, to.rank)))
    return em_value(e, at_reshaped(e, em_v(updated), from.sizes, from.rank));
  em_fail(e, AOT_E_UNIMPLEMENTED, "clone the expanded tensor before writing it",
          "a write through %s: several elements are one in memory", at_name(e));
  return aot_no_value();
}

/* Element k of all windows is a slice of the base. Windows that overlap cannot be written back: one place has
 * several values. */
aot_value_t at_vi_unfold(em_t *e, uint32_t index, aot_value_t base, aot_value_t updated) {
  aot_type_t t = type_of(e, base), view = at_result_type(e, 0);
  int64_t window = at_in_int(e, "size", 1), step = at_in_int(e, "step", 1);
  em_x_t whole = em_v(base);
  (void)index;
  if (t.rank == 0) return window ? em_value(e, EM(e, "select.int", em_v(updated), em_i(0), em_i(0))) : base;
  int32_t dim = at_wrap(at_infer(e), at_in_int(e, "dimension", 0), t.rank);
  if (step < window && view.sizes[dim] != 1) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "clone the windows before writing them",
            "a write through unfold with windows of %lld by %lld", (long long)window, (long long)step);
    return aot_no_value();
  }
  int64_t last = at_mul(at_infer(e), at_sub(at_infer(e), view.sizes[dim], 1), step);
  for (int64_t k = 0; k < window; k++) {
    em_x_t slice = EM(e, "select.int", em_v(updated), em_i(t.rank), em_i(k));
    whole =
        EM(e, "slice_scatter", whole, slice, em_i(dim), em_i(k), em_i(at_add(at_infer(e), last, k + 1)), em_i(step));
  }
  return em_value(e, whole);
}
