#include "roi_align.h"

#include <math.h>

/* Forward reads the input and sets the output; backward reads the output's gradient and adds to the input's. The points
 * and their weights are the same. */
typedef struct direction {
  const double *from;
  double *to;
  int32_t is_backward;
} direction_t;

static void point(const tv_corners_t *c, double share, int64_t plane, int64_t bin, const direction_t *d) {
  for (int i = 0; i < 4; i++) {
    if (d->is_backward) d->to[plane + c->at[i]] += share * c->weight[i] * d->from[bin];
    else d->to[bin] += share * c->weight[i] * d->from[plane + c->at[i]];
  }
}

static void align(const tv_align_t *a, const direction_t *d) {
  const tv_regions_t *r = &a->grid;
  const int64_t n_bins = r->bins_y * r->bins_x, channels = a->by_position ? r->channels / n_bins : r->channels;
  const double shift = a->aligned || a->by_position ? 0.5 : 0, least = a->aligned || a->by_position ? -INFINITY : 1;
  for (int64_t k = 0; k < r->n_regions; k++) {
    const tv_region_t g = tv_region_at(r, k, shift, least);
    const int64_t ny = a->samples > 0 ? a->samples : (int64_t)ceil(g.bin_height);
    const int64_t nx = a->samples > 0 ? a->samples : (int64_t)ceil(g.bin_width);
    const int64_t count = ny > 0 && nx > 0 ? ny * nx : 1;
    for (int64_t bin = 0; bin < n_bins; bin++)
      for (int64_t s = 0; ny > 0 && nx > 0 && s < ny * nx; s++) {
        const double y =
            g.y + (double)(bin / r->bins_x) * g.bin_height + ((double)(s / nx) + 0.5) * g.bin_height / (double)ny;
        const double x =
            g.x + (double)(bin % r->bins_x) * g.bin_width + ((double)(s % nx) + 0.5) * g.bin_width / (double)nx;
        const tv_corners_t corners = tv_corners_of(tv_rounded(r, y), tv_rounded(r, x), r->height, r->width);
        for (int64_t c = 0; c < channels; c++) {
          const int64_t channel = a->by_position ? c * n_bins + bin : c;
          point(&corners, 1 / (double)count, (g.image * r->channels + channel) * r->height * r->width,
                (k * channels + c) * n_bins + bin, d);
        }
      }
  }
}

void tv_roi_align(const tv_align_t *a, const double *input, double *output) {
  const int64_t n_bins = a->grid.bins_y * a->grid.bins_x,
                channels = a->by_position ? a->grid.channels / n_bins : a->grid.channels;
  for (int64_t i = 0; i < a->grid.n_regions * channels * n_bins; i++) output[i] = 0;
  align(a, &(direction_t){input, output, 0});
}

void tv_roi_align_backward(const tv_align_t *a, const double *output_gradient, double *input_gradient) {
  align(a, &(direction_t){output_gradient, input_gradient, 1});
}
