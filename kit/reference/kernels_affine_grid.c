/* Grids of an affine map for grid sampling (Jaderberg et al. 2015): every output place, in -1..1, sent through
 * theta. */
#include "rk_core.h"
#include <aot/inline.h>

#define GRID_DIMS 3

typedef struct affine {
  int32_t dims; /* 2 or 3 */
  int64_t samples, size[GRID_DIMS], places;
  int align;
} affine_t;

/* size is [N, C, ..dims] */
static aot_status_t read_affine(rk_ctx_t *c, affine_t *a) {
  const int64_t *size;
  const uint32_t n = rk_list(c, 1, &size);
  RK_CHECK(c, n == 4 || n == 5, "size has %u numbers, not 4 or 5", n);
  a->dims = (int32_t)n - 2;
  a->samples = size[0];
  a->places = 1;
  for (int32_t d = 0; d < a->dims; d++) a->places *= a->size[d] = size[2 + d];
  a->align = rk_bool(c, 2, 0);
  return AOT_OK;
}

/* Coordinates of a place, the last dimension first, and 1. */
static void base_of(const affine_t *a, int64_t place, double *out) {
  for (int32_t d = a->dims - 1; d >= 0; place /= a->size[d], d--) {
    const double n = (double)a->size[d], i = (double)(place % a->size[d]);
    out[a->dims - 1 - d] = n <= 1 ? 0 : a->align ? 2 * i / (n - 1) - 1 : (2 * i + 1) / n - 1;
  }
  out[a->dims] = 1;
}

/* affine_grid_generator(theta [N, dims, dims+1], size, align_corners) -> [N, ..size, dims] */
static aot_status_t affine_grid(rk_ctx_t *c) {
  affine_t a = {0};
  rk_array_t theta, y;
  double base[GRID_DIMS + 1];
  int64_t sizes[GRID_DIMS + 2];
  AOT_TRY(read_affine(c, &a));
  AOT_TRY(rk_need_f(c, 0, &theta));
  RK_CHECK(c,
           theta.rank == 3 && theta.sizes[0] == a.samples && theta.sizes[1] == a.dims && theta.sizes[2] == a.dims + 1,
           "theta does not fit size");
  sizes[0] = a.samples;
  for (int32_t d = 0; d < a.dims; d++) sizes[1 + d] = a.size[d];
  sizes[1 + a.dims] = a.dims;
  AOT_TRY(rk_new_f(c, a.dims + 2, sizes, &y));
  for (int64_t o = 0; o < a.samples * a.places; o++) {
    const double *rows = theta.f + o / a.places * a.dims * (a.dims + 1);
    base_of(&a, o % a.places, base);
    for (int32_t r = 0; r < a.dims; r++)
      for (int32_t k = 0; k <= a.dims; k++) y.f[o * a.dims + r] += rows[r * (a.dims + 1) + k] * base[k];
  }
  return rk_put_f(c, 0, &y);
}

/* affine_grid_generator_backward(grad, size, align_corners) -> [N, dims, dims+1] */
static aot_status_t affine_grid_backward(rk_ctx_t *c) {
  affine_t a = {0};
  rk_array_t g, dtheta;
  double base[GRID_DIMS + 1];
  int64_t sizes[3];
  AOT_TRY(read_affine(c, &a));
  AOT_TRY(rk_need_f(c, 0, &g));
  RK_CHECK(c, g.numel == a.samples * a.places * a.dims, "the gradient does not fit size");
  sizes[0] = a.samples;
  sizes[1] = a.dims;
  sizes[2] = a.dims + 1;
  AOT_TRY(rk_new_f(c, 3, sizes, &dtheta));
  for (int64_t o = 0; o < a.samples * a.places; o++) {
    double *rows = dtheta.f + o / a.places * a.dims * (a.dims + 1);
    base_of(&a, o % a.places, base);
    for (int32_t r = 0; r < a.dims; r++)
      for (int32_t k = 0; k <= a.dims; k++) rows[r * (a.dims + 1) + k] += g.f[o * a.dims + r] * base[k];
  }
  return rk_put_f(c, 0, &dtheta);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name ".default", fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("affine_grid_generator", affine_grid),
    ROW("affine_grid_generator_backward", affine_grid_backward),
};
const rk_family_t rk_family_affine_grid = RK_FAMILY(rows);
