/* Quantization. A grid is scale s, zero point z and the range of its integers:
 *
 *     q = round(x / s) + z      stored where min <= q <= max      fake quantized: (clamp(q) - z) s
 *
 * Gradients pass straight through where q was kept (Bengio et al. 2013). Learned grids: Esser et al. 2020 for the
 * scale, Jain et al. 2020 for the zero point. PyTorch multiplies by 1 / s in float32, which decides ties; so do
 * these. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

typedef struct grid {
  em_x_t scale, inverse, zero;
  int64_t min, max;
  int whole;       /* PyTorch makes q an int64: what none can hold, infinities too, is below the range */
  int rounded_sum; /* x / s + z is rounded, not x / s: so with a zero point that is no integer */
} grid_t;

static int is(const em_t *e, const char *part) { return strstr(at_name(e), part) != NULL; }

/* q; NaN is below the range. */
static em_x_t steps(em_t *e, const grid_t *g, em_x_t x) {
  em_x_t q = MUL(x, g->inverse);
  q = g->rounded_sum ? EM(e, "round", ADD(q, g->zero)) : ADD(EM(e, "round", q), g->zero);
  return WHERE(g->whole ? LT(ABS(q), em_f(9223372036854775808.0)) : EQ(q, q), q, em_f((double)g->min - 1));
}

static em_x_t within(em_t *e, const grid_t *g, em_x_t q) {
  return EM(e, "logical_and", GE(q, em_i(g->min)), LE(q, em_i(g->max)));
}

static em_x_t from_grid(em_t *e, const grid_t *g, em_x_t q) {
  return MUL(SUB(EM(e, "clamp", q, em_i(g->min), em_i(g->max)), g->zero), g->scale);
}

/* The scale is a number, a tensor of one element, or one of an element each channel. */
static grid_t grid_of(em_t *e, em_x_t x) {
  grid_t g = {.scale = IN("scale"), .zero = IN("zero_point")};
  const aot_type_t t = TYPE(x);
  g.min = at_in_int(e, "quant_min", 0);
  g.max = at_in_int(e, "quant_max", 0);
  g.whole = is(e, "per_channel") || is(e, "backward");
  if (g.scale.kind != AOT_ARG_VALUE) {
    const float scale = (float)em_in_float(e, "scale", 1.0);
    g.scale = em_f((double)scale);
    g.inverse = em_f((double)(1.0f / scale));
    return g;
  }
  if (is(e, "per_channel")) {
    const int32_t axis = at_wrap(at_infer(e), at_in_int(e, "axis", 0), t.rank);
    g.rounded_sum = !at_is_integral(TYPE(g.zero).dtype);
    g.scale = at_along(e, g.scale, axis, t.rank);
    g.zero = at_along(e, g.zero, axis, t.rank);
  } else {
    g.scale = at_reshaped(e, g.scale, NULL, 0);
    g.zero = at_reshaped(e, g.zero, NULL, 0);
  }
  g.inverse = DIV(em_f(1.0), g.scale);
  return g;
}

/* ---- fake quantization: the grid is given ---- */

aot_status_t at_dc_fake_quantize(em_t *e, aot_value_t *out) {
  em_x_t self = IN("self"), scale = IN("scale"), zero = IN("zero_point"), min = IN("quant_min"), max = IN("quant_max"),
         enabled;
  if (is(e, "per_channel"))
    return at_give(e, EM(e, "fake_quantize_per_channel_affine_cachemask", self, scale, zero, IN("axis"), min, max),
                   out);
  if (scale.kind != AOT_ARG_VALUE)
    return at_give(e, EM(e, "fake_quantize_per_tensor_affine_cachemask", self, scale, zero, min, max), out);
  enabled = at_filled(e, (const int64_t[]){1}, 1, em_i(1), AOT_I64, self);
  return at_give(
      e, EM(e, "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", self, scale, zero, enabled, min, max), out);
}

aot_status_t at_dc_fake_quantize_cachemask(em_t *e, aot_value_t *out) {
  em_x_t self = IN("self"), x = at_math(e, self), enabled = IN("fake_quant_enabled"), q, y, mask;
  const grid_t g = grid_of(e, x);
  q = steps(e, &g, x);
  y = from_grid(e, &g, q);
  mask = within(e, &g, q);
  if (!em_is_none(enabled)) {
    enabled = NE(at_reshaped(e, enabled, NULL, 0), em_i(0));
    y = WHERE(enabled, y, x);
    mask = EM(e, "logical_or", mask, EM(e, "logical_not", enabled));
  }
  out[0] = VAL(em_cast(e, y, TYPE(self).dtype));
  out[1] = VAL(mask);
  return e->status;
}

aot_status_t at_dc_fake_quantize_backward(em_t *e, aot_value_t *out) {
  return at_give_cast(e, MUL(IN("grad"), IN("mask")), out);
}

/* As a library of PyTorch computes it: infinities are beyond the range, NaN stays. */
aot_status_t at_dc_fake_quant_per_channel(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), q, scale, zero;
  const aot_type_t t = TYPE(x);
  const int32_t axis = at_wrap(at_infer(e), at_in_int(e, "axis", 0), t.rank);
  scale = at_along(e, em_cast(e, IN("scales"), AOT_F32), axis, t.rank);
  zero = at_along(e, em_cast(e, IN("zero_points"), AOT_I32), axis, t.rank);
  q = ADD(EM(e, "round", MUL(x, DIV(em_f(1.0), scale))), zero);
  return at_give_cast(e, MUL(SUB(EM(e, "clamp", q, IN("quant_min"), IN("quant_max")), zero), scale), out);
}

/* ---- fake quantization: the grid follows the range ---- */

/* A moving average; the infinity that it starts from gives way to what is observed first. */
static em_x_t moved(em_t *e, em_x_t running, em_x_t observed, em_x_t on) {
  em_x_t next = ADD(running, MUL(SUB(observed, running), IN("averaging_const")));
  return WHERE(on, WHERE(EM(e, "isinf", running), observed, next), running);
}

/* Scale and zero point of the grid over low .. high, which is extended to hold 0: as Jacob et al. 2018 (section 2.1),
 * with what PyTorch's CPU kernel adds. A scale whose inverse is infinite is 0.1; a smaller one than 6.1e-5 is that, and
 * the interval grows along. Both ends say the zero point; the one with the smaller terms is believed. The scale is
 * rounded to float32 before, which decides ties. Symmetric: an interval around 0 has it in the middle. */
static void grid_over(em_t *e, em_x_t low, em_x_t high, em_x_t *scale, em_x_t *zero) {
  const int64_t min = at_in_int(e, "quant_min", 0), max = at_in_int(e, "quant_max", 0), half = (max - min) / 2;
  const em_x_t smallest = em_f((double)6.1e-5f);
  const int symmetric = at_in_int(e, "symmetric_quant", 0) != 0;
  em_x_t around = EM(e, "logical_and", LT(low, em_f(0.0)), GT(high, em_f(0.0))), grown, from_low, from_high, z;
  if (symmetric) {
    em_x_t step = EM(e, "maximum", ABS(DIV(low, em_i(half + 1))), ABS(DIV(high, em_i(half))));
    low = WHERE(around, MUL(step, em_i(-(half + 1))), low);
    high = WHERE(around, MUL(step, em_i(half)), high);
  }
  low = EM(e, "clamp_max", low, em_f(0.0));
  high = EM(e, "clamp_min", high, em_f(0.0));
  *scale = em_cast(e, DIV(SUB(em_cast(e, high, AOT_F64), em_cast(e, low, AOT_F64)), em_i(max - min)), AOT_F32);
  *scale = WHERE(EM(e, "isinf", DIV(em_f(1.0), *scale)), em_f((double)0.1f), *scale);
  grown = EM(e, "clamp_min", DIV(smallest, *scale), em_f(1.0));
  *scale = EM(e, "clamp_min", *scale, smallest);
  low = DIV(em_cast(e, MUL(low, grown), AOT_F64), *scale);
  high = DIV(em_cast(e, MUL(high, grown), AOT_F64), *scale);
  from_low = ADD(ABS(low), em_f(fabs((double)min)));
  from_high = ADD(ABS(high), em_f(fabs((double)max)));
  z = WHERE(LT(from_low, from_high), SUB(em_f((double)min), low), SUB(em_f((double)max), high));
  if (symmetric) z = WHERE(around, em_f((double)(min + max) / 2), z);
  *zero = EM(e, "round", EM(e, "clamp", z, em_i(min), em_i(max)));
}

/* The buffer's next content, in its shape and dtype. */
static aot_value_t stored_like(em_t *e, em_x_t x, const char *buffer) {
  const aot_type_t t = TYPE(IN(buffer));
  return VAL(em_cast(e, at_reshaped(e, x, t.sizes, t.rank), t.dtype));
}

aot_status_t at_dc_observed_fake_quantize(em_t *e, aot_value_t *out) {
  const int by_channel = at_in_int(e, "per_row_fake_quant", 0) != 0;
  em_x_t self = IN("self"), scale, zero, y, kept, on = NE(at_reshaped(e, IN("observer_on"), NULL, 0), em_i(0));
  em_x_t rounds = NE(at_reshaped(e, IN("fake_quant_on"), NULL, 0), em_i(0)), min = IN("quant_min"),
         max = IN("quant_max"), dims;
  const aot_type_t t = TYPE(self);
  int64_t others[AOT_MAX_RANK];
  const int32_t rank = by_channel ? 1 : 0; /* of ranges and grids: one a channel, or one */
  em_x_t low = at_reshaped(e, IN("running_min"), t.sizes, rank),
         high = at_reshaped(e, IN("running_max"), t.sizes, rank);
  for (int32_t d = rank; d < t.rank; d++) others[d - rank] = d;
  dims = em_list(e, others, (uint32_t)(t.rank - rank));
  low = moved(e, low, t.rank == rank ? self : EM(e, "amin", self, dims), on);
  high = moved(e, high, t.rank == rank ? self : EM(e, "amax", self, dims), on);
  grid_over(e, low, high, &scale, &zero);
  scale = WHERE(rounds, scale, at_reshaped(e, IN("scale"), t.sizes, rank));
  zero = WHERE(rounds, zero, at_reshaped(e, IN("zero_point"), t.sizes, rank));
  zero = em_cast(e, zero, TYPE(IN("zero_point")).dtype);
  if (by_channel) y = EM(e, "fake_quantize_per_channel_affine_cachemask", self, scale, zero, em_i(0), min, max);
  else y = EM(e, "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", self, scale, zero, rounds, min, max);
  kept = em_nth(y, 1);
  out[0] = VAL(by_channel ? WHERE(rounds, y, self) : y);
  out[1] = VAL(by_channel ? EM(e, "logical_or", kept, EM(e, "logical_not", rounds)) : kept);
  out[2] = stored_like(e, low, "running_min");
  out[3] = stored_like(e, high, "running_max");
  out[4] = stored_like(e, scale, "scale");
  out[5] = stored_like(e, zero, "zero_point");
  return e->status;
}

/* The twin's arguments are the same; after the results it has what the four buffers become. */
aot_status_t at_fn_observed_fake_quantize(em_t *e, aot_value_t *out_results, aot_value_t *out_written) {
  em_x_t y = em_call(e, "_fused_moving_avg_obs_fq_helper_functional", e->info.n_args, e->info.args);
  for (uint32_t i = 0; i < e->info.n_results; i++) out_results[i] = VAL(em_nth(y, i));
  for (uint32_t i = 0; i < 4; i++) out_written[i] = VAL(em_nth(y, 2 + i));
  return e->status;
}

/* ---- fake quantization: the grid is learned ---- */

/* The zero point as an integer within the range. PyTorch's backward for a whole tensor adds 1/2 and drops the rest; the
 * one for channels rounds x / s + z. */
static grid_t learned_grid(em_t *e, em_x_t x) {
  grid_t g = grid_of(e, x);
  const int adds_half = is(e, "backward") && is(e, "per_tensor");
  em_x_t z = adds_half ? ADD(g.zero, em_f(0.5)) : EM(e, "round", g.zero);
  z = EM(e, "clamp", z, em_i(g.min), em_i(g.max));
  g.zero = adds_half ? EM(e, "trunc", z) : z;
  g.rounded_sum = is(e, "backward") && !is(e, "per_tensor");
  return g;
}

aot_status_t at_dc_fake_quantize_learnable(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  const grid_t g = learned_grid(e, x);
  return at_give_cast(e, from_grid(e, &g, steps(e, &g, x)), out);
}

/* Over all dimensions but the channels', in the shape of the parameter. */
static em_x_t over_channels(em_t *e, em_x_t x, em_x_t like) {
  const aot_type_t t = TYPE(x), to = TYPE(like);
  const int32_t axis = is(e, "per_channel") ? at_wrap(at_infer(e), at_in_int(e, "axis", 0), t.rank) : -1;
  int64_t dims[AOT_MAX_RANK];
  uint32_t n = 0;
  for (int32_t d = 0; d < t.rank; d++)
    if (d != axis) dims[n++] = d;
  return em_cast(e, at_reshaped(e, at_summed(e, x, dims, n, 0), to.sizes, to.rank), to.dtype);
}

aot_status_t at_dc_fake_quantize_learnable_backward(em_t *e, aot_value_t *out) {
  em_x_t self = IN("self"), x = at_math(e, self), grad = at_math(e, IN("grad")), factor = IN("grad_factor");
  em_x_t q, kept, low, high, by_scale, by_zero;
  const grid_t g = learned_grid(e, x);
  q = steps(e, &g, x);
  kept = within(e, &g, q);
  low = MUL(grad, SUB(em_i(g.min), g.zero));
  high = MUL(grad, SUB(em_i(g.max), g.zero));
  by_scale = MUL(MUL(grad, SUB(from_grid(e, &g, q), x)), g.inverse);
  by_scale = WHERE(kept, by_scale, WHERE(LT(q, em_i(g.min)), low, high));
  by_zero = WHERE(kept, em_f(0.0), NEG(MUL(grad, g.scale)));
  out[0] = VAL(em_cast(e, MUL(grad, kept), TYPE(self).dtype));
  out[1] = VAL(over_channels(e, MUL(by_scale, factor), IN("scale")));
  out[2] = VAL(over_channels(e, MUL(by_zero, factor), IN("zero_point")));
  return e->status;
}

/* ---- integers and back, as exported programs say it ---- */

/* Scale and zero point of each element, x reshaped where they belong to stretches of rows. */
static void broadcast_grid(em_t *e, em_x_t *x, em_x_t *scale, em_x_t *zero) {
  const aot_type_t t = TYPE(*x);
  const int plural = at_in_has(e, "scales");
  *scale = IN(plural ? "scales" : "scale");
  *zero = IN(plural ? "zero_points" : "zero_point");
  if (is(e, "per_channel_group")) {
    int64_t length = at_in_int(e, "group_size", 128), column[2], rows[2];
    if (at_hint(at_infer(e), length) > at_hint(at_infer(e), t.sizes[t.rank - 1])) length = t.sizes[t.rank - 1];
    rows[0] = column[0] = at_floordiv(at_infer(e), at_numel(at_infer(e), t.sizes, t.rank), length);
    rows[1] = length;
    column[1] = 1;
    *x = at_reshaped(e, *x, rows, 2);
    *scale = at_reshaped(e, *scale, column, 2);
    if (!em_is_none(*zero)) *zero = at_reshaped(e, *zero, column, 2);
  } else if (is(e, "per_channel")) {
    const int32_t axis = at_wrap(at_infer(e), at_in_int(e, "axis", 0), t.rank);
    *scale = at_along(e, *scale, axis, t.rank);
    *zero = at_along(e, *zero, axis, t.rank);
  } else if (!plural && scale->kind == AOT_ARG_VALUE) {
    *scale = em_cast(e, at_reshaped(e, *scale, NULL, 0), AOT_F64);
    *zero = at_reshaped(e, *zero, NULL, 0);
  }
}

static em_x_t limit(em_t *e, const char *name) {
  em_x_t x = IN(name);
  return x.kind == AOT_ARG_VALUE ? at_reshaped(e, x, NULL, 0) : x;
}

aot_status_t at_dc_quantize(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), scale, inverse, zero, q, min = limit(e, "quant_min"), max = limit(e, "quant_max");
  const aot_type_t t = TYPE(x);
  const int by_rows = is(e, "per_token") || is(e, "per_channel_group"); /* round the sum; in the input's dtype */
  if (!by_rows) x = at_math(e, x);
  broadcast_grid(e, &x, &scale, &zero);
  if (scale.kind != AOT_ARG_VALUE) inverse = em_f((double)(float)(1.0 / em_in_float(e, "scale", 1.0)));
  else inverse = DIV(em_f(1.0), scale);
  q = MUL(x, is(e, "per_tensor") && scale.kind == AOT_ARG_VALUE ? em_cast(e, inverse, AOT_F32) : inverse);
  q = by_rows ? EM(e, "round", ADD(q, zero)) : ADD(EM(e, "round", q), zero);
  q = min.kind == AOT_ARG_VALUE ? EM(e, "clamp.Tensor", q, min, max) : EM(e, "clamp", q, min, max);
  return at_give_cast(e, at_reshaped(e, q, t.sizes, t.rank), out);
}

aot_status_t at_dc_dequantize(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), scale, zero;
  const aot_type_t t = TYPE(x);
  broadcast_grid(e, &x, &scale, &zero);
  if (is(e, "per_tensor")) x = em_cast(e, x, at_result_type(e, 0).dtype);
  if (!em_is_none(zero)) x = SUB(x, zero);
  return at_give_cast(e, at_reshaped(e, MUL(x, scale), t.sizes, t.rank), out);
}

/* The range of the input, 0 within it, divided among the integers; around 0 in the symmetric form. */
aot_status_t at_dc_choose_qparams(em_t *e, aot_value_t *out) {
  em_x_t x = IN("input"), scale, zero;
  em_x_t low = EM(e, "clamp_max", EM(e, "amin", x), em_i(0)), high = EM(e, "clamp_min", EM(e, "amax", x), em_i(0));
  const int64_t min = at_in_int(e, "quant_min", 0), max = at_in_int(e, "quant_max", 0), one = 1;
  em_x_t least = at_filled(e, &one, 1, IN("eps"), AOT_F32, x);
  if (is(e, "symmetric")) {
    scale = EM(e, "maximum", DIV(EM(e, "maximum", NEG(low), high), em_f((double)(max - min) / 2)), least);
    zero = at_filled(e, &one, 1, em_i(at_in_int(e, "dtype", 0) == AOT_U8 ? 128 : 0), AOT_I64, x);
  } else {
    scale = EM(e, "maximum", DIV(SUB(high, low), em_f((double)(max - min))), least);
    zero = SUB(em_i(min), em_cast(e, EM(e, "round", DIV(low, scale)), AOT_I32));
    zero = EM(e, "clamp", zero, em_i(min), em_i(max));
  }
  out[0] = VAL(em_cast(e, scale, AOT_F64));
  out[1] = VAL(em_cast(e, zero, AOT_I64));
  return e->status;
}

/* Each row's largest magnitude is the end of int8. */
aot_status_t at_dc_choose_qparams_per_token(em_t *e, aot_value_t *out) {
  const int64_t last = -1;
  em_x_t scale = EM(e, "amax", ABS(IN("input")), em_list(e, &last, 1), em_b(1));
  if (TYPE(scale).dtype == AOT_F16) scale = em_cast(e, scale, AOT_F32);
  scale = DIV(EM(e, "clamp_min", scale, em_f(1e-5)), em_f(127.0));
  out[0] = VAL(em_cast(e, scale, AOT_F64));
  out[1] = VAL(em_cast(e, EM(e, "zeros_like", scale), AOT_I64));
  return e->status;
}

/* Each row's range, 0 within it, over the integers of int8, whatever dtype is requested; the end with the smaller terms
 * says the zero point. */
aot_status_t at_dc_choose_qparams_per_token_asymmetric(em_t *e, aot_value_t *out) {
  const int64_t last = -1;
  em_x_t x = IN("input"), scale, zero, zeros, rows = em_list(e, &last, 1), first = em_f(-128.0), end = em_f(127.0);
  em_x_t low = EM(e, "amin", x, rows, em_b(1)), high = EM(e, "amax", x, rows, em_b(1));
  zeros = EM(e, "zeros_like", low);
  low = EM(e, "minimum", low, zeros);
  high = EM(e, "maximum", high, zeros);
  scale = EM(e, "clamp_min", DIV(SUB(high, low), em_f(255.0)), em_f(0x1p-23));
  low = DIV(low, scale);
  high = DIV(high, scale);
  zero = WHERE(GT(ADD(ADD(low, first), ADD(high, end)), em_f(0.0)), SUB(first, low), SUB(end, high));
  zero = EM(e, "round", EM(e, "clamp", zero, first, end));
  out[0] = VAL(em_cast(e, scale, AOT_F64));
  out[1] = VAL(em_cast(e, zero, AOT_I64));
  return e->status;
}

aot_status_t at_dc_quantized_convert(em_t *e, aot_value_t *out) {
  return at_give(e, EM(e, "_to_copy", IN("input"), IN("dtype")), out);
}
