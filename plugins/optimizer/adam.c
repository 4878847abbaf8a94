#include "adam.h"

#include <aot/inline.h>

opt_adam_step_t opt_adam_begin(opt_emit_t *e, const opt_adam_t *o, opt_v lr, opt_v step) {
  opt_adam_step_t s;
  s.step = opt_add_number(e, step, 1);
  opt_v correction1 = opt_number_minus(e, 1, opt_number_power(e, o->beta1, s.step));
  opt_v correction2 = opt_number_minus(e, 1, opt_number_power(e, o->beta2, s.step));
  s.neg_size = opt_scalar_make(opt_neg(e, opt_div(e, lr, correction1)));
  s.correction = opt_scalar_make(opt_sqrt(e, correction2));
  s.decay = opt_scalar_make(aot_no_value());
  if (o->decoupled && o->weight_decay != 0) s.decay.f64 = opt_number_minus(e, 1, opt_mul_number(e, lr, o->weight_decay));
  return s;
}

opt_adam_values_t opt_adam_update(opt_emit_t *e, const opt_adam_t *o, opt_adam_step_t *s, opt_adam_values_t old, opt_v grad,
                                  int32_t dtype, int32_t rank) {
  opt_adam_values_t now = old;
  if (o->maximize) grad = opt_neg(e, grad);
  if (o->weight_decay != 0) {
    if (o->decoupled) now.param = opt_mul(e, old.param, opt_scalar_for(e, &s->decay, dtype, rank));
    else grad = opt_add_scaled(e, grad, old.param, o->weight_decay);
  }
  now.exp_avg = opt_lerp(e, old.exp_avg, grad, 1 - o->beta1);
  now.exp_avg_sq = opt_addcmul(e, opt_mul_number(e, old.exp_avg_sq, o->beta2), grad, grad, 1 - o->beta2);
  opt_v second = now.exp_avg_sq;
  if (o->amsgrad) second = now.max_exp_avg_sq = opt_max(e, old.max_exp_avg_sq, now.exp_avg_sq);
  opt_v root = opt_div(e, opt_sqrt(e, second), opt_scalar_for(e, &s->correction, dtype, rank));
  opt_v denominator = opt_add_number(e, root, o->eps);
  /* addcdiv takes its factor as a constant; this is what its kernel computes, in its order: param + (size * m) / d */
  opt_v change = opt_div(e, opt_mul(e, now.exp_avg, opt_scalar_for(e, &s->neg_size, dtype, rank)), denominator);
  now.param = opt_add(e, now.param, change);
  return now;
}
