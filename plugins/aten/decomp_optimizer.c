/* Fused optimizer steps and gradient scaling, in plain arithmetic: as PyTorch's CPU kernels compute them
 * (aten/src/ATen/native/cpu/Fused{Adam,SGD,Adagrad}Kernel.cpp, AmpGradScalerKernels.cpp). Results are the lists that
 * the writing form writes, one after another. With `found_inf` at 1 all stay as they were. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

#define MAX_LISTS 5

typedef struct step {
  em_x_t list[MAX_LISTS]; /* self, grads, states.. */
  uint32_t n;             /* tensors a list */
  em_x_t lr, found;       /* numbers or 0-dim tensors; found: bool tensor or None */
} step_t;

static step_t begin(em_t *e) {
  step_t s;
  uint32_t k;
  memset(&s, 0, sizeof s);
  for (k = 0; k < MAX_LISTS && k < e->info.n_args; k++) s.list[k] = e->info.args[k];
  s.n = s.list[0].n;
  s.lr = IN("lr");
  s.found = at_in_has(e, "found_inf") ? EQ(at_reshaped(e, IN("found_inf"), NULL, 0), em_f(1.0)) : em_none();
  return s;
}

/* Tensor i of list k, in the dtype to compute in. */
static em_x_t item(em_t *e, const step_t *s, uint32_t k, uint32_t i) {
  aot_value_t v;
  if (s->list[k].kind != AOT_ARG_VALUES || i >= s->list[k].n || s->list[k].u.ids[i] == AOT_NO_ID) {
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: list %u has no tensor %u", at_name(e), k, i);
    return em_none();
  }
  v.id = s->list[k].u.ids[i];
  return em_v(v);
}

/* The result for tensor i of list k: x in that tensor's dtype, or the tensor itself when infinities were found. */
static void keep(em_t *e, const step_t *s, uint32_t k, uint32_t i, em_x_t x, aot_value_t *out) {
  em_x_t old = item(e, s, k, i);
  uint32_t at = 0, l;
  for (l = 0; l < k; l++) at += s->list[l].n;
  x = em_cast(e, x, TYPE(old).dtype);
  if (!em_is_none(s->found)) x = WHERE(s->found, old, x);
  out[at + i] = VAL(x);
}

/* The gradient without its scale, which is written back; then with the sign of the direction and the decay on it. */
static em_x_t gradient(em_t *e, const step_t *s, uint32_t i, em_x_t decayed, aot_value_t *out) {
  em_x_t g = item(e, s, 1, i);
  double decay = em_in_float(e, "weight_decay", 0.0);
  if (at_in_has(e, "grad_scale")) g = DIV(at_math(e, g), at_reshaped(e, IN("grad_scale"), NULL, 0));
  keep(e, s, 1, i, g, out);
  g = at_math(e, g);
  if (at_in_int(e, "maximize", 0)) g = NEG(g);
  if (!em_is_none(decayed) && decay != 0.0) g = ADD(g, MUL(decayed, em_f(decay)));
  return g;
}

/* 1 - beta^step, with the step's own dtype widened: few steps are far from 1 */
static em_x_t correction(em_t *e, double beta, em_x_t step) {
  return EM(e, "rsub.Scalar", EM(e, "pow.Scalar", em_f(beta), em_cast(e, step, AOT_F64)), em_i(1));
}

static void adam_step(em_t *e, const step_t *s, uint32_t i, aot_value_t *out) {
  int decoupled = strstr(at_name(e), "_fused_adamw") != NULL, amsgrad = at_in_int(e, "amsgrad", 0) != 0;
  double beta1 = em_in_float(e, "beta1", 0.9), beta2 = em_in_float(e, "beta2", 0.999);
  double decay = em_in_float(e, "weight_decay", 0.0);
  em_x_t p = at_math(e, item(e, s, 0, i)), m = at_math(e, item(e, s, 2, i)), v = at_math(e, item(e, s, 3, i)), root, g,
         step;
  aot_value_t at;
  em_x_t steps = IN("state_steps");
  if (steps.kind != AOT_ARG_VALUES || i >= steps.n || steps.u.ids[i] == AOT_NO_ID)
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: state_steps has no tensor %u", at_name(e), i);
  if (e->status != AOT_OK) return;
  at.id = steps.u.ids[i];
  step = at_reshaped(e, em_v(at), NULL, 0);
  g = gradient(e, s, i, decoupled ? em_none() : p, out);
  if (decoupled && decay != 0.0) p = SUB(p, MUL(MUL(p, s->lr), em_f(decay)));
  m = ADD(m, MUL(SUB(g, m), em_f(1.0 - beta1)));
  v = ADD(MUL(v, em_f(beta2)), MUL(MUL(g, g), em_f(1.0 - beta2)));
  root = v;
  if (amsgrad) {
    root = EM(e, "maximum", at_math(e, item(e, s, 4, i)), v);
    keep(e, s, 4, i, root, out);
  } else if (i < s->list[4].n) {
    keep(e, s, 4, i, item(e, s, 4, i), out);
  }
  root = ADD(DIV(SQRT(root), SQRT(correction(e, beta2, step))), em_f(em_in_float(e, "eps", 1e-8)));
  keep(e, s, 0, i, SUB(p, DIV(MUL(m, DIV(s->lr, correction(e, beta1, step))), root)), out);
  keep(e, s, 2, i, m, out);
  keep(e, s, 3, i, v, out);
}

static void sgd_step(em_t *e, const step_t *s, uint32_t i, aot_value_t *out) {
  double momentum = em_in_float(e, "momentum", 0.0);
  em_x_t p = at_math(e, item(e, s, 0, i)), g = gradient(e, s, i, p, out), buffer;
  if (momentum != 0.0) {
    buffer = g;
    if (!at_in_int(e, "is_first_step", 0))
      buffer =
          ADD(MUL(at_math(e, item(e, s, 2, i)), em_f(momentum)), MUL(g, em_f(1.0 - em_in_float(e, "dampening", 0.0))));
    keep(e, s, 2, i, buffer, out);
    g = at_in_int(e, "nesterov", 0) ? ADD(g, MUL(buffer, em_f(momentum))) : buffer;
  } else if (i < s->list[2].n) {
    keep(e, s, 2, i, item(e, s, 2, i), out);
  }
  keep(e, s, 0, i, SUB(p, MUL(g, s->lr)), out);
}

static void adagrad_step(em_t *e, const step_t *s, uint32_t i, aot_value_t *out) {
  em_x_t p = at_math(e, item(e, s, 0, i)), g = gradient(e, s, i, p, out), sum, rate, step;
  step = em_cast(e, at_reshaped(e, item(e, s, 3, i), NULL, 0), AOT_F64);
  rate = ADD(MUL(SUB(step, em_f(1.0)), em_f(em_in_float(e, "lr_decay", 0.0))), em_f(1.0));
  sum = ADD(at_math(e, item(e, s, 2, i)), MUL(g, g));
  keep(e, s, 0, i, SUB(p, DIV(MUL(g, DIV(s->lr, rate)), ADD(SQRT(sum), em_f(em_in_float(e, "eps", 1e-10))))), out);
  keep(e, s, 2, i, sum, out);
  if (e->desc->n_results > 3) keep(e, s, 3, i, item(e, s, 3, i), out);
}

static aot_status_t each_tensor(em_t *e, void (*one)(em_t *, const step_t *, uint32_t, aot_value_t *),
                                aot_value_t *out) {
  step_t s = begin(e);
  uint32_t i;
  for (i = 0; i < MAX_LISTS; i++) /* a list of states that the step does not have is empty */
    if (s.list[i].kind == AOT_ARG_VALUES && s.list[i].n != s.n && (s.list[i].n || i < 2))
      em_fail(e, AOT_E_UNIMPLEMENTED, "", "%s: list %u has %u tensors, the first %u", at_name(e), i, s.list[i].n, s.n);
  for (i = 0; i < s.n && e->status == AOT_OK; i++) {
    one(e, &s, i, out);
    at_infer(e)->n_pool = 0;
  }
  return e->status;
}

aot_status_t at_dc_fused_adam(em_t *e, aot_value_t *out) { return each_tensor(e, adam_step, out); }
aot_status_t at_dc_fused_sgd(em_t *e, aot_value_t *out) { return each_tensor(e, sgd_step, out); }
aot_status_t at_dc_fused_adagrad(em_t *e, aot_value_t *out) { return each_tensor(e, adagrad_step, out); }

/* ---- gradient scaling ---- */

/* Every tensor times inv_scale; found_inf becomes 1 when some element is infinite or nan. */
aot_status_t at_dc_amp_unscale(em_t *e, aot_value_t *out) {
  em_x_t list = IN("self"), found = IN("found_inf"), scale = at_reshaped(e, IN("inv_scale"), NULL, 0), bad = em_none();
  aot_type_t like = TYPE(found);
  uint32_t i;
  for (i = 0; i < list.n && e->status == AOT_OK; i++) {
    aot_value_t v;
    em_x_t x, not_finite;
    v.id = list.u.ids[i];
    x = em_v(v);
    not_finite = EM(e, "any", EM(e, "logical_not", EM(e, "isfinite", x)));
    bad = i == 0 ? not_finite : EM(e, "logical_or", bad, not_finite);
    out[i] = VAL(em_cast(e, MUL(at_math(e, x), scale), TYPE(x).dtype));
  }
  if (list.n) found = WHERE(bad, at_filled(e, like.sizes, like.rank, em_f(1.0), like.dtype, found), found);
  out[list.n] = VAL(found);
  return e->status;
}

/* Infinities found: the scale backs off and counting starts again; after `growth_interval` steps without, it grows,
 * unless that is infinite. */
aot_status_t at_dc_amp_update_scale(em_t *e, aot_value_t *out) {
  em_x_t scale = IN("self"), tracker = IN("growth_tracker");
  em_x_t found = at_reshaped(e, GT(IN("found_inf"), em_f(0.0)), TYPE(scale).sizes, TYPE(scale).rank);
  em_x_t count = ADD(tracker, em_i(1)), due = EQ(count, em_i(at_in_int(e, "growth_interval", 2000)));
  em_x_t grown = MUL(scale, em_f(em_in_float(e, "scale_growth_factor", 2.0)));
  em_x_t backed_off = MUL(scale, em_f(em_in_float(e, "scale_backoff_factor", 0.5)));
  grown = WHERE(EM(e, "logical_and", due, EM(e, "isfinite", grown)), grown, scale);
  out[0] = VAL(WHERE(found, backed_off, grown));
  out[1] = VAL(WHERE(EM(e, "logical_or", found, due), EM(e, "zeros_like", tracker), count));
  return e->status;
}
