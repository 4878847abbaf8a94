/* A region of interest cut into bins, as all operators over regions do it. Coordinates are rounded to the precision of
 * the tensors at every step, so that float32 regions fall into the bins that PyTorch's float32 arithmetic gives
 * them. */
#ifndef TV_REGION_GRID_H
#define TV_REGION_GRID_H

#include <stdint.h>

/* Shapes of one call. Tensors are dense: input [batch, channels, height, width], regions [n_regions, 5] with rows of
 * (batch index, x1, y1, x2, y2), output [n_regions, channels of the output, bins_y, bins_x]. */
typedef struct tv_regions {
  const double *regions;
  int64_t n_regions, batch, channels, height, width, bins_y, bins_x;
  double scale;
  int32_t is_single; /* coordinates are float32 numbers */
} tv_regions_t;

/* One region in input coordinates. */
typedef struct tv_region {
  int64_t image;
  double x, y, width, height, bin_width, bin_height;
} tv_region_t;

static inline double tv_rounded(const tv_regions_t *r, double x) { return r->is_single ? (double)(float)x : x; }

/* a corner further out, or NaN, is refused: bins would have more sampling points than anyone means */
#define TV_FARTHEST 1e6

/* The first region whose batch index names no image, or whose corners are too far out; n_regions: there is none. */
int64_t tv_first_bad_region(const tv_regions_t *r);
/* shift: subtracted from every corner; least: a smaller width or height becomes this. */
tv_region_t tv_region_at(const tv_regions_t *r, int64_t k, double shift, double least);
/* Corners rounded to whole numbers; a side counts `closed` more than its length. */
tv_region_t tv_whole_region_at(const tv_regions_t *r, int64_t k, int32_t closed);

/* The elements first .. end - 1 of a side of `size` that bin number `bin` of a whole region covers, none of them
 * from `limit` on. */
typedef struct tv_span {
  int64_t first, end;
} tv_span_t;
tv_span_t tv_bin_span(const tv_regions_t *r, int64_t bin, double bin_size, double start, int64_t limit);

/* Four neighbours of a point and their weights: linear interpolation in both directions. Nothing beyond one element
 * outside. */
typedef struct tv_corners {
  int64_t at[4];    /* element of a plane */
  double weight[4]; /* all 0: the point is outside */
} tv_corners_t;
tv_corners_t tv_corners_of(double y, double x, int64_t height, int64_t width);

#endif
