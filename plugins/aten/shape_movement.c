/* Operators that copy elements about: cat, stack, repeat, roll, triangles, pixel shuffles. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

static int is_legacy_empty(at_infer_t *c, const aot_type_t *t) { return t->rank == 1 && at_same(c, t->sizes[0], 0); }

void at_shape_cat(at_infer_t *c) {
  uint32_t n = at_list_size(c, "tensors"), i;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), *strides = at_dims(c, AOT_MAX_RANK), total = 0;
  int32_t rank = -1, dim = 0, dtype = 0, d, channels_last = 1;
  uint32_t mark = c->n_pool;
  if (n == 0) at_fail(c, "cat of no tensors");
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    c->n_pool = mark;
    dtype = at_promote_pair(c, dtype, t.dtype);
    channels_last &= at_suggests_channels_last(c, &t);
    if (is_legacy_empty(c, &t)) continue;
    if (rank < 0) {
      rank = t.rank;
      dim = at_wrap(c, at_int(c, "dim"), rank);
      memcpy(sizes, t.sizes, (size_t)rank * sizeof *sizes);
      if (rank == 0) at_fail(c, "cat of a 0-dim tensor");
    }
    if (t.rank != rank) at_fail(c, "cat of tensors of rank %d and %d", (int)rank, (int)t.rank);
    for (d = 0; d < rank && c->status == AOT_OK; d++) {
      if (d == dim) total = at_add(c, total, t.sizes[d]);
      else if (at_differs(c, t.sizes[d], sizes[d]))
        at_fail(c, "cat along dim %d: tensor %u has size %lld in dim %d, the first has %lld", (int)dim, i,
                (long long)at_hint(c, t.sizes[d]), (int)d, (long long)at_hint(c, sizes[d]));
    }
  }
  if (c->status != AOT_OK) return;
  if (rank < 0) rank = 1; /* all of shape [0] */
  sizes[dim] = total;
  if (channels_last) at_strides_channels_last(c, sizes, rank, strides);
  else at_strides_contiguous(c, sizes, rank, strides);
  at_put_strided(c, dtype, sizes, strides, rank);
}

void at_shape_stack(at_infer_t *c) {
  uint32_t n = at_list_size(c, "tensors"), i;
  aot_type_t first = at_list_item(c, "tensors", 0);
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 1);
  int32_t dim = at_wrap(c, at_int(c, "dim"), first.rank + 1), dtype = first.dtype, d;
  uint32_t mark = c->n_pool;
  if (n == 0) at_fail(c, "stack of no tensors");
  for (i = 1; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    int same = t.rank == first.rank;
    c->n_pool = mark;
    dtype = at_promote_pair(c, dtype, t.dtype);
    for (d = 0; same && d < t.rank; d++) same = !at_differs(c, t.sizes[d], first.sizes[d]);
    if (!same) at_fail(c, "stack: tensor %u has another shape than the first", i);
  }
  for (d = 0; d <= first.rank; d++) sizes[d] = d == dim ? (int64_t)n : first.sizes[d - (d > dim)];
  at_put(c, dtype, sizes, first.rank + 1);
}

void at_shape_repeat(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t *times;
  int32_t n = (int32_t)at_ints(c, at_has(c, "dims") ? "dims" : "repeats", &times), rank, d;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  int tile = at_has(c, "dims");
  if (n > AOT_MAX_RANK || (n < t.rank && !tile)) at_fail(c, "%d repeats for a tensor of rank %d", (int)n, (int)t.rank);
  if (c->status != AOT_OK) return;
  rank = n > t.rank ? n : t.rank;
  for (d = 0; d < rank; d++) {
    int64_t size = d < rank - t.rank ? 1 : t.sizes[d - (rank - t.rank)];
    sizes[d] = d < rank - n ? size : at_mul(c, size, times[d - (rank - n)]);
  }
  at_put(c, t.dtype, sizes, rank);
}

/* flip, roll, tril, triu: self's shape, contiguous or like self */
void at_shape_same_contiguous(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_put(c, t.dtype, t.sizes, t.rank);
}

void at_shape_one_hot(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 1);
  if (at_below(c, at_int(c, "num_classes"), 0))
    at_fail(c, "one_hot without num_classes: the result's size depends on the data, which is not supported");
  if (c->status != AOT_OK) return;
  memcpy(sizes, t.sizes, (size_t)t.rank * sizeof *sizes);
  sizes[t.rank] = at_int(c, "num_classes");
  at_put(c, AOT_I64, sizes, t.rank + 1);
}

void at_shape_repeat_interleave(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), times = at_int(c, "repeats");
  int32_t dim;
  if (!at_has(c, "dim")) {
    int64_t *flat = at_dims(c, 1);
    flat[0] = at_mul(c, at_numel(c, t.sizes, t.rank), times);
    at_put(c, t.dtype, flat, 1);
    return;
  }
  dim = at_wrap(c, at_int(c, "dim"), t.rank);
  if (t.rank) sizes[dim] = at_mul(c, sizes[dim], times);
  at_put(c, t.dtype, sizes, t.rank);
}

void at_shape_diag_embed(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t a = at_wrap(c, at_int(c, "dim1"), t.rank + 1), b = at_wrap(c, at_int(c, "dim2"), t.rank + 1), d, k = 0;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 1), offset = at_int(c, "offset"), n;
  if (t.rank == 0 || a == b) at_fail(c, "diag_embed needs a dimension to embed and two different places");
  if (c->status != AOT_OK) return;
  n = at_add(c, t.sizes[t.rank - 1], offset < 0 ? at_sub(c, 0, offset) : offset);
  for (d = 0; d <= t.rank; d++) sizes[d] = d == a || d == b ? n : t.sizes[k++];
  at_put(c, t.dtype, sizes, t.rank + 1);
}

static void put_shuffled(at_infer_t *c, int up) {
  aot_type_t t = at_tensor(c, "self");
  int64_t r = at_int(c, up ? "upscale_factor" : "downscale_factor"), *sizes = at_dims_copy(c, t.sizes, t.rank), area;
  if (t.rank < 3 || r <= 0) at_fail(c, "pixel shuffle by %lld of a tensor of rank %d", (long long)r, (int)t.rank);
  area = at_mul(c, r, r);
  if (c->status != AOT_OK) return;
  sizes[t.rank - 3] = up ? at_floordiv(c, sizes[t.rank - 3], area) : at_mul(c, sizes[t.rank - 3], area);
  sizes[t.rank - 2] = up ? at_mul(c, sizes[t.rank - 2], r) : at_floordiv(c, sizes[t.rank - 2], r);
  sizes[t.rank - 1] = up ? at_mul(c, sizes[t.rank - 1], r) : at_floordiv(c, sizes[t.rank - 1], r);
  if (t.rank == 4) at_put_in_format_of(c, &t, sizes, t.dtype);
  else at_put(c, t.dtype, sizes, t.rank);
}

void at_shape_pixel_shuffle(at_infer_t *c) { put_shuffled(c, 1); }
void at_shape_pixel_unshuffle(at_infer_t *c) { put_shuffled(c, 0); }

/* hstack joins along dim 1, vectors along dim 0; vstack joins rows. Lower ranks get dimensions first. */
static void put_stacked(at_infer_t *c, int32_t least_rank, int vertical) {
  uint32_t n = at_list_size(c, "tensors"), i;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), total = 0;
  int32_t rank = 0, dtype = 0, dim = 0;
  uint32_t mark = c->n_pool;
  if (n == 0) at_fail(c, "%s of no tensors", c->row->name);
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    int32_t lead = t.rank < least_rank ? least_rank - t.rank : 0, d;
    c->n_pool = mark;
    dtype = at_promote_pair(c, dtype, t.dtype);
    if (i == 0) rank = t.rank + lead;
    dim = vertical || rank == 1 ? 0 : 1;
    if (t.rank + lead != rank) at_fail(c, "%s of tensors of different rank", c->row->name);
    for (d = 0; d < rank && c->status == AOT_OK; d++) {
      int64_t size = d < lead ? 1 : t.sizes[d - lead];
      if (d == dim) total = at_add(c, total, size);
      else if (i == 0) sizes[d] = size;
      else if (at_differs(c, size, sizes[d]))
        at_fail(c, "%s: tensor %u has another size in dim %d", c->row->name, i, (int)d);
    }
  }
  sizes[dim] = total;
  at_put(c, dtype, sizes, rank);
}

void at_shape_hstack(at_infer_t *c) { put_stacked(c, 1, 0); }
void at_shape_vstack(at_infer_t *c) { put_stacked(c, 2, 1); }

void at_shape_block_diag(at_infer_t *c) {
  uint32_t n = at_list_size(c, "tensors"), i, mark;
  int64_t *sizes = at_dims(c, 2);
  int32_t dtype = 0;
  sizes[0] = sizes[1] = 0;
  mark = c->n_pool;
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    c->n_pool = mark;
    if (t.rank > 2) at_fail(c, "block_diag of a tensor of rank %d", (int)t.rank);
    dtype = at_promote_pair(c, dtype, t.dtype);
    sizes[0] = at_add(c, sizes[0], t.rank == 2 ? t.sizes[0] : 1);
    sizes[1] = at_add(c, sizes[1], t.rank == 0 ? 1 : t.sizes[t.rank - 1]);
  }
  at_put(c, dtype, sizes, 2);
}

/* rot90: a flip of self, or of self with two dimensions swapped, in that view's memory order */
void at_shape_rot90(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t *dims;
  if (at_ints(c, "dims", &dims) != 2 || t.rank < 2) at_fail(c, "rot90 needs two dimensions");
  if (c->status != AOT_OK) return;
  if (at_int(c, "k") % 2 != 0) {
    int32_t a = at_wrap(c, dims[0], t.rank), b = at_wrap(c, dims[1], t.rank);
    int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), *strides = at_dims_copy(c, t.strides, t.rank);
    sizes[a] = t.sizes[b];
    sizes[b] = t.sizes[a];
    strides[a] = t.strides[b];
    strides[b] = t.strides[a];
    t.sizes = sizes;
    t.strides = strides;
  }
  at_put_like(c, &t, t.dtype);
}

/* _chunk_cat: the leading dims before `dim` stay; from there each tensor is [num_chunks, its numel / num_chunks,
 * padded] */
void at_shape_chunk_cat(at_infer_t *c) {
  uint32_t n = at_list_size(c, "tensors"), i, mark;
  aot_type_t first = at_list_item(c, "tensors", 0);
  int32_t dim = at_wrap(c, at_int(c, "dim"), first.rank), d;
  int64_t *sizes, chunks = at_int(c, "num_chunks");
  if (n == 0 || chunks <= 0 || first.rank == 0) at_fail(c, "_chunk_cat of no tensors, or into no chunks");
  if (c->status != AOT_OK) return;
  sizes = at_dims(c, dim + 2);
  for (d = 0; d < dim; d++) sizes[d] = first.sizes[d];
  sizes[dim] = chunks;
  sizes[dim + 1] = 0;
  mark = c->n_pool;
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "tensors", i);
    int64_t rows;
    if (t.rank <= dim) at_fail(c, "_chunk_cat along dimension %d of a tensor of rank %d", (int)dim, (int)t.rank);
    for (d = 0; d < dim && c->status == AOT_OK; d++)
      if (at_differs(c, t.sizes[d], first.sizes[d]))
        at_fail(c, "_chunk_cat of tensors that differ before dimension %d", (int)dim);
    if (c->status != AOT_OK) return;
    rows = at_floordiv(c, at_add(c, t.sizes[dim], chunks - 1), chunks);
    c->n_pool = mark;
    sizes[dim + 1] = at_add(c, sizes[dim + 1], at_mul(c, rows, at_numel(c, t.sizes + dim + 1, t.rank - dim - 1)));
  }
  at_put(c, first.dtype, sizes, dim + 2);
}

/* diag: of a vector a matrix, of a matrix a view-like copy of its diagonal */
void at_shape_diag(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t offset = at_int(c, "diagonal"), away = offset < 0 ? at_sub(c, 0, offset) : offset, *sizes = at_dims(c, 2);
  if (t.rank != 1 && t.rank != 2) at_fail(c, "diag of a tensor of rank %d", (int)t.rank);
  if (c->status != AOT_OK) return;
  if (t.rank == 1) {
    sizes[0] = sizes[1] = at_add(c, t.sizes[0], away);
    at_put(c, t.dtype, sizes, 2);
    return;
  }
  {
    int64_t rows = offset >= 0 ? t.sizes[0] : at_sub(c, t.sizes[0], away),
            columns = offset >= 0 ? at_sub(c, t.sizes[1], away) : t.sizes[1];
    sizes[0] = at_max(c, at_min(c, rows, columns), 0);
    at_put(c, t.dtype, sizes, 1);
  }
}
