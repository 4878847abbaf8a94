/* Advanced indexing, numpy's rules (operators.md section 3): a None keeps its dimension; a mask of rank r represents
 * the r columns of its nonzero coordinates; all index tensors broadcast to a block B, which takes the place of the
 * first indexed dimension when the indexed ones are adjacent, and comes first otherwise. */
#include "rk_indexing.h"
#include <aot/inline.h>

typedef struct column {
  rk_array_t v; /* index values; v.i NULL: the dimension is stored */
} column_t;

aot_status_t rk_check_index(rk_ctx_t *c, int64_t value, int64_t n, int32_t dim, int wrap, int64_t *out) {
  if (value >= (wrap ? -n : 0) && value < n) {
    *out = value < 0 ? value + n : value;
    return AOT_OK;
  }
  return rk_fail(c, AOT_E_RANGE, "index %lld is out of range for dimension %d of size %lld", (long long)value, dim,
                 (long long)n);
}

/* Coordinates of the nonzero elements of a mask, one column a dimension. */
static aot_status_t mask_columns(rk_ctx_t *c, const rk_tensor_t *mask, const rk_array_t *self, int32_t dim,
                                 column_t *out) {
  rk_array_t m;
  int64_t count = 0, index[AOT_MAX_RANK] = {0}, n = 0;
  AOT_TRY(rk_dense_i(c, mask, &m));
  RK_CHECK(c, dim + m.rank <= self->rank, "a mask of rank %d does not fit", m.rank);
  for (int32_t d = 0; d < m.rank; d++)
    RK_CHECK(c, m.sizes[d] == self->sizes[dim + d], "mask size %lld is not %lld", (long long)m.sizes[d],
             (long long)self->sizes[dim + d]);
  for (int64_t e = 0; e < m.numel; e++) count += m.i[e] != 0;
  for (int32_t d = 0; d < m.rank; d++) AOT_TRY(rk_new_i(c, 1, &count, &out[d].v));
  for (int64_t e = 0; e < m.numel; e++, rk_advance(index, m.rank, m.sizes)) {
    if (!m.i[e]) continue;
    for (int32_t d = 0; d < m.rank; d++) out[d].v.i[n] = index[d];
    n++;
  }
  return AOT_OK;
}

static aot_status_t read_columns(rk_ctx_t *c, const rk_array_t *self, uint32_t arg, column_t *columns) {
  const rk_tensor_t *const *list;
  uint32_t n;
  int32_t dim = 0;
  AOT_TRY(rk_tensors_of(c, arg, &list, &n));
  for (uint32_t k = 0; k < n; k++) {
    RK_CHECK(c, dim <= self->rank, "there are more indices than dimensions");
    if (!list[k]) {
      dim++;
    } else if (list[k]->dtype == AOT_BOOL || list[k]->dtype == AOT_U8) {
      AOT_TRY(mask_columns(c, list[k], self, dim, columns + dim));
      dim += list[k]->rank;
    } else {
      RK_CHECK(c, dim < self->rank && rk_is_int(list[k]->dtype),
               "index %u is no integer tensor of an existing dimension", k);
      AOT_TRY(rk_dense_i(c, list[k], &columns[dim++].v));
    }
  }
  RK_CHECK(c, dim <= self->rank, "there are more indices than dimensions");
  return AOT_OK;
}

/* The common shape B of all columns. */
static aot_status_t block_shape(rk_ctx_t *c, const column_t *columns, int32_t n, int32_t *rank, int64_t *sizes) {
  *rank = 0;
  for (int32_t d = 0; d < n; d++)
    if (columns[d].v.i && columns[d].v.rank > *rank) *rank = columns[d].v.rank;
  for (int32_t b = 0; b < *rank; b++) sizes[b] = 1;
  for (int32_t d = 0; d < n; d++) {
    int32_t lead = *rank - columns[d].v.rank;
    for (int32_t b = 0; columns[d].v.i && b < columns[d].v.rank; b++) {
      int64_t have = columns[d].v.sizes[b], *want = &sizes[lead + b];
      RK_CHECK(c, have == *want || have == 1 || *want == 1, "index sizes %lld and %lld do not broadcast",
               (long long)have, (long long)*want);
      if (have != 1) *want = have;
    }
  }
  return AOT_OK;
}

aot_status_t rk_places_of(rk_ctx_t *c, const rk_array_t *self, uint32_t arg, int clamp, rk_places_t *out) {
  column_t *columns;
  int64_t block[AOT_MAX_RANK], index[AOT_MAX_RANK] = {0};
  int32_t block_rank, first = -1, last = -1, indexed = 0, at, kept[AOT_MAX_RANK], n_kept = 0;
  RK_SCRATCH(c, self->rank + AOT_MAX_RANK + 1, columns);
  AOT_TRY(read_columns(c, self, arg, columns));
  AOT_TRY(block_shape(c, columns, self->rank, &block_rank, block));
  for (int32_t d = 0; d < self->rank; d++) {
    if (!columns[d].v.i) continue;
    if (first < 0) first = d;
    last = d;
    indexed++;
  }
  at = indexed && last - first + 1 == indexed ? first : 0; /* result dimension where B starts */
  RK_CHECK(c, self->rank - indexed + block_rank <= AOT_MAX_RANK, "the result has too many dimensions");
  out->rank = 0;
  for (int32_t d = 0; d < self->rank; d++) {
    if (columns[d].v.i) continue;
    if (n_kept == at)
      for (int32_t b = 0; b < block_rank; b++) out->sizes[out->rank++] = block[b];
    kept[n_kept++] = d;
    out->sizes[out->rank++] = self->sizes[d];
  }
  if (n_kept <= at)
    for (int32_t b = 0; b < block_rank; b++) out->sizes[out->rank++] = block[b];
  out->numel = 1;
  for (int32_t d = 0; d < out->rank; d++)
    RK_CHECK(c, !__builtin_mul_overflow(out->numel, out->sizes[d], &out->numel), "the result is too large");
  RK_SCRATCH(c, out->numel, out->at);
  for (int64_t e = 0; e < out->numel; e++, rk_advance(index, out->rank, out->sizes)) {
    int64_t coordinate[AOT_MAX_RANK];
    for (int32_t k = 0; k < n_kept; k++) coordinate[kept[k]] = index[k < at ? k : k + block_rank];
    for (int32_t d = 0; d < self->rank; d++) {
      const rk_array_t *v = &columns[d].v;
      int64_t flat = 0, value;
      if (!v->i) continue;
      for (int32_t b = 0; b < v->rank; b++)
        flat = flat * v->sizes[b] + (v->sizes[b] == 1 ? 0 : index[at + block_rank - v->rank + b]);
      value = v->i[flat];
      if (clamp)
        coordinate[d] = value < 0                 ? (value + self->sizes[d] < 0 ? 0 : value + self->sizes[d])
                        : value >= self->sizes[d] ? self->sizes[d] - 1
                                                  : value;
      else AOT_TRY(rk_check_index(c, value, self->sizes[d], d, 1, &coordinate[d]));
    }
    out->at[e] = rk_flat(coordinate, self->rank, self->sizes);
  }
  return AOT_OK;
}
