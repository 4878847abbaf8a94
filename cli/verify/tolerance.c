#include <cli/verify/tolerance.h>

#include <aot/graph.h>
#include <aot/inline.h>
#include <math.h>

double aoth_rounding(int32_t dtype) {
  switch (dtype) {
    case AOT_F16: return 0x1p-10;
    case AOT_BF16: return 0x1p-7;
    /* clang-format off */
    case AOT_F32: case AOT_C64: return 0x1p-23;
    /* clang-format on */
    default: return 0x1p-52;
  }
}

static double smallest_normal(int32_t dtype) {
  return dtype == AOT_F16 ? 0x1p-14 : dtype == AOT_F64 ? 0x1p-1022 : 0x1p-126;
}

/* From |x| to the next number of the dtype. */
static double ulp(int32_t dtype, double x) {
  int exponent;
  (void)frexp(fmax(fabs(x), smallest_normal(dtype)), &exponent);
  return ldexp(aoth_rounding(dtype), exponent - 1);
}

typedef struct element {
  double got, theirs, exact;
} element_t;

/* The elements in order. */
typedef struct element_iterator {
  aoth_walk_t results, truth;
  int32_t dtype, exact_dtype;
} element_iterator_t;

static void begin(element_iterator_t *w, const aoth_tensor_t *got, const aoth_tensor_t *theirs,
                  const aoth_tensor_t *exact) {
  w->dtype = got->dtype;
  w->exact_dtype = exact->dtype;
  aoth_walk_begin(&w->results, got, theirs);
  aoth_walk_begin(&w->truth, exact, NULL);
}

static int next(element_iterator_t *w, element_t *out) {
  if (w->results.left <= 0) return 0;
  *out = (element_t){kit_element_load(w->dtype, w->results.at[0]), kit_element_load(w->dtype, w->results.at[1]),
                     kit_element_load(w->exact_dtype, w->truth.at[0])};
  aoth_walk_next(&w->results);
  aoth_walk_next(&w->truth);
  return 1;
}

static int is_finite(const element_t *e) { return isfinite(e->got) && isfinite(e->theirs) && isfinite(e->exact); }

static int same(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static double rounded(int32_t dtype, double x) {
  double bits;
  kit_element_store(dtype, &bits, x);
  return kit_element_load(dtype, &bits);
}

static int is_near(const element_t *e, int32_t dtype, double allowed) {
  if (same(e->got, e->theirs) || same(e->got, rounded(dtype, e->exact))) return 1;
  if (is_finite(e)) return fabs(e->got - e->exact) <= ulp(dtype, e->exact) + allowed;
  /* one of the two is finite, and so may ours be */
  const double other = isfinite(e->exact) ? e->exact : e->theirs;
  return isfinite(e->got) && isfinite(other) && fabs(e->got - other) <= ulp(dtype, other);
}

aoth_nearness_t aoth_nearness(const aoth_tensor_t *got, const aoth_tensor_t *theirs, const aoth_tensor_t *exact) {
  aoth_nearness_t out = {.first_bad = -1};
  double worst = 0, off = 0, theirs_off = 0, norm = 0;
  element_iterator_t w;
  element_t e;
  for (begin(&w, got, theirs, exact); next(&w, &e);) {
    if (!is_finite(&e)) continue;
    worst = fmax(worst, fabs(e.theirs - e.exact));
    off += (e.got - e.exact) * (e.got - e.exact);
    theirs_off += (e.theirs - e.exact) * (e.theirs - e.exact);
    norm += e.exact * e.exact;
  }
  int64_t index = 0;
  for (begin(&w, got, theirs, exact); next(&w, &e); index++) {
    if (is_near(&e, got->dtype, AOTH_NEAR_FACTOR * worst) || out.n_bad++ > 0) continue;
    out.first_bad = index;
    out.got = e.got, out.theirs = e.theirs, out.exact = e.exact;
  }
  off = sqrt(off), theirs_off = sqrt(theirs_off), norm = sqrt(norm);
  out.off = off == 0 ? 0 : off / norm;
  out.theirs_off = theirs_off == 0 ? 0 : theirs_off / norm;
  const double half_step = aoth_rounding(got->dtype) / 2, n = (double)(index ? index : 1);
  out.ok = out.n_bad == 0 && off <= AOTH_NEAR_FACTOR * theirs_off + half_step * (1 + 1 / sqrt(n)) * norm +
                                        2 * half_step * smallest_normal(got->dtype) * sqrt(n);
  return out;
}
