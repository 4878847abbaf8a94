/* Quantization. A grid is scale s, zero point z and the range of its integers:
 *
 *     q = round(x / s) + z      kept where min <= q <= max      fake quantized: (clamp(q) - z) s
 *
 * Gradients pass straight through where q was kept (Bengio et al. 2013). Learned grids: Esser et al. 2020 for the scale,
 * Jain et al. 2020 for the zero point. PyTorch multiplies by 1 / s in float32, which decides ties; so do these. */
#include "at_formula.h"

#include <string.h>

typedef struct grid {
  at_x scale, inverse, zero;
  int64_t min, max;
  int whole;       /* PyTorch makes q an int64: what none can hold, infinities too, is below the range */
  int rounded_sum; /* x / s + z is rounded, not x / s: so with a zero point that is no integer */
} grid_t;

static int is(const at_emit_t *e, const char *part) { return strstr(e->row->name, part) != NULL; }

/* q; NaN is below the range. */
static at_x steps(at_emit_t *e, const grid_t *g, at_x x) {
  at_x q = MUL(x, g->inverse);
  q = g->rounded_sum ? AT(e, "round", ADD(q, g->zero)) : ADD(AT(e, "round", q), g->zero);
  return WHERE(g->whole ? LT(ABS(q), at_f(9223372036854775808.0)) : EQ(q, q), q, at_f((double)g->min - 1));
}

static at_x within(at_emit_t *e, const grid_t *g, at_x q) {
  return AT(e, "logical_and", GE(q, at_i(g->min)), LE(q, at_i(g->max)));
}

static at_x from_grid(at_emit_t *e, const grid_t *g, at_x q) {
  return MUL(SUB(AT(e, "clamp", q, at_i(g->min), at_i(g->max)), g->zero), g->scale);
}

/* The scale is a number, a tensor of one element, or one of an element each channel. */
static grid_t grid_of(at_emit_t *e, at_x x) {
  grid_t g = {.scale = IN("scale"), .zero = IN("zero_point")};
  const aot_type_t t = TYPE(x);
  g.min = at_in_int(e, "quant_min", 0);
  g.max = at_in_int(e, "quant_max", 0);
  g.whole = is(e, "per_channel") || is(e, "backward");
  if (g.scale.kind != AOT_ARG_VALUE) {
    const float scale = (float)at_in_float(e, "scale", 1.0);
    g.scale = at_f((double)scale);
    g.inverse = at_f((double)(1.0f / scale));
    return g;
  }
  if (is(e, "per_channel")) {
    const int32_t axis = at_wrap(e->infer, at_in_int(e, "axis", 0), t.rank);
    g.rounded_sum = !at_is_integral(TYPE(g.zero).dtype);
    g.scale = at_along(e, g.scale, axis, t.rank);
    g.zero = at_along(e, g.zero, axis, t.rank);
  } else {
    g.scale = at_reshaped(e, g.scale, NULL, 0);
    g.zero = at_reshaped(e, g.zero, NULL, 0);
  }
  g.inverse = DIV(at_f(1.0), g.scale);
  return g;
}

/* ---- fake quantization: the grid is given ---- */

aot_status_t at_dc_fake_quantize(at_emit_t *e, aot_value_t *out) {
  at_x self = IN("self"), scale = IN("scale"), zero = IN("zero_point"), min = IN("quant_min"), max = IN("quant_max"), enabled;
  if (is(e, "per_channel"))
    return at_give(e, AT(e, "fake_quantize_per_channel_affine_cachemask", self, scale, zero, IN("axis"), min, max), out);
  if (scale.kind != AOT_ARG_VALUE)
    return at_give(e, AT(e, "fake_quantize_per_tensor_affine_cachemask", self, scale, zero, min, max), out);
  enabled = at_filled(e, (const int64_t[]){1}, 1, at_i(1), AOT_I64, self);
  return at_give(e, AT(e, "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", self, scale, zero, enabled, min, max), out);
}

aot_status_t at_dc_fake_quantize_cachemask(at_emit_t *e, aot_value_t *out) {
  at_x self = IN("self"), x = at_math(e, self), enabled = IN("fake_quant_enabled"), q, y, mask;
  const grid_t g = grid_of(e, x);
  q = steps(e, &g, x);
  y = from_grid(e, &g, q);
  mask = within(e, &g, q);
  if (!at_is_none(enabled)) {
    enabled = NE(at_reshaped(e, enabled, NULL, 0), at_i(0));
    y = WHERE(enabled, y, x);
    mask = AT(e, "logical_or", mask, AT(e, "logical_not", enabled));
  }
  out[0] = VAL(at_cast(e, y, TYPE(self).dtype));
  out[1] = VAL(mask);
  return e->status;
}

aot_status_t at_dc_fake_quantize_backward(at_emit_t *e, aot_value_t *out) {
  return at_give_cast(e, MUL(IN("grad"), IN("mask")), out);
}

/* ---- fake quantization: the grid is learned ---- */

/* The zero point as an integer within the range. PyTorch's backward for a whole tensor adds 1/2 and drops the rest; the one
 * for channels rounds x / s + z. */
static grid_t learned_grid(at_emit_t *e, at_x x) {
  grid_t g = grid_of(e, x);
  const int adds_half = is(e, "backward") && is(e, "per_tensor");
  at_x z = adds_half ? ADD(g.zero, at_f(0.5)) : AT(e, "round", g.zero);
  z = AT(e, "clamp", z, at_i(g.min), at_i(g.max));
  g.zero = adds_half ? AT(e, "trunc", z) : z;
  g.rounded_sum = is(e, "backward") && !is(e, "per_tensor");
  return g;
}

aot_status_t at_dc_fake_quantize_learnable(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  const grid_t g = learned_grid(e, x);
  return at_give_cast(e, from_grid(e, &g, steps(e, &g, x)), out);
}

/* Over all dimensions but the channels', in the shape of the parameter. */
static at_x over_channels(at_emit_t *e, at_x x, at_x like) {
  const aot_type_t t = TYPE(x), to = TYPE(like);
  const int32_t axis = is(e, "per_channel") ? at_wrap(e->infer, at_in_int(e, "axis", 0), t.rank) : -1;
  int64_t dims[AOT_MAX_RANK];
  uint32_t n = 0;
  for (int32_t d = 0; d < t.rank; d++)
    if (d != axis) dims[n++] = d;
  return at_cast(e, at_reshaped(e, at_summed(e, x, dims, n, 0), to.sizes, to.rank), to.dtype);
}

aot_status_t at_dc_fake_quantize_learnable_backward(at_emit_t *e, aot_value_t *out) {
  at_x self = IN("self"), x = at_math(e, self), grad = at_math(e, IN("grad")), factor = IN("grad_factor");
  at_x q, kept, low, high, by_scale, by_zero;
  const grid_t g = learned_grid(e, x);
  q = steps(e, &g, x);
  kept = within(e, &g, q);
  low = MUL(grad, SUB(at_i(g.min), g.zero));
  high = MUL(grad, SUB(at_i(g.max), g.zero));
  by_scale = MUL(MUL(grad, SUB(from_grid(e, &g, q), x)), g.inverse);
  by_scale = WHERE(kept, by_scale, WHERE(LT(q, at_i(g.min)), low, high));
  by_zero = WHERE(kept, at_f(0.0), NEG(MUL(grad, g.scale)));
  out[0] = VAL(at_cast(e, MUL(grad, kept), TYPE(self).dtype));
  out[1] = VAL(over_channels(e, MUL(by_scale, factor), IN("scale")));
  out[2] = VAL(over_channels(e, MUL(by_zero, factor), IN("zero_point")));
  return e->status;
}

/* ---- integers and back, as exported programs say it ---- */

/* Scale and zero point of each element, x reshaped where they belong to stretches of rows. */
static void broadcast_grid(at_emit_t *e, at_x *x, at_x *scale, at_x *zero) {
  const aot_type_t t = TYPE(*x);
  const int plural = at_in_has(e, "scales");
  *scale = IN(plural ? "scales" : "scale");
  *zero = IN(plural ? "zero_points" : "zero_point");
  if (is(e, "per_channel_group")) {
    int64_t length = at_in_int(e, "group_size", 128), column[2], rows[2];
    if (at_hint(e->infer, length) > at_hint(e->infer, t.sizes[t.rank - 1])) length = t.sizes[t.rank - 1];
    rows[0] = column[0] = at_floordiv(e->infer, at_numel(e->infer, t.sizes, t.rank), length);
    rows[1] = length;
    column[1] = 1;
    *x = at_reshaped(e, *x, rows, 2);
    *scale = at_reshaped(e, *scale, column, 2);
    if (!at_is_none(*zero)) *zero = at_reshaped(e, *zero, column, 2);
  } else if (is(e, "per_channel")) {
    const int32_t axis = at_wrap(e->infer, at_in_int(e, "axis", 0), t.rank);
    *scale = at_along(e, *scale, axis, t.rank);
    *zero = at_along(e, *zero, axis, t.rank);
  } else if (!plural && scale->kind == AOT_ARG_VALUE) {
    *scale = at_cast(e, at_reshaped(e, *scale, NULL, 0), AOT_F64);
    *zero = at_reshaped(e, *zero, NULL, 0);
  }
}

static at_x limit(at_emit_t *e, const char *name) {
  at_x x = IN(name);
  return x.kind == AOT_ARG_VALUE ? at_reshaped(e, x, NULL, 0) : x;
}

aot_status_t at_dc_quantize(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("input"), scale, inverse, zero, q, min = limit(e, "quant_min"), max = limit(e, "quant_max");
  const aot_type_t t = TYPE(x);
  const int by_rows = is(e, "per_token") || is(e, "per_channel_group"); /* round the sum; in the input's dtype */
  if (!by_rows) x = at_math(e, x);
  broadcast_grid(e, &x, &scale, &zero);
  if (scale.kind != AOT_ARG_VALUE) inverse = at_f((double)(float)(1.0 / at_in_float(e, "scale", 1.0)));
  else inverse = DIV(at_f(1.0), scale);
  q = MUL(x, is(e, "per_tensor") && scale.kind == AOT_ARG_VALUE ? at_cast(e, inverse, AOT_F32) : inverse);
  q = by_rows ? AT(e, "round", ADD(q, zero)) : ADD(AT(e, "round", q), zero);
  q = min.kind == AOT_ARG_VALUE ? AT(e, "clamp.Tensor", q, min, max) : AT(e, "clamp", q, min, max);
  return at_give_cast(e, at_reshaped(e, q, t.sizes, t.rank), out);
}

aot_status_t at_dc_dequantize(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("input"), scale, zero;
  const aot_type_t t = TYPE(x);
  broadcast_grid(e, &x, &scale, &zero);
  if (is(e, "per_tensor")) x = at_cast(e, x, at_result_type(e, 0).dtype);
  if (!at_is_none(zero)) x = SUB(x, zero);
  return at_give_cast(e, at_reshaped(e, MUL(x, scale), t.sizes, t.rank), out);
}

/* The range of the input, 0 within it, divided among the integers; around 0 in the symmetric form. */
aot_status_t at_dc_choose_qparams(at_emit_t *e, aot_value_t *out) {
  at_x x = IN("input"), scale, zero;
  at_x low = AT(e, "clamp_max", AT(e, "amin", x), at_i(0)), high = AT(e, "clamp_min", AT(e, "amax", x), at_i(0));
  const int64_t min = at_in_int(e, "quant_min", 0), max = at_in_int(e, "quant_max", 0), one = 1;
  at_x least = at_filled(e, &one, 1, IN("eps"), AOT_F32, x);
  if (is(e, "symmetric")) {
    scale = AT(e, "maximum", DIV(AT(e, "maximum", NEG(low), high), at_f((double)(max - min) / 2)), least);
    zero = at_filled(e, &one, 1, at_i(at_in_int(e, "dtype", 0) == AOT_U8 ? 128 : 0), AOT_I64, x);
  } else {
    scale = AT(e, "maximum", DIV(SUB(high, low), at_f((double)(max - min))), least);
    zero = SUB(at_i(min), at_cast(e, AT(e, "round", DIV(low, scale)), AOT_I32));
    zero = AT(e, "clamp", zero, at_i(min), at_i(max));
  }
  out[0] = VAL(at_cast(e, scale, AOT_F64));
  out[1] = VAL(at_cast(e, zero, AOT_I64));
  return e->status;
}
