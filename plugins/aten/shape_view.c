/* Views: the same storage under other sizes, strides and offset. Exact, because a later write through the view must be
 * found, and because PyTorch's own layouts are in the archives. */
#include "view_geometry.h"

#include <aot/inline.h>
#include <string.h>

static void swap_dims(at_view_t *v, int32_t a, int32_t b) {
  int64_t size = v->sizes[a], stride = v->strides[a];
  v->sizes[a] = v->sizes[b];
  v->strides[a] = v->strides[b];
  v->sizes[b] = size;
  v->strides[b] = stride;
}

/* ---- identity, transposition ---- */

void at_shape_alias(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  at_view_result(c, &v);
}

void at_shape_with_history(at_infer_t *c) {
  at_view_t v = at_view_of(c, "value");
  at_view_result(c, &v);
}

void at_shape_t(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  if (v.rank > 2) at_fail(c, "t takes a tensor of rank 2 or less, not %d", (int)v.rank);
  if (v.rank == 2) swap_dims(&v, 0, 1);
  at_view_result(c, &v);
}

void at_shape_mT(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  if (v.rank == 1) at_fail(c, "%s takes a tensor of rank 2 or more, or of rank 0, not 1", c->row->name);
  else if (v.rank) swap_dims(&v, v.rank - 2, v.rank - 1);
  at_view_result(c, &v);
}

void at_shape_numpy_T(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t d;
  for (d = 0; d < v.rank / 2; d++) swap_dims(&v, d, v.rank - 1 - d);
  at_view_result(c, &v);
}

void at_shape_transpose(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  const char *first = at_has(c, "axis0") ? "axis0" : "dim0", *second = at_has(c, "axis1") ? "axis1" : "dim1";
  int32_t a = at_wrap(c, at_int(c, first), v.rank), b = at_wrap(c, at_int(c, second), v.rank);
  if (v.rank) swap_dims(&v, a, b);
  at_view_result(c, &v);
}

void at_shape_permute(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  const int64_t *dims;
  uint32_t n = at_ints(c, "dims", &dims), i;
  if (n != (uint32_t)v.rank) at_fail(c, "permute names %u dimensions of a tensor of rank %d", n, (int)v.rank);
  at_dim_mask(c, dims, n, v.rank);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    int32_t d = at_wrap(c, dims[i], v.rank);
    v.sizes[i] = v.base.sizes[d];
    v.strides[i] = v.base.strides[d];
  }
  at_view_result(c, &v);
}

/* movedim: the sources go to the destinations, the rest keep their order. */
void at_shape_movedim(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
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
  at_view_result(c, &v);
}

/* ---- squeeze and unsqueeze ---- */

void at_shape_squeeze(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  const int64_t *dims;
  uint32_t mask = ~0u;
  int32_t d;
  if (at_has(c, "dim")) {
    uint32_t n = at_ints(c, "dim", &dims);
    mask = at_dim_mask(c, dims, n, v.rank);
  }
  for (d = v.rank - 1; d >= 0; d--)
    if ((mask >> d & 1) && at_same(c, v.sizes[d], 1)) at_view_drop(&v, d);
  at_view_result(c, &v);
}

void at_shape_unsqueeze(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), v.rank + 1);
  int64_t stride = dim < v.rank ? at_mul(c, v.sizes[dim], v.strides[dim]) : 1;
  at_view_insert(&v, dim, 1, stride);
  at_view_result(c, &v);
}

/* ---- expand ---- */

/* A new leading dimension of size 1 counts as one that was there, outside all others. */
static void expand_to(at_infer_t *c, at_view_t *v, const int64_t *sizes, int32_t rank) {
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
    if (at_same(c, old, 1) || (at_differs(c, old, wanted) && !at_differs(c, old, 1))) {
      v->strides[d] = 0;
    } else if (at_differs(c, old, wanted)) {
      char text[2][64];
      at_fail(c, "expand of dim %d from %s to %s", (int)d, at_dims_text(c, &old, 1, text[0], 64),
              at_dims_text(c, &wanted, 1, text[1], 64));
    }
  }
  v->rank = rank;
}

void at_shape_expand(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  const int64_t *sizes;
  uint32_t n = at_ints(c, "size", &sizes);
  expand_to(c, &v, sizes, (int32_t)n);
  at_view_result(c, &v);
}

void at_shape_expand_as(at_infer_t *c) {
  at_view_t v = at_view_of(c, "self");
  aot_type_t other = at_tensor(c, "other");
  expand_to(c, &v, other.sizes, other.rank);
  at_view_result(c, &v);
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
    at_view_t v;
    v.base = at_list_item(c, "tensors", i);
    v.sizes = at_dims(c, AOT_MAX_RANK + 1);
    v.strides = at_dims(c, AOT_MAX_RANK + 1);
    v.offset = v.base.offset;
    expand_to(c, &v, sizes, rank);
    at_view_result(c, &v);
    c->n_pool = mark;
  }
}

/* ---- self when nothing changes, a copy otherwise ---- */

/* contiguous: self when it is in that order already */
void at_shape_contiguous(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t format = at_has(c, "memory_format") ? at_int(c, "memory_format") : AOT_MEMORY_CONTIGUOUS;
  int64_t *strides = at_dims(c, t.rank);
  int already = format == AOT_MEMORY_PRESERVE ||
                (format == AOT_MEMORY_CONTIGUOUS ? at_is_contiguous(c, &t) : at_is_channels_last(c, &t));
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
  if (at_has(c, "device")) device = aot_device_of(at_int(c, "device"));
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
  at_view_t v = at_view_of(c, "self");
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
  at_view_result(c, &v);
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
