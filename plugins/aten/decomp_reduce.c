/* Reductions in terms of sum, amax, amin, any and arithmetic; softmax and its kin. Half and bfloat16 in float32. */
#include "at_formula.h"

#include <math.h>
#include <string.h>

static at_x one_dim(at_emit_t *e, int32_t dim) {
  int64_t d = dim;
  return at_list(e, &d, 1);
}

static at_x sum_keep(at_emit_t *e, at_x x, int32_t dim) { return AT(e, "sum.dim_IntList", x, one_dim(e, dim), at_b(1)); }

static int32_t dim_of(at_emit_t *e, at_x x) { return at_wrap(e->infer, at_in_int(e, "dim", -1), TYPE(x).rank); }

/* ---- softmax ---- */

/* exp(x - max) and its sum */
static at_x shifted(at_emit_t *e, at_x x, int32_t dim) { return SUB(x, AT(e, "amax", x, one_dim(e, dim), at_b(1))); }

at_x at_softmax(at_emit_t *e, at_x x, int32_t dim) {
  at_x y = EXP(shifted(e, x, dim));
  return DIV(y, sum_keep(e, y, dim));
}

at_x at_log_softmax(at_emit_t *e, at_x x, int32_t dim) {
  at_x d = shifted(e, x, dim);
  return SUB(d, LOG(sum_keep(e, EXP(d), dim)));
}

aot_status_t at_dc_softmax(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  return at_give_cast(e, at_softmax(e, x, dim_of(e, x)), out);
}

aot_status_t at_dc_log_softmax(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  return at_give_cast(e, at_log_softmax(e, x, dim_of(e, x)), out);
}

/* softmax.int, log_softmax.int: the native form in the asked dtype */
aot_status_t at_dc_softmax_int(at_emit_t *e, aot_value_t *out) {
  at_x x = at_cast(e, IN("self"), at_result_type(e, 0).dtype);
  const char *native = strstr(e->row->name, "log_softmax") != NULL ? "_log_softmax" : "_softmax";
  return at_give(e, AT(e, native, x, IN("dim"), at_b(0)), out);
}

/* softmax, 0 in rows that are -inf all along */
aot_status_t at_dc_safe_softmax(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self"));
  int32_t dim = dim_of(e, x);
  at_x some = AT(e, "any.dim", NE(x, at_f(-INFINITY)), at_i(dim), at_b(1));
  return at_give_cast(e, WHERE(some, at_softmax(e, x, dim), at_f(0.0)), out);
}

aot_status_t at_dc_softmax_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = at_math(e, IN("grad_output")), y = at_math(e, IN("output")), gy = MUL(g, y);
  return at_give_cast(e, SUB(gy, MUL(y, sum_keep(e, gy, dim_of(e, y)))), out);
}

aot_status_t at_dc_log_softmax_backward(at_emit_t *e, aot_value_t *out) {
  at_x g = at_math(e, IN("grad_output")), y = at_math(e, IN("output"));
  return at_give_cast(e, SUB(g, MUL(EXP(y), sum_keep(e, g, dim_of(e, y)))), out);
}

/* ---- over several dimensions ---- */

typedef struct dims_of_call {
  int64_t dims[AOT_MAX_RANK], count; /* count: elements of each sum */
  uint32_t n;
  int keep;
} dims_of_call_t;

/* None and the empty list are all dimensions. */
static dims_of_call_t reduced_dims(at_emit_t *e, const aot_type_t *t) {
  dims_of_call_t r;
  const int64_t *dims;
  uint32_t n = at_in_ints(e, "dim", &dims), mask = n ? at_dim_mask(e->infer, dims, n, t->rank) : ~0u;
  int32_t d;
  memset(&r, 0, sizeof r);
  r.count = 1;
  r.keep = at_in_int(e, "keepdim", 0) != 0;
  for (d = 0; d < t->rank; d++) {
    if (!(mask >> d & 1)) continue;
    r.dims[r.n++] = d;
    r.count = at_mul(e->infer, r.count, t->sizes[d]);
  }
  return r;
}

static at_x sum_of(at_emit_t *e, at_x x, const dims_of_call_t *r) { return at_summed(e, x, r->dims, r->n, r->keep); }

/* sum.default, mean.default, max.default, ..: the form with dimensions */
aot_status_t at_dc_reduce_all(at_emit_t *e, aot_value_t *out) {
  static const struct {
    const char *from, *to;
  } forms[] = {{"aten.sum.default", "sum.dim_IntList"}, {"aten.mean.default", "mean.dim"}, {"aten.max.default", "amax"},
               {"aten.min.default", "amin"},            {"aten.any.default", "any.dims"},  {"aten.all.default", "all.dims"}};
  aot_type_t t = TYPE(IN("self"));
  int64_t dims[AOT_MAX_RANK];
  size_t i;
  int32_t d;
  for (d = 0; d < t.rank; d++) dims[d] = d;
  for (i = 0; i < sizeof forms / sizeof forms[0]; i++)
    if (strcmp(e->row->name, forms[i].from) == 0) {
      at_x list = at_list(e, dims, (uint32_t)t.rank);
      return at_in_has(e, "dtype") ? at_give(e, AT(e, forms[i].to, IN("self"), list, at_b(0), IN("dtype")), out)
                                   : at_give(e, AT(e, forms[i].to, IN("self"), list, at_b(0)), out);
    }
  return AOT_E_UNIMPLEMENTED;
}

aot_status_t at_dc_mean(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  dims_of_call_t r = reduced_dims(e, &t);
  at_x x = at_math(e, at_cast(e, IN("self"), at_result_type(e, 0).dtype));
  return at_give_cast(e, DIV(sum_of(e, x, &r), at_i(r.count)), out);
}

/* any: the count of what is not 0 is not 0; all: the count of what is 0 is 0 */
aot_status_t at_dc_any(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  dims_of_call_t r = reduced_dims(e, &t);
  int all = strncmp(e->row->name, "aten.all.", 9) == 0;
  at_x hits = all ? EQ(IN("self"), at_i(0)) : NE(IN("self"), at_i(0));
  at_x count = sum_of(e, at_cast(e, hits, AOT_I64), &r);
  return at_give_cast(e, all ? EQ(count, at_i(0)) : NE(count, at_i(0)), out);
}

aot_status_t at_dc_count_nonzero(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  dims_of_call_t r = reduced_dims(e, &t);
  return at_give(e, sum_of(e, at_cast(e, NE(IN("self"), at_i(0)), AOT_I64), &r), out);
}

aot_status_t at_dc_logsumexp(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, at_cast(e, IN("self"), at_result_type(e, 0).dtype)), max, y;
  aot_type_t t = TYPE(x), to = at_result_type(e, 0);
  dims_of_call_t r = reduced_dims(e, &t);
  max = AT(e, "amax", x, at_list(e, r.dims, r.n), at_b(1));
  max = WHERE(EQ(ABS(max), at_f(INFINITY)), at_f(0.0), max); /* all -inf: log 0 */
  y = ADD(LOG(at_summed(e, EXP(SUB(x, max)), r.dims, r.n, 1)), max);
  return at_give_cast(e, at_reshaped(e, y, to.sizes, to.rank), out);
}

/* ---- variance ---- */

/* sum (x - mean)^2 / max(0, n - correction) */
static at_x variance(at_emit_t *e, at_x x, const dims_of_call_t *r, double correction, at_x *out_mean) {
  at_x mean = DIV(at_summed(e, x, r->dims, r->n, 1), at_i(r->count)), d = SUB(x, mean), divisor;
  if (AOT_DIM_IS_SYM(r->count)) divisor = at_i(at_sub(e->infer, r->count, (int64_t)correction));
  else divisor = at_f(fmax(0.0, (double)r->count - correction));
  *out_mean = mean;
  return DIV(sum_of(e, MUL(d, d), r), divisor);
}

static double correction_of(at_emit_t *e) {
  if (at_in_has(e, "correction")) return at_in_float(e, "correction", 1.0);
  return at_in_has(e, "unbiased") && !at_in_int(e, "unbiased", 1) ? 0.0 : 1.0;
}

/* var.*, std.* in every spelling; var_mean has the mean as its second result */
aot_status_t at_dc_var(at_emit_t *e, aot_value_t *out) {
  at_x x = at_math(e, IN("self")), mean, v;
  aot_type_t t = TYPE(x);
  dims_of_call_t r = reduced_dims(e, &t);
  v = variance(e, x, &r, correction_of(e), &mean);
  at_give_cast(e, strncmp(e->row->name, "aten.std", 8) == 0 ? SQRT(v) : v, out);
  if (e->desc->n_results == 2) {
    aot_type_t to = at_result_type(e, 1);
    out[1] = VAL(at_cast(e, at_reshaped(e, mean, to.sizes, to.rank), to.dtype));
  }
  return e->status;
}

/* Norms of order 0, 1, 2, inf, -inf, and any other by powers. */
aot_status_t at_dc_vector_norm(at_emit_t *e, aot_value_t *out) {
  at_x x = ABS(at_math(e, at_cast(e, IN("self"), at_result_type(e, 0).dtype))), y;
  aot_type_t t = TYPE(x);
  dims_of_call_t r = reduced_dims(e, &t);
  double ord = at_in_float(e, "ord", 2.0);
  if (isinf(ord)) y = AT(e, ord > 0 ? "amax" : "amin", x, at_list(e, r.dims, r.n), at_b(r.keep));
  else if (ord == 0.0) y = sum_of(e, at_cast(e, NE(x, at_f(0.0)), t.dtype), &r);
  else if (ord == 1.0) y = sum_of(e, x, &r);
  else if (ord == 2.0) y = SQRT(sum_of(e, MUL(x, x), &r));
  else y = AT(e, "pow.Tensor_Scalar", sum_of(e, AT(e, "pow.Tensor_Scalar", x, at_f(ord)), &r), at_f(1.0 / ord));
  return at_give_cast(e, y, out);
}

aot_status_t at_dc_aminmax(at_emit_t *e, aot_value_t *out) {
  aot_type_t t = TYPE(IN("self"));
  dims_of_call_t r = reduced_dims(e, &t);
  at_x list = at_list(e, r.dims, r.n);
  out[0] = VAL(AT(e, "amin", IN("self"), list, at_b(r.keep)));
  out[1] = VAL(AT(e, "amax", IN("self"), list, at_b(r.keep)));
  return e->status;
}

aot_status_t at_dc_argsort(at_emit_t *e, aot_value_t *out) {
  return at_give(e, at_nth(AT(e, "sort", IN("self"), IN("dim"), IN("descending")), 1), out);
}
