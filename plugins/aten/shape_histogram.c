/* Histograms: counts in bins, and the edges between them. Edges have one element more than there are bins. */
#include "shape_rules.h"

#include <aot/inline.h>

static int64_t checked_bins(at_infer_t *c, int64_t n) {
  if (at_at_most(c, n, 0)) at_fail(c, "%s of %lld bins", c->row->name, (long long)at_hint(c, n));
  return n;
}

static void put_line(at_infer_t *c, int32_t dtype, int64_t n) {
  int64_t *sizes = at_dims(c, 1);
  sizes[0] = n;
  at_put(c, dtype, sizes, 1);
}

void at_shape_histc(at_infer_t *c) { put_line(c, at_tensor(c, "self").dtype, checked_bins(c, at_int(c, "bins"))); }

/* histogram.bin_ct: a number of bins */
void at_shape_histogram(at_infer_t *c) {
  int32_t dtype = at_tensor(c, "self").dtype;
  int64_t n = checked_bins(c, at_int(c, "bins"));
  put_line(c, dtype, n);
  put_line(c, dtype, at_add(c, n, 1));
}

/* histogram.bins_tensor: the edges are given, and returned */
void at_shape_histogram_edges(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self"), edges = at_tensor(c, "bins");
  if (edges.rank != 1) at_fail(c, "the edges of a histogram have rank 1, not %d", (int)edges.rank);
  if (c->status != AOT_OK) return;
  put_line(c, x.dtype, checked_bins(c, at_sub(c, edges.sizes[0], 1)));
  put_line(c, x.dtype, edges.sizes[0]);
}

/* Samples are in rows of as many numbers as there are dimensions. */
static void check_samples(at_infer_t *c, const aot_type_t *x, uint32_t dims) {
  if (x->rank < 2 || dims > AOT_MAX_RANK || at_differs(c, x->sizes[x->rank - 1], dims))
    at_fail(c, "%s: the last dimension of the samples must have as many elements as there are bins lists: %u",
            c->row->name, dims);
}

void at_shape_histogramdd_edges(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  const int64_t *bins;
  uint32_t n = at_ints(c, "bins", &bins), d;
  check_samples(c, &x, n);
  for (d = 0; d < n && c->status == AOT_OK; d++) put_line(c, x.dtype, at_add(c, checked_bins(c, bins[d]), 1));
}

void at_shape_histogramdd(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  const int64_t *bins;
  uint32_t n = at_ints(c, "bins", &bins), d;
  check_samples(c, &x, n);
  for (d = 0; d < n && c->status == AOT_OK; d++) checked_bins(c, bins[d]);
  if (c->status == AOT_OK) at_put(c, x.dtype, bins, (int32_t)n);
}

void at_shape_histogramdd_tensors(at_infer_t *c) {
  aot_type_t x = at_tensor(c, "self");
  uint32_t n = at_list_size(c, "bins"), d;
  int64_t *sizes = at_dims(c, AOT_MAX_RANK);
  check_samples(c, &x, n);
  for (d = 0; d < n && c->status == AOT_OK; d++) {
    aot_type_t edges = at_list_item(c, "bins", d);
    if (edges.rank != 1) at_fail(c, "the edges of dimension %u have rank %d, not 1", d, (int)edges.rank);
    else sizes[d] = checked_bins(c, at_sub(c, edges.sizes[0], 1));
  }
  at_put(c, x.dtype, sizes, (int32_t)n);
}
