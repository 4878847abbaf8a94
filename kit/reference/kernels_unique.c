/* Different elements, or different slices along a dimension, sorted or in runs. NaN differs from everything, NaN
 * included, and sorts last, as in PyTorch (aten/src/ATen/native/Unique.cpp). Slices are sorted by a merge sort on
 * their numbers. */
#include "rk_core.h"
#include <aot/inline.h>
#include <string.h>

typedef struct slices {
  rk_array_t x;
  int32_t dim;                /* -1: elements of the flattened tensor */
  int64_t outer, size, inner; /* slice k: elements (o, k, i) */
  int64_t *order, *spare;     /* slice numbers, equal ones together */
} slices_t;

static aot_status_t read_slices(rk_ctx_t *c, int has_dim, int64_t dim, slices_t *s) {
  AOT_TRY(rk_need_any(c, 0, &s->x));
  s->dim = -1;
  s->outer = s->inner = 1;
  s->size = s->x.numel;
  if (has_dim) {
    AOT_TRY(rk_dim(c, dim, s->x.rank, &s->dim));
    rk_around(&s->x, s->dim, &s->outer, &s->size, &s->inner);
  }
  RK_SCRATCH(c, s->size, s->order);
  RK_SCRATCH(c, s->size, s->spare);
  for (int64_t k = 0; k < s->size; k++) s->order[k] = k;
  return AOT_OK;
}

/* -1, 0, 1 by the first element that differs; two NaN: *out_nan is set, and the order is a tie. */
static int compare(const slices_t *s, int64_t a, int64_t b, int *out_nan) {
  *out_nan = 0;
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t i = 0; i < s->inner; i++) {
      int64_t pa = (o * s->size + a) * s->inner + i, pb = (o * s->size + b) * s->inner + i;
      if (s->x.i) {
        if (s->x.i[pa] != s->x.i[pb]) return s->x.i[pa] < s->x.i[pb] ? -1 : 1;
        continue;
      }
      double u = s->x.f[pa], v = s->x.f[pb];
      if (u != u && v != v) *out_nan = 1;
      else if (u != u || v != v) return u != u ? 1 : -1;
      else if (u != v) return u < v ? -1 : 1;
    }
  return 0;
}

static int differ(const slices_t *s, int64_t a, int64_t b) {
  int nan;
  return compare(s, a, b, &nan) != 0 || nan;
}

static void sort(slices_t *s) {
  for (int64_t width = 1; width < s->size; width *= 2) {
    for (int64_t start = 0; start < s->size; start += 2 * width) {
      int64_t middle = start + width < s->size ? start + width : s->size;
      int64_t end = start + 2 * width < s->size ? start + 2 * width : s->size, a = start, b = middle;
      for (int64_t k = start; k < end; k++) {
        int nan, take_b = b < end && (a >= middle || compare(s, s->order[b], s->order[a], &nan) < 0);
        s->spare[k] = s->order[take_b ? b++ : a++];
      }
    }
    memcpy(s->order, s->spare, (size_t)s->size * sizeof *s->order);
  }
}

static aot_status_t put_values(rk_ctx_t *c, const slices_t *s, const int64_t *first, int64_t n) {
  rk_array_t y;
  int64_t sizes[AOT_MAX_RANK];
  int32_t rank = s->dim < 0 || s->x.rank == 0 ? 1 : s->x.rank;
  if (rank > 1 || s->dim >= 0) memcpy(sizes, s->x.sizes, sizeof sizes);
  sizes[s->dim < 0 || s->x.rank == 0 ? 0 : s->dim] = n;
  AOT_TRY(rk_new_like(c, &s->x, rank, sizes, &y));
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t k = 0; k < n; k++)
      for (int64_t i = 0; i < s->inner; i++)
        rk_set_element(&y, (o * n + k) * s->inner + i, &s->x, (o * s->size + first[k]) * s->inner + i);
  return rk_put_any(c, 0, &y);
}

/* An array, or an empty one where it is not wanted. */
static aot_status_t put_numbers(rk_ctx_t *c, uint32_t result, rk_array_t *a, int wanted) {
  static const int64_t nothing = 0;
  rk_array_t empty;
  if (wanted) return rk_put_i(c, result, a);
  AOT_TRY(rk_new_i(c, 1, &nothing, &empty));
  return rk_put_i(c, result, &empty);
}

/* Groups of neighbours in s->order become one each. */
static aot_status_t put_groups(rk_ctx_t *c, const slices_t *s, int want_inverse, int want_counts) {
  rk_array_t inverse, counts;
  int64_t *first, n = 0;
  RK_SCRATCH(c, s->size, first);
  AOT_TRY(rk_new_i(c, s->dim < 0 ? s->x.rank : 1, s->dim < 0 ? s->x.sizes : &s->size, &inverse));
  for (int64_t k = 0; k < s->size; k++) {
    if (k == 0 || differ(s, s->order[k - 1], s->order[k])) first[n++] = s->order[k];
    inverse.i[s->order[k]] = n - 1;
  }
  AOT_TRY(rk_new_i(c, 1, &n, &counts));
  for (int64_t k = 0; k < s->size; k++) counts.i[inverse.i[k]]++;
  AOT_TRY(put_values(c, s, first, n));
  AOT_TRY(put_numbers(c, 1, &inverse, want_inverse));
  return put_numbers(c, 2, &counts, want_counts);
}

/* _unique2(self, sorted, return_inverse, return_counts): sorted in any case */
static aot_status_t unique2(rk_ctx_t *c) {
  slices_t s;
  AOT_TRY(read_slices(c, 0, 0, &s));
  sort(&s);
  return put_groups(c, &s, rk_bool(c, 2, 0), rk_bool(c, 3, 0));
}

/* unique_consecutive(self, return_inverse, return_counts, dim): along a dimension all three in any case; dimension 0 of
 * a vector counts as none, as in PyTorch */
static aot_status_t unique_consecutive(rk_ctx_t *c) {
  const rk_tensor_t *self;
  slices_t s;
  int along;
  AOT_TRY(rk_need_tensor(c, 0, &self));
  along = rk_has(c, 3) && !(self->rank == 1 && rk_int(c, 3, 0) == 0);
  AOT_TRY(read_slices(c, along, rk_int(c, 3, 0), &s));
  return put_groups(c, &s, along || rk_bool(c, 1, 0), along || rk_bool(c, 2, 0));
}

/* unique_dim(self, dim, sorted, return_inverse, return_counts): all three in any case */
static aot_status_t unique_dim(rk_ctx_t *c) {
  slices_t s;
  AOT_TRY(read_slices(c, 1, rk_int(c, 1, 0), &s));
  sort(&s);
  return put_groups(c, &s, 1, 1);
}

#define OPEN(name, fn)                                                                                                 \
  { "aten." name, fn, NULL, NULL, RK_OPEN }
static const rk_kernel_t rows[] = {
    OPEN("_unique2.default", unique2),
    OPEN("unique_consecutive.default", unique_consecutive),
    OPEN("unique_dim.default", unique_dim),
};
const rk_family_t rk_family_unique = RK_FAMILY(rows);
