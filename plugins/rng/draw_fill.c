/* Tensors filled with numbers of one distribution, in the shape and dtype of the result.
 *
 * With u uniform in [0, 1) and z normal: exponential -log(1 - u) / lambda, never 0; cauchy median + sigma tan(pi (u -
 * 1/2)); geometric, the number of the first success, ceil(log(1 - u) / log(1 - p)), at least 1; log_normal exp(mean +
 * std z). Narrow types are drawn in float32 and rounded once; tails that float32 cannot reach are drawn in float64. */
#include "random_rules.h"

#include <math.h>
#include <stdio.h>

static int32_t drawn_in(int32_t dtype) { return dtype == AOT_F64 ? AOT_F64 : AOT_F32; }

static void give(em_t *e, em_x_t x, const aot_type_t *t, aot_value_t *out) {
  *out = em_value(e, em_cast(e, x, t->dtype));
}

static aot_type_t real_result(em_t *e) {
  const aot_type_t t = em_result_type(e, 0);
  if (aot_dtype_is_complex(t.dtype))
    em_fail(e, AOT_E_UNIMPLEMENTED, "draw the real and the imaginary part", "%.*s of complex numbers is not supported",
            (int)e->desc->name.size, e->desc->name.data);
  return t;
}

static void must(em_t *e, int holds, const char *what, double got) {
  if (!holds) em_fail(e, AOT_E_INVALID, "", "%.*s: %s, got %g", (int)e->desc->name.size, e->desc->name.data, what, got);
}

void rg_rand(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  *out = em_value(e, rg_uniform(e, &t, t.dtype));
}

void rg_randn(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  *out = em_value(e, rg_normal(e, &t, t.dtype));
}

/* sizes that a call reports are not */
static int is_known(em_x_t x) { return x.kind == AOT_ARG_INT && !AOT_DIM_IS_SYM(x.u.i); }

/* [low, high) */
static em_x_t drawn_between(em_t *e, const aot_type_t *t, em_x_t low, em_x_t high) {
  if (is_known(low) && is_known(high) && low.u.i >= high.u.i)
    em_fail(e, AOT_E_INVALID, "", "%.*s: there is no integer from %lld on and below %lld", (int)e->desc->name.size,
            e->desc->name.data, (long long)low.u.i, (long long)high.u.i);
  return rg_randint(e, t, low, high);
}

/* randint, randint.low, randint_like, ..: [low, high) */
void rg_randint_rule(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  em_x_t low = em_in(e, "low");
  if (low.kind == AOT_ARG_NONE) low = em_i(0);
  give(e, drawn_between(e, &t, low, em_in(e, "high")), &t, out);
}

/* The largest number of `random` that every smaller one can be reported from; -1: all of int64. */
static int64_t largest(int32_t dtype) {
  switch (dtype) {
    case AOT_BOOL: return 1;
    case AOT_U8: return UINT8_MAX;
    case AOT_I8: return INT8_MAX;
    case AOT_I16: return INT16_MAX;
    case AOT_U16: return UINT16_MAX;
    case AOT_I32: return INT32_MAX;
    case AOT_U32: return UINT32_MAX;
    case AOT_BF16: return INT64_C(1) << 8;
    case AOT_F16: return INT64_C(1) << 11;
    case AOT_F32: return INT64_C(1) << 24;
    case AOT_F64: return INT64_C(1) << 53;
    default: return -1;
  }
}

/* random(), random(to): [0, to); random(from, to), where to may be absent: up to the largest of the dtype */
void rg_random(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  const int64_t top = largest(t.dtype);
  em_x_t low = em_in(e, "from"), high = em_in(e, "to");
  if (low.kind == AOT_ARG_NONE) low = em_i(0);
  if (high.kind != AOT_ARG_NONE || top >= 0) {
    if (high.kind == AOT_ARG_NONE) high = em_i(top + 1);
    give(e, drawn_between(e, &t, low, high), &t, out);
  } else if (low.kind == AOT_ARG_INT && low.u.i == 0) {
    give(e, rg_bits(e, &t), &t, out);
  } else {
    em_fail(e, AOT_E_UNIMPLEMENTED, "say where the numbers end",
            "%.*s of 64-bit integers from a number on, without an end, is not supported", (int)e->desc->name.size,
            e->desc->name.data);
  }
}

/* [from, to): what rounds up to `to` becomes `from`. */
void rg_uniform_rule(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  const double from = em_in_float(e, "from", 0), to = em_in_float(e, "to", 1);
  must(e, from <= to, "'from' must not be more than 'to'; their difference is", from - to);
  if (from == 0 && to == 1) {
    rg_rand(e, out);
    return;
  }
  em_x_t x = EM(e, "mul.Scalar", rg_uniform(e, &t, drawn_in(t.dtype)), em_f(to - from));
  x = em_cast(e, EM(e, "add.Scalar", x, em_f(from)), t.dtype);
  *out = em_value(e, EM(e, "masked_fill.Scalar", x, EM(e, "ge.Scalar", x, em_f(to)), em_f(from)));
}

/* x times or plus what is a number or a tensor; no gradient goes to the parameters of a distribution, as in PyTorch */
static em_x_t with(em_t *e, const char *op, em_x_t x, em_x_t by) {
  char name[32];
  if (by.kind == AOT_ARG_NONE) return x;
  snprintf(name, sizeof name, "%s.%s", op, by.kind == AOT_ARG_VALUE ? "Tensor" : "Scalar");
  return EM(e, name, x, by.kind == AOT_ARG_VALUE ? EM(e, "detach", by) : by);
}

/* mean + std z, each of them a number or a tensor */
static em_x_t shifted_normal(em_t *e, const aot_type_t *t) {
  const em_x_t mean = em_in(e, "mean"), std = em_in(e, "std");
  if (std.kind == AOT_ARG_FLOAT) must(e, std.u.f >= 0, "'std' must not be negative", std.u.f);
  return with(e, "add", with(e, "mul", rg_normal(e, t, drawn_in(t->dtype)), std), mean);
}

void rg_normal_rule(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  give(e, shifted_normal(e, &t), &t, out);
}

void rg_log_normal(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  give(e, EM(e, "exp", shifted_normal(e, &t)), &t, out);
}

static em_x_t log_of_rest(em_t *e, const aot_type_t *t, int32_t dtype) {
  return EM(e, "log1p", EM(e, "neg", rg_uniform(e, t, dtype)));
}

/* Never 0, of which callers take the logarithm (Gumbel noise): u = 0 counts as the middle of its step, and what is too
 * small for the dtype is its least number: the least normal one, but of f16, whose normal numbers end at 6e-5. */
static double least_exponential(int32_t dtype, double rate) {
  const double middle = (drawn_in(dtype) == AOT_F64 ? 0x1p-54 : 0x1p-25) / rate;
  return fmax(middle, dtype == AOT_F16 ? 0x1p-24 : dtype == AOT_F64 ? 0x1p-1022 : 0x1p-126);
}

void rg_exponential(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  const double rate = em_in_float(e, "lambd", 1);
  must(e, rate > 0, "'lambd' must be more than 0", rate);
  const em_x_t x = EM(e, "mul.Scalar", log_of_rest(e, &t, drawn_in(t.dtype)), em_f(-1.0 / rate));
  *out = em_value(e, EM(e, "clamp_min", em_cast(e, x, t.dtype), em_f(least_exponential(t.dtype, rate))));
}

void rg_cauchy(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  const double median = em_in_float(e, "median", 0), sigma = em_in_float(e, "sigma", 1);
  must(e, sigma > 0, "'sigma' must be more than 0", sigma);
  const em_x_t half = EM(e, "add.Scalar", rg_uniform(e, &t, AOT_F64), em_f(-0.5));
  const em_x_t x = EM(e, "tan", EM(e, "mul.Scalar", half, em_f(3.14159265358979323846)));
  give(e, EM(e, "add.Scalar", EM(e, "mul.Scalar", x, em_f(sigma)), em_f(median)), &t, out);
}

void rg_geometric(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  const double p = em_in_float(e, "p", 0.5);
  must(e, p > 0 && p <= 1, "'p' must be more than 0 and at most 1", p);
  const em_x_t x = EM(e, "ceil", EM(e, "mul.Scalar", log_of_rest(e, &t, AOT_F64), em_f(1.0 / log1p(-p))));
  give(e, EM(e, "clamp_min", x, em_i(1)), &t, out);
}

/* self or p says the probability: a tensor, or a number */
void rg_bernoulli(em_t *e, aot_value_t *out) {
  const aot_type_t t = real_result(e);
  em_x_t p = em_in(e, "p");
  if (p.kind == AOT_ARG_NONE) p = em_in(e, "self");
  if (p.kind == AOT_ARG_VALUE) {
    const int32_t dtype = drawn_in(em_type(e, p).dtype);
    give(e, EM(e, "lt.Tensor", rg_uniform(e, &t, dtype), p), &t, out);
    return;
  }
  const double chance = em_in_float(e, "p", 0.5);
  must(e, chance >= 0 && chance <= 1, "the probability must lie between 0 and 1", chance);
  give(e, rg_chance(e, &t, chance), &t, out);
}
