#include "nms.h"

#include <math.h>

static double rounded(int32_t is_single, double x) { return is_single ? (double)(float)x : x; }

static double area_of(const double *box, int32_t is_single) {
  return rounded(is_single, rounded(is_single, box[2] - box[0]) * rounded(is_single, box[3] - box[1]));
}

/* Intersection over union. */
static double overlap(const double *a, const double *b, int32_t is_single) {
  const double width = fmax(0, rounded(is_single, fmin(a[2], b[2]) - fmax(a[0], b[0])));
  const double height = fmax(0, rounded(is_single, fmin(a[3], b[3]) - fmax(a[1], b[1])));
  const double both = rounded(is_single, width * height);
  const double either = rounded(is_single, rounded(is_single, area_of(a, is_single) + area_of(b, is_single)) - both);
  return rounded(is_single, both / either);
}

void tv_nms_keep(const double *boxes, const double *order, int64_t n, double threshold, int32_t is_single,
                 double *keep) {
  for (int64_t k = 0; k < n; k++) keep[k] = 1;
  for (int64_t k = 0; k < n; k++)
    for (int64_t later = k + 1; keep[k] != 0 && later < n; later++)
      if (keep[later] != 0 &&
          overlap(boxes + 4 * (int64_t)order[k], boxes + 4 * (int64_t)order[later], is_single) > threshold)
        keep[later] = 0;
}
