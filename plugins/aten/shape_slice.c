/* Views of a part: select, slice, diagonal, windows, the pieces of a split. Symbolic sizes stay symbolic. */
#include "view_geometry.h"

#include <string.h>

void at_shape_select(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t index = at_int(c, "index"), size = v.rank ? v.sizes[dim] : 0;
  char text[2][64];
  if (v.rank == 0) at_fail(c, "select of a 0-dim tensor");
  else if (at_at_most(c, size, index) || at_below(c, at_add(c, index, size), 0))
    at_fail(c, "index %s is out of range for dim %d of size %s", at_dims_text(c, &index, 1, text[0], 64), (int)dim,
            at_dims_text(c, &size, 1, text[1], 64));
  if (c->status != AOT_OK) return;
  index = at_wrapped(c, index, size);
  v.offset = at_add(c, v.offset, at_mul(c, index, v.strides[dim]));
  at_view_drop(&v, dim);
  at_view_result(c, &v);
}

/* An index of a slice brought into [low, size]; negative ones count from the end. */
static int64_t clamp_index(at_infer_t *c, int64_t i, int64_t low, int64_t size) {
  i = at_wrapped(c, i, size);
  return at_min(c, at_max(c, i, low), size);
}

/* Start and length of a slice, after Python's clamping. */
void at_slice_range(at_infer_t *c, int64_t size, int64_t *out_start, int64_t *out_length) {
  int64_t start = at_has(c, "start") ? at_int(c, "start") : 0, end = at_has(c, "end") ? at_int(c, "end") : size;
  int64_t step = at_has(c, "step") ? at_int(c, "step") : 1;
  if (at_at_most(c, step, 0)) at_fail(c, "a slice steps by %lld, which must be positive", (long long)at_hint(c, step));
  start = clamp_index(c, start, 0, size);
  end = clamp_index(c, end, start, size);
  *out_start = start;
  *out_length = at_sub(c, end, start);
  if (step != 1) *out_length = at_floordiv(c, at_add(c, *out_length, at_sub(c, step, 1)), step);
}

void at_shape_slice(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t start, length;
  if (v.rank == 0) at_fail(c, "slice of a 0-dim tensor");
  if (c->status != AOT_OK) return;
  at_slice_range(c, v.sizes[dim], &start, &length);
  v.offset = at_add(c, v.offset, at_mul(c, start, v.strides[dim]));
  v.sizes[dim] = length;
  if (at_has(c, "step")) v.strides[dim] = at_mul(c, v.strides[dim], at_int(c, "step"));
  at_view_result(c, &v);
}

void at_shape_narrow(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t start = at_int(c, "start"), length = at_int(c, "length");
  char text[3][64];
  if (v.rank == 0) at_fail(c, "narrow of a 0-dim tensor");
  if (c->status != AOT_OK) return;
  start = at_wrapped(c, start, v.sizes[dim]);
  if (at_below(c, start, 0) || at_below(c, length, 0) || at_below(c, at_sub(c, v.sizes[dim], start), length))
    at_fail(c, "narrow from %s by %s goes beyond dim %d of size %s", at_dims_text(c, &start, 1, text[0], 64),
            at_dims_text(c, &length, 1, text[1], 64), (int)dim, at_dims_text(c, &v.sizes[dim], 1, text[2], 64));
  if (c->status != AOT_OK) return;
  v.offset = at_add(c, v.offset, at_mul(c, start, v.strides[dim]));
  v.sizes[dim] = length;
  at_view_result(c, &v);
}

void at_shape_diagonal(at_infer_t *c) {
  at_view_t v = at_view_of(c, at_has(c, "A") ? "A" : "self");
  int32_t a = at_wrap(c, at_int(c, "dim1"), v.rank), b = at_wrap(c, at_int(c, "dim2"), v.rank);
  int64_t offset = at_int(c, "offset"), rows, columns, length, stride;
  if (v.rank < 2 || a == b) at_fail(c, "diagonal needs two different dimensions");
  if (c->status != AOT_OK) return;
  rows = offset >= 0 ? v.sizes[a] : at_add(c, v.sizes[a], offset);
  columns = offset >= 0 ? at_sub(c, v.sizes[b], offset) : v.sizes[b];
  length = at_max(c, at_min(c, rows, columns), 0);
  stride = at_add(c, v.strides[a], v.strides[b]);
  if (!at_same(c, length, 0))
    v.offset = at_add(c, v.offset,
                      offset >= 0 ? at_mul(c, offset, v.strides[b]) : at_mul(c, at_sub(c, 0, offset), v.strides[a]));
  at_view_drop(&v, a > b ? a : b);
  at_view_drop(&v, a > b ? b : a);
  at_view_insert(&v, v.rank, length, stride);
  at_view_result(c, &v);
}

void at_shape_unfold(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dimension"), v.rank);
  int64_t window = at_int(c, "size"), step = at_int(c, "step"), size = v.rank ? v.sizes[dim] : 1;
  int64_t stride = v.rank ? v.strides[dim] : 1;
  if (at_below(c, size, window) || step <= 0)
    at_fail(c, "unfold of windows of %lld by %lld along a dim of size %lld", (long long)window, (long long)step,
            (long long)at_hint(c, size));
  if (c->status != AOT_OK) return;
  if (v.rank) {
    v.sizes[dim] = at_add(c, at_floordiv(c, at_sub(c, size, window), step), 1);
    v.strides[dim] = at_mul(c, stride, step);
  }
  at_view_insert(&v, v.rank, window, stride);
  at_view_result(c, &v);
}

/* ---- split ---- */

static void put_pieces(at_infer_t *c, at_view_t *v, int32_t dim, const int64_t *lengths, int64_t chunk, int64_t n) {
  int64_t at = 0, total = v->sizes[dim], i;
  char text[2][160];
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    int64_t left = at_sub(c, total, at);
    v->sizes[dim] = lengths ? lengths[i] : i + 1 == n ? left : chunk;
    v->offset = at_add(c, v->base.offset, at_mul(c, at, v->strides[dim]));
    at_view_result(c, v);
    at = at_add(c, at, v->sizes[dim]);
  }
  if (lengths && at_differs(c, at, total))
    at_fail(c, "the pieces [%s] do not add up to the dim, %s", at_dims_text(c, lengths, (int32_t)n, text[0], 160),
            at_dims_text(c, &total, 1, text[1], 160));
}

static void split_by(at_infer_t *c, at_view_t *v, int32_t dim, int64_t chunk) {
  int64_t size = at_hint(c, v->sizes[dim]), n;
  if (at_hint(c, chunk) < 0 || (at_hint(c, chunk) == 0 && size != 0)) {
    at_fail(c, "pieces of size %lld", (long long)at_hint(c, chunk));
    return;
  }
  n = at_hint(c, chunk) == 0 || size == 0 ? 1 : (size - 1) / at_hint(c, chunk) + 1;
  put_pieces(c, v, dim, NULL, chunk, n);
}

void at_shape_split(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  if (v.rank == 0) at_fail(c, "split of a 0-dim tensor");
  if (c->status == AOT_OK) split_by(c, &v, dim, at_int(c, "split_size"));
}

void at_shape_split_sizes(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  const int64_t *lengths;
  uint32_t n = at_ints(c, at_has(c, "split_sizes") ? "split_sizes" : "split_size", &lengths);
  if (v.rank == 0) at_fail(c, "split of a 0-dim tensor");
  if (c->status == AOT_OK) put_pieces(c, &v, dim, lengths, 0, n);
}

void at_shape_chunk(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t n = at_int(c, "chunks"), i;
  if (v.rank == 0 || n <= 0) at_fail(c, "chunk of a 0-dim tensor, or into %lld pieces", (long long)n);
  if (c->status != AOT_OK) return;
  if (at_hint(c, v.sizes[dim]) == 0) {
    for (i = 0; i < n; i++) at_view_result(c, &v);
    return;
  }
  split_by(c, &v, dim, at_floordiv(c, at_add(c, v.sizes[dim], n - 1), n));
}

void at_shape_unbind(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank);
  int64_t n, stride, i;
  if (v.rank == 0) at_fail(c, "unbind of a 0-dim tensor");
  if (c->status != AOT_OK) return;
  n = at_hint(c, v.sizes[dim]);
  stride = v.strides[dim];
  at_view_drop(&v, dim);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    v.offset = at_add(c, v.base.offset, at_mul(c, i, stride));
    at_view_result(c, &v);
  }
}

/* tensor_split: so many sections, the first ones an element longer; or cut at indices, which clamp like slices do */
static void tensor_split(at_infer_t *c, int32_t dim) {
  at_view_t v = at_view_of(c, "self");
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
    at_view_result(c, &v);
    at = end;
  }
}

void at_shape_tensor_split(at_infer_t *c) { tensor_split(c, at_wrap(c, at_int(c, "dim"), at_tensor(c, "self").rank)); }

/* hsplit along dim 1 (0 of a vector), vsplit along 0, dsplit along 2: equal sections, or cut at indices */
void at_shape_axis_split(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int vertical = strstr(c->row->name, "vsplit") != NULL, deep = strstr(c->row->name, "dsplit") != NULL;
  int32_t dim = vertical ? 0 : deep ? 2 : t.rank == 1 ? 0 : 1;
  int64_t sections = at_has(c, "sections") ? at_int(c, "sections") : 1;
  if (t.rank < (vertical ? 2 : deep ? 3 : 1)) at_fail(c, "%s of a tensor of rank %d", c->row->name, (int)t.rank);
  else if (sections <= 0 || at_hint(c, t.sizes[dim]) % sections != 0)
    at_fail(c, "%s of a dimension of size %lld into %lld equal parts", c->row->name,
            (long long)at_hint(c, t.sizes[dim]), (long long)sections);
  else tensor_split(c, dim);
}
