#include "roi_pool.h"

#include <float.h>

void tv_roi_pool(const tv_regions_t *r, const double *input, double *output, double *argmax) {
  int64_t at = 0;
  for (int64_t k = 0; k < r->n_regions; k++) {
    const tv_region_t g = tv_whole_region_at(r, k, 1);
    for (int64_t c = 0; c < r->channels; c++) {
      const double *plane = input + (g.image * r->channels + c) * r->height * r->width;
      for (int64_t bin = 0; bin < r->bins_y * r->bins_x; bin++, at++) {
        const tv_span_t ys = tv_bin_span(r, bin / r->bins_x, g.bin_height, g.y, r->height);
        const tv_span_t xs = tv_bin_span(r, bin % r->bins_x, g.bin_width, g.x, r->width);
        output[at] = ys.end <= ys.first || xs.end <= xs.first ? 0 : -FLT_MAX; /* what PyTorch's kernel starts from */
        argmax[at] = -1;
        for (int64_t y = ys.first; y < ys.end; y++)
          for (int64_t x = xs.first; x < xs.end; x++)
            if (plane[y * r->width + x] > output[at]) {
              output[at] = plane[y * r->width + x];
              argmax[at] = (double)(y * r->width + x);
            }
      }
    }
  }
}

void tv_roi_pool_backward(const tv_regions_t *r, const double *argmax, const double *output_gradient,
                          double *input_gradient) {
  int64_t at = 0;
  for (int64_t k = 0; k < r->n_regions; k++) {
    const int64_t image = tv_whole_region_at(r, k, 1).image;
    for (int64_t c = 0; c < r->channels; c++) {
      double *plane = input_gradient + (image * r->channels + c) * r->height * r->width;
      for (int64_t bin = 0; bin < r->bins_y * r->bins_x; bin++, at++)
        if (argmax[at] >= 0 && argmax[at] < (double)(r->height * r->width))
          plane[(int64_t)argmax[at]] += output_gradient[at];
    }
  }
}

/* Both directions of the mean: forward sums the bin into its output, backward spreads the output's gradient over the
 * bin. */
static void mean_pool(const tv_regions_t *r, const double *input, double *output, const double *output_gradient,
                      double *input_gradient) {
  const int64_t n_bins = r->bins_y * r->bins_x, channels = r->channels / n_bins;
  int64_t at = 0;
  for (int64_t k = 0; k < r->n_regions; k++) {
    const tv_region_t g = tv_whole_region_at(r, k, 0);
    for (int64_t c = 0; c < channels; c++)
      for (int64_t bin = 0; bin < n_bins; bin++, at++) {
        const int64_t plane = (g.image * r->channels + c * n_bins + bin) * r->height * r->width;
        const tv_span_t ys = tv_bin_span(r, bin / r->bins_x, g.bin_height, g.y, r->height - 1);
        const tv_span_t xs = tv_bin_span(r, bin % r->bins_x, g.bin_width, g.x, r->width - 1);
        const double area = (double)((ys.end - ys.first) * (xs.end - xs.first));
        double sum = 0;
        for (int64_t y = ys.first; y < ys.end; y++)
          for (int64_t x = xs.first; x < xs.end; x++) {
            if (input_gradient) input_gradient[plane + y * r->width + x] += output_gradient[at] / area;
            else sum += input[plane + y * r->width + x];
          }
        if (output) output[at] = ys.end <= ys.first || xs.end <= xs.first ? 0 : sum / area;
      }
  }
}

void tv_mean_pool(const tv_regions_t *r, const double *input, double *output) { mean_pool(r, input, output, 0, 0); }
void tv_mean_pool_backward(const tv_regions_t *r, const double *output_gradient, double *input_gradient) {
  mean_pool(r, 0, 0, output_gradient, input_gradient);
}
