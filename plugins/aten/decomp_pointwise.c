/* Elementwise operators in terms of arithmetic, comparisons, exp, log, erf, tanh, sigmoid.
 *
 * Half and bfloat16 are computed in float32 and rounded once, as PyTorch's kernels do. Formulas: the definitions in PyTorch's
 * documentation; derivatives by hand. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

static int is(const at_emit_t *e, const char *name) { return strcmp(e->row->name + sizeof "aten." - 1, name) == 0; }

/* ---- renamings ---- */

aot_status_t at_dc_square(at_emit_t *e, aot_value_t *out) {
  at_x x = at_cast(e, IN("self"), at_result_type(e, 0).dtype);
  return at_give(e, MUL(x, x), out);
}

aot_status_t at_dc_max_other(at_emit_t *e, aot_value_t *out) {
  return at_give(e, AT(e, is(e, "max.other") ? "maximum" : "minimum", IN("self"), IN("other")), out);
}

aot_status_t at_dc_rsub(at_emit_t *e, aot_value_t *out) {
  return at_give(e, AT(e, "sub.Tensor", IN("other"), IN("self"), IN("alpha")), out);
}

aot_status_t at_dc_where(at_emit_t *e, aot_value_t *out) {
  return at_give_cast(e, WHERE(IN("condition"), IN("self"), IN("other")), out);
}

aot_status_t at_dc_masked_fill(at_emit_t *e, aot_value_t *out) {
  return at_give_cast(e, WHERE(IN("mask"), IN("value"), IN("self")), out);
}

aot_status_t at_dc_floor_divide(at_emit_t *e, aot_value_t *out) {
  return at_give(e, AT(e, "div.Tensor_mode", IN("self"), IN("other"), aot_arg_str(aot_str("floor"))), out);
}

aot_status_t at_dc_clamp_one(at_emit_t *e, aot_value_t *out) {
  return at_give(e, AT(e, "clamp", IN("self"), IN("min"), IN("max")), out);
}

aot_status_t at_dc_hardtanh(at_emit_t *e, aot_value_t *out) {
  at_x low = at_in_has(e, "min_val") ? IN("min_val") : at_f(0.0), high = at_in_has(e, "max_val") ? IN("max_val") : at_f(6.0);
  return at_give_cast(e, AT(e, "clamp", IN("self"), low, high), out);
}

/* ---- tests ---- */

aot_status_t at_dc_isnan(at_emit_t *e, aot_value_t *out) { return at_give(e, NE(IN("self"), IN("self")), out); }

aot_status_t at_dc_isinf(at_emit_t *e, aot_value_t *out) { return at_give(e, EQ(ABS(IN("self")), at_f(INFINITY)), out); }

aot_status_t at_dc_isfinite(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self");
  if (at_is_integral(TYPE(x).dtype)) return at_give(e, EQ(x, x), out);
  return at_give(e, LT(ABS(x), at_f(INFINITY)), out);
}

/* ---- arithmetic ---- */

aot_status_t at_dc_addcmul(at_emit_t *e, aot_value_t *out) {
  at_x a = at_math(e, IN("tensor1")), b = at_math(e, IN("tensor2"));
  at_x product = is(e, "addcmul.default") ? MUL(a, b) : DIV(a, b);
  return at_give_cast(e, AT(e, "add.Tensor", at_math(e, IN("self")), product, IN("value")), out);
}

/* PyTorch's two forms, each exact at its end of the interval. */
aot_status_t at_dc_lerp(at_emit_t *e, aot_value_t *out) {
  at_x a = at_math(e, IN("self")), b = at_math(e, IN("end")), w = at_math(e, IN("weight")), d = SUB(b, a);
  if (w.kind == AOT_ARG_VALUE)
    return at_give_cast(e, WHERE(LT(ABS(w), at_f(0.5)), ADD(a, MUL(w, d)), SUB(b, MUL(d, SUB(at_f(1.0), w)))), out);
  if (fabs(at_in_float(e, "weight", 0)) < 0.5) return at_give_cast(e, ADD(a, MUL(d, w)), out);
  return at_give_cast(e, SUB(b, MUL(d, at_f(1.0 - at_in_float(e, "weight", 0)))), out);
}

aot_status_t at_dc_xlogy(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self"), y = IN("other");
  return at_give_cast(e, WHERE(EQ(x, at_f(0.0)), at_f(0.0), MUL(x, LOG(y))), out);
}

/* ---- activations ---- */

static at_x clamped_plus_3(at_emit_t *e, at_x x) { return AT(e, "clamp", ADD(x, at_f(3.0)), at_f(0.0), at_f(6.0)); }

aot_status_t at_dc_silu(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  return at_give_cast(e, MUL(x, SIGMOID(x)), out);
}

static at_x softplus(at_emit_t *e, at_x x) { /* log(1 + exp(x)) without overflow */
  return ADD(AT(e, "clamp", x, at_f(0.0)), LOG1P(EXP(NEG(ABS(x)))));
}

aot_status_t at_dc_mish(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  return at_give_cast(e, MUL(x, TANH(softplus(e, x))), out);
}

aot_status_t at_dc_hardswish(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  return at_give_cast(e, DIV(MUL(x, clamped_plus_3(e, x)), at_f(6.0)), out);
}

aot_status_t at_dc_hardsigmoid(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  return at_give_cast(e, DIV(clamped_plus_3(e, x), at_f(6.0)), out);
}

aot_status_t at_dc_leaky_relu(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  return at_give_cast(e, WHERE(GT(x, at_f(0.0)), x, MUL(x, IN("negative_slope"))), out);
}

aot_status_t at_dc_elu(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self")), alpha = at_in_has(e, "alpha") ? IN("alpha") : at_f(1.0);
  at_x inner = at_in_has(e, "input_scale") ? MUL(x, IN("input_scale")) : x, y;
  if (is(e, "celu.default")) inner = DIV(x, alpha);
  y = WHERE(GT(x, at_f(0.0)), x, MUL(AT(e, "expm1", inner), alpha));
  return at_give_cast(e, at_in_has(e, "scale") ? MUL(y, IN("scale")) : y, out);
}

aot_status_t at_dc_softplus(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self")), scaled = MUL(x, IN("beta"));
  return at_give_cast(e, WHERE(GT(scaled, IN("threshold")), x, DIV(LOG1P(EXP(scaled)), IN("beta"))), out);
}

aot_status_t at_dc_log_sigmoid(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self")), z = EXP(NEG(ABS(x)));
  at_give_cast(e, SUB(AT(e, "clamp", x, at_none(), at_f(0.0)), LOG1P(z)), out);
  if (e->desc->n_results == 2) out[1] = VAL(at_cast(e, z, at_result_type(e, 1).dtype));
  return e->status;
}

aot_status_t at_dc_prelu(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self"), w = IN("weight");
  aot_type_t t = TYPE(x), tw = TYPE(w);
  if (is(e, "prelu.default") && tw.rank == 1 && t.rank > 1) w = at_along(e, w, 1, t.rank);
  if (t.rank == 0) w = at_reshaped(e, w, NULL, 0);
  return at_give_cast(e, WHERE(GT(x, at_f(0.0)), x, MUL(w, x)), out);
}

#define INV_SQRT2 0.70710678118654752440
#define INV_SQRT_2PI 0.39894228040143267794
#define SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_CUBIC 0.044715

/* sqrt(2/pi) (x + 0.044715 x^3) */
static at_x gelu_inner(at_emit_t *e, at_x x) {
  return MUL(ADD(x, MUL(MUL(MUL(x, x), x), at_f(GELU_CUBIC))), at_f(SQRT_2_OVER_PI));
}

aot_status_t at_dc_gelu(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  at_x gate = at_in_str_is(e, "approximate", "tanh") ? TANH(gelu_inner(e, x)) : AT(e, "erf", MUL(x, at_f(INV_SQRT2)));
  return at_give_cast(e, MUL(MUL(x, at_f(0.5)), ADD(gate, at_f(1.0))), out);
}

/* ---- their derivatives times g ---- */

static at_x grad_output(at_emit_t *e) { return at_math(e, IN("grad_output")); }

aot_status_t at_dc_gelu_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = grad_output(e), x = at_math(e, IN("self")), slope, t;
  if (at_in_str_is(e, "approximate", "tanh")) {
    at_x inner = MUL(ADD(MUL(MUL(x, x), at_f(3.0 * GELU_CUBIC)), at_f(1.0)), at_f(SQRT_2_OVER_PI));
    t = TANH(gelu_inner(e, x));
    slope = ADD(MUL(ADD(t, at_f(1.0)), at_f(0.5)), MUL(MUL(MUL(x, at_f(0.5)), SUB(at_f(1.0), MUL(t, t))), inner));
  } else {
    at_x phi = MUL(EXP(MUL(MUL(x, x), at_f(-0.5))), at_f(INV_SQRT_2PI));
    t = MUL(ADD(AT(e, "erf", MUL(x, at_f(INV_SQRT2))), at_f(1.0)), at_f(0.5));
    slope = ADD(t, MUL(x, phi));
  }
  return at_give_cast(e, MUL(g, slope), out);
}

aot_status_t at_dc_sigmoid_backward(at_emit_t *e, aot_value_t *out) {
  at_x y = at_math(e, IN("output"));
  return at_give_cast(e, MUL(MUL(grad_output(e), y), SUB(at_f(1.0), y)), out);
}

aot_status_t at_dc_tanh_backward(at_emit_t *e, aot_value_t *out) {
  at_x y = at_math(e, IN("output"));
  return at_give_cast(e, MUL(grad_output(e), SUB(at_f(1.0), MUL(y, y))), out);
}

aot_status_t at_dc_threshold(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self"), keep = at_in_has(e, "grad_output") ? IN("grad_output") : x;
  at_x other = at_in_has(e, "value") ? IN("value") : at_f(0.0);
  return at_give_cast(e, WHERE(LE(x, IN("threshold")), other, keep), out);
}

aot_status_t at_dc_silu_backward(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self")), s = SIGMOID(x);
  return at_give_cast(e, MUL(MUL(grad_output(e), s), ADD(MUL(x, SUB(at_f(1.0), s)), at_f(1.0))), out);
}

aot_status_t at_dc_mish_backward(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self")), t = TANH(softplus(e, x)), s = SIGMOID(x);
  return at_give_cast(e, MUL(grad_output(e), ADD(t, MUL(MUL(x, s), SUB(at_f(1.0), MUL(t, t))))), out);
}

static at_x inside(at_emit_t *e, at_x x, at_x low, at_x high) { return AT(e, "logical_and", GT(x, low), LT(x, high)); }

/* 0 below -3, g above 3, g (x/3 + 1/2) between */
aot_status_t at_dc_hardswish_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = grad_output(e), x = at_math(e, IN("self"));
  at_x between = MUL(g, ADD(DIV(x, at_f(3.0)), at_f(0.5)));
  return at_give_cast(e, WHERE(LE(x, at_f(-3.0)), at_f(0.0), WHERE(LT(x, at_f(3.0)), between, g)), out);
}

aot_status_t at_dc_hardsigmoid_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = grad_output(e), x = at_math(e, IN("self"));
  return at_give_cast(e, WHERE(inside(e, x, at_f(-3.0), at_f(3.0)), DIV(g, at_f(6.0)), at_f(0.0)), out);
}

aot_status_t at_dc_hardtanh_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = grad_output(e), x = at_math(e, IN("self"));
  return at_give_cast(e, WHERE(inside(e, x, IN("min_val"), IN("max_val")), g, at_f(0.0)), out);
}

aot_status_t at_dc_leaky_relu_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = grad_output(e), x = at_math(e, IN("self"));
  return at_give_cast(e, WHERE(GT(x, at_f(0.0)), g, MUL(g, IN("negative_slope"))), out);
}

aot_status_t at_dc_elu_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = grad_output(e), x = at_math(e, IN("self_or_result")), below;
  at_x outer = MUL(g, IN("scale")), inner = MUL(g, at_f(at_in_float(e, "input_scale", 1.0)));
  if (at_in_int(e, "is_result", 0)) below = MUL(inner, ADD(x, MUL(IN("alpha"), IN("scale"))));
  else below = MUL(MUL(inner, EXP(MUL(x, IN("input_scale")))), at_f(at_in_float(e, "alpha", 1) * at_in_float(e, "scale", 1)));
  return at_give_cast(e, WHERE(LE(x, at_f(0.0)), below, outer), out);
}

aot_status_t at_dc_softplus_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = grad_output(e), scaled = MUL(at_math(e, IN("self")), IN("beta"));
  return at_give_cast(e, WHERE(GT(scaled, IN("threshold")), g, MUL(g, SIGMOID(scaled))), out);
}

aot_status_t at_dc_log_sigmoid_backward(at_emit_t *e, aot_value_t *out) {
  return at_give_cast(e, MUL(grad_output(e), SIGMOID(NEG(at_math(e, IN("self"))))), out);
}

/* ---- dropout ---- */

aot_status_t at_dc_dropout(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("input");
  if (!at_in_int(e, "train", 0) || at_in_float(e, "p", 0.5) == 0.0) return at_give(e, x, out);
  return at_give(e, AT(e, "native_dropout", x, IN("p"), at_b(1)), out);
}

/* mask = uniform > p; x * mask / (1 - p) */
aot_status_t at_dc_native_dropout(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("input"), mask;
  double p = at_in_float(e, "p", 0.5);
  int train = at_in_int(e, "train", 1) != 0;
  if (!train || p == 0.0 || p == 1.0) {
    int keep = !train || p == 0.0;
    out[0] = VAL(keep ? AT(e, "clone", x) : AT(e, "full_like", x, at_f(0.0)));
    out[1] = VAL(AT(e, "full_like", x, at_b(keep), at_dtype_of(AOT_BOOL)));
    return e->status;
  }
  mask = GT(AT(e, "rand_like", x, at_dtype_of(AOT_F32)), at_f(p));
  out[0] = VAL(at_cast(e, MUL(MUL(x, mask), at_f(1.0 / (1.0 - p))), TYPE(x).dtype));
  out[1] = VAL(mask);
  return e->status;
}

aot_status_t at_dc_native_dropout_backward(at_emit_t *e, aot_value_t *out) {
  return at_give_cast(e, MUL(MUL(IN("grad_output"), IN("mask")), IN("scale")), out);
}

/* ---- copies and fills ---- */

aot_status_t at_dc_to(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self");
  aot_type_t from = TYPE(x), to = at_result_type(e, 0);
  int64_t format = at_in_int(e, "memory_format", AOT_MEMORY_PRESERVE);
  if (from.dtype == to.dtype && from.device == to.device && format == AOT_MEMORY_PRESERVE && !at_in_int(e, "copy", 0))
    return at_give(e, x, out);
  return at_give(e, AT(e, "_to_copy", x, at_dtype_of(to.dtype), at_none(),
                       aot_arg_int_kind(AOT_ARG_DEVICE, to.device + 256 * ((int64_t)to.device_index + 1)), at_none(), at_b(0),
                       at_in_has(e, "memory_format") ? IN("memory_format") : at_none()), out);
}

aot_status_t at_dc_conj_physical(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("self");
  return at_give(e, aot_dtype_is_complex(TYPE(x).dtype) ? AT(e, "_conj_physical", x) : x, out);
}

aot_status_t at_dc_copy(at_emit_t *e, aot_value_t *out) {
  at_x self = IN("self"), src = IN("src");
  aot_type_t t = TYPE(self);
  src = at_cast(e, src, t.dtype);
  return at_give(e, AT(e, "clone", at_expanded(e, src, t.sizes, t.rank)), out);
}

aot_status_t at_dc_lift_fresh_copy(at_emit_t *e, aot_value_t *out) { return at_give(e, AT(e, "clone", IN("self")), out); }

aot_status_t at_dc_fill(at_emit_t *e, aot_value_t *out) {
  at_x self = IN("self"), value = IN("value");
  aot_type_t t = TYPE(self);
  if (value.kind != AOT_ARG_VALUE) return at_give(e, AT(e, "full_like", self, value), out);
  return at_give(e, AT(e, "clone", at_expanded(e, at_cast(e, value, t.dtype), t.sizes, t.rank)), out);
}

/* zeros, ones, empty, new_*, *_like: a full of the result's type. empty is zeros: any contents will do. */
aot_status_t at_dc_full(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  at_x value = at_in_has(e, "fill_value") ? IN("fill_value") : strstr(e->row->name, "ones") ? at_i(1) : at_i(0), y;
  if (aot_dtype_is_float(t.dtype) && value.kind == AOT_ARG_INT) value = at_f((double)value.u.i);
  y = AT(e, "full", at_list(e, t.sizes, (uint32_t)t.rank), value, at_dtype_of(t.dtype), at_none(),
         aot_arg_int_kind(AOT_ARG_DEVICE, t.device + 256 * ((int64_t)t.device_index + 1)));
  if (!at_is_contiguous(e->infer, &t) && at_is_channels_last(e->infer, &t))
    y = AT(e, "clone", y, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT,
                                           t.rank == 4 ? AOT_MEMORY_CHANNELS_LAST : AOT_MEMORY_CHANNELS_LAST_3D));
  return at_give(e, y, out);
}

/* ---- rrelu: in evaluation leaky_relu with the mean of the slopes ---- */

static at_x mean_slope(at_emit_t *e) { return at_f((at_in_float(e, "lower", 1.0 / 8) + at_in_float(e, "upper", 1.0 / 3)) / 2); }

static at_x rrelu(at_emit_t *e) {
  if (at_in_int(e, "training", 0))
    at_emit_fail(e, "put the stage rng before autograd", "%s in training draws random slopes", e->row->name);
  return AT(e, "leaky_relu", IN("self"), mean_slope(e));
}

aot_status_t at_dc_rrelu(at_emit_t *e, aot_value_t *out) { return at_give(e, rrelu(e), out); }

/* The functional form gives the noise, too: as it came, in evaluation. */
aot_status_t at_dc_rrelu_noise(at_emit_t *e, aot_value_t *out) {
  out[1] = VAL(AT(e, "clone", IN("noise")));
  return at_give(e, rrelu(e), out);
}

/* rrelu_with_noise, in place too. Evaluation leaves the noise alone. */
aot_status_t at_fn_rrelu(at_emit_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  int in_place = e->desc->args[0].flags & AOT_SARG_WRITE ? 1 : 0, training = at_in_int(e, "training", 0) != 0;
  at_x y, noise = IN("noise");
  if (training) {
    at_x both = AT(e, "rrelu_with_noise_functional", IN("self"), noise, IN("lower"), IN("upper"), at_b(1));
    y = at_nth(both, 0);
    noise = at_nth(both, 1);
  } else {
    y = rrelu(e);
  }
  out_results[0] = VAL(y);
  if (in_place) out_written[0] = out_results[0];
  if (in_place || training) out_written[in_place] = VAL(noise);
  return e->status;
}

/* In training noise holds the slopes, 1 where x is positive; PyTorch takes slopes that hardly differ for fixed. */
aot_status_t at_dc_rrelu_backward(at_emit_t *e, aot_value_t *out) {
  double spread = at_in_float(e, "upper", 1.0 / 3) - at_in_float(e, "lower", 1.0 / 8);
  if (at_in_int(e, "training", 0) && spread > 1e-6) return at_give_cast(e, MUL(IN("grad_output"), IN("noise")), out);
  return at_give(e, AT(e, "leaky_relu_backward", IN("grad_output"), IN("self"), mean_slope(e), IN("self_is_result")), out);
}
