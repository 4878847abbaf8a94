/* Fused optimizer steps and gradient scaling, in plain arithmetic: as PyTorch's CPU kernels compute them
 * (aten/src/ATen/native/cpu/Fused{Adam,SGD,Adagrad}Kernel.cpp, AmpGradScalerKernels.cpp). Results are the lists that the
 * writing form writes, one after another. With `found_inf` at 1 all stay as they were. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

#define MAX_LISTS 5

typedef struct step {
  at_x list[MAX_LISTS]; /* self, grads, states.. */
  uint32_t n;           /* tensors a list */
  at_x lr, found;       /* numbers or 0-dim tensors; found: bool tensor or None */
} step_t;

static step_t begin(at_emit_t *e) {
  step_t s;
  uint32_t k;
  memset(&s, 0, sizeof s);
  for (k = 0; k < MAX_LISTS && k < e->info.n_args; k++) s.list[k] = e->info.args[k];
  s.n = s.list[0].n;
  s.lr = IN("lr");
  s.found = at_in_has(e, "found_inf") ? EQ(at_reshaped(e, IN("found_inf"), NULL, 0), at_f(1.0)) : at_none();
  return s;
}

/* Tensor i of list k, in the dtype to compute in. */
static at_x item(at_emit_t *e, const step_t *s, uint32_t k, uint32_t i) {
  aot_value_t v;
  if (s->list[k].kind != AOT_ARG_VALUES || i >= s->list[k].n || s->list[k].u.ids[i] == AOT_NO_ID) {
    at_emit_fail(e, "", "%s: list %u has no tensor %u", e->row->name, k, i);
    return at_none();
  }
  v.id = s->list[k].u.ids[i];
  return at_v(v);
}

/* The result for tensor i of list k: x in that tensor's dtype, or the tensor itself when infinities were found. */
static void keep(at_emit_t *e, const step_t *s, uint32_t k, uint32_t i, at_x x, aot_value_t *out) {
  at_x old = item(e, s, k, i);
  uint32_t at = 0, l;
  for (l = 0; l < k; l++) at += s->list[l].n;
  x = at_cast(e, x, TYPE(old).dtype);
  if (!at_is_none(s->found)) x = WHERE(s->found, old, x);
  out[at + i] = VAL(x);
}

/* The gradient without its scale, which is written back; then with the sign of the direction and the decay on it. */
static at_x gradient(at_emit_t *e, const step_t *s, uint32_t i, at_x decayed, aot_value_t *out) {
  at_x g = item(e, s, 1, i);
  double decay = at_in_float(e, "weight_decay", 0.0);
  if (at_in_has(e, "grad_scale")) g = DIV(at_math(e, g), at_reshaped(e, IN("grad_scale"), NULL, 0));
  keep(e, s, 1, i, g, out);
  g = at_math(e, g);
  if (at_in_int(e, "maximize", 0)) g = NEG(g);
  if (!at_is_none(decayed) && decay != 0.0) g = ADD(g, MUL(decayed, at_f(decay)));
  return g;
}

/* 1 - beta^step, with the step's own dtype widened: few steps are far from 1 */
static at_x correction(at_emit_t *e, double beta, at_x step) {
  return AT(e, "rsub.Scalar", AT(e, "pow.Scalar", at_f(beta), at_cast(e, step, AOT_F64)), at_i(1));
}

static void adam_step(at_emit_t *e, const step_t *s, uint32_t i, aot_value_t *out) {
  int decoupled = strstr(e->row->name, "_fused_adamw") != NULL, amsgrad = at_in_int(e, "amsgrad", 0) != 0;
  double beta1 = at_in_float(e, "beta1", 0.9), beta2 = at_in_float(e, "beta2", 0.999);
  double decay = at_in_float(e, "weight_decay", 0.0);
  at_x p = at_math(e, item(e, s, 0, i)), m = at_math(e, item(e, s, 2, i)), v = at_math(e, item(e, s, 3, i)), root, g, step;
  aot_value_t at;
  at_x steps = IN("state_steps");
  if (steps.kind != AOT_ARG_VALUES || i >= steps.n || steps.u.ids[i] == AOT_NO_ID)
    at_emit_fail(e, "", "%s: state_steps has no tensor %u", e->row->name, i);
  if (e->status != AOT_OK) return;
  at.id = steps.u.ids[i];
  step = at_reshaped(e, at_v(at), NULL, 0);
  g = gradient(e, s, i, decoupled ? at_none() : p, out);
  if (decoupled && decay != 0.0) p = SUB(p, MUL(MUL(p, s->lr), at_f(decay)));
  m = ADD(m, MUL(SUB(g, m), at_f(1.0 - beta1)));
  v = ADD(MUL(v, at_f(beta2)), MUL(MUL(g, g), at_f(1.0 - beta2)));
  root = v;
  if (amsgrad) {
    root = AT(e, "maximum", at_math(e, item(e, s, 4, i)), v);
    keep(e, s, 4, i, root, out);
  } else if (i < s->list[4].n) {
    keep(e, s, 4, i, item(e, s, 4, i), out);
  }
  root = ADD(DIV(SQRT(root), SQRT(correction(e, beta2, step))), at_f(at_in_float(e, "eps", 1e-8)));
  keep(e, s, 0, i, SUB(p, DIV(MUL(m, DIV(s->lr, correction(e, beta1, step))), root)), out);
  keep(e, s, 2, i, m, out);
  keep(e, s, 3, i, v, out);
}

static void sgd_step(at_emit_t *e, const step_t *s, uint32_t i, aot_value_t *out) {
  double momentum = at_in_float(e, "momentum", 0.0);
  at_x p = at_math(e, item(e, s, 0, i)), g = gradient(e, s, i, p, out), buffer;
  if (momentum != 0.0) {
    buffer = g;
    if (!at_in_int(e, "is_first_step", 0))
      buffer = ADD(MUL(at_math(e, item(e, s, 2, i)), at_f(momentum)),
                   MUL(g, at_f(1.0 - at_in_float(e, "dampening", 0.0))));
    keep(e, s, 2, i, buffer, out);
    g = at_in_int(e, "nesterov", 0) ? ADD(g, MUL(buffer, at_f(momentum))) : buffer;
  } else if (i < s->list[2].n) {
    keep(e, s, 2, i, item(e, s, 2, i), out);
  }
  keep(e, s, 0, i, SUB(p, MUL(g, s->lr)), out);
}

static void adagrad_step(at_emit_t *e, const step_t *s, uint32_t i, aot_value_t *out) {
  at_x p = at_math(e, item(e, s, 0, i)), g = gradient(e, s, i, p, out), sum, rate, step;
  step = at_cast(e, at_reshaped(e, item(e, s, 3, i), NULL, 0), AOT_F64);
  rate = ADD(MUL(SUB(step, at_f(1.0)), at_f(at_in_float(e, "lr_decay", 0.0))), at_f(1.0));
  sum = ADD(at_math(e, item(e, s, 2, i)), MUL(g, g));
  keep(e, s, 0, i, SUB(p, DIV(MUL(g, DIV(s->lr, rate)), ADD(SQRT(sum), at_f(at_in_float(e, "eps", 1e-10))))), out);
  keep(e, s, 2, i, sum, out);
  if (e->desc->n_results > 3) keep(e, s, 3, i, item(e, s, 3, i), out);
}

static aot_status_t each_tensor(at_emit_t *e, void (*one)(at_emit_t *, const step_t *, uint32_t, aot_value_t *),
                                aot_value_t *out) {
  step_t s = begin(e);
  uint32_t i;
  for (i = 0; i < MAX_LISTS; i++) /* a list of states that the step does not have is empty */
    if (s.list[i].kind == AOT_ARG_VALUES && s.list[i].n != s.n && (s.list[i].n || i < 2))
      at_emit_fail(e, "", "%s: list %u has %u tensors, the first %u", e->row->name, i, s.list[i].n, s.n);
  for (i = 0; i < s.n && e->status == AOT_OK; i++) {
    one(e, &s, i, out);
    e->infer->n_pool = 0;
  }
  return e->status;
}

aot_status_t at_dc_fused_adam(at_emit_t *e, aot_value_t *out) { return each_tensor(e, adam_step, out); }
aot_status_t at_dc_fused_sgd(at_emit_t *e, aot_value_t *out) { return each_tensor(e, sgd_step, out); }
aot_status_t at_dc_fused_adagrad(at_emit_t *e, aot_value_t *out) { return each_tensor(e, adagrad_step, out); }

/* ---- gradient scaling ---- */

/* Every tensor times inv_scale; found_inf becomes 1 when some element is infinite or nan. */
aot_status_t at_dc_amp_unscale(at_emit_t *e, aot_value_t *out) {
  at_x list = IN("self"), found = IN("found_inf"), scale = at_reshaped(e, IN("inv_scale"), NULL, 0), bad = at_none();
  aot_type_t like = TYPE(found);
  uint32_t i;
  for (i = 0; i < list.n && e->status == AOT_OK; i++) {
    aot_value_t v;
    at_x x, not_finite;
    v.id = list.u.ids[i];
    x = at_v(v);
    not_finite = AT(e, "any", AT(e, "logical_not", AT(e, "isfinite", x)));
    bad = i == 0 ? not_finite : AT(e, "logical_or", bad, not_finite);
    out[i] = VAL(at_cast(e, MUL(at_math(e, x), scale), TYPE(x).dtype));
  }
  if (list.n) found = WHERE(bad, at_filled(e, like.sizes, like.rank, at_f(1.0), like.dtype, found), found);
  out[list.n] = VAL(found);
  return e->status;
}

/* Infinities found: the scale backs off and counting starts anew; after `growth_interval` steps without, it grows, unless
 * that is infinite. */
aot_status_t at_dc_amp_update_scale(at_emit_t *e, aot_value_t *out) {
  at_x scale = IN("self"), tracker = IN("growth_tracker");
  at_x found = at_reshaped(e, GT(IN("found_inf"), at_f(0.0)), TYPE(scale).sizes, TYPE(scale).rank);
  at_x count = ADD(tracker, at_i(1)), due = EQ(count, at_i(at_in_int(e, "growth_interval", 2000)));
  at_x grown = MUL(scale, at_f(at_in_float(e, "scale_growth_factor", 2.0)));
  at_x backed_off = MUL(scale, at_f(at_in_float(e, "scale_backoff_factor", 0.5)));
  grown = WHERE(AT(e, "logical_and", due, AT(e, "isfinite", grown)), grown, scale);
  out[0] = VAL(WHERE(found, backed_off, grown));
  out[1] = VAL(WHERE(AT(e, "logical_or", found, due), AT(e, "zeros_like", tracker), count));
  return e->status;
}
