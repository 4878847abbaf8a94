/* Elementwise operators in terms of arithmetic, comparisons, exp, log, erf, tanh, sigmoid.
 *
 * Half and bfloat16 are computed in float32 and rounded once, as PyTorch's kernels do. Formulas: the definitions in
 * PyTorch's documentation; derivatives by hand. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

static int is(const em_t *e, const char *name) { return strcmp(at_name(e) + sizeof "aten." - 1, name) == 0; }

/* ---- renamings ---- */

aot_status_t at_dc_square(em_t *e, aot_value_t *out) {
  em_x_t x = em_cast(e, IN("self"), at_result_type(e, 0).dtype);
  return at_give(e, MUL(x, x), out);
}

aot_status_t at_dc_max_other(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, is(e, "max.other") ? "maximum" : "minimum", IN("self"), IN("other")), out);
}

aot_status_t at_dc_rsub(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "sub.Tensor", IN("other"), IN("self"), IN("alpha")), out);
}

aot_status_t at_dc_where(em_t *e, aot_value_t *out) {
  return at_give_cast(e, WHERE(IN("condition"), IN("self"), IN("other")), out);
}

aot_status_t at_dc_masked_fill(em_t *e, aot_value_t *out) {
  return at_give_cast(e, WHERE(IN("mask"), IN("value"), IN("self")), out);
}

aot_status_t at_dc_floor_divide(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "div.Tensor_mode", IN("self"), IN("other"), aot_arg_str(aot_str("floor"))), out);
}

aot_status_t at_dc_clamp_one(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "clamp", IN("self"), IN("min"), IN("max")), out);
}

aot_status_t at_dc_hardtanh(em_t *e, aot_value_t *out) {
  em_x_t low = at_in_has(e, "min_val") ? IN("min_val") : em_f(0.0),
         high = at_in_has(e, "max_val") ? IN("max_val") : em_f(6.0);
  return at_give_cast(e, EM(e, "clamp", IN("self"), low, high), out);
}

/* ---- tests ---- */

aot_status_t at_dc_isnan(em_t *e, aot_value_t *out) { return at_give(e, NE(IN("self"), IN("self")), out); }

aot_status_t at_dc_isinf(em_t *e, aot_value_t *out) { return at_give(e, EQ(ABS(IN("self")), em_f(INFINITY)), out); }

aot_status_t at_dc_isfinite(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  if (at_is_integral(TYPE(x).dtype)) return at_give(e, EQ(x, x), out);
  return at_give(e, LT(ABS(x), em_f(INFINITY)), out);
}

/* ---- arithmetic ---- */

aot_status_t at_dc_addcmul(em_t *e, aot_value_t *out) {
  em_x_t a = at_math(e, IN("tensor1")), b = at_math(e, IN("tensor2"));
  em_x_t product = is(e, "addcmul.default") ? MUL(a, b) : DIV(a, b);
  return at_give_cast(e, EM(e, "add.Tensor", at_math(e, IN("self")), product, IN("value")), out);
}

/* PyTorch's two forms, each exact at its end of the interval. */
aot_status_t at_dc_lerp(em_t *e, aot_value_t *out) {
  em_x_t a = at_math(e, IN("self")), b = at_math(e, IN("end")), w = at_math(e, IN("weight")), d = SUB(b, a);
  if (w.kind == AOT_ARG_VALUE)
    return at_give_cast(e, WHERE(LT(ABS(w), em_f(0.5)), ADD(a, MUL(w, d)), SUB(b, MUL(d, SUB(em_f(1.0), w)))), out);
  if (fabs(em_in_float(e, "weight", 0)) < 0.5) return at_give_cast(e, ADD(a, MUL(d, w)), out);
  return at_give_cast(e, SUB(b, MUL(d, em_f(1.0 - em_in_float(e, "weight", 0)))), out);
}

aot_status_t at_dc_xlogy(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), y = IN("other");
  return at_give_cast(e, WHERE(EQ(x, em_f(0.0)), em_f(0.0), MUL(x, LOG(y))), out);
}

/* ---- activations ---- */

static em_x_t clamped_plus_3(em_t *e, em_x_t x) { return EM(e, "clamp", ADD(x, em_f(3.0)), em_f(0.0), em_f(6.0)); }

aot_status_t at_dc_silu(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  return at_give_cast(e, MUL(x, SIGMOID(x)), out);
}

static em_x_t softplus(em_t *e, em_x_t x) { /* log(1 + exp(x)) without overflow */
  return ADD(EM(e, "clamp", x, em_f(0.0)), LOG1P(EXP(NEG(ABS(x)))));
}

aot_status_t at_dc_mish(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  return at_give_cast(e, MUL(x, TANH(softplus(e, x))), out);
}

aot_status_t at_dc_hardswish(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  return at_give_cast(e, DIV(MUL(x, clamped_plus_3(e, x)), em_f(6.0)), out);
}

aot_status_t at_dc_hardsigmoid(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  return at_give_cast(e, DIV(clamped_plus_3(e, x), em_f(6.0)), out);
}

aot_status_t at_dc_leaky_relu(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  return at_give_cast(e, WHERE(GT(x, em_f(0.0)), x, MUL(x, IN("negative_slope"))), out);
}

aot_status_t at_dc_elu(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), alpha = at_in_has(e, "alpha") ? IN("alpha") : em_f(1.0);
  em_x_t inner = at_in_has(e, "input_scale") ? MUL(x, IN("input_scale")) : x, y;
  if (is(e, "celu.default")) inner = DIV(x, alpha);
  y = WHERE(GT(x, em_f(0.0)), x, MUL(EM(e, "expm1", inner), alpha));
  return at_give_cast(e, at_in_has(e, "scale") ? MUL(y, IN("scale")) : y, out);
}

aot_status_t at_dc_softplus(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), scaled = MUL(x, IN("beta"));
  return at_give_cast(e, WHERE(GT(scaled, IN("threshold")), x, DIV(LOG1P(EXP(scaled)), IN("beta"))), out);
}

aot_status_t at_dc_log_sigmoid(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), z = EXP(NEG(ABS(x)));
  at_give_cast(e, SUB(EM(e, "clamp", x, em_none(), em_f(0.0)), LOG1P(z)), out);
  if (e->desc->n_results == 2) out[1] = VAL(em_cast(e, z, at_result_type(e, 1).dtype));
  return e->status;
}

aot_status_t at_dc_prelu(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), w = IN("weight");
  aot_type_t t = TYPE(x), tw = TYPE(w);
  if (is(e, "prelu.default") && tw.rank == 1 && t.rank > 1) w = at_along(e, w, 1, t.rank);
  if (t.rank == 0) w = at_reshaped(e, w, NULL, 0);
  return at_give_cast(e, WHERE(GT(x, em_f(0.0)), x, MUL(w, x)), out);
}

#define INV_SQRT2 0.70710678118654752440
#define INV_SQRT_2PI 0.39894228040143267794
#define SQRT_2_OVER_PI 0.79788456080286535588
#define GELU_CUBIC 0.044715

/* sqrt(2/pi) (x + 0.044715 x^3) */
static em_x_t gelu_inner(em_t *e, em_x_t x) {
  return MUL(ADD(x, MUL(MUL(MUL(x, x), x), em_f(GELU_CUBIC))), em_f(SQRT_2_OVER_PI));
}

aot_status_t at_dc_gelu(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  em_x_t gate = at_in_str_is(e, "approximate", "tanh") ? TANH(gelu_inner(e, x)) : EM(e, "erf", MUL(x, em_f(INV_SQRT2)));
  return at_give_cast(e, MUL(MUL(x, em_f(0.5)), ADD(gate, em_f(1.0))), out);
}

/* ---- their derivatives times g ---- */

static em_x_t grad_output(em_t *e) { return at_math(e, IN("grad_output")); }

aot_status_t at_dc_gelu_backward(em_t *e, aot_value_t *out) {
  em_x_t g = grad_output(e), x = at_math(e, IN("self")), slope, t;
  if (at_in_str_is(e, "approximate", "tanh")) {
    em_x_t inner = MUL(ADD(MUL(MUL(x, x), em_f(3.0 * GELU_CUBIC)), em_f(1.0)), em_f(SQRT_2_OVER_PI));
    t = TANH(gelu_inner(e, x));
    slope = ADD(MUL(ADD(t, em_f(1.0)), em_f(0.5)), MUL(MUL(MUL(x, em_f(0.5)), SUB(em_f(1.0), MUL(t, t))), inner));
  } else {
    em_x_t phi = MUL(EXP(MUL(MUL(x, x), em_f(-0.5))), em_f(INV_SQRT_2PI));
    t = MUL(ADD(EM(e, "erf", MUL(x, em_f(INV_SQRT2))), em_f(1.0)), em_f(0.5));
    slope = ADD(t, MUL(x, phi));
  }
  return at_give_cast(e, MUL(g, slope), out);
}

aot_status_t at_dc_sigmoid_backward(em_t *e, aot_value_t *out) {
  em_x_t y = at_math(e, IN("output"));
  return at_give_cast(e, MUL(MUL(grad_output(e), y), SUB(em_f(1.0), y)), out);
}

aot_status_t at_dc_tanh_backward(em_t *e, aot_value_t *out) {
  em_x_t y = at_math(e, IN("output"));
  return at_give_cast(e, MUL(grad_output(e), SUB(em_f(1.0), MUL(y, y))), out);
}

aot_status_t at_dc_threshold(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self"), keep = at_in_has(e, "grad_output") ? IN("grad_output") : x;
  em_x_t other = at_in_has(e, "value") ? IN("value") : em_f(0.0);
  return at_give_cast(e, WHERE(LE(x, IN("threshold")), other, keep), out);
}

aot_status_t at_dc_silu_backward(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), s = SIGMOID(x);
  return at_give_cast(e, MUL(MUL(grad_output(e), s), ADD(MUL(x, SUB(em_f(1.0), s)), em_f(1.0))), out);
}

aot_status_t at_dc_mish_backward(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self")), t = TANH(softplus(e, x)), s = SIGMOID(x);
  return at_give_cast(e, MUL(grad_output(e), ADD(t, MUL(MUL(x, s), SUB(em_f(1.0), MUL(t, t))))), out);
}

static em_x_t inside(em_t *e, em_x_t x, em_x_t low, em_x_t high) {
  return EM(e, "logical_and", GT(x, low), LT(x, high));
}

/* 0 below -3, g above 3, g (x/3 + 1/2) between */
aot_status_t at_dc_hardswish_backward(em_t *e, aot_value_t *out) {
  em_x_t g = grad_output(e), x = at_math(e, IN("self"));
  em_x_t between = MUL(g, ADD(DIV(x, em_f(3.0)), em_f(0.5)));
  return at_give_cast(e, WHERE(LE(x, em_f(-3.0)), em_f(0.0), WHERE(LT(x, em_f(3.0)), between, g)), out);
}

aot_status_t at_dc_hardsigmoid_backward(em_t *e, aot_value_t *out) {
  em_x_t g = grad_output(e), x = at_math(e, IN("self"));
  return at_give_cast(e, WHERE(inside(e, x, em_f(-3.0), em_f(3.0)), DIV(g, em_f(6.0)), em_f(0.0)), out);
}

aot_status_t at_dc_hardtanh_backward(em_t *e, aot_value_t *out) {
  em_x_t g = grad_output(e), x = at_math(e, IN("self"));
  return at_give_cast(e, WHERE(inside(e, x, IN("min_val"), IN("max_val")), g, em_f(0.0)), out);
}

aot_status_t at_dc_leaky_relu_backward(em_t *e, aot_value_t *out) {
  em_x_t g = grad_output(e), x = at_math(e, IN("self"));
  return at_give_cast(e, WHERE(GT(x, em_f(0.0)), g, MUL(g, IN("negative_slope"))), out);
}

aot_status_t at_dc_elu_backward(em_t *e, aot_value_t *out) {
  em_x_t g = grad_output(e), x = at_math(e, IN("self_or_result")), below;
  em_x_t outer = MUL(g, IN("scale")), inner = MUL(g, em_f(em_in_float(e, "input_scale", 1.0)));
  if (at_in_int(e, "is_result", 0)) below = MUL(inner, ADD(x, MUL(IN("alpha"), IN("scale"))));
  else
    below =
        MUL(MUL(inner, EXP(MUL(x, IN("input_scale")))), em_f(em_in_float(e, "alpha", 1) * em_in_float(e, "scale", 1)));
  return at_give_cast(e, WHERE(LE(x, em_f(0.0)), below, outer), out);
}

aot_status_t at_dc_softplus_backward(em_t *e, aot_value_t *out) {
  em_x_t g = grad_output(e), scaled = MUL(at_math(e, IN("self")), IN("beta"));
  return at_give_cast(e, WHERE(GT(scaled, IN("threshold")), g, MUL(g, SIGMOID(scaled))), out);
}

aot_status_t at_dc_log_sigmoid_backward(em_t *e, aot_value_t *out) {
  return at_give_cast(e, MUL(grad_output(e), SIGMOID(NEG(at_math(e, IN("self"))))), out);
}

/* ---- dropout ---- */

aot_status_t at_dc_dropout(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input");
  if (!at_in_int(e, "train", 0) || em_in_float(e, "p", 0.5) == 0.0) return at_give(e, x, out);
  return at_give(e, EM(e, "native_dropout", x, IN("p"), em_b(1)), out);
}

/* mask = uniform > p; x * mask / (1 - p) */
aot_status_t at_dc_native_dropout(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), mask;
  double p = em_in_float(e, "p", 0.5);
  int train = at_in_int(e, "train", 1) != 0;
  if (!train || p == 0.0 || p == 1.0) {
    int keep = !train || p == 0.0;
    out[0] = VAL(keep ? EM(e, "clone", x) : EM(e, "full_like", x, em_f(0.0)));
    out[1] = VAL(EM(e, "full_like", x, em_b(keep), em_dtype(AOT_BOOL)));
    return e->status;
  }
  mask = GT(EM(e, "rand_like", x, em_dtype(AOT_F32)), em_f(p));
  out[0] = VAL(em_cast(e, MUL(MUL(x, mask), em_f(1.0 / (1.0 - p))), TYPE(x).dtype));
  out[1] = VAL(mask);
  return e->status;
}

aot_status_t at_dc_native_dropout_backward(em_t *e, aot_value_t *out) {
  return at_give_cast(e, MUL(MUL(IN("grad_output"), IN("mask")), IN("scale")), out);
}

/* ---- copies and fills ---- */

aot_status_t at_dc_to(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  aot_type_t from = TYPE(x), to = at_result_type(e, 0);
  int64_t format = at_in_int(e, "memory_format", AOT_MEMORY_PRESERVE);
  if (from.dtype == to.dtype && from.device == to.device && format == AOT_MEMORY_PRESERVE && !at_in_int(e, "copy", 0))
    return at_give(e, x, out);
  return at_give(e,
                 EM(e, "_to_copy", x, em_dtype(to.dtype), em_none(), em_device(to.device, to.device_index), em_none(),
                    em_b(0), at_in_has(e, "memory_format") ? IN("memory_format") : em_none()),
                 out);
}

aot_status_t at_dc_conj_physical(em_t *e, aot_value_t *out) {
  em_x_t x = IN("self");
  return at_give(e, aot_dtype_is_complex(TYPE(x).dtype) ? EM(e, "_conj_physical", x) : x, out);
}

aot_status_t at_dc_copy(em_t *e, aot_value_t *out) {
  em_x_t self = IN("self"), src = IN("src");
  aot_type_t t = TYPE(self);
  src = em_cast(e, src, t.dtype);
  return at_give(e, EM(e, "clone", at_expanded(e, src, t.sizes, t.rank)), out);
}

aot_status_t at_dc_lift_fresh_copy(em_t *e, aot_value_t *out) { return at_give(e, EM(e, "clone", IN("self")), out); }

aot_status_t at_dc_fill(em_t *e, aot_value_t *out) {
  em_x_t self = IN("self"), value = IN("value");
  aot_type_t t = TYPE(self);
  if (value.kind != AOT_ARG_VALUE) return at_give(e, EM(e, "full_like", self, value), out);
  return at_give(e, EM(e, "clone", at_expanded(e, em_cast(e, value, t.dtype), t.sizes, t.rank)), out);
}

/* zeros, ones, empty, new_*, *_like: a full of the result's type. empty is zeros: any contents will do. */
aot_status_t at_dc_full(em_t *e, aot_value_t *out) {
  aot_type_t t = at_result_type(e, 0);
  em_x_t value = at_in_has(e, "fill_value") ? IN("fill_value") : strstr(at_name(e), "ones") ? em_i(1) : em_i(0), y;
  if (aot_dtype_is_float(t.dtype) && value.kind == AOT_ARG_INT) value = em_f((double)value.u.i);
  y = EM(e, "full", em_list(e, t.sizes, (uint32_t)t.rank), value, em_dtype(t.dtype), em_none(),
         em_device(t.device, t.device_index));
  if (!at_is_contiguous(at_infer(e), &t) && at_is_channels_last(at_infer(e), &t))
    y = EM(
        e, "clone", y,
        aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, t.rank == 4 ? AOT_MEMORY_CHANNELS_LAST : AOT_MEMORY_CHANNELS_LAST_3D));
  return at_give(e, y, out);
}

/* ---- rrelu: in evaluation leaky_relu with the mean of the slopes ---- */

static em_x_t mean_slope(em_t *e) {
  return em_f((em_in_float(e, "lower", 1.0 / 8) + em_in_float(e, "upper", 1.0 / 3)) / 2);
}

static em_x_t rrelu(em_t *e) {
  if (at_in_int(e, "training", 0))
    em_fail(e, AOT_E_UNIMPLEMENTED, "put the stage rng before autograd", "%s in training draws random slopes",
            at_name(e));
  return EM(e, "leaky_relu", IN("self"), mean_slope(e));
}

aot_status_t at_dc_rrelu(em_t *e, aot_value_t *out) { return at_give(e, rrelu(e), out); }

/* The functional form gives the noise, too: as it came, in evaluation. */
aot_status_t at_dc_rrelu_noise(em_t *e, aot_value_t *out) {
  out[1] = VAL(EM(e, "clone", IN("noise")));
  return at_give(e, rrelu(e), out);
}

/* rrelu_with_noise, in place too. Evaluation leaves the noise alone. */
aot_status_t at_fn_rrelu(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  int in_place = e->desc->args[0].flags & AOT_SARG_WRITE ? 1 : 0, training = at_in_int(e, "training", 0) != 0;
  em_x_t y, noise = IN("noise");
  if (training) {
    em_x_t both = EM(e, "rrelu_with_noise_functional", IN("self"), noise, IN("lower"), IN("upper"), em_b(1));
    y = em_nth(both, 0);
    noise = em_nth(both, 1);
  } else {
    y = rrelu(e);
  }
  out_results[0] = VAL(y);
  if (in_place) out_written[0] = out_results[0];
  if (in_place || training) out_written[in_place] = VAL(noise);
  return e->status;
}

/* In training noise holds the slopes, 1 where x is positive; PyTorch takes slopes that hardly differ for fixed. */
aot_status_t at_dc_rrelu_backward(em_t *e, aot_value_t *out) {
  double spread = em_in_float(e, "upper", 1.0 / 3) - em_in_float(e, "lower", 1.0 / 8);
  if (at_in_int(e, "training", 0) && spread > 1e-6) return at_give_cast(e, MUL(IN("grad_output"), IN("noise")), out);
  return at_give(e, EM(e, "leaky_relu_backward", IN("grad_output"), IN("self"), mean_slope(e), IN("self_is_result")),
                 out);
}
