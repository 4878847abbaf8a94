/* Source of the geometry: torchvision's roi_align, roi_pool, ps_roi_align and ps_roi_pool (torchvision/csrc/ops/cpu),
 * whose results these are to be. */
#include "region_grid.h"

#include <math.h>

enum { BATCH, X1, Y1, X2, Y2, ROW };

int64_t tv_first_bad_region(const tv_regions_t *r) {
  for (int64_t k = 0; k < r->n_regions; k++) {
    const double *row = r->regions + k * ROW;
    if (!(row[BATCH] >= 0 && row[BATCH] < (double)r->batch)) return k;
    for (int i = X1; i < ROW; i++)
      if (!(fabs(row[i] * r->scale) <= TV_FARTHEST)) return k;
  }
  return r->n_regions;
}

tv_region_t tv_region_at(const tv_regions_t *r, int64_t k, double shift, double least) {
  const double *row = r->regions + k * ROW;
  tv_region_t g = {.image = (int64_t)row[BATCH]};
  g.x = tv_rounded(r, tv_rounded(r, row[X1] * r->scale) - shift);
  g.y = tv_rounded(r, tv_rounded(r, row[Y1] * r->scale) - shift);
  g.width = fmax(tv_rounded(r, tv_rounded(r, tv_rounded(r, row[X2] * r->scale) - shift) - g.x), least);
  g.height = fmax(tv_rounded(r, tv_rounded(r, tv_rounded(r, row[Y2] * r->scale) - shift) - g.y), least);
  g.bin_width = tv_rounded(r, g.width / (double)r->bins_x);
  g.bin_height = tv_rounded(r, g.height / (double)r->bins_y);
  return g;
}

tv_region_t tv_whole_region_at(const tv_regions_t *r, int64_t k, int32_t closed) {
  const double *row = r->regions + k * ROW;
  tv_region_t g = {.image = (int64_t)row[BATCH]};
  g.x = round(tv_rounded(r, row[X1] * r->scale));
  g.y = round(tv_rounded(r, row[Y1] * r->scale));
  g.width = fmax(round(tv_rounded(r, row[X2] * r->scale)) - g.x + closed, 1);
  g.height = fmax(round(tv_rounded(r, row[Y2] * r->scale)) - g.y + closed, 1);
  g.bin_width = tv_rounded(r, g.width / (double)r->bins_x);
  g.bin_height = tv_rounded(r, g.height / (double)r->bins_y);
  return g;
}

static int64_t clamped(double x, int64_t limit) { return x > 0 ? (x < (double)limit ? (int64_t)x : limit) : 0; }

tv_span_t tv_bin_span(const tv_regions_t *r, int64_t bin, double bin_size, double start, int64_t limit) {
  return (tv_span_t){clamped(floor(tv_rounded(r, (double)bin * bin_size)) + start, limit),
                     clamped(ceil(tv_rounded(r, (double)(bin + 1) * bin_size)) + start, limit)};
}

/* One direction: the elements below and above, and the weight of the one above. */
static void neighbours(double at, int64_t size, int64_t *low, int64_t *high, double *above) {
  if (at < 0) at = 0;
  *low = (int64_t)at;
  *high = *low + 1;
  if (*low >= size - 1) at = (double)(*low = *high = size - 1);
  *above = at - (double)*low;
}

tv_corners_t tv_corners_of(double y, double x, int64_t height, int64_t width) {
  tv_corners_t c = {.at = {0}};
  int64_t y0, y1, x0, x1;
  double fy, fx;
  if (height == 0 || width == 0 || !(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) return c;
  neighbours(y, height, &y0, &y1, &fy);
  neighbours(x, width, &x0, &x1, &fx);
  const int64_t at[4] = {y0 * width + x0, y0 * width + x1, y1 * width + x0, y1 * width + x1};
  const double weight[4] = {(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx};
  for (int i = 0; i < 4; i++) {
    c.at[i] = at[i];
    c.weight[i] = weight[i];
  }
  return c;
}
