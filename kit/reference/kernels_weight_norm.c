/* Weight normalization (Salimans and Kingma 2016): w = g v / |v|, norms over all dimensions but one, and its
 * derivative. */
#include "rk_core.h"
#include <aot/inline.h>
#include <math.h>

/* v as outer x size x inner around the kept dimension; one slice an element of it. Dimension -1: v is one slice. */
typedef struct slices {
  rk_array_t v, g;
  int64_t outer, size, inner;
} slices_t;

static aot_status_t read_slices(rk_ctx_t *c, uint32_t v_arg, uint32_t g_arg, uint32_t dim_arg, slices_t *s) {
  int32_t dim;
  AOT_TRY(rk_need_f(c, v_arg, &s->v));
  AOT_TRY(rk_need_f(c, g_arg, &s->g));
  if (rk_int(c, dim_arg, 0) == -1) {
    s->outer = s->size = 1;
    s->inner = s->v.numel ? s->v.numel : 1;
  } else {
    AOT_TRY(rk_dim(c, rk_int(c, dim_arg, 0), s->v.rank, &dim));
    rk_around(&s->v, dim, &s->outer, &s->size, &s->inner);
  }
  RK_CHECK(c, s->g.numel == s->size, "%lld lengths for %lld slices", (long long)s->g.numel, (long long)s->size);
  return AOT_OK;
}

static int64_t slice_of(const slices_t *s, int64_t e) { return e / s->inner % s->size; }

/* _weight_norm_interface(v, g, dim) -> (w, norms) */
static aot_status_t weight_norm(rk_ctx_t *c) {
  slices_t s = {0};
  rk_array_t w, norms;
  AOT_TRY(read_slices(c, 0, 1, 2, &s));
  AOT_TRY(rk_new_f(c, s.v.rank, s.v.sizes, &w));
  AOT_TRY(rk_new_f(c, s.g.rank, s.g.sizes, &norms));
  for (int64_t e = 0; e < s.v.numel; e++) norms.f[slice_of(&s, e)] += s.v.f[e] * s.v.f[e];
  for (int64_t k = 0; k < s.size; k++) norms.f[k] = sqrt(norms.f[k]);
  for (int64_t e = 0; e < s.v.numel; e++) w.f[e] = s.v.f[e] * (s.g.f[slice_of(&s, e)] / norms.f[slice_of(&s, e)]);
  if (rk_wants(c, 1)) AOT_TRY(rk_put_f(c, 1, &norms));
  return rk_put_f(c, 0, &w);
}

/* _weight_norm_interface_backward(grad_w, v, g, norms, dim) -> (dv, dg): with u = v/|v| and h = <grad, u>,
 * dg = h, dv = g/|v| (grad - u h) */
static aot_status_t weight_norm_backward(rk_ctx_t *c) {
  slices_t s = {0};
  rk_array_t up, norms, dv, dg;
  AOT_TRY(rk_need_f(c, 0, &up));
  AOT_TRY(read_slices(c, 1, 2, 4, &s));
  AOT_TRY(rk_need_f(c, 3, &norms));
  RK_CHECK(c, up.numel == s.v.numel && norms.numel == s.size, "gradient or norms do not fit the weight");
  AOT_TRY(rk_new_f(c, s.v.rank, s.v.sizes, &dv));
  AOT_TRY(rk_new_f(c, s.g.rank, s.g.sizes, &dg));
  for (int64_t e = 0; e < s.v.numel; e++) dg.f[slice_of(&s, e)] += up.f[e] * s.v.f[e] / norms.f[slice_of(&s, e)];
  for (int64_t e = 0; e < s.v.numel; e++) {
    const int64_t k = slice_of(&s, e);
    dv.f[e] = s.g.f[k] / norms.f[k] * (up.f[e] - s.v.f[e] / norms.f[k] * dg.f[k]);
  }
  AOT_TRY(rk_put_f(c, 0, &dv));
  return rk_put_f(c, 1, &dg);
}

#define ROW(name, fn)                                                                                                  \
  { "aten." name ".default", fn, NULL, NULL, 0 }
static const rk_kernel_t rows[] = {
    ROW("_weight_norm", weight_norm),
    ROW("_weight_norm_interface", weight_norm),
    ROW("_weight_norm_interface_backward", weight_norm_backward),
};
const rk_family_t rk_family_weight_norm = RK_FAMILY(rows);
