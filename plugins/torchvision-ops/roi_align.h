/* RoIAlign: each bin of a region is the mean of the input at sampling points, interpolated linearly. Reference: He,
 * Gkioxari, Dollár, Girshick, "Mask R-CNN" (2017), section 3. The position-sensitive form reads another channel for
 * each bin: Dai, Li, He, Sun, "R-FCN" (2016). O(regions x channels x bins x samples). */
#ifndef TV_ROI_ALIGN_H
#define TV_ROI_ALIGN_H

#include "region_grid.h"

typedef struct tv_align {
  tv_regions_t grid;
  int64_t samples; /* points a bin and direction; 0 or less: as many as the bin is long */
  int32_t aligned; /* 1: pixels are at half-integers; 0: as in the first version, where a region is at least one wide */
  int32_t by_position; /* 1: output channel c, bin (y, x) reads input channel (c * bins_y + y) * bins_x + x */
} tv_align_t;

/* output [n_regions, channels or channels / bins, bins_y, bins_x] */
void tv_roi_align(const tv_align_t *a, const double *input, double *output);
/* The transposed of that: input_gradient, of zeros at first, gets what output_gradient says. */
void tv_roi_align_backward(const tv_align_t *a, const double *output_gradient, double *input_gradient);

#endif
