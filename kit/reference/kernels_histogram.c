/* Histograms with the edges given, or equal bins between the data's extremes, in one or several dimensions.
 * A bin holds its left edge, the last one its right edge too; what is outside counts nowhere. Edges are rounded to
 * the result's dtype before elements are compared with them, as PyTorch's are. density divides by total weight and
 * volume. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>

#define HIST_DIMS 12

typedef struct histogram {
  rk_array_t x, weight;
  int64_t samples;
  int32_t dims;
  double *edges[HIST_DIMS];
  int64_t bins[HIST_DIMS];
} histogram_t;

/* Samples are rows [.., dims]; weights one a sample. */
static aot_status_t read_samples(rk_ctx_t *c, uint32_t weight_arg, int32_t dims, histogram_t *h) {
  AOT_TRY(rk_need_f(c, 0, &h->x));
  AOT_TRY(rk_get_f(c, weight_arg, &h->weight));
  RK_CHECK(c, dims >= 1 && dims <= HIST_DIMS, "%d dimensions are not supported", dims);
  h->dims = dims;
  h->samples = h->x.numel / dims;
  RK_CHECK(c, h->x.numel % dims == 0 && (!h->weight.f || h->weight.numel == h->samples),
           "samples or weights do not fit");
  return AOT_OK;
}

static aot_status_t equal_bins(rk_ctx_t *c, histogram_t *h, int32_t d, int64_t bins, const double *range) {
  double low = 0, high = 0, step;
  int32_t dtype = h->x.dtype;
  RK_CHECK(c, bins > 0, "%lld bins are not possible", (long long)bins);
  for (int64_t s = 0; s < h->samples; s++) {
    double v = h->x.f[s * h->dims + d];
    low = s == 0 ? v : fmin(low, v);
    high = s == 0 ? v : fmax(high, v);
  }
  if (range) {
    low = range[0];
    high = range[1];
  }
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  h->bins[d] = bins;
  RK_SCRATCH(c, bins + 1, h->edges[d]);
  step = (high - low) / (double)bins;
  for (int64_t k = 0; k <= bins; k++)
    h->edges[d][k] = rk_round_to(k <= bins / 2 ? low + (double)k * step : high - (double)(bins - k) * step, dtype);
  return AOT_OK;
}

static aot_status_t given_edges(rk_ctx_t *c, histogram_t *h, int32_t d, const rk_tensor_t *t) {
  rk_array_t e;
  RK_CHECK(c, t && t->rank == 1 && t->sizes[0] >= 2, "edges of dimension %d are no list of two or more", d);
  AOT_TRY(rk_dense_f(c, t, &e));
  h->edges[d] = e.f;
  h->bins[d] = e.numel - 1;
  return AOT_OK;
}

static int64_t bin_of(const double *edges, int64_t bins, double v) {
  int64_t low = 0, high = bins;
  if (!(v >= edges[0] && v <= edges[bins])) return -1;
  if (v == edges[bins]) return bins - 1;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    if (v >= edges[middle]) low = middle;
    else high = middle;
  }
  return low;
}

static aot_status_t put_counts(rk_ctx_t *c, const histogram_t *h, int density) {
  rk_array_t y;
  double total = 0;
  AOT_TRY(rk_new_f(c, h->dims, h->bins, &y));
  for (int64_t s = 0; s < h->samples; s++) {
    int64_t flat = 0, bin = 0;
    for (int32_t d = 0; d < h->dims && bin >= 0; d++) {
      bin = bin_of(h->edges[d], h->bins[d], h->x.f[s * h->dims + d]);
      flat = flat * h->bins[d] + bin;
    }
    if (bin < 0) continue;
    y.f[flat] += h->weight.f ? h->weight.f[s] : 1;
    total += h->weight.f ? h->weight.f[s] : 1;
  }
  if (density) {
    int64_t at[HIST_DIMS] = {0};
    for (int64_t e = 0; e < y.numel; e++, rk_advance(at, h->dims, h->bins)) {
      double volume = 1;
      for (int32_t d = 0; d < h->dims; d++) volume *= h->edges[d][at[d] + 1] - h->edges[d][at[d]];
      y.f[e] /= total * volume;
    }
  }
  return rk_put_f(c, 0, &y);
}

static aot_status_t put_edges(rk_ctx_t *c, uint32_t result, const histogram_t *h, int32_t d) {
  rk_array_t e = {0};
  e.rank = 1;
  e.numel = e.sizes[0] = h->bins[d] + 1;
  e.f = h->edges[d];
  return rk_put_f(c, result, &e);
}

static const double *range_of(const rk_ctx_t *c, uint32_t arg, int32_t d) {
  const rk_arg_t *a = rk_has(c, arg) ? &c->call->args[arg] : NULL;
  return a && a->kind == AOT_ARG_FLOATS && a->n >= (uint32_t)(2 * d + 2) ? a->u.floats + 2 * d : NULL;
}

/* histogram.bin_ct(self, bins, *, range, weight, density) */
static aot_status_t bin_count(rk_ctx_t *c) {
  histogram_t h = {0};
  AOT_TRY(read_samples(c, 3, 1, &h));
  AOT_TRY(equal_bins(c, &h, 0, rk_int(c, 1, 100), range_of(c, 2, 0)));
  AOT_TRY(put_edges(c, 1, &h, 0));
  return put_counts(c, &h, rk_bool(c, 4, 0));
}

/* histogram.bins_tensor(self, bins, *, weight, density) */
static aot_status_t bin_edges(rk_ctx_t *c) {
  histogram_t h = {0};
  const rk_tensor_t *edges;
  AOT_TRY(read_samples(c, 2, 1, &h));
  AOT_TRY(rk_need_tensor(c, 1, &edges));
  AOT_TRY(given_edges(c, &h, 0, edges));
  AOT_TRY(put_edges(c, 1, &h, 0));
  return put_counts(c, &h, rk_bool(c, 3, 0));
}

/* _histogramdd_bin_edges, _histogramdd_from_bin_cts(self, bins, *, range, weight, density) */
static aot_status_t many_equal(rk_ctx_t *c, int edges_only) {
  histogram_t h = {0};
  const int64_t *bins;
  uint32_t n = rk_list(c, 1, &bins);
  AOT_TRY(read_samples(c, 3, (int32_t)n, &h));
  for (uint32_t d = 0; d < n; d++) {
    AOT_TRY(equal_bins(c, &h, (int32_t)d, bins[d], range_of(c, 2, (int32_t)d)));
    if (edges_only) AOT_TRY(put_edges(c, d, &h, (int32_t)d));
  }
  return edges_only ? AOT_OK : put_counts(c, &h, rk_bool(c, 4, 0));
}
static aot_status_t many_bin_edges(rk_ctx_t *c) { return many_equal(c, 1); }
static aot_status_t many_bin_counts(rk_ctx_t *c) { return many_equal(c, 0); }

/* _histogramdd_from_bin_tensors(self, bins, *, weight, density) */
static aot_status_t many_given(rk_ctx_t *c) {
  histogram_t h = {0};
  const rk_tensor_t *const *list;
  uint32_t n;
  AOT_TRY(rk_tensors_of(c, 1, &list, &n));
  AOT_TRY(read_samples(c, 2, (int32_t)n, &h));
  for (uint32_t d = 0; d < n; d++) AOT_TRY(given_edges(c, &h, (int32_t)d, list[d]));
  return put_counts(c, &h, rk_bool(c, 3, 0));
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name, fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("histogram.bin_ct", bin_count),
    ROW("histogram.bins_tensor", bin_edges),
    ROW("_histogramdd_bin_edges.default", many_bin_edges),
    ROW("_histogramdd_from_bin_cts.default", many_bin_counts),
    ROW("_histogramdd_from_bin_tensors.default", many_given),
};
const rk_family_t rk_family_histogram = RK_FAMILY(rows);
