#include "adam.h"

opt_adam_step_t opt_adam_begin(em_t *e, const opt_adam_t *o, em_x_t lr, em_x_t step) {
  opt_adam_step_t s;
  s.step = em_add(e, step, em_f(1));
  em_x_t correction1 = em_sub(e, em_f(1), em_pow(e, em_f(o->beta1), s.step));
  em_x_t correction2 = em_sub(e, em_f(1), em_pow(e, em_f(o->beta2), s.step));
  s.neg_size = opt_scalar_make(EM(e, "neg", em_div(e, lr, correction1)));
  s.correction = opt_scalar_make(EM(e, "sqrt", correction2));
  s.decay = opt_scalar_make(em_none());
  if (o->decoupled && o->weight_decay != 0) s.decay.f64 = em_sub(e, em_f(1), em_mul(e, lr, em_f(o->weight_decay)));
  return s;
}

opt_adam_values_t opt_adam_update(em_t *e, const opt_adam_t *o, opt_adam_step_t *s, opt_adam_values_t old, em_x_t grad,
                                  int32_t dtype) {
  opt_adam_values_t now = old;
  if (o->maximize) grad = EM(e, "neg", grad);
  if (o->weight_decay != 0) {
    if (o->decoupled)
      now.param = opt_narrow(e, em_mul(e, opt_wide(e, old.param, dtype), opt_scalar_for(e, &s->decay, dtype)), dtype);
    else grad = EM(e, "add.Tensor", grad, old.param, em_f(o->weight_decay));
  }
  now.exp_avg = EM(e, "lerp.Scalar", old.exp_avg, grad, em_f(1 - o->beta1));
  now.exp_avg_sq = EM(e, "addcmul", em_mul(e, old.exp_avg_sq, em_f(o->beta2)), grad, grad, em_f(1 - o->beta2));
  em_x_t second = now.exp_avg_sq;
  if (o->amsgrad) second = now.max_exp_avg_sq = EM(e, "maximum", old.max_exp_avg_sq, now.exp_avg_sq);
  em_x_t root = em_div(e, opt_wide(e, EM(e, "sqrt", second), dtype), opt_scalar_for(e, &s->correction, dtype));
  em_x_t denominator = em_add(e, opt_narrow(e, root, dtype), em_f(o->eps));
  /* addcdiv takes its factor as a constant; this is what its kernel computes, in its order: param + (size * m) / d */
  em_x_t change = em_mul(e, opt_wide(e, now.exp_avg, dtype), opt_scalar_for(e, &s->neg_size, dtype));
  change = em_div(e, change, opt_wide(e, denominator, dtype));
  now.param = opt_narrow(e, em_add(e, opt_wide(e, now.param, dtype), change), dtype);
  return now;
}
