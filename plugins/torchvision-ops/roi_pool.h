/* RoI pooling over whole elements: the largest of each bin (Girshick, "Fast R-CNN", 2015, section 2.1), or,
 * position-sensitive, the mean of each bin in a channel of its own (Dai, Li, He, Sun, "R-FCN", 2016). O(regions x
 * channels x elements covered). */
#ifndef TV_ROI_POOL_H
#define TV_ROI_POOL_H

#include "region_grid.h"

/* output and argmax [n_regions, channels, bins_y, bins_x]; argmax: element of the plane, -1 where a bin is empty
 * (output 0) */
void tv_roi_pool(const tv_regions_t *r, const double *input, double *output, double *argmax);
void tv_roi_pool_backward(const tv_regions_t *r, const double *argmax, const double *output_gradient,
                          double *input_gradient);

/* output [n_regions, channels / bins, bins_y, bins_x] */
void tv_mean_pool(const tv_regions_t *r, const double *input, double *output);
void tv_mean_pool_backward(const tv_regions_t *r, const double *output_gradient, double *input_gradient);

#endif
