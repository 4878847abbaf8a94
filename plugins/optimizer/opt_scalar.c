#include "opt_scalar.h"

opt_scalar_t opt_scalar_make(em_x_t f64) {
  opt_scalar_t s = {.f64 = f64};
  for (int i = 0; i < OPT_SCALAR_FORMS; i++) s.cast[i] = em_none();
  return s;
}

em_x_t opt_scalar_for(em_t *e, opt_scalar_t *s, int32_t dtype, int32_t rank) {
  int32_t to = dtype == AOT_F64 || rank == 0 ? dtype : AOT_F32;
  int slot = to == AOT_F32 ? 0 : to == AOT_F16 ? 1 : to == AOT_BF16 ? 2 : 3;
  if (to == AOT_F64) return s->f64;
  if (s->cast[slot].kind == AOT_ARG_NONE) s->cast[slot] = em_cast(e, s->f64, to);
  return s->cast[slot];
}
