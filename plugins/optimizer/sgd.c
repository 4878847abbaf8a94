#include "sgd.h"

#include <aot/inline.h>

int opt_sgd_counts(const opt_sgd_t *o) { return o->momentum != 0 && o->dampening != 0; }

opt_sgd_step_t opt_sgd_begin(opt_emit_t *e, const opt_sgd_t *o, opt_v lr, opt_v step) {
  opt_sgd_step_t s = {.step = aot_no_value(), .neg_lr = opt_scalar_make(opt_neg(e, lr)), .share = opt_scalar_make(aot_no_value())};
  if (!opt_sgd_counts(o)) return s;
  /* step 0, 1, 2, .. -> 1, 1 - dampening, 1 - dampening, .. */
  s.share.f64 = opt_number_minus(e, 1, opt_mul_number(e, opt_at_most(e, step, 1), o->dampening));
  s.step = opt_add_number(e, step, 1);
  return s;
}

/* The momentum starts at zero, so that without dampening the first step needs no case of its own: momentum*0 + g = g. */
static opt_v mix(opt_emit_t *e, const opt_sgd_t *o, opt_sgd_step_t *s, opt_v buffer, opt_v grad, int32_t dtype, int32_t rank) {
  opt_v kept = opt_mul_number(e, buffer, o->momentum);
  if (!opt_sgd_counts(o)) return opt_add(e, kept, grad);
  return opt_add(e, kept, opt_mul(e, grad, opt_scalar_for(e, &s->share, dtype, rank)));
}

opt_v opt_sgd_update(opt_emit_t *e, const opt_sgd_t *o, opt_sgd_step_t *s, opt_v param, opt_v grad, opt_v *buffer, int32_t dtype,
                     int32_t rank) {
  if (o->maximize) grad = opt_neg(e, grad);
  if (o->weight_decay != 0) grad = opt_add_scaled(e, grad, param, o->weight_decay);
  if (o->momentum != 0) {
    *buffer = mix(e, o, s, *buffer, grad, dtype, rank);
    grad = o->nesterov ? opt_add_scaled(e, grad, *buffer, o->momentum) : *buffer;
  }
  return opt_add(e, param, opt_mul(e, grad, opt_scalar_for(e, &s->neg_lr, dtype, rank)));
}
