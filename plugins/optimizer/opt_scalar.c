#include "opt_scalar.h"

opt_scalar_t opt_scalar_make(em_x_t f64) { return (opt_scalar_t){.f64 = f64, .f32 = em_none()}; }

static int is_half(int32_t dtype) { return dtype == AOT_F16 || dtype == AOT_BF16; }

em_x_t opt_scalar_for(em_t *e, opt_scalar_t *s, int32_t dtype) {
  if (dtype == AOT_F64) return s->f64;
  if (s->f32.kind == AOT_ARG_NONE) s->f32 = em_cast(e, s->f64, AOT_F32);
  return s->f32;
}

em_x_t opt_wide(em_t *e, em_x_t x, int32_t dtype) { return is_half(dtype) ? em_cast(e, x, AOT_F32) : x; }
em_x_t opt_narrow(em_t *e, em_x_t x, int32_t dtype) { return is_half(dtype) ? em_cast(e, x, dtype) : x; }
