/* Order along one dimension: sort, topk, kthvalue, median, mode, running extremes. Sorting is stable; NaN is the
 * largest value, as in PyTorch. Lines are sorted by a merge sort on positions, O(n log n) a line. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>
#include <string.h>

typedef struct lines {
  rk_array_t x;
  int32_t dim;
  int64_t outer, size, inner;
  int64_t *order, *spare; /* positions of a line, sorted */
} lines_t;

static aot_status_t read_lines(rk_ctx_t *c, uint32_t dim_arg, int64_t preset, lines_t *l) {
  AOT_TRY(rk_need_any(c, 0, &l->x));
  AOT_TRY(rk_dim(c, rk_int(c, dim_arg, preset), l->x.rank, &l->dim));
  rk_around(&l->x, l->dim, &l->outer, &l->size, &l->inner);
  RK_SCRATCH(c, l->size, l->order);
  RK_SCRATCH(c, l->size, l->spare);
  return AOT_OK;
}

static int64_t place(const lines_t *l, int64_t line, int64_t k) {
  return (line / l->inner * l->size + k) * l->inner + line % l->inner;
}

/* Must element b precedes element a? Equal ones keep their order. */
static int goes_before(const lines_t *l, int64_t line, int64_t b, int64_t a, int descending) {
  int64_t pb = place(l, line, b), pa = place(l, line, a);
  if (l->x.i) return descending ? l->x.i[pb] > l->x.i[pa] : l->x.i[pb] < l->x.i[pa];
  if (descending) return l->x.f[pb] > l->x.f[pa] || (l->x.f[pb] != l->x.f[pb] && l->x.f[pa] == l->x.f[pa]);
  return l->x.f[pb] < l->x.f[pa] || (l->x.f[pa] != l->x.f[pa] && l->x.f[pb] == l->x.f[pb]);
}

/* Bottom-up merge sort of positions. */
static void sort_line(lines_t *l, int64_t line, int descending) {
  for (int64_t k = 0; k < l->size; k++) l->order[k] = k;
  for (int64_t width = 1; width < l->size; width *= 2) {
    for (int64_t start = 0; start < l->size; start += 2 * width) {
      int64_t middle = start + width < l->size ? start + width : l->size;
      int64_t end = start + 2 * width < l->size ? start + 2 * width : l->size, a = start, b = middle;
      for (int64_t k = start; k < end; k++) {
        int take_b = b < end && (a >= middle || goes_before(l, line, l->order[b], l->order[a], descending));
        l->spare[k] = l->order[take_b ? b++ : a++];
      }
    }
    memcpy(l->order, l->spare, (size_t)l->size * sizeof *l->order);
  }
}

/* The first k of every sorted line, as values and positions. */
static aot_status_t put_sorted(rk_ctx_t *c, lines_t *l, int64_t n, int descending) {
  rk_array_t v, at;
  int64_t sizes[AOT_MAX_RANK];
  lines_t out = *l;
  memcpy(sizes, l->x.sizes, sizeof sizes);
  if (l->x.rank) sizes[l->dim] = n;
  AOT_TRY(rk_new_like(c, &l->x, l->x.rank, sizes, &v));
  AOT_TRY(rk_new_i(c, l->x.rank, sizes, &at));
  out.size = n;
  for (int64_t line = 0; line < l->outer * l->inner; line++) {
    sort_line(l, line, descending);
    for (int64_t k = 0; k < n; k++) {
      rk_set_element(&v, place(&out, line, k), &l->x, place(l, line, l->order[k]));
      at.i[place(&out, line, k)] = l->order[k];
    }
  }
  AOT_TRY(rk_put_any(c, 0, &v));
  return rk_put_i(c, 1, &at);
}

/* sort(self, dim, descending), sort.stable(self, *, stable, dim, descending), argsort(self, dim, descending) */
static aot_status_t sort(rk_ctx_t *c) {
  lines_t l;
  AOT_TRY(read_lines(c, 1, -1, &l));
  return put_sorted(c, &l, l.size, rk_bool(c, 2, 0));
}
static aot_status_t sort_stable(rk_ctx_t *c) {
  lines_t l;
  AOT_TRY(read_lines(c, 2, -1, &l));
  return put_sorted(c, &l, l.size, rk_bool(c, 3, 0));
}
static aot_status_t argsort_from(rk_ctx_t *c, uint32_t dim_arg) {
  lines_t l;
  rk_array_t at;
  AOT_TRY(read_lines(c, dim_arg, -1, &l));
  AOT_TRY(rk_new_i(c, l.x.rank, l.x.sizes, &at));
  for (int64_t line = 0; line < l.outer * l.inner; line++) {
    sort_line(&l, line, rk_bool(c, dim_arg + 1, 0));
    for (int64_t k = 0; k < l.size; k++) at.i[place(&l, line, k)] = l.order[k];
  }
  return rk_put_i(c, 0, &at);
}
static aot_status_t argsort(rk_ctx_t *c) { return argsort_from(c, 1); }
static aot_status_t argsort_stable(rk_ctx_t *c) { return argsort_from(c, 2); }

/* topk(self, k, dim, largest, sorted): always sorted */
static aot_status_t topk(rk_ctx_t *c) {
  lines_t l;
  int64_t k = rk_int(c, 1, 0);
  AOT_TRY(read_lines(c, 2, -1, &l));
  RK_CHECK(c, k >= 0 && k <= l.size, "k = %lld is out of range for size %lld", (long long)k, (long long)l.size);
  return put_sorted(c, &l, k, rk_bool(c, 3, 1));
}

/* One element of every line: which(line) after sorting. keepdim drops or keeps the dimension. */
static aot_status_t put_chosen(rk_ctx_t *c, lines_t *l, const int64_t *chosen, int keepdim) {
  rk_array_t v, at;
  int64_t sizes[AOT_MAX_RANK];
  int32_t rank = 0;
  for (int32_t d = 0; d < l->x.rank; d++)
    if (d != l->dim || keepdim) sizes[rank++] = d == l->dim ? 1 : l->x.sizes[d];
  AOT_TRY(rk_new_like(c, &l->x, rank, sizes, &v));
  AOT_TRY(rk_new_i(c, rank, sizes, &at));
  for (int64_t line = 0; line < l->outer * l->inner; line++) {
    rk_set_element(&v, line, &l->x, place(l, line, chosen[line]));
    at.i[line] = chosen[line];
  }
  AOT_TRY(rk_put_any(c, 0, &v));
  return rk_put_i(c, 1, &at);
}

static int is_nan_at(const lines_t *l, int64_t line, int64_t k) {
  double v = l->x.f ? l->x.f[place(l, line, k)] : 0;
  return v != v;
}

/* kthvalue(self, k, dim, keepdim) */
static aot_status_t kthvalue(rk_ctx_t *c) {
  lines_t l;
  int64_t k = rk_int(c, 1, 1), *chosen;
  AOT_TRY(read_lines(c, 2, -1, &l));
  RK_CHECK(c, k >= 1 && k <= l.size, "k = %lld is out of range for size %lld", (long long)k, (long long)l.size);
  RK_SCRATCH(c, l.outer * l.inner, chosen);
  for (int64_t line = 0; line < l.outer * l.inner; line++) {
    sort_line(&l, line, 0);
    chosen[line] = l.order[k - 1];
  }
  return put_chosen(c, &l, chosen, rk_bool(c, 3, 0));
}

/* The lower median; a NaN is the median of a line that has one, unless they are skipped. */
static int64_t median_of(lines_t *l, int64_t line, int skip_nan) {
  int64_t n = l->size;
  sort_line(l, line, 0);
  while (n > 0 && is_nan_at(l, line, l->order[n - 1])) n--;
  if (n < l->size && !skip_nan) return l->order[n];
  return l->order[n > 0 ? (n - 1) / 2 : 0];
}

static aot_status_t median_dim_of(rk_ctx_t *c, int skip_nan) {
  lines_t l;
  int64_t *chosen;
  AOT_TRY(read_lines(c, 1, -1, &l));
  RK_CHECK(c, l.size > 0 || l.outer * l.inner == 0, "the median of nothing");
  RK_SCRATCH(c, l.outer * l.inner, chosen);
  for (int64_t line = 0; line < l.outer * l.inner; line++) chosen[line] = median_of(&l, line, skip_nan);
  return put_chosen(c, &l, chosen, rk_bool(c, 2, 0));
}
static aot_status_t median_dim(rk_ctx_t *c) { return median_dim_of(c, 0); }
static aot_status_t nanmedian_dim(rk_ctx_t *c) { return median_dim_of(c, 1); }

static aot_status_t median_all_of(rk_ctx_t *c, int skip_nan) {
  lines_t l = {0};
  rk_array_t y;
  AOT_TRY(rk_need_any(c, 0, &l.x));
  l.outer = l.inner = 1;
  l.size = l.x.numel;
  RK_SCRATCH(c, l.size, l.order);
  RK_SCRATCH(c, l.size, l.spare);
  AOT_TRY(rk_new_like(c, &l.x, 0, NULL, &y));
  if (l.size) rk_set_element(&y, 0, &l.x, median_of(&l, 0, skip_nan));
  else if (y.f) y.f[0] = NAN;
  else y.i[0] = l.x.dtype == AOT_I32 ? INT32_MIN : INT64_MIN; /* what PyTorch has: NaN cut to an integer */
  return rk_put_any(c, 0, &y);
}
static aot_status_t median_all(rk_ctx_t *c) { return median_all_of(c, 0); }
static aot_status_t nanmedian_all(rk_ctx_t *c) { return median_all_of(c, 1); }

/* mode(self, dim, keepdim): the most frequent value, the smallest of equals; its last position */
static aot_status_t mode(rk_ctx_t *c) {
  lines_t l;
  int64_t *chosen;
  AOT_TRY(read_lines(c, 1, -1, &l));
  RK_CHECK(c, l.size > 0 || l.outer * l.inner == 0, "the mode of nothing");
  RK_SCRATCH(c, l.outer * l.inner, chosen);
  for (int64_t line = 0; line < l.outer * l.inner; line++) {
    int64_t best = 0, run = 0;
    sort_line(&l, line, 0);
    for (int64_t k = 0; k < l.size; k++) {
      run = k > 0 && !goes_before(&l, line, l.order[k - 1], l.order[k], 0) ? run + 1 : 1;
      if (run > best) {
        best = run;
        chosen[line] = l.order[k];
      }
    }
  }
  return put_chosen(c, &l, chosen, rk_bool(c, 2, 0));
}

/* cummax, cummin(self, dim): the latest of equal extremes; NaN stays once met */
static aot_status_t running(rk_ctx_t *c, int maximum) {
  lines_t l;
  rk_array_t at;
  AOT_TRY(read_lines(c, 1, -1, &l));
  AOT_TRY(rk_new_i(c, l.x.rank, l.x.sizes, &at));
  for (int64_t line = 0; line < l.outer * l.inner; line++) {
    int64_t best = 0;
    for (int64_t k = 0; k < l.size; k++) {
      int worse;
      if (l.x.f && is_nan_at(&l, line, best)) worse = !is_nan_at(&l, line, k);
      else worse = !is_nan_at(&l, line, k) && goes_before(&l, line, best, k, maximum);
      if (!worse) best = k;
      l.order[k] = best;
    }
    for (int64_t k = 0; k < l.size; k++) at.i[place(&l, line, k)] = l.order[k];
    for (int64_t k = l.size - 1; k >= 0; k--)
      rk_set_element(&l.x, place(&l, line, k), &l.x, place(&l, line, l.order[k]));
  }
  AOT_TRY(rk_put_any(c, 0, &l.x));
  return rk_put_i(c, 1, &at);
}
static aot_status_t cummax(rk_ctx_t *c) { return running(c, 1); }
static aot_status_t cummin(rk_ctx_t *c) { return running(c, 0); }

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("sort.default", sort),
    ROW("sort.stable", sort_stable),
    ROW("argsort.default", argsort),
    ROW("argsort.stable", argsort_stable),
    ROW("topk.default", topk),
    ROW("kthvalue.default", kthvalue),
    ROW("median.default", median_all),
    ROW("median.dim", median_dim),
    ROW("nanmedian.default", nanmedian_all),
    ROW("nanmedian.dim", nanmedian_dim),
    ROW("mode.default", mode),
    ROW("cummax.default", cummax),
    ROW("cummin.default", cummin),
};
const rk_family_t rk_family_sort = RK_FAMILY(rows);
