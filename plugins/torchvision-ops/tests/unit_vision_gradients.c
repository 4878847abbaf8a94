/* Every backward is the derivative of its forward, by central differences in double; suppression against a small
 * case by hand. */
#include "deform_conv.h"
#include "nms.h"
#include "roi_align.h"
#include "roi_pool.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_INPUT = 2 * 4 * 6 * 7, N_OUTPUT = 1024, N_REGIONS = 5 };

static uint64_t state = 1;
static double uniform(void) { /* in [0, 1) */
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 11) / 9007199254740992.0;
}
static void fill(double *x, int n, double low, double high) {
  for (int i = 0; i < n; i++) x[i] = low + (high - low) * uniform();
}

/* f: numbers to numbers; pull: adds the transposed derivative times w. Holds for every element of x. */
typedef struct function {
  void (*f)(const void *self, const double *x, double *y);
  void (*pull)(const void *self, const double *x, const double *w, double *out);
  const void *self;
  int n, m;
} function_t;

static double weighted(const function_t *t, const double *x, const double *w) {
  double y[N_OUTPUT] = {0}, sum = 0;
  t->f(t->self, x, y);
  for (int i = 0; i < t->m; i++) sum += w[i] * y[i];
  return sum;
}

static void check(const function_t *t, double *x) {
  double w[N_OUTPUT], given[N_INPUT * 2] = {0};
  const double step = 1e-5;
  assert_true(t->m <= N_OUTPUT && t->n <= 2 * N_INPUT);
  fill(w, t->m, -1, 1);
  t->pull(t->self, x, w, given);
  double largest = 0;
  for (int i = 0; i < t->n; i++) {
    const double at = x[i];
    x[i] = at + step;
    const double above = weighted(t, x, w);
    x[i] = at - step;
    const double below = weighted(t, x, w);
    x[i] = at;
    assert_true(fabs((above - below) / (2 * step) - given[i]) < 1e-6);
    largest = fmax(largest, fabs(given[i]));
  }
  assert_true(largest > 0.01);
}

/* ---- regions ---- */

static const double REGIONS[N_REGIONS * 5] = {0, 1.3, 0.7, 9.1, 8.2, 1,   -3.1, 2.2, 4.9, 13.7, 0,  5, 5,
                                              5, 5,   1,   8.3, 6.1, 2.2, 3.3,  1,   0,   0,    13, 11};
static tv_regions_t grid(void) {
  return (tv_regions_t){
      .regions = REGIONS,
      .n_regions = N_REGIONS,
      .batch = 2,
      .channels = 4,
      .height = 6,
      .width = 7,
      .bins_y = 2,
      .bins_x = 2,
      .scale = 0.5,
  };
}

static void align(const void *self, const double *x, double *y) { tv_roi_align(self, x, y); }
static void align_pull(const void *self, const double *x, const double *w, double *out) {
  (void)x;
  tv_roi_align_backward(self, w, out);
}
static void roi_align_is_differentiated(void **s) {
  (void)s;
  double x[N_INPUT];
  for (int form = 0; form < 8; form++) {
    const tv_align_t a = {
        .grid = grid(), .samples = form & 1 ? 2 : 0, .aligned = form >> 1 & 1, .by_position = form >> 2 & 1};
    fill(x, N_INPUT, -1, 1);
    check(&(function_t){align, align_pull, &a, N_INPUT, N_REGIONS * (a.by_position ? 1 : 4) * 4}, x);
  }
}

static double argmax[N_OUTPUT];
static void pool(const void *self, const double *x, double *y) { tv_roi_pool(self, x, y, argmax); }
static void pool_pull(const void *self, const double *x, const double *w, double *out) {
  double y[N_OUTPUT];
  tv_roi_pool(self, x, y, argmax);
  tv_roi_pool_backward(self, argmax, w, out);
}
static void mean(const void *self, const double *x, double *y) { tv_mean_pool(self, x, y); }
static void mean_pull(const void *self, const double *x, const double *w, double *out) {
  (void)x;
  tv_mean_pool_backward(self, w, out);
}
static void roi_pools_are_differentiated(void **s) {
  (void)s;
  double x[N_INPUT];
  const tv_regions_t r = grid();
  fill(x, N_INPUT, -1, 1);
  check(&(function_t){pool, pool_pull, &r, N_INPUT, N_REGIONS * 4 * 4}, x);
  check(&(function_t){mean, mean_pull, &r, N_INPUT, N_REGIONS * 4}, x);
}

static void bad_regions_are_found(void **s) {
  (void)s;
  double rows[2 * 5] = {0, 1, 1, 2, 2, 2, 1, 1, 2, 2};
  tv_regions_t r = grid();
  r.regions = rows;
  r.n_regions = 2;
  assert_int_equal(tv_first_bad_region(&r), 1); /* there are images 0 and 1 */
  rows[5] = 1;
  assert_int_equal(tv_first_bad_region(&r), 2);
  rows[3] = NAN;
  assert_int_equal(tv_first_bad_region(&r), 0);
}

/* ---- deformable convolution: all five operands one after another in x ---- */

enum {
  D_INPUT = 4 * 3 * 4,
  D_WEIGHT = 4 * 2 * 2 * 2,
  D_OFFSET = 2 * 2 * 4 * 2 * 3,
  D_MASK = 2 * 4 * 2 * 3,
  D_BIAS = 4,
  D_ALL = D_INPUT + D_WEIGHT + D_OFFSET + D_MASK + D_BIAS
};

static tv_deform_t deform_at(const double *x, int32_t masked) {
  return (tv_deform_t){
      .batch = 1,
      .channels = 4,
      .height = 3,
      .width = 4,
      .filters = 4,
      .kernel_y = 2,
      .kernel_x = 2,
      .out_y = 2,
      .out_x = 3,
      .stride_y = 1,
      .stride_x = 1,
      .dilation_y = 1,
      .dilation_x = 1,
      .groups = 2,
      .offset_groups = 2,
      .input = x,
      .weight = x + D_INPUT,
      .offset = x + D_INPUT + D_WEIGHT,
      .mask = masked ? x + D_INPUT + D_WEIGHT + D_OFFSET : NULL,
      .bias = x + D_ALL - D_BIAS,
  };
}
static void deform(const void *self, const double *x, double *y) {
  const tv_deform_t d = deform_at(x, *(const int32_t *)self);
  tv_deform_conv(&d, y);
}
static void deform_pull(const void *self, const double *x, const double *w, double *out) {
  const tv_deform_t d = deform_at(x, *(const int32_t *)self);
  double *mask = out + D_INPUT + D_WEIGHT + D_OFFSET;
  tv_deform_conv_backward(&d, w,
                          &(tv_deform_gradients_t){out, out + D_INPUT, out + D_INPUT + D_WEIGHT, d.mask ? mask : NULL,
                                                   out + D_ALL - D_BIAS});
}
static void deform_conv_is_differentiated(void **s) {
  (void)s;
  double x[D_ALL];
  for (int32_t masked = 0; masked < 2; masked++) {
    fill(x, D_ALL, -1, 1);
    check(&(function_t){deform, deform_pull, &masked, D_ALL, 4 * 2 * 3}, x);
  }
}

/* The second box overlaps the first by 9/11; the third overlaps the second, which is not there any more. */
static void the_best_of_overlapping_boxes_is_kept(void **s) {
  (void)s;
  const double boxes[4 * 4] = {0, 0, 10, 10, 0, 1, 10, 11, 0, 5.5, 10, 15.5, 50, 50, 60, 60}, order[4] = {3, 0, 1, 2};
  double keep[4];
  tv_nms_keep(boxes, order, 4, 0.35, 0, keep);
  assert_memory_equal(keep, ((double[]){1, 1, 0, 1}), sizeof keep);
  tv_nms_keep(boxes, order, 4, 0.9, 0, keep);
  assert_memory_equal(keep, ((double[]){1, 1, 1, 1}), sizeof keep);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(roi_align_is_differentiated),
      cmocka_unit_test(roi_pools_are_differentiated),
      cmocka_unit_test(bad_regions_are_found),
      cmocka_unit_test(deform_conv_is_differentiated),
      cmocka_unit_test(the_best_of_overlapping_boxes_is_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
