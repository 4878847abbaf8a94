/* Reductions in terms of sum, amax, amin, any and arithmetic; softmax and its kin. Half and bfloat16 in float32. */
#include "at_formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static em_x_t one_dim(em_t *e, int32_t dim) {
  int64_t d = dim;
  return em_list(e, &d, 1);
}

static em_x_t sum_keep(em_t *e, em_x_t x, int32_t dim) { return EM(e, "sum.dim_IntList", x, one_dim(e, dim), em_b(1)); }

static int32_t dim_of(em_t *e, em_x_t x) { return at_wrap(at_infer(e), at_in_int(e, "dim", -1), TYPE(x).rank); }

/* ---- softmax ---- */

/* exp(x - max) and its sum */
static em_x_t shifted(em_t *e, em_x_t x, int32_t dim) { return SUB(x, EM(e, "amax", x, one_dim(e, dim), em_b(1))); }

em_x_t at_softmax(em_t *e, em_x_t x, int32_t dim) {
  em_x_t y = EXP(shifted(e, x, dim));
  return DIV(y, sum_keep(e, y, dim));
}

em_x_t at_log_softmax(em_t *e, em_x_t x, int32_t dim) {
  em_x_t d = shifted(e, x, dim);
  return SUB(d, LOG(sum_keep(e, EXP(d), dim)));
}

aot_status_t at_dc_softmax(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  return at_give_cast(e, at_softmax(e, x, dim_of(e, x)), out);
}

aot_status_t at_dc_log_softmax(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  return at_give_cast(e, at_log_softmax(e, x, dim_of(e, x)), out);
}

/* softmax.int, log_softmax.int: the native form in the asked dtype */
aot_status_t at_dc_softmax_int(em_t *e, aot_value_t *out) {
  em_x_t x = em_cast(e, IN("self"), at_result_type(e, 0).dtype);
  const char *native = strstr(at_name(e), "log_softmax") != NULL ? "_log_softmax" : "_softmax";
  return at_give(e, EM(e, native, x, IN("dim"), em_b(0)), out);
}

/* softmax, 0 in rows that are -inf all along */
aot_status_t at_dc_safe_softmax(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, IN("self"));
  int32_t dim = dim_of(e, x);
  em_x_t some = EM(e, "any.dim", NE(x, em_f(-INFINITY)), em_i(dim), em_b(1));
  return at_give_cast(e, WHERE(some, at_softmax(e, x, dim), em_f(0.0)), out);
}

aot_status_t at_dc_softmax_backward(em_t *e, aot_value_t *out) {
  em_x_t g = at_math(e, IN("grad_output")), y = at_math(e, IN("output")), gy = MUL(g, y);
  return at_give_cast(e, SUB(gy, MUL(y, sum_keep(e, gy, dim_of(e, y)))), out);
}

aot_status_t at_dc_log_softmax_backward(em_t *e, aot_value_t *out) {
  em_x_t g = at_math(e, IN("grad_output")), y = at_math(e, IN("output"));
  return at_give_cast(e, SUB(g, MUL(EXP(y), sum_keep(e, g, dim_of(e, y)))), out);
}

/* ---- over several dimensions ---- */

typedef struct dims_of_call {
  int64_t dims[AOT_MAX_RANK], count; /* count: elements of each sum */
  uint32_t n;
  int keep;
} dims_of_call_t;

/* None and the empty list are all dimensions. */
static dims_of_call_t reduced_dims(em_t *e, const aot_type_t *t) {
  dims_of_call_t r;
  const int64_t *dims;
  uint32_t n = at_in_ints(e, "dim", &dims), mask = n ? at_dim_mask(at_infer(e), dims, n, t->rank) : ~0u;
  int32_t d;
  memset(&r, 0, sizeof r);
  r.count = 1;
  r.keep = at_in_int(e, "keepdim", 0) != 0;
  for (d = 0; d < t->rank; d++) {
    if (!(mask >> d & 1)) continue;
    r.dims[r.n++] = d;
    r.count = at_mul(at_infer(e), r.count, t->sizes[d]);
  }
  return r;
}

static em_x_t sum_of(em_t *e, em_x_t x, const dims_of_call_t *r) { return at_summed(e, x, r->dims, r->n, r->keep); }

/* sum.default, mean.default, max.default, ..: the form with dimensions */
aot_status_t at_dc_reduce_all(em_t *e, aot_value_t *out) {
  static const struct {
    const char *from, *to;
    /* clang-format off */
  } forms[] = {{"aten.sum.default", "sum.dim_IntList"}, {"aten.mean.default", "mean.dim"}, {"aten.max.default", "amax"},
               {"aten.min.default", "amin"},            {"aten.any.default", "any.dims"},  {"aten.all.default",
                   "all.dims"}};
  /* clang-format on */
  aot_type_t t = TYPE(IN("self"));
  int64_t dims[AOT_MAX_RANK];
  size_t i;
  int32_t d;
  for (d = 0; d < t.rank; d++) dims[d] = d;
  for (i = 0; i < sizeof forms / sizeof forms[0]; i++)
    if (strcmp(at_name(e), forms[i].from) == 0) {
      em_x_t list = em_list(e, dims, (uint32_t)t.rank);
      return at_in_has(e, "dtype") ? at_give(e, EM(e, forms[i].to, IN("self"), list, em_b(0), IN("dtype")), out)
                                   : at_give(e, EM(e, forms[i].to, IN("self"), list, em_b(0)), out);
    }
  return AOT_E_UNIMPLEMENTED;
}

aot_status_t at_dc_mean(em_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  dims_of_call_t r = reduced_dims(e, &t);
  em_x_t x = at_math(e, em_cast(e, IN("self"), at_result_type(e, 0).dtype));
  return at_give_cast(e, DIV(sum_of(e, x, &r), em_i(r.count)), out);
}

/* any: the count of what is not 0 is not 0; all: the count of what is 0 is 0 */
aot_status_t at_dc_any(em_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  dims_of_call_t r = reduced_dims(e, &t);
  int all = strncmp(at_name(e), "aten.all.", 9) == 0;
  em_x_t hits = all ? EQ(IN("self"), em_i(0)) : NE(IN("self"), em_i(0));
  em_x_t count = sum_of(e, em_cast(e, hits, AOT_I64), &r);
  return at_give_cast(e, all ? EQ(count, em_i(0)) : NE(count, em_i(0)), out);
}

aot_status_t at_dc_count_nonzero(em_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  dims_of_call_t r = reduced_dims(e, &t);
  return at_give(e, sum_of(e, em_cast(e, NE(IN("self"), em_i(0)), AOT_I64), &r), out);
}

aot_status_t at_dc_logsumexp(em_t *e, aot_value_t *out) {
  em_x_t x = at_math(e, em_cast(e, IN("self"), at_result_type(e, 0).dtype)), max, y;
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  dims_of_call_t r = reduced_dims(e, &t);
  max = EM(e, "amax", x, em_list(e, r.dims, r.n), em_b(1));
  max = WHERE(EQ(ABS(max), em_f(INFINITY)), em_f(0.0), max); /* all -inf: log 0 */
  y = ADD(LOG(at_summed(e, EXP(SUB(x, max)), r.dims, r.n, 1)), max);
  return at_give_cast(e, at_reshaped(e, y, to.sizes, to.rank), out);
}

/* ---- variance ---- */

/* sum (x - mean)^2 / max(0, n - correction) */
static em_x_t variance(em_t *e, em_x_t x, const dims_of_call_t *r, double correction, em_x_t *out_mean) {
  em_x_t mean = DIV(at_summed(e, x, r->dims, r->n, 1), em_i(r->count)), d = SUB(x, mean), divisor;
  if (AOT_DIM_IS_SYM(r->count)) divisor = em_i(at_sub(at_infer(e), r->count, (int64_t)correction));
  else divisor = em_f(fmax(0.0, (double)r->count - correction));
  *out_mean = mean;
  return DIV(sum_of(e, MUL(d, d), r), divisor);
}

/* std.dim(self, dim, unbiased, keepdim) and its like are the overload with a correction, which has a derivative of
 * its own. */
static aot_status_t with_correction(em_t *e, aot_value_t *out) {
  const char *name = at_name(e), *overload = strrchr(name, '.');
  char op[64];
  snprintf(op, sizeof op, "%.*s.correction", (int)(overload - name), name);
  const em_x_t y = EM(e, op, IN("self"), at_in_has(e, "dim") ? IN("dim") : em_none(),
                      em_i(em_in_bool(e, "unbiased", 1)), em_b(em_in_bool(e, "keepdim", 0)));
  for (uint32_t i = 0; i < e->desc->n_results && e->status == AOT_OK; i++) out[i] = VAL(em_nth(y, i));
  return e->status;
}

/* var, std, var_mean, std_mean in every spelling; the last two have the mean as their second result */
aot_status_t at_dc_var(em_t *e, aot_value_t *out) {
  if (at_in_has(e, "unbiased")) return with_correction(e, out);
  em_x_t x = at_math(e, IN("self")), mean, v;
  aot_type_t t = TYPE(x);
  dims_of_call_t r = reduced_dims(e, &t);
  v = variance(e, x, &r, em_in_float(e, "correction", 1.0), &mean);
  at_give_cast(e, strncmp(at_name(e), "aten.std", 8) == 0 ? SQRT(v) : v, out);
  if (e->desc->n_results == 2) {
    aot_type_t to = at_result_type(e, 1);
    out[1] = VAL(em_cast(e, at_reshaped(e, mean, to.sizes, to.rank), to.dtype));
  }
  return e->status;
}

/* Norms of order 0, 1, 2, inf, -inf, and any other by powers. */
aot_status_t at_dc_vector_norm(em_t *e, aot_value_t *out) {
  em_x_t x = ABS(at_math(e, em_cast(e, IN("self"), at_result_type(e, 0).dtype))), y;
  aot_type_t t = TYPE(x);
  dims_of_call_t r = reduced_dims(e, &t);
  double ord = em_in_float(e, "ord", 2.0);
  if (isinf(ord)) y = EM(e, ord > 0 ? "amax" : "amin", x, em_list(e, r.dims, r.n), em_b(r.keep));
  else if (ord == 0.0) y = sum_of(e, em_cast(e, NE(x, em_f(0.0)), t.dtype), &r);
  else if (ord == 1.0) y = sum_of(e, x, &r);
  else if (ord == 2.0) y = SQRT(sum_of(e, MUL(x, x), &r));
  else y = EM(e, "pow.Tensor_Scalar", sum_of(e, EM(e, "pow.Tensor_Scalar", x, em_f(ord)), &r), em_f(1.0 / ord));
  return at_give_cast(e, y, out);
}

aot_status_t at_dc_aminmax(em_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  dims_of_call_t r = reduced_dims(e, &t);
  em_x_t list = em_list(e, r.dims, r.n);
  out[0] = VAL(EM(e, "amin", IN("self"), list, em_b(r.keep)));
  out[1] = VAL(EM(e, "amax", IN("self"), list, em_b(r.keep)));
  return e->status;
}

aot_status_t at_dc_argsort(em_t *e, aot_value_t *out) {
  return at_give(e, em_nth(EM(e, "sort", IN("self"), IN("dim"), IN("descending")), 1), out);
}
