/* Views: the same storage under other sizes, strides and offset. Exact, because a later write through the view must be
 * found, and because PyTorch's own layouts stand in the archives. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

/* A view of self in the making: sizes and strides with room for any rank. */
typedef struct view {
  aot_type_t base;
  int64_t *sizes, *strides, offset;
  int32_t rank;
} view_t;

static view_t view_of(at_infer_t *c, const char *name) {
  view_t v;
  v.base = at_tensor(c, name);
  v.sizes = at_dims(c, AOT_MAX_RANK + 1);
  v.strides = at_dims(c, AOT_MAX_RANK + 1);
  v.rank = v.base.rank;
  v.offset = v.base.offset;
  memcpy(v.sizes, v.base.sizes, (size_t)v.rank * sizeof *v.sizes);
  memcpy(v.strides, v.base.strides, (size_t)v.rank * sizeof *v.strides);
  return v;
}

static void put_view(at_infer_t *c, const view_t *v) { at_put_view(c, &v->base, v->sizes, v->strides, v->rank, v->offset); }

static void drop_dim(view_t *v, int32_t dim) {
  int32_t d;
  for (d = dim; d + 1 < v->rank; d++) {
    v->sizes[d] = v->sizes[d + 1];
    v->strides[d] = v->strides[d + 1];
  }
  v->rank--;
}

static void insert_dim(view_t *v, int32_t dim, int64_t size, int64_t stride) {
  int32_t d;
  for (d = v->rank; d > dim; d--) {
    v->sizes[d] = v->sizes[d - 1];
    v->strides[d] = v->strides[d - 1];
  }
  v->sizes[dim] = size;
  v->strides[dim] = stride;
  v->rank++;
}

static void swap_dims(view_t *v, int32_t a, int32_t b) {
  int64_t size = v->sizes[a], stride = v->strides[a];
  v->sizes[a] = v->sizes[b];
  v->strides[a] = v->strides[b];
  v->sizes[b] = size;
  v->strides[b] = stride;
}

/* ---- identity, transposition ---- */

void at_shape_alias(at_infer_t *c) {
  view_t v = view_of(c, "self");
  put_view(c, &v);
}

void at_shape_with_history(at_infer_t *c) {
  view_t v = view_of(c, "value");
  put_view(c, &v);
}

void at_shape_t(at_infer_t *c) {
  view_t v = view_of(c, "self");
  if (v.rank > 2) at_fail(c, "t takes a tensor of rank 2 or less, not %d", (int)v.rank);
  if (v.rank == 2) swap_dims(&v, 0, 1);
  put_view(c, &v);
}

void at_shape_mT(at_infer_t *c) {
  view_t v = view_of(c, "self");
  if (v.rank < 2) at_fail(c, "%s takes a tensor of rank 2 or more, not %d", c->row->name, (int)v.rank);
  else swap_dims(&v, v.rank - 2, v.rank - 1);
  put_view(c, &v);
}

void at_shape_numpy_T(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t d;
  for (d = 0; d < v.rank / 2; d++) swap_dims(&v, d, v.rank - 1 - d);
  put_view(c, &v);
}

void at_shape_transpose(at_infer_t *c) {
  view_t v = view_of(c, "self");
  const char *first = at_has(c, "axis0") ? "axis0" : "dim0", *second = at_has(c, "axis1") ? "axis1" : "dim1";
  int32_t a = at_wrap(c, at_int(c, first), v.rank), b = at_wrap(c, at_int(c, second), v.rank);
  if (v.rank) swap_dims(&v, a, b);
  put_view(c, &v);
}

void at_shape_permute(at_infer_t *c) {
  view_t v = view_of(c, "self");
  const int64_t *dims;
  uint32_t n = at_ints(c, "dims", &dims), i;
  if (n != (uint32_t)v.rank) at_fail(c, "permute names %u dimensions of a tensor of rank %d", n, (int)v.rank);
  at_dim_mask(c, dims, n, v.rank);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    int32_t d = at_wrap(c, dims[i], v.rank);
    v.sizes[i] = v.base.sizes[d];
    v.strides[i] = v.base.strides[d];
  }
  put_view(c, &v);
}

/* movedim: the sources go to the destinations, the rest keep their order. */
void at_shape_movedim(at_infer_t *c) {
  view_t v = view_of(c, "self");
  const int64_t *from, *to;
  uint32_t n = at_ints(c, "source", &from), m = at_ints(c, "destination", &to), i;
  int32_t order[AOT_MAX_RANK], d, next = 0;
  uint32_t taken = at_dim_mask(c, from, n, v.rank), filled = at_dim_mask(c, to, m, v.rank);
  if (n != m) at_fail(c, "movedim names %u sources and %u destinations", n, m);
  if (c->status != AOT_OK) return;
  for (i = 0; i < n; i++) order[at_wrap(c, to[i], v.rank)] = at_wrap(c, from[i], v.rank);
  for (d = 0; d < v.rank; d++) {
    if (filled >> d & 1) continue;
    while (taken >> next & 1) next++;
    order[d] = next++;
  }
  for (d = 0; d < v.rank; d++) {
    v.sizes[d] = v.base.sizes[order[d]];
    v.strides[d] = v.base.strides[order[d]];
  }
  put_view(c, &v);
}

/* ---- squeeze and unsqueeze ---- */

void at_shape_squeeze(at_infer_t *c) {
  view_t v = view_of(c, "self");
  const int64_t *dims;
  uint32_t mask = ~0u;
  int32_t d;
  if (at_has(c, "dim")) {
    uint32_t n = at_ints(c, "dim", &dims);
    mask = at_dim_mask(c, dims, n, v.rank);
  }
  for (d = v.rank - 1; d >= 0; d--)
    if ((mask >> d & 1) && at_same(c, v.sizes[d], 1)) drop_dim(&v, d);
  put_view(c, &v);
}

void at_shape_unsqueeze(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank + 1);
  int64_t stride = dim < v.rank ? at_mul(c, v.sizes[dim], v.strides[dim]) : 1;
  insert_dim(&v, dim, 1, stride);
  put_view(c, &v);
}

/* ---- expand ---- */

/* A new leading dimension of size 1 counts as one that was there, outside all others. */
static void expand_to(at_infer_t *c, view_t *v, const int64_t *sizes, int32_t rank) {
  int32_t d, lead = rank - v->base.rank;
  if (lead < 0 || rank > AOT_MAX_RANK) {
    at_fail(c, "expand to rank %d of a tensor of rank %d", (int)rank, (int)v->base.rank);
    return;
  }
  for (d = rank - 1; d >= 0; d--) {
    int64_t old = d < lead ? 1 : v->base.sizes[d - lead], wanted = sizes[d];
    if (wanted == -1 && d < lead) at_fail(c, "expand cannot keep dim %d, which is new", (int)d);
    v->sizes[d] = wanted == -1 || at_same(c, old, wanted) ? old : wanted;
    if (d >= lead) v->strides[d] = v->base.strides[d - lead];
    else v->strides[d] = d + 1 < rank ? at_mul(c, v->sizes[d + 1], v->strides[d + 1]) : 1;
    if (v->sizes[d] == old) continue;
    v->strides[d] = 0;
    if (at_hint(c, old) != 1)
      at_fail(c, "expand of dim %d from %lld to %lld", (int)d, (long long)at_hint(c, old), (long long)at_hint(c, wanted));
  }
  v->rank = rank;
}

void at_shape_expand(at_infer_t *c) {
  view_t v = view_of(c, "self");
  const int64_t *sizes;
  uint32_t n = at_ints(c, "size", &sizes);
  expand_to(c, &v, sizes, (int32_t)n);
  put_view(c, &v);
}

void at_shape_expand_as(at_infer_t *c) {
  view_t v = view_of(c, "self");
  aot_type_t other = at_tensor(c, "other");
  expand_to(c, &v, other.sizes, other.rank);
  put_view(c, &v);
}

void at_shape_broadcast_tensors(at_infer_t *c) {
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), *merged = at_dims(c, AOT_MAX_RANK);
  uint32_t n = at_list_size(c, "tensors"), i;
  aot_type_t pair[2];
  int32_t rank = 0;
  memset(pair, 0, sizeof pair);
  pair[1].kind = AOT_TYPE_TENSOR;
  pair[1].sizes = sizes;
  for (i = 0; i < n && c->status == AOT_OK; i++) { /* the shape so far, broadcast with one more */
    pair[0] = at_list_item(c, "tensors", i);
    pair[1].rank = rank;
    rank = at_broadcast(c, pair, 2, merged);
    memcpy(sizes, merged, (size_t)rank * sizeof *sizes);
  }
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    uint32_t mark = c->n_pool;
    view_t v;
    v.base = at_list_item(c, "tensors", i);
    v.sizes = at_dims(c, AOT_MAX_RANK + 1);
    v.strides = at_dims(c, AOT_MAX_RANK + 1);
    v.offset = v.base.offset;
    expand_to(c, &v, sizes, rank);
    put_view(c, &v);
    c->n_pool = mark;
  }
}

/* ---- select, slice, diagonal, unfold ---- */

void at_shape_select(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t index = at_int(c, "index"), size = v.rank ? v.sizes[dim] : 0;
  if (v.rank == 0) at_fail(c, "select of a 0-dim tensor");
  else if (at_hint(c, index) < -at_hint(c, size) || at_hint(c, index) >= at_hint(c, size))
    at_fail(c, "index %lld is out of range for dim %d of size %lld", (long long)at_hint(c, index), (int)dim,
            (long long)at_hint(c, size));
  if (c->status != AOT_OK) return;
  if (at_hint(c, index) < 0) index = at_add(c, index, size);
  v.offset = at_add(c, v.offset, at_mul(c, index, v.strides[dim]));
  drop_dim(&v, dim);
  put_view(c, &v);
}

/* An index of a slice brought into [low, size]; negative ones count from the end. */
static int64_t clamp_index(at_infer_t *c, int64_t i, int64_t low, int64_t size) {
  if (at_hint(c, i) < 0) i = at_add(c, i, size);
  return at_min(c, at_max(c, i, low), size);
}

/* Start and length of a slice, after Python's clamping. */
void at_slice_range(at_infer_t *c, int64_t size, int64_t *out_start, int64_t *out_length) {
  int64_t start = at_has(c, "start") ? at_int(c, "start") : 0, end = at_has(c, "end") ? at_int(c, "end") : size;
  int64_t step = at_has(c, "step") ? at_int(c, "step") : 1;
  if (at_hint(c, step) <= 0) at_fail(c, "a slice steps by %lld, which must be positive", (long long)at_hint(c, step));
  start = clamp_index(c, start, 0, size);
  end = clamp_index(c, end, start, size);
  *out_start = start;
  *out_length = at_sub(c, end, start);
  if (step != 1) *out_length = at_floordiv(c, at_add(c, *out_length, at_sub(c, step, 1)), step);
}

void at_shape_slice(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t start, length;
  if (v.rank == 0) at_fail(c, "slice of a 0-dim tensor");
  if (c->status != AOT_OK) return;
  at_slice_range(c, v.sizes[dim], &start, &length);
  v.offset = at_add(c, v.offset, at_mul(c, start, v.strides[dim]));
  v.sizes[dim] = length;
  if (at_has(c, "step")) v.strides[dim] = at_mul(c, v.strides[dim], at_int(c, "step"));
  put_view(c, &v);
}

void at_shape_narrow(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t start = at_int(c, "start"), length = at_int(c, "length");
  if (v.rank == 0) at_fail(c, "narrow of a 0-dim tensor");
  if (c->status != AOT_OK) return;
  if (at_hint(c, start) < 0) start = at_add(c, start, v.sizes[dim]);
  if (at_hint(c, start) + at_hint(c, length) > at_hint(c, v.sizes[dim]))
    at_fail(c, "narrow goes beyond dim %d of size %lld", (int)dim, (long long)at_hint(c, v.sizes[dim]));
  v.offset = at_add(c, v.offset, at_mul(c, start, v.strides[dim]));
  v.sizes[dim] = length;
  put_view(c, &v);
}

void at_shape_diagonal(at_infer_t *c) {
  view_t v = view_of(c, at_has(c, "A") ? "A" : "self");
  int32_t a = at_wrap(c, at_int(c, "dim1"), v.rank), b = at_wrap(c, at_int(c, "dim2"), v.rank);
  int64_t offset = at_int(c, "offset"), rows, columns, length, stride;
  if (v.rank < 2 || a == b) at_fail(c, "diagonal needs two different dimensions");
  if (c->status != AOT_OK) return;
  rows = offset >= 0 ? v.sizes[a] : at_add(c, v.sizes[a], offset);
  columns = offset >= 0 ? at_sub(c, v.sizes[b], offset) : v.sizes[b];
  length = at_max(c, at_min(c, rows, columns), 0);
  stride = at_add(c, v.strides[a], v.strides[b]);
  if (at_hint(c, length) > 0)
    v.offset = at_add(c, v.offset, offset >= 0 ? at_mul(c, offset, v.strides[b]) : at_mul(c, -offset, v.strides[a]));
  drop_dim(&v, a > b ? a : b);
  drop_dim(&v, a > b ? b : a);
  insert_dim(&v, v.rank, length, stride);
  put_view(c, &v);
}

void at_shape_unfold(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dimension"), v.rank);
  int64_t window = at_int(c, "size"), step = at_int(c, "step"), size = v.rank ? v.sizes[dim] : 1;
  int64_t stride = v.rank ? v.strides[dim] : 1;
  if (at_hint(c, window) > at_hint(c, size) || step <= 0)
    at_fail(c, "unfold of windows of %lld by %lld along a dim of size %lld", (long long)window, (long long)step,
            (long long)at_hint(c, size));
  if (c->status != AOT_OK) return;
  if (v.rank) {
    v.sizes[dim] = at_add(c, at_floordiv(c, at_sub(c, size, window), step), 1);
    v.strides[dim] = at_mul(c, stride, step);
  }
  insert_dim(&v, v.rank, window, stride);
  put_view(c, &v);
}

/* ---- split ---- */

static void put_pieces(at_infer_t *c, view_t *v, int32_t dim, const int64_t *lengths, int64_t chunk, int64_t n) {
  int64_t at = 0, total = v->sizes[dim], i;
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    int64_t left = at_sub(c, total, at);
    v->sizes[dim] = lengths ? lengths[i] : at_hint(c, left) < at_hint(c, chunk) ? left : chunk;
    v->offset = at_add(c, v->base.offset, at_mul(c, at, v->strides[dim]));
    put_view(c, v);
    at = at_add(c, at, v->sizes[dim]);
  }
  if (lengths && !at_same(c, at, total))
    at_fail(c, "the pieces add up to %lld, the dim has %lld", (long long)at_hint(c, at), (long long)at_hint(c, total));
}

static void split_by(at_infer_t *c, view_t *v, int32_t dim, int64_t chunk) {
  int64_t size = at_hint(c, v->sizes[dim]), n;
  if (at_hint(c, chunk) < 0 || (at_hint(c, chunk) == 0 && size != 0)) {
    at_fail(c, "pieces of size %lld", (long long)at_hint(c, chunk));
    return;
  }
  n = at_hint(c, chunk) == 0 || size == 0 ? 1 : (size + at_hint(c, chunk) - 1) / at_hint(c, chunk);
  put_pieces(c, v, dim, NULL, chunk, n);
}

void at_shape_split(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  if (v.rank == 0) at_fail(c, "split of a 0-dim tensor");
  if (c->status == AOT_OK) split_by(c, &v, dim, at_int(c, "split_size"));
}

void at_shape_split_sizes(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  const int64_t *lengths;
  uint32_t n = at_ints(c, at_has(c, "split_sizes") ? "split_sizes" : "split_size", &lengths);
  if (v.rank == 0) at_fail(c, "split of a 0-dim tensor");
  if (c->status == AOT_OK) put_pieces(c, &v, dim, lengths, 0, n);
}

void at_shape_chunk(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t n = at_int(c, "chunks"), i;
  if (v.rank == 0 || n <= 0) at_fail(c, "chunk of a 0-dim tensor, or into %lld pieces", (long long)n);
  if (c->status != AOT_OK) return;
  if (at_hint(c, v.sizes[dim]) == 0) {
    for (i = 0; i < n; i++) put_view(c, &v);
    return;
  }
  split_by(c, &v, dim, at_floordiv(c, at_add(c, v.sizes[dim], n - 1), n));
}

void at_shape_unbind(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t n, stride, i;
  if (v.rank == 0) at_fail(c, "unbind of a 0-dim tensor");
  if (c->status != AOT_OK) return;
  n = at_hint(c, v.sizes[dim]);
  stride = v.strides[dim];
  drop_dim(&v, dim);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    v.offset = at_add(c, v.base.offset, at_mul(c, i, stride));
    put_view(c, &v);
  }
}

/* tensor_split: so many sections, the first ones an element longer; or cut at indices, which clamp like slices do */
static void tensor_split(at_infer_t *c, int32_t dim) {
  view_t v = view_of(c, "self");
  const int64_t *cuts;
  uint32_t n = at_has(c, "indices") ? at_ints(c, "indices", &cuts) : 0, i;
  int64_t size = v.rank ? v.sizes[dim] : 0, sections = at_has(c, "sections") ? at_int(c, "sections") : 0, at = 0;
  if (v.rank == 0 || AOT_DIM_IS_SYM(size) || (!at_has(c, "indices") && sections <= 0))
    at_fail(c, "tensor_split of a 0-dim tensor, along a symbolic dimension or into no sections");
  if (c->status != AOT_OK) return;
  for (i = 0; i < (n ? n + 1 : (uint32_t)sections) && c->status == AOT_OK; i++) {
    int64_t end = n == 0 ? at + size / sections + ((int64_t)i < size % sections) : i < n ? cuts[i] : size;
    if (n != 0) end = end < 0 ? (end + size < 0 ? 0 : end + size) : end > size ? size : end;
    v.offset = at_add(c, v.base.offset, at_mul(c, at < size ? at : size, v.strides[dim]));
    v.sizes[dim] = end > at ? end - at : 0;
    put_view(c, &v);
    at = end;
  }
}

void at_shape_tensor_split(at_infer_t *c) {
  tensor_split(c, at_wrap(c, at_int(c, "dim"), at_tensor(c, "self").rank));
}

/* hsplit along dim 1 (0 of a vector), vsplit along 0, dsplit along 2: equal sections, or cut at indices */
void at_shape_axis_split(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int vertical = strstr(c->row->name, "vsplit") != NULL, deep = strstr(c->row->name, "dsplit") != NULL;
  int32_t dim = vertical ? 0 : deep ? 2 : t.rank == 1 ? 0 : 1;
  int64_t sections = at_has(c, "sections") ? at_int(c, "sections") : 1;
  if (t.rank < (vertical ? 2 : deep ? 3 : 1)) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)t.rank);
  else if (sections <= 0 || at_hint(c, t.sizes[dim]) % sections != 0)
    at_fail(c, "%s of a dimension of size %lld into %lld equal parts", c->row->name, (long long)at_hint(c, t.sizes[dim]),
            (long long)sections);
  else tensor_split(c, dim);
}

/* ---- view, reshape ---- */

/* Sizes with -1 replaced. Factors that stand on both sides cancel, so that symbolic sizes stay what they were. */
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
    int64_t have = at_hint(c, numel), per = at_hint(c, rest);
    if (per == 0 || have % per != 0) at_fail(c, "%lld elements do not divide into rows of %lld", (long long)have,
                                             (long long)per);
    else out[hole] = at_floordiv(c, numel, rest);
  } else if (!at_same(c, numel, rest)) {
    char text[2][110];
    at_fail(c, "a view of shape [%s] of a tensor of shape [%s]", at_dims_text(c, wanted, rank, text[0], 110),
            at_dims_text(c, t->sizes, t->rank, text[1], 110));
  }
}

/* A view where the layout allows it, a contiguous copy otherwise: in a functional program views may be asked of tensors whose
 * layout has changed since tracing, and view means reshape. */
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

/* contiguous: self when it is in that order already */
void at_shape_contiguous(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t format = at_has(c, "memory_format") ? at_int(c, "memory_format") : AOT_MEMORY_CONTIGUOUS;
  int64_t *strides = at_dims(c, t.rank);
  int already = format == AOT_MEMORY_PRESERVE || (format == AOT_MEMORY_CONTIGUOUS ? at_is_contiguous(c,
                                                                                                     &t) : at_is_channels_last(c, &t));
  if (already) {
    at_put_type(c, &t);
    return;
  }
  at_strides_for_format(c, &t, format, strides);
  at_put_strided(c, t.dtype, t.sizes, strides, t.rank);
}

/* to.*: self when nothing changes */
void at_shape_to(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), other;
  int32_t dtype = at_has(c, "dtype") ? (int32_t)at_int(c, "dtype") : t.dtype, device = t.device;
  int64_t format = at_has(c, "memory_format") ? at_int(c, "memory_format") : AOT_MEMORY_PRESERVE;
  int64_t *strides = at_dims(c, t.rank);
  other = at_operand(c, "other");
  if (other.kind == AOT_TYPE_TENSOR) {
    dtype = other.dtype;
    device = other.device;
  }
  if (at_has(c, "device")) device = (int32_t)(at_int(c, "device") % 256);
  if (dtype == t.dtype && device == t.device && format == AOT_MEMORY_PRESERVE && !at_bool(c, "copy")) {
    at_put_type(c, &t);
    return;
  }
  c->device = device;
  at_strides_for_format(c, &t, format, strides);
  at_put_strided(c, dtype, t.sizes, strides, t.rank);
}

/* ---- other windows on the storage ---- */

void at_shape_as_strided(at_infer_t *c) {
  aot_type_t t = at_tensor(c, at_has(c, "self") ? "self" : "a");
  const int64_t *sizes, *strides;
  uint32_t n = at_ints(c, "size", &sizes), m = at_ints(c, "stride", &strides);
  if (n != m) at_fail(c, "as_strided names %u sizes and %u strides", n, m);
  if (c->status != AOT_OK) return;
  at_put_view(c, &t, sizes, strides, (int32_t)n, at_has(c, "storage_offset") ? at_int(c, "storage_offset") : t.offset);
}

void at_shape_view_dtype(at_infer_t *c) {
  view_t v = view_of(c, "self");
  int32_t dtype = (int32_t)at_int(c, "dtype");
  int64_t from = (int64_t)aot_dtype_size(v.base.dtype), to = (int64_t)aot_dtype_size(dtype);
  if (from != to && (v.rank == 0 || v.strides[v.rank - 1] != 1)) {
    at_fail(c, "a view of another dtype needs a contiguous last dimension");
    return;
  }
  if (from > to) {
    int32_t d;
    for (d = 0; d + 1 < v.rank; d++) v.strides[d] = at_mul(c, v.strides[d], from / to);
    v.sizes[v.rank - 1] = at_mul(c, v.sizes[v.rank - 1], from / to);
    v.offset = at_mul(c, v.offset, from / to);
  } else if (from < to) {
    int32_t d;
    for (d = 0; d + 1 < v.rank; d++) v.strides[d] = at_floordiv(c, v.strides[d], to / from);
    v.sizes[v.rank - 1] = at_floordiv(c, v.sizes[v.rank - 1], to / from);
    v.offset = at_floordiv(c, v.offset, to / from);
  }
  v.base.dtype = dtype;
  put_view(c, &v);
}

/* sym_size, sym_stride, sym_numel, sym_storage_offset: integers about a tensor */
void at_shape_sym_size(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), out;
  memset(&out, 0, sizeof out);
  out.kind = AOT_TYPE_SYMINT;
  if (at_has(c, "dim")) {
    int32_t dim = at_wrap(c, at_int(c, "dim"), t.rank);
    if (t.rank) out.expr = strstr(c->row->name, "stride") ? t.strides[dim] : t.sizes[dim];
  } else {
    out.expr = strstr(c->row->name, "offset") ? t.offset : at_numel(c, t.sizes, t.rank);
  }
  at_put_type(c, &out);
}
