/* Gathering and scattering: embedding, gather, scatter, advanced indexing, and the scatters that undo views. */
#include "shape_rules.h"

#include <aot/inline.h>
#include <string.h>

static void need_index_dtype(at_infer_t *c, const aot_type_t *index) {
  if (index->dtype != AOT_I64 && index->dtype != AOT_I32)
    at_fail(c, "indices must be int64 or int32, not %s", aot_dtype_name(index->dtype));
}

void at_shape_embedding(at_infer_t *c) {
  aot_type_t w = at_tensor(c, "weight"), index = at_tensor(c, "indices");
  int64_t *sizes = at_dims(c, AOT_MAX_RANK + 1);
  need_index_dtype(c, &index);
  if (w.rank != 2) at_fail(c, "an embedding's weight has rank 2, not %d", (int)w.rank);
  if (c->status != AOT_OK) return;
  memcpy(sizes, index.sizes, (size_t)index.rank * sizeof *sizes);
  sizes[index.rank] = w.sizes[1];
  at_put(c, w.dtype, sizes, index.rank + 1);
}

void at_shape_embedding_dense_backward(at_infer_t *c) {
  aot_type_t g = at_tensor(c, "grad_output");
  int64_t *sizes = at_dims(c, 2);
  if (g.rank == 0) at_fail(c, "embedding_dense_backward of a 0-dim gradient");
  if (c->status != AOT_OK) return;
  sizes[0] = at_int(c, "num_weights");
  sizes[1] = g.sizes[g.rank - 1];
  at_put(c, g.dtype, sizes, 2);
}

/* The index of gather and scatter; PyTorch does not look at one without elements. */
static void need_places(at_infer_t *c, const char *what, const aot_type_t *t, const aot_type_t *index) {
  for (int32_t d = 0; d < index->rank; d++)
    if (at_same(c, index->sizes[d], 0)) return;
  need_index_dtype(c, index);
  if (index->rank != t->rank && index->rank != 0 && t->rank != 0)
    at_fail(c, "%s: the index has rank %d, the tensor %d", what, (int)index->rank, (int)t->rank);
}

void at_shape_gather(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), index = at_tensor(c, "index");
  at_wrap(c, at_int(c, "dim"), t.rank);
  need_places(c, "gather", &t, &index);
  at_put(c, t.dtype, index.sizes, index.rank);
}

/* scatter, scatter_add, scatter_reduce: self with some elements replaced */
void at_shape_scatter(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), index = at_tensor(c, "index");
  at_wrap(c, at_int(c, "dim"), t.rank);
  need_places(c, "scatter", &t, &index);
  at_put(c, t.dtype, t.sizes, t.rank);
}

void at_shape_index_select(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), index = at_tensor(c, "index");
  int32_t dim = at_wrap(c, at_int(c, "dim"), t.rank);
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank);
  need_index_dtype(c, &index);
  if (index.rank > 1) at_fail(c, "index_select takes an index of rank 1, not %d", (int)index.rank);
  if (t.rank) sizes[dim] = index.rank ? index.sizes[0] : 1;
  else if (index.rank && at_differs(c, index.sizes[0], 1))
    at_fail(c, "index_select of a single element takes one place");
  at_put(c, t.dtype, sizes, t.rank);
}

/* index_add, index_copy, index_fill along a dim: self's shape; contiguous */
void at_shape_index_dim(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), index = at_tensor(c, "index");
  at_wrap(c, at_int(c, "dim"), t.rank);
  need_index_dtype(c, &index);
  at_put_like(c, &t, t.dtype);
}

/* ---- advanced indexing ---- */

/* self[i, :, j] with index tensors of one broadcast shape B. The indexed dimensions give way to B, which is where
 * the first of them stood when they are adjacent, in front otherwise. Strides follow TensorIterator over the source
 * (stride 0 along B) and the indices (stride 0 elsewhere): operands that all have the result's rank. */
typedef struct indexed {
  aot_type_t self;
  aot_type_t index[AOT_MAX_RANK]; /* by dimension of self; kind NONE: kept whole */
  int64_t *shape;                 /* B */
  int32_t b_rank, b_at, rank;
  int64_t *sizes;
} indexed_t;

static int is_mask(const aot_type_t *t) {
  return t->kind == AOT_TYPE_TENSOR && (t->dtype == AOT_BOOL || t->dtype == AOT_U8);
}

/* How many elements the masks select: as many as the integer indices next to them have, else only the run can
 * determine. */
static int64_t mask_length(at_infer_t *c) {
  uint32_t n = at_list_size(c, "indices"), i;
  int64_t length = 1, most = INT64_MAX;
  for (i = 0; i < n; i++) {
    aot_type_t t = at_list_item(c, "indices", i);
    if (is_mask(&t)) {
      int64_t numel = at_numel(c, t.sizes, t.rank);
      if (!AOT_DIM_IS_SYM(numel) && numel < most) most = numel;
    } else if (t.kind == AOT_TYPE_TENSOR && t.rank > 0 && t.sizes[t.rank - 1] != 1) {
      length = t.sizes[t.rank - 1];
    }
  }
  return length != 1 ? length : at_unknown(c, 0, most);
}

/* A mask of rank r represents r index tensors, the columns of its nonzero coordinates. */
static int32_t put_columns(at_infer_t *c, indexed_t *x, const aot_type_t *mask, int32_t at, int64_t *length) {
  static const int64_t one = 1;
  int64_t *sizes = at_dims(c, 1);
  int32_t d;
  if (mask->rank == 0) at_fail(c, "an index by a mask of rank 0 is not supported; unsqueeze the mask and the tensor");
  for (d = 0; d < mask->rank && at + d < x->self.rank; d++)
    if (at_differs(c, mask->sizes[d], x->self.sizes[at + d]))
      at_fail(c, "the mask has size %lld at dimension %d, the tensor %lld", (long long)at_hint(c, mask->sizes[d]),
              (int)(at + d), (long long)at_hint(c, x->self.sizes[at + d]));
  if (*length < 0) *length = mask_length(c);
  sizes[0] = *length;
  for (d = 0; d < mask->rank && at + d < x->self.rank; d++) {
    aot_type_t *column = &x->index[at + d];
    *column = *mask;
    column->dtype = AOT_I64;
    column->rank = 1;
    column->sizes = sizes;
    column->strides = &one;
  }
  return at + mask->rank;
}

/* The given indices by the dimension of self that each goes with. */
static void spread_indices(at_infer_t *c, indexed_t *x) {
  uint32_t n = at_list_size(c, "indices"), i;
  int32_t at = 0;
  int64_t length = -1;
  for (i = 0; i < n && c->status == AOT_OK; i++) {
    aot_type_t t = at_list_item(c, "indices", i);
    if (is_mask(&t)) {
      at = put_columns(c, x, &t, at, &length);
    } else {
      if (t.kind != AOT_TYPE_NONE) need_index_dtype(c, &t);
      if (at < x->self.rank) x->index[at] = t;
      at++;
    }
  }
  if (at > x->self.rank) at_fail(c, "%d dimensions are indexed in a tensor of rank %d", (int)at, (int)x->self.rank);
}

static int read_indices(at_infer_t *c, indexed_t *x) {
  int32_t d, first = -1, last = -1, n_indexed = 0, adjacent;
  aot_type_t given[AOT_MAX_RANK];
  uint32_t n_given = 0;
  x->self = at_tensor(c, "self");
  memset(x->index, 0, sizeof x->index);
  spread_indices(c, x);
  if (c->status != AOT_OK) return 0;
  for (d = 0; d < x->self.rank; d++) {
    if (x->index[d].kind == AOT_TYPE_NONE) continue;
    if (first < 0) first = d;
    last = d;
    n_indexed++;
    given[n_given++] = x->index[d];
  }
  x->shape = at_dims(c, AOT_MAX_RANK);
  x->sizes = at_dims(c, 2 * AOT_MAX_RANK);
  x->b_rank = at_broadcast(c, given, n_given, x->shape);
  adjacent = n_indexed == 0 || last - first + 1 == n_indexed;
  x->b_at = adjacent && first > 0 ? first : 0;
  x->rank = 0;
  for (d = 0; d <= x->self.rank; d++) {
    if (x->rank == x->b_at && n_indexed > 0 && (d == first || !adjacent)) {
      memcpy(x->sizes + x->rank, x->shape, (size_t)x->b_rank * sizeof *x->sizes);
      x->rank += x->b_rank;
      n_indexed = 0; /* once */
    }
    if (d < x->self.rank && x->index[d].kind == AOT_TYPE_NONE) x->sizes[x->rank++] = x->self.sizes[d];
  }
  if (x->rank > AOT_MAX_RANK) at_fail(c, "indexing gives rank %d, more than %d", (int)x->rank, AOT_MAX_RANK);
  return c->status == AOT_OK;
}

/* The source restrided and the indices reshaped to the result's rank. */
static uint32_t index_operands(at_infer_t *c, const indexed_t *x, aot_type_t *out) {
  int32_t d, at = 0;
  uint32_t n = 0;
  int64_t *strides = at_dims(c, AOT_MAX_RANK);
  for (d = 0; d < x->rank; d++) strides[d] = 0;
  for (d = 0; d < x->self.rank; d++) {
    if (x->index[d].kind != AOT_TYPE_NONE) continue;
    if (at == x->b_at) at += x->b_rank;
    strides[at++] = x->self.strides[d];
  }
  out[n] = x->self;
  out[n].rank = x->rank;
  out[n].sizes = x->sizes;
  out[n++].strides = strides;
  for (d = 0; d < x->self.rank; d++) {
    const aot_type_t *index = &x->index[d];
    int64_t *s, *sizes;
    int32_t k;
    if (index->kind == AOT_TYPE_NONE) continue;
    s = at_dims(c, AOT_MAX_RANK);
    sizes = at_dims(c, AOT_MAX_RANK);
    for (k = 0; k < x->rank; k++) {
      int32_t own = k - x->b_at - (x->b_rank - index->rank);
      int inside = own >= 0 && own < index->rank;
      sizes[k] = inside ? index->sizes[own] : 1;
      s[k] = inside ? index->strides[own] : 0;
    }
    out[n] = *index;
    out[n].rank = x->rank;
    out[n].sizes = sizes;
    out[n++].strides = s;
  }
  return n;
}

void at_shape_index(at_infer_t *c) {
  indexed_t x;
  aot_type_t operands[AOT_MAX_RANK + 1];
  int64_t *strides;
  uint32_t n;
  if (!read_indices(c, &x)) return;
  n = index_operands(c, &x, operands);
  strides = at_dims(c, AOT_MAX_RANK);
  at_strides_pointwise(c, operands, n, x.sizes, x.rank, strides);
  at_put_strided(c, x.self.dtype, x.sizes, strides, x.rank);
}

void at_shape_index_put(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), values = at_operand(c, "values");
  if (values.kind == AOT_TYPE_TENSOR && values.dtype != t.dtype)
    at_fail(c, "index_put of %s values into a %s tensor", aot_dtype_name(values.dtype), aot_dtype_name(t.dtype));
  at_put_like(c, &t, t.dtype);
}

void at_shape_take(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), index = at_tensor(c, "index");
  at_put(c, t.dtype, index.sizes, index.rank);
}

/* ---- scatters that undo views ---- */

static void put_scattered(at_infer_t *c, const aot_type_t *self, const int64_t *sizes, int32_t rank) {
  aot_type_t src = at_tensor(c, "src");
  int32_t d;
  int same = src.rank == rank;
  for (d = 0; same && d < rank; d++) same = !at_differs(c, src.sizes[d], sizes[d]);
  if (!same) {
    char text[2][90];
    at_fail(c, "src has shape [%s], the place it goes to [%s]", at_dims_text(c, src.sizes, src.rank, text[0], 90),
            at_dims_text(c, sizes, rank, text[1], 90));
  }
  at_put_like(c, self, self->dtype);
}

void at_shape_select_scatter(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), t.rank), d, rank = 0;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  for (d = 0; d < t.rank; d++)
    if (d != dim) sizes[rank++] = t.sizes[d];
  put_scattered(c, &t, sizes, rank);
}

void at_shape_slice_scatter(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int32_t dim = at_wrap(c, at_int(c, "dim"), t.rank);
  int64_t *sizes = at_dims_copy(c, t.sizes, t.rank), start;
  if (t.rank == 0) at_fail(c, "slice_scatter of a 0-dim tensor");
  else at_slice_range(c, t.sizes[dim], &start, &sizes[dim]);
  put_scattered(c, &t, sizes, t.rank);
}

void at_shape_diagonal_scatter(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  at_put_like(c, &t, t.dtype);
}

void at_shape_as_strided_scatter(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  const int64_t *sizes, *strides;
  uint32_t n = at_ints(c, "size", &sizes), m = at_ints(c, "stride", &strides);
  if (n != m) at_fail(c, "as_strided_scatter names %u sizes and %u strides", n, m);
  for (uint32_t d = 0; d < m && c->status == AOT_OK; d++)
    if (at_below(c, strides[d], 0)) at_fail(c, "stride %u is %lld", d, (long long)at_hint(c, strides[d]));
  put_scattered(c, &t, sizes, (int32_t)n);
}

/* slice_backward, select_backward, diagonal_backward, unfold_backward: zeros of input_sizes with the gradient put in */
void at_shape_input_sizes(at_infer_t *c) {
  aot_type_t g = at_tensor(c, at_has(c, "grad_output") ? "grad_output" : "grad_in");
  const int64_t *sizes;
  uint32_t n = at_ints(c, "input_sizes", &sizes);
  at_put(c, g.dtype, sizes, (int32_t)n);
}

/* searchsorted, bucketize */
void at_shape_bucketize(at_infer_t *c) {
  aot_type_t t = at_operand(c, "self");
  at_put(c, at_bool(c, "out_int32") ? AOT_I32 : AOT_I64, t.sizes, t.kind == AOT_TYPE_TENSOR ? t.rank : 0);
}

void at_shape_searchsorted(at_infer_t *c) {
  aot_type_t t = at_operand(c, "self"), edges = at_tensor(c, "sorted_sequence");
  if (edges.rank != 1 && edges.rank != t.rank)
    at_fail(c, "searchsorted of values of rank %d in rows of rank %d", (int)t.rank, (int)edges.rank);
  at_put(c, at_bool(c, "out_int32") ? AOT_I32 : AOT_I64, t.sizes, t.kind == AOT_TYPE_TENSOR ? t.rank : 0);
}

void at_shape_nonzero_static(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self");
  int64_t *sizes = at_dims(c, 2), *strides = at_dims(c, 2);
  sizes[0] = at_int(c, "size");
  sizes[1] = t.rank;
  at_strides_contiguous(c, sizes, 2, strides);
  at_put_strided(c, AOT_I64, sizes, strides, 2);
}

/* take_along_dim: self and indices broadcast in all other dimensions; without dim both are flat */
void at_shape_take_along_dim(at_infer_t *c) {
  aot_type_t t = at_tensor(c, "self"), index = at_tensor(c, "indices");
  aot_type_t pair[2];
  int64_t *sizes = at_dims(c, AOT_MAX_RANK), *self_sizes, *index_sizes;
  int32_t dim, rank;
  if (!at_has(c, "dim")) {
    sizes[0] = at_numel(c, index.sizes, index.rank);
    at_put(c, t.dtype, sizes, 1);
    return;
  }
  dim = at_wrap(c, at_int(c, "dim"), t.rank);
  if (t.rank != index.rank || t.rank == 0)
    at_fail(c, "take_along_dim of rank %d with indices of rank %d", (int)t.rank, (int)index.rank);
  if (c->status != AOT_OK) return;
  self_sizes = at_dims_copy(c, t.sizes, t.rank);
  index_sizes = at_dims_copy(c, index.sizes, index.rank);
  self_sizes[dim] = index_sizes[dim] = 1;
  pair[0] = t;
  pair[0].sizes = self_sizes;
  pair[1] = index;
  pair[1].sizes = index_sizes;
  rank = at_broadcast(c, pair, 2, sizes);
  sizes[dim] = index.sizes[dim];
  at_put(c, t.dtype, sizes, rank);
}
