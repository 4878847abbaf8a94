/* Reading by index: gather, index_select, index.Tensor, embedding, take, masks, and lookups in sorted data. An index
 * out of range is an error that names the operator, the index and the bound; nothing is clamped unless the operator
 * says so. */
#include "rk_indexing.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* A 0-dim tensor indexes like one of one element. */
static void at_least_1d(rk_array_t *a) {
  if (a->rank) return;
  a->rank = 1;
  a->sizes[0] = 1;
}

static aot_status_t put_shaped(rk_ctx_t *c, rk_array_t *a, int32_t rank, const int64_t *sizes) {
  a->rank = rank;
  memcpy(a->sizes, sizes, (size_t)rank * sizeof *sizes);
  return rk_put_any(c, 0, a);
}

/* gather(self, dim, index) */
static aot_status_t gather(rk_ctx_t *c) {
  rk_array_t x, index, y;
  int64_t at[AOT_MAX_RANK] = {0}, from[AOT_MAX_RANK], shape[AOT_MAX_RANK];
  int32_t dim, rank;
  AOT_TRY(rk_need_any(c, 0, &x));
  AOT_TRY(rk_need_i(c, 2, &index));
  rank = index.rank;
  memcpy(shape, index.sizes, sizeof shape);
  at_least_1d(&x);
  at_least_1d(&index);
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), x.rank, &dim));
  RK_CHECK(c, index.numel == 0 || index.rank == x.rank, "index has rank %d, self %d", index.rank, x.rank);
  for (int32_t d = 0; d < x.rank && index.numel; d++)
    RK_CHECK(c, d == dim || index.sizes[d] <= x.sizes[d], "index size %lld exceeds %lld at dimension %d",
             (long long)index.sizes[d], (long long)x.sizes[d], d);
  AOT_TRY(rk_new_like(c, &x, index.rank, index.sizes, &y));
  for (int64_t e = 0; e < index.numel; e++, rk_advance(at, index.rank, index.sizes)) {
    memcpy(from, at, sizeof from);
    AOT_TRY(rk_check_index(c, index.i[e], x.sizes[dim], dim, 0, &from[dim]));
    rk_set_element(&y, e, &x, rk_flat(from, x.rank, x.sizes));
  }
  return put_shaped(c, &y, rank, shape);
}

/* Rows of x along dim named by index, to result 0: dim is replaced by the index's shape. */
static aot_status_t take_rows(rk_ctx_t *c, rk_array_t *x, int32_t dim, const rk_array_t *index, int wrap,
                              int32_t result_rank, const int64_t *result_sizes) {
  rk_array_t y;
  int64_t outer, size, inner, sizes[2] = {0, 0};
  rk_around(x, dim, &outer, &size, &inner);
  RK_CHECK(c, !__builtin_mul_overflow(outer * inner, index->numel, &sizes[0]), "the result is too large");
  AOT_TRY(rk_new_like(c, x, 1, sizes, &y));
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < index->numel; k++) {
      int64_t row;
      AOT_TRY(rk_check_index(c, index->i[k], size, dim, wrap, &row));
      for (int64_t i = 0; i < inner; i++)
        rk_set_element(&y, (o * index->numel + k) * inner + i, x, (o * size + row) * inner + i);
    }
  return put_shaped(c, &y, result_rank, result_sizes);
}

/* index_select(self, dim, index) */
static aot_status_t index_select(rk_ctx_t *c) {
  rk_array_t x, index;
  int32_t dim, rank;
  int64_t sizes[AOT_MAX_RANK];
  AOT_TRY(rk_need_any(c, 0, &x));
  AOT_TRY(rk_need_i(c, 2, &index));
  RK_CHECK(c, index.rank <= 1, "index has rank %d", index.rank);
  AOT_TRY(rk_dim(c, rk_int(c, 1, 0), x.rank, &dim));
  rank = x.rank;
  memcpy(sizes, x.sizes, sizeof sizes);
  if (rank) sizes[dim] = index.numel;
  else RK_CHECK(c, index.numel == 1, "%lld places of a single element are asked for", (long long)index.numel);
  return take_rows(c, &x, dim, &index, 0, rank, sizes);
}

/* embedding(weight, indices, ..) */
static aot_status_t embedding(rk_ctx_t *c) {
  rk_array_t w, index;
  int64_t sizes[AOT_MAX_RANK];
  int32_t rank;
  AOT_TRY(rk_need_any(c, 0, &w));
  AOT_TRY(rk_need_i(c, 1, &index));
  RK_CHECK(c, w.rank == 2 && index.rank < AOT_MAX_RANK, "weight has rank %d, not 2", w.rank);
  rank = index.rank + 1;
  memcpy(sizes, index.sizes, sizeof sizes);
  sizes[index.rank] = w.sizes[1];
  return take_rows(c, &w, 0, &index, 0, rank, sizes);
}

/* take(self, index): self is flat */
static aot_status_t take(rk_ctx_t *c) {
  rk_array_t x, index;
  AOT_TRY(rk_need_any(c, 0, &x));
  AOT_TRY(rk_need_i(c, 1, &index));
  x.rank = 1;
  x.sizes[0] = x.numel;
  return take_rows(c, &x, 0, &index, 1, index.rank, index.sizes);
}

/* index.Tensor(self, indices) */
static aot_status_t index_tensor(rk_ctx_t *c) {
  rk_array_t x, y;
  rk_places_t p;
  AOT_TRY(rk_need_any(c, 0, &x));
  AOT_TRY(rk_places_of(c, &x, 1, 0, &p));
  AOT_TRY(rk_new_like(c, &x, p.rank, p.sizes, &y));
  for (int64_t e = 0; e < p.numel; e++) rk_set_element(&y, e, &x, p.at[e]);
  return rk_put_any(c, 0, &y);
}

/* _unsafe_masked_index(self, mask, indices, fill) */
static aot_status_t masked_index(rk_ctx_t *c) {
  const rk_tensor_t *mask;
  rk_array_t x, y, m, fill;
  rk_places_t p;
  AOT_TRY(rk_need_any(c, 0, &x));
  AOT_TRY(rk_need_tensor(c, 1, &mask));
  AOT_TRY(rk_need_any(c, 3, &fill));
  if (x.numel == 0) {
    rk_tensor_t *r = rk_result(c, 0);
    if (fill.f) rk_fill_f(r, fill.f[0]);
    else rk_fill_i(r, fill.i[0]);
    return AOT_OK;
  }
  AOT_TRY(rk_places_of(c, &x, 2, 1, &p));
  AOT_TRY(rk_dense_expanded(c, mask, p.rank, p.sizes, &m));
  AOT_TRY(rk_new_like(c, &x, p.rank, p.sizes, &y));
  for (int64_t e = 0; e < p.numel; e++) {
    int on = m.i ? m.i[e] != 0 : m.f[e] != 0;
    rk_set_element(&y, e, on ? &x : &fill, on ? p.at[e] : 0);
  }
  return rk_put_any(c, 0, &y);
}

/* masked_select(self, mask): as many elements as the mask selects */
static aot_status_t masked_select(rk_ctx_t *c) {
  const rk_tensor_t *self, *mask;
  rk_array_t x, m, y;
  int64_t sizes[AOT_MAX_RANK], n = 0;
  int32_t rank;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  AOT_TRY(rk_need_tensor(c, 1, &mask));
  rank = self->rank > mask->rank ? self->rank : mask->rank;
  for (int32_t d = 0; d < rank; d++) {
    int64_t a = d < rank - self->rank ? 1 : self->sizes[d - (rank - self->rank)],
            b = d < rank - mask->rank ? 1 : mask->sizes[d - (rank - mask->rank)];
    sizes[d] = a == 1 ? b : a;
  }
  AOT_TRY(rk_dense_expanded(c, self, rank, sizes, &x));
  AOT_TRY(rk_dense_expanded(c, mask, rank, sizes, &m));
  for (int64_t e = 0; e < m.numel; e++) n += m.i[e] != 0;
  AOT_TRY(rk_new_like(c, &x, 1, &n, &y));
  n = 0;
  for (int64_t e = 0; e < m.numel; e++)
    if (m.i[e]) rk_set_element(&y, n++, &x, e);
  return rk_put_any(c, 0, &y);
}

/* nonzero(self) -> [n, rank]; nonzero_static(self, *, size, fill_value) -> [size, rank] */
static aot_status_t nonzero_rows(rk_ctx_t *c, int64_t limit, int64_t fill) {
  rk_array_t x, y;
  int64_t n = 0, index[AOT_MAX_RANK] = {0}, sizes[2];
  AOT_TRY(rk_need_f(c, 0, &x));
  for (int64_t e = 0; e < x.numel; e++) n += x.f[e] != 0;
  sizes[0] = limit >= 0 ? limit : n;
  sizes[1] = x.rank;
  AOT_TRY(rk_new_i(c, 2, sizes, &y));
  for (int64_t k = 0; k < y.numel; k++) y.i[k] = fill;
  n = 0;
  for (int64_t e = 0; e < x.numel && n < sizes[0]; e++, rk_advance(index, x.rank, x.sizes)) {
    if (x.f[e] == 0) continue;
    for (int32_t d = 0; d < x.rank; d++) y.i[n * x.rank + d] = index[d];
    n++;
  }
  return rk_put_i(c, 0, &y);
}
static aot_status_t nonzero(rk_ctx_t *c) { return nonzero_rows(c, -1, 0); }
static aot_status_t nonzero_static(rk_ctx_t *c) { return nonzero_rows(c, rk_int(c, 1, 0), rk_int(c, 2, -1)); }

/* isin(elements, test_elements, *, assume_unique, invert) */
static aot_status_t isin(rk_ctx_t *c) {
  rk_array_t x, t, y;
  int invert = rk_bool(c, 3, 0);
  AOT_TRY(rk_need_any(c, 0, &x));
  AOT_TRY(rk_need_any(c, 1, &t));
  AOT_TRY(rk_new_i(c, x.rank, x.sizes, &y));
  for (int64_t e = 0; e < x.numel; e++) {
    int found = 0;
    for (int64_t k = 0; k < t.numel && !found; k++) {
      if (x.i && t.i) found = x.i[e] == t.i[k];
      else found = (x.f ? x.f[e] : (double)x.i[e]) == (t.f ? t.f[k] : (double)t.i[k]);
    }
    y.i[e] = found != invert;
  }
  return rk_put_i(c, 0, &y);
}

/* How many of the n sorted numbers come before v; right: those equal to v too. NaN sorts last. */
static int64_t lower_bound(const double *sorted, const int64_t *order, int64_t n, double v, int right) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    double s = sorted[order ? order[middle] : middle];
    int before = right ? !(s > v) && (s == s || v != v) : !(s >= v) && s == s;
    if (v != v && s == s) before = 1;
    if (before) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* bucketize(self, boundaries, *, out_int32, right) */
static aot_status_t bucketize(rk_ctx_t *c) {
  rk_array_t x, b, y;
  AOT_TRY(rk_need_f(c, 0, &x));
  AOT_TRY(rk_need_f(c, 1, &b));
  AOT_TRY(rk_new_i(c, x.rank, x.sizes, &y));
  for (int64_t e = 0; e < x.numel; e++) y.i[e] = lower_bound(b.f, NULL, b.numel, x.f[e], rk_bool(c, 3, 0));
  return rk_put_i(c, 0, &y);
}

/* searchsorted(sorted_sequence, self, *, out_int32, right, side, sorter): 1-d sequence for all, or one a row */
static aot_status_t searchsorted(rk_ctx_t *c) {
  rk_array_t s, x, order, y;
  int right = rk_bool(c, 3, 0) || rk_str_is(c, 4, "right");
  int64_t n, per_row;
  AOT_TRY(rk_need_f(c, 0, &s));
  AOT_TRY(rk_need_f(c, 1, &x));
  AOT_TRY(rk_get_i(c, 5, &order));
  RK_CHECK(c, s.rank >= 1 && (s.rank == 1 || s.rank == x.rank), "the sequence has rank %d, the values %d", s.rank,
           x.rank);
  RK_CHECK(c, !order.i || order.numel == s.numel, "the sorter does not fit");
  n = s.sizes[s.rank - 1];
  per_row = s.rank == 1 ? x.numel : x.sizes[x.rank - 1];
  RK_CHECK(c, per_row == 0 || s.rank == 1 || s.numel / (n ? n : 1) == x.numel / per_row,
           "rows of sequence and values differ");
  for (int64_t k = 0; order.i && k < order.numel; k++)
    AOT_TRY(rk_check_index(c, order.i[k], n, s.rank - 1, 0, &order.i[k]));
  AOT_TRY(rk_new_i(c, x.rank, x.sizes, &y));
  for (int64_t e = 0; e < x.numel; e++) {
    int64_t row = s.rank == 1 ? 0 : e / per_row;
    y.i[e] = lower_bound(s.f + row * n, order.i ? order.i + row * n : NULL, n, x.f[e], right);
  }
  return rk_put_i(c, 0, &y);
}

/* repeat_interleave.Tensor(repeats): row numbers, each as often as it says */
static aot_status_t repeat_rows(rk_ctx_t *c) {
  rk_array_t r, y;
  int64_t total = 0, n = 0;
  AOT_TRY(rk_need_i(c, 0, &r));
  for (int64_t k = 0; k < r.numel; k++) {
    RK_CHECK(c, r.i[k] >= 0 && !__builtin_add_overflow(total, r.i[k], &total), "repeat count %lld is not possible",
             (long long)r.i[k]);
  }
  AOT_TRY(rk_new_i(c, 1, &total, &y));
  for (int64_t k = 0; k < r.numel; k++)
    for (int64_t t = 0; t < r.i[k]; t++) y.i[n++] = k;
  return rk_put_i(c, 0, &y);
}

/* repeat_interleave.self_int(self, repeats, dim?), .self_Tensor */
static aot_status_t repeat_interleave(rk_ctx_t *c) {
  rk_array_t x, r, rows_wanted;
  int32_t dim = 0, rank;
  int64_t total = 0, n = 0, sizes[AOT_MAX_RANK], length;
  AOT_TRY(rk_need_any(c, 0, &x));
  AOT_TRY(rk_need_i(c, 1, &r));
  if (!rk_has(c, 2)) {
    x.rank = 1;
    x.sizes[0] = x.numel;
  } else {
    AOT_TRY(rk_dim(c, rk_int(c, 2, 0), x.rank, &dim));
  }
  at_least_1d(&x);
  length = x.sizes[dim];
  RK_CHECK(c, r.numel == 1 || r.numel == length, "%lld counts for %lld rows", (long long)r.numel, (long long)length);
  for (int64_t k = 0; k < length; k++) {
    int64_t times = r.i[r.numel == 1 ? 0 : k];
    RK_CHECK(c, times >= 0 && !__builtin_add_overflow(total, times, &total), "repeat count %lld is not possible",
             (long long)times);
  }
  AOT_TRY(rk_new_i(c, 1, &total, &rows_wanted));
  for (int64_t k = 0; k < length; k++)
    for (int64_t t = 0; t < r.i[r.numel == 1 ? 0 : k]; t++) rows_wanted.i[n++] = k;
  rank = x.rank;
  memcpy(sizes, x.sizes, sizeof sizes);
  sizes[dim] = total;
  return take_rows(c, &x, dim, &rows_wanted, 0, rank, sizes);
}

/* bincount(self, weights?, minlength) */
static aot_status_t bincount(rk_ctx_t *c) {
  rk_array_t x, w, y;
  int64_t n = rk_int(c, 2, 0);
  AOT_TRY(rk_need_i(c, 0, &x));
  AOT_TRY(rk_get_f(c, 1, &w));
  RK_CHECK(c, !w.f || w.numel == x.numel, "%lld weights for %lld numbers", (long long)w.numel, (long long)x.numel);
  for (int64_t e = 0; e < x.numel; e++) {
    RK_CHECK(c, x.i[e] >= 0 && x.i[e] < INT64_MAX, "number %lld is negative", (long long)x.i[e]);
    if (x.i[e] >= n) n = x.i[e] + 1;
  }
  const int is_sum = w.f && x.numel;
  AOT_TRY(is_sum ? rk_new_f(c, 1, &n, &y) : rk_new_i(c, 1, &n, &y));
  for (int64_t e = 0; e < x.numel; e++) {
    if (is_sum) y.f[x.i[e]] += w.f[e];
    else y.i[x.i[e]]++;
  }
  return rk_put_any(c, 0, &y);
}

/* histc(self, bins, min, max): equal bins; min = max means the data's range */
static aot_status_t histc(rk_ctx_t *c) {
  rk_array_t x, y;
  int64_t bins = rk_int(c, 1, 100);
  double low = rk_float(c, 2, 0), high = rk_float(c, 3, 0);
  AOT_TRY(rk_need_f(c, 0, &x));
  RK_CHECK(c, bins > 0, "%lld bins are not possible", (long long)bins);
  if (low == high && x.numel) {
    low = high = x.f[0];
    for (int64_t e = 0; e < x.numel; e++) {
      low = fmin(low, x.f[e]);
      high = fmax(high, x.f[e]);
    }
  }
  if (low == high) {
    low = rk_round_to(low - 1, x.dtype);
    high = rk_round_to(high + 1, x.dtype);
  }
  AOT_TRY(rk_new_f(c, 1, &bins, &y));
  for (int64_t e = 0; e < x.numel; e++) {
    int64_t bin;
    if (!(x.f[e] >= low && x.f[e] <= high)) continue;
    bin = (int64_t)((x.f[e] - low) / (high - low) * (double)bins);
    y.f[bin >= bins ? bins - 1 : bin]++;
  }
  return rk_put_f(c, 0, &y);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
#define OPEN(name, fn)                                                                                                 \
  { "aten." name, fn, NULL, NULL, RK_OPEN }
static const rk_kernel_t rows[] = {
    ROW("gather.default", gather),
    ROW("index_select.default", index_select),
    ROW("embedding.default", embedding),
    ROW("take.default", take),
    OPEN("index.Tensor", index_tensor),
    OPEN("_unsafe_index.Tensor", index_tensor),
    ROW("_unsafe_masked_index.default", masked_index),
    OPEN("masked_select.default", masked_select),
    OPEN("nonzero.default", nonzero),
    OPEN("argwhere.default", nonzero),
    ROW("nonzero_static.default", nonzero_static),
    ROW("isin.Tensor_Tensor", isin),
    ROW("isin.Tensor_Scalar", isin),
    ROW("isin.Scalar_Tensor", isin),
    ROW("bucketize.Tensor", bucketize),
    ROW("searchsorted.Tensor", searchsorted),
    OPEN("repeat_interleave.Tensor", repeat_rows),
    OPEN("repeat_interleave.self_int", repeat_interleave),
    OPEN("repeat_interleave.self_Tensor", repeat_interleave),
    OPEN("bincount.default", bincount),
    ROW("histc.default", histc),
};
const rk_family_t rk_family_index = RK_FAMILY(rows);
