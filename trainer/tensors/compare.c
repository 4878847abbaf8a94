#include <trainer/tensors/compare.h>

#include <aot/inline.h>
#include <math.h>
#include <string.h>

/* Difference of two elements, and whether it is tolerated. */
static int close_enough(double a, double b, double rtol, double atol, double *out_difference) {
  *out_difference = 0;
  if (a == b || (isnan(a) && isnan(b))) return 1;
  if (!isfinite(a) || !isfinite(b)) {
    *out_difference = INFINITY;
    return 0;
  }
  *out_difference = fabs(a - b);
  return *out_difference <= atol + rtol * fabs(b);
}

static void compare_element(aoth_compare_t *c, int64_t index, double a, double b, int ok, double difference) {
  if (difference > c->max_abs) c->max_abs = difference;
  if (b != 0 && difference / fabs(b) > c->max_rel) c->max_rel = difference / fabs(b);
  if (ok) return;
  if (c->n_bad++ == 0) {
    c->first_bad = index;
    c->got = a;
    c->wanted = b;
  }
}

void aoth_distance(const aoth_tensor_t *a, const aoth_tensor_t *b, double *out_distance, double *out_norm) {
  const int parts = aot_dtype_is_complex(a->dtype) && aot_dtype_is_complex(b->dtype) ? 2 : 1;
  const int32_t da = aot_dtype_part(a->dtype), db = aot_dtype_part(b->dtype);
  double distance = 0, norm = 0;
  aoth_walk_t w;
  for (aoth_walk_begin(&w, a, b); w.left > 0; aoth_walk_next(&w)) {
    for (int k = 0; k < parts; k++) {
      const double x = kit_element_load(da, w.at[0] + (size_t)k * aot_dtype_size(da));
      const double y = kit_element_load(db, w.at[1] + (size_t)k * aot_dtype_size(db));
      if (!isfinite(x) || !isfinite(y)) continue;
      distance += (x - y) * (x - y);
      norm += y * y;
    }
  }
  *out_distance = sqrt(distance);
  *out_norm = sqrt(norm);
}

aoth_compare_t aoth_compare_tensors(const aoth_tensor_t *got, const aoth_tensor_t *wanted, double rtol, double atol) {
  aoth_compare_t c = {.first_bad = -1};
  int32_t dtype = wanted->dtype;
  size_t size = (size_t)aot_dtype_size(dtype), part = aot_dtype_is_complex(dtype) ? size / 2 : size;
  int exact = !aot_dtype_is_float(dtype) && !aot_dtype_is_complex(dtype);
  c.same_type = got->dtype == dtype && aoth_tensor_same_sizes(got, wanted);
  if (!c.same_type) return c;
  aoth_walk_t w;
  int64_t index = 0;
  for (aoth_walk_begin(&w, got, wanted); w.left > 0; aoth_walk_next(&w), index++) {
    for (size_t at = 0; at < size; at += part) { /* complex: real and imaginary part in turn */
      const char *p = w.at[0] + at, *q = w.at[1] + at;
      double a = kit_element_load(dtype, p), b = kit_element_load(dtype, q), difference;
      int ok = close_enough(a, b, exact ? 0 : rtol, exact ? 0 : atol, &difference);
      if (exact) ok = memcmp(p, q, size) == 0; /* 64-bit integers do not fit in a double */
      if (!ok && difference == 0) difference = 1;
      compare_element(&c, index, a, b, ok, difference);
    }
  }
  c.ok = c.n_bad == 0;
  double distance, norm;
  aoth_distance(got, wanted, &distance, &norm);
  c.rel_l2 = distance == 0 ? 0 : distance / norm;
  return c;
}

double aoth_tensor_largest(const aoth_tensor_t *t) {
  const int32_t part = aot_dtype_is_complex(t->dtype) ? aot_dtype_part(t->dtype) : t->dtype;
  double most = 0;
  aoth_walk_t w;
  for (aoth_walk_begin(&w, t, NULL); w.left > 0; aoth_walk_next(&w)) {
    const double d = fabs(kit_element_load(part, w.at[0]));
    if (isfinite(d) && d > most) most = d;
  }
  return most;
}

double aoth_usual_tolerance(int32_t dtype, int is_gradient) {
  if (dtype == AOT_BF16) return 2e-2;
  if (dtype == AOT_F16) return 2e-3;
  if (dtype == AOT_F64) return 1e-9;
  return is_gradient ? 1e-4 : 1e-5;
}
