/* Reductions over ragged groups of rows: bags of embeddings, segments, distinct values, and concatenated chunks.
 * Where PyTorch leaves a result empty because nothing requested it, the declared result is empty, and is left so. */
#include "rk_indexing.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* Does the caller want result r with this many elements? */
static int wants_numel(const rk_ctx_t *c, uint32_t r, int64_t numel) {
  return rk_wants(c, r) && rk_numel(rk_result(c, r)) == numel && numel > 0;
}

/* Integers into result r, whatever its shape of that many elements. */
static void put_ints(const rk_ctx_t *c, uint32_t r, const int64_t *v) {
  rk_tensor_t *t = rk_result(c, r);
  rk_iter_t it;
  int64_t n = 0;
  rk_iter_over(&it, t);
  for (; it.more; rk_iter_next(&it), n += it.run) rk_store_run_i(t, it.at[0], it.step[0], it.run, v + n);
}

/* ---- embedding bags ---- */

#define BAG_SUM 0
#define BAG_MEAN 1
#define BAG_MAX 2

typedef struct bags {
  rk_array_t weight, indices, offsets, scale;
  int64_t mode, padding, n, width, rows;
  int include_last;
} bags_t;

/* (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx) */
static aot_status_t read_bags(rk_ctx_t *c, bags_t *b) {
  AOT_TRY(rk_need_f(c, 0, &b->weight));
  AOT_TRY(rk_need_i(c, 1, &b->indices));
  AOT_TRY(rk_need_i(c, 2, &b->offsets));
  AOT_TRY(rk_get_f(c, 6, &b->scale));
  b->mode = rk_int(c, 4, 0);
  b->include_last = rk_bool(c, 7, 0);
  b->padding = rk_int(c, 8, -1);
  RK_CHECK(c, b->weight.rank == 2 && b->indices.rank == 1 && b->offsets.rank == 1,
           "weight, indices and offsets have ranks %d, %d, %d", b->weight.rank, b->indices.rank, b->offsets.rank);
  RK_CHECK(c, b->mode >= BAG_SUM && b->mode <= BAG_MAX && (!b->scale.f || b->mode == BAG_SUM),
           "mode %lld is not supported here", (long long)b->mode);
  RK_CHECK(c, !b->scale.f || b->scale.numel == b->indices.numel, "%lld weights for %lld indices",
           (long long)b->scale.numel, (long long)b->indices.numel);
  RK_CHECK(c, !b->include_last || b->offsets.numel > 0, "there are no offsets");
  RK_CHECK(c, !b->offsets.numel || b->offsets.i[0] == 0, "the first offset is %lld, not 0", (long long)b->offsets.i[0]);
  RK_CHECK(c, !b->include_last || b->offsets.i[b->offsets.numel - 1] == b->indices.numel,
           "the last offset must be the number of indices");
  b->rows = b->weight.sizes[0];
  b->width = b->weight.sizes[1];
  b->n = b->offsets.numel - b->include_last;
  return AOT_OK;
}

static aot_status_t embedding_bag_of(rk_ctx_t *c, int padding_wraps) {
  bags_t b = {0};
  rk_array_t y, top, counts, owner;
  int64_t sizes[2];
  AOT_TRY(read_bags(c, &b));
  if (padding_wraps && rk_has(c, 8) && b.padding < 0) b.padding += b.rows;
  sizes[0] = b.n;
  sizes[1] = b.width;
  AOT_TRY(rk_new_f(c, 2, sizes, &y));
  AOT_TRY(rk_new_i(c, 2, sizes, &top));
  AOT_TRY(rk_new_i(c, 1, &b.offsets.numel, &counts));
  AOT_TRY(rk_new_i(c, 1, &b.indices.numel, &owner));
  for (int64_t bag = 0; bag < b.n; bag++) {
    int64_t begin = b.offsets.i[bag], end = bag + 1 < b.offsets.numel ? b.offsets.i[bag + 1] : b.indices.numel;
    RK_CHECK(c, begin >= 0 && begin <= end && end <= b.indices.numel, "bag %lld spans %lld to %lld of %lld indices",
             (long long)bag, (long long)begin, (long long)end, (long long)b.indices.numel);
    for (int64_t k = begin; k < end; k++) {
      int64_t row;
      AOT_TRY(rk_check_index(c, b.indices.i[k], b.rows, 0, 0, &row));
      owner.i[k] = bag;
      if (row == b.padding) continue;
      for (int64_t e = 0; e < b.width; e++) {
        double v = b.weight.f[row * b.width + e] * (b.scale.f ? b.scale.f[k] : 1), *at = &y.f[bag * b.width + e];
        if (b.mode != BAG_MAX) *at += v;
        else if (counts.i[bag] == 0 || v > *at) {
          *at = v;
          top.i[bag * b.width + e] = row;
        }
      }
      counts.i[bag]++;
    }
    for (int64_t e = 0; b.mode == BAG_MEAN && counts.i[bag] && e < b.width; e++)
      y.f[bag * b.width + e] /= (double)counts.i[bag];
  }
  /* PyTorch does not count for sums */
  if (b.mode == BAG_SUM) memset(counts.i, 0, (size_t)counts.numel * sizeof *counts.i);
  if (wants_numel(c, 1, owner.numel)) put_ints(c, 1, owner.i);
  if (wants_numel(c, 2, counts.numel) || wants_numel(c, 2, b.n)) put_ints(c, 2, counts.i);
  if (b.mode == BAG_MAX && wants_numel(c, 3, top.numel)) put_ints(c, 3, top.i);
  else if (wants_numel(c, 3, counts.numel) || wants_numel(c, 3, b.n)) put_ints(c, 3, counts.i);
  return rk_put_f(c, 0, &y);
}
static aot_status_t embedding_bag(rk_ctx_t *c) { return embedding_bag_of(c, 0); }
static aot_status_t embedding_bag_padded(rk_ctx_t *c) { return embedding_bag_of(c, 1); } /* -1 is the last row */

/* ---- segments ---- */

/* segment_reduce(data, reduce, *, lengths, indices, offsets, axis, unsafe, initial): along axis, by lengths or
 * offsets */
static aot_status_t segment_reduce(rk_ctx_t *c) {
  static const char *const words[] = {"sum", "mean", "max", "min", "prod"};
  rk_array_t x, lengths, y;
  int64_t axis = rk_int(c, 5, 0), outer = 1, inner = 1, size, segments, sizes[AOT_MAX_RANK];
  int how = -1, by_offsets = !rk_has(c, 2);
  for (int w = 0; w < 5; w++)
    if (rk_str_is(c, 1, words[w])) how = w;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_need_i(c, by_offsets ? 4 : 2, &lengths));
  RK_CHECK(c, how >= 0 && axis >= 0 && axis < x.rank && lengths.rank == axis + 1, "reduction or lengths do not fit");
  size = x.sizes[axis];
  segments = lengths.sizes[axis] - by_offsets;
  for (int32_t d = 0; d < x.rank; d++) {
    if (d < axis) outer *= x.sizes[d];
    if (d > axis) inner *= x.sizes[d];
  }
  RK_CHECK(c, segments >= 0 && lengths.numel == outer * (segments + by_offsets), "the lengths do not fit the data");
  memcpy(sizes, x.sizes, sizeof sizes);
  sizes[axis] = segments;
  AOT_TRY(rk_new_f(c, x.rank, sizes, &y));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t s = 0, begin = 0; s < segments; s++) {
      const int64_t *row = lengths.i + o * (segments + by_offsets);
      int64_t end;
      if (by_offsets) begin = row[s];
      end = by_offsets ? row[s + 1] : begin + row[s];
      RK_CHECK(c, begin >= 0 && end >= begin && end <= size, "segment %lld spans %lld to %lld of %lld", (long long)s,
               (long long)begin, (long long)end, (long long)size);
      for (int64_t i = 0; i < inner; i++) {
        double v = rk_float(c, 7, how == 2 ? -INFINITY : how == 3 ? INFINITY : how == 4 ? 1 : 0);
        for (int64_t k = begin; k < end; k++) {
          double e = x.f[(o * size + k) * inner + i];
          if (how <= 1) v += e;
          else if (how == 4) v *= e;
          else if (v == v) v = e != e ? e : how == 2 ? fmax(v, e) : fmin(v, e);
        }
        if (how == 1 && end > begin) v /= (double)(end - begin);
        if (how == 1 && end == begin && !rk_has(c, 7)) v = NAN;
        y.f[(o * segments + s) * inner + i] = v;
      }
      begin = end;
    }
  return rk_put_f(c, 0, &y);
}

/* ---- distinct values ---- */

/* Slices along a dimension compared element by element; a flat tensor has slices of one element. */
typedef struct slices {
  rk_array_t x;
  int64_t n, outer, inner;
  int32_t dim;
  int flat; /* no dimension was named */
} slices_t;

static int compare_slices(const slices_t *s, int64_t a, int64_t b) {
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t i = 0; i < s->inner; i++) {
      int64_t pa = (o * s->n + a) * s->inner + i, pb = (o * s->n + b) * s->inner + i;
      if (s->x.i && s->x.i[pa] != s->x.i[pb]) return s->x.i[pa] < s->x.i[pb] ? -1 : 1;
      if (s->x.f && s->x.f[pa] != s->x.f[pb]) return s->x.f[pa] < s->x.f[pb] || s->x.f[pb] != s->x.f[pb] ? -1 : 1;
    }
  return 0;
}

static aot_status_t read_slices(rk_ctx_t *c, int dim_arg, slices_t *s) {
  AOT_TRY(rk_need_any(c, 0, &s->x));
  s->flat = dim_arg < 0 || !rk_has(c, (uint32_t)dim_arg);
  s->n = s->x.numel;
  s->outer = s->inner = 1;
  if (s->flat) return AOT_OK;
  AOT_TRY(rk_dim(c, rk_int(c, (uint32_t)dim_arg, 0), s->x.rank, &s->dim));
  rk_around(&s->x, s->dim, &s->outer, &s->n, &s->inner);
  return AOT_OK;
}

/* order: positions so that equal slices are together. Results: the distinct ones, where each went, how many of
 * each. */
static aot_status_t put_distinct(rk_ctx_t *c, const slices_t *s, const int64_t *order) {
  int64_t n = 0, *first, *inverse, *counts, sizes[AOT_MAX_RANK];
  rk_array_t y;
  RK_SCRATCH(c, s->n, first);
  RK_SCRATCH(c, s->n, inverse);
  RK_SCRATCH(c, s->n, counts);
  for (int64_t k = 0; k < s->n; k++) {
    if (k == 0 || compare_slices(s, order[k - 1], order[k]) != 0) first[n++] = order[k];
    inverse[order[k]] = n - 1;
    counts[n - 1]++;
  }
  memcpy(sizes, s->x.sizes, sizeof sizes);
  sizes[s->flat ? 0 : s->dim] = n;
  AOT_TRY(rk_new_like(c, &s->x, s->flat ? 1 : s->x.rank, sizes, &y));
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t k = 0; k < n; k++)
      for (int64_t i = 0; i < s->inner; i++)
        rk_set_element(&y, (o * n + k) * s->inner + i, &s->x, (o * s->n + first[k]) * s->inner + i);
  if (wants_numel(c, 1, s->n)) put_ints(c, 1, inverse);
  if (wants_numel(c, 2, n)) put_ints(c, 2, counts);
  return rk_put_any(c, 0, &y);
}

static aot_status_t unique_of(rk_ctx_t *c, int dim_arg, int consecutive) {
  slices_t s = {0};
  int64_t *order, *spare;
  AOT_TRY(read_slices(c, dim_arg, &s));
  RK_SCRATCH(c, s.n, order);
  RK_SCRATCH(c, s.n, spare);
  for (int64_t k = 0; k < s.n; k++) order[k] = k;
  for (int64_t width = 1; !consecutive && width < s.n; width *= 2) { /* merge sort, as in kernels_sort.c */
    for (int64_t start = 0; start < s.n; start += 2 * width) {
      int64_t middle = start + width < s.n ? start + width : s.n,
              end = start + 2 * width < s.n ? start + 2 * width : s.n, a = start, b = middle;
      for (int64_t k = start; k < end; k++) {
        int take_b = b < end && (a >= middle || compare_slices(&s, order[b], order[a]) < 0);
        spare[k] = order[take_b ? b++ : a++];
      }
    }
    memcpy(order, spare, (size_t)s.n * sizeof *order);
  }
  return put_distinct(c, &s, order);
}
static aot_status_t unique2(rk_ctx_t *c) { return unique_of(c, -1, 0); }
static aot_status_t unique_dim(rk_ctx_t *c) { return unique_of(c, 1, 0); }
static aot_status_t unique_consecutive(rk_ctx_t *c) { return unique_of(c, 3, 1); }

/* ---- chunks ---- */

/* _chunk_cat(tensors, dim, num_chunks): each tensor, padded to a multiple of num_chunks along dim, gives chunk j its
 * flattened j-th part; the parts of all tensors stand side by side */
static aot_status_t chunk_cat(rk_ctx_t *c) {
  const rk_tensor_t *const *list;
  rk_array_t y = {0}, x;
  uint32_t n;
  int32_t dim = 0;
  int64_t chunks = rk_int(c, 2, 1), total = 0, at = 0, outer = 1, sizes[AOT_MAX_RANK];
  AOT_TRY(rk_tensors_of(c, 0, &list, &n));
  RK_CHECK(c, n > 0 && list[0] && chunks > 0, "there are no tensors");
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), list[0]->rank, &dim));
  for (int pass = 0; pass < 2; pass++) {
    for (uint32_t k = 0; k < n; k++) {
      int64_t own_outer, size, inner, part;
      RK_CHECK(c, list[k] && list[k]->rank > dim, "tensor %u does not fit", k);
      AOT_TRY(rk_dense_any(c, list[k], &x));
      rk_around(&x, dim, &own_outer, &size, &inner);
      part = (size + chunks - 1) / chunks * inner;
      RK_CHECK(c, k == 0 || own_outer == outer, "tensor %u has other leading dimensions", k);
      outer = own_outer;
      if (pass == 0) total += part;
      for (int64_t o = 0; pass == 1 && o < outer; o++)
        for (int64_t e = 0; e < size * inner; e++)
          rk_set_element(&y, (o * chunks + e / part) * total + at + e % part, &x, o * size * inner + e);
      at += pass * part;
    }
    if (pass == 1) break;
    memcpy(sizes, list[0]->sizes, sizeof sizes);
    sizes[dim] = chunks;
    sizes[dim + 1] = total;
    AOT_TRY(rk_new_like(c, &x, dim + 2, sizes, &y));
  }
  return rk_put_any(c, 0, &y);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("_embedding_bag.default", embedding_bag),
    ROW("embedding_bag.default", embedding_bag),
    ROW("embedding_bag.padding_idx", embedding_bag_padded),
    ROW("_embedding_bag_forward_only.default", embedding_bag),
    ROW("segment_reduce.default", segment_reduce),
    ROW("_unique2.default", unique2),
    ROW("unique_dim.default", unique_dim),
    ROW("unique_consecutive.default", unique_consecutive),
    ROW("_chunk_cat.default", chunk_cat),
};
const rk_family_t rk_family_groups = RK_FAMILY(rows);
