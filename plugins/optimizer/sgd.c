#include "sgd.h"

int opt_sgd_counts(const opt_sgd_t *o) { return o->momentum != 0 && o->dampening != 0; }

opt_sgd_step_t opt_sgd_begin(em_t *e, const opt_sgd_t *o, em_x_t lr, em_x_t step) {
  opt_sgd_step_t s = {
      .step = em_none(), .neg_lr = opt_scalar_make(EM(e, "neg", lr)), .share = opt_scalar_make(em_none())};
  if (!opt_sgd_counts(o)) return s;
  /* step 0, 1, 2, .. -> 1, 1 - dampening, 1 - dampening, .. */
  s.share.f64 = em_sub(e, em_f(1), em_mul(e, EM(e, "clamp", step, em_none(), em_f(1)), em_f(o->dampening)));
  s.step = em_add(e, step, em_f(1));
  return s;
}

/* x + scalar * y, rounded once, as PyTorch's add with an alpha. */
static em_x_t add_scaled(em_t *e, em_x_t x, em_x_t y, opt_scalar_t *scalar, int32_t dtype) {
  y = em_mul(e, opt_wide(e, y, dtype), opt_scalar_for(e, scalar, dtype));
  return opt_narrow(e, em_add(e, opt_wide(e, x, dtype), y), dtype);
}

/* The momentum starts at zero, so that without dampening the first step needs no case of its own: momentum*0 + g =
 * g. */
static em_x_t mix(em_t *e, const opt_sgd_t *o, opt_sgd_step_t *s, em_x_t buffer, em_x_t grad, int32_t dtype) {
  em_x_t kept = em_mul(e, buffer, em_f(o->momentum));
  if (!opt_sgd_counts(o)) return em_add(e, kept, grad);
  return add_scaled(e, kept, grad, &s->share, dtype);
}

em_x_t opt_sgd_update(em_t *e, const opt_sgd_t *o, opt_sgd_step_t *s, em_x_t param, em_x_t grad, em_x_t *buffer,
                      int32_t dtype) {
  if (o->maximize) grad = EM(e, "neg", grad);
  if (o->weight_decay != 0) grad = EM(e, "add.Tensor", grad, param, em_f(o->weight_decay));
  if (o->momentum != 0) {
    *buffer = mix(e, o, s, *buffer, grad, dtype);
    grad = o->nesterov ? EM(e, "add.Tensor", grad, *buffer, em_f(o->momentum)) : *buffer;
  }
  return add_scaled(e, param, grad, &s->neg_lr, dtype);
}
