/* Choices among numbers: permutations, draws from weights, counts.
 *
 * A permutation is the order of random sort keys of 63 bits. Weighted choice with replacement finds u times the total in the
 * running sums; without, it takes the largest of weight / e with e exponential, which is the order of an exponential race
 * (Efraimidis, Spirakis, Weighted random sampling with a reservoir, 2006). */
#include "random_rules.h"

static void give(rg_emit_t *e, rg_x x, int32_t dtype, aot_value_t *out) { *out = rg_value(e, rg_cast(e, x, dtype)); }

void rg_randperm(rg_emit_t *e, aot_value_t *out) {
  const aot_type_t t = rg_result_type(e, 0);
  give(e, RG(e, "argsort", rg_bits(e, &t)), t.dtype, out);
}

static rg_x with_replacement(rg_emit_t *e, rg_x weights, const aot_type_t *t) {
  const rg_x sums = RG(e, "cumsum", weights, rg_i(-1));
  const rg_x total = RG(e, "slice.Tensor", sums, rg_i(-1), rg_i(-1), rg_i(INT64_MAX));
  const rg_x at = RG(e, "mul.Tensor", rg_uniform(e, t, AOT_F64), total);
  return RG(e, "searchsorted.Tensor", sums, at, rg_b(0), rg_b(1));
}

static rg_x without_replacement(rg_emit_t *e, rg_x weights, rg_x n_samples) {
  const aot_type_t t = rg_type(e, weights);
  if (e->status != AOT_OK) return rg_none();
  /* 1 - u is never 0; where it is 1, its logarithm of 0 becomes the smallest that can be */
  const rg_x log_rest = RG(e, "log1p", RG(e, "neg", rg_uniform(e, &t, AOT_F64)));
  const rg_x race = RG(e, "div.Tensor", weights, RG(e, "clamp_min", RG(e, "neg", log_rest), rg_f(0x1p-60)));
  return rg_nth(RG(e, "topk", race, n_samples, rg_i(-1)), 1);
}

void rg_multinomial(rg_emit_t *e, aot_value_t *out) {
  const aot_type_t t = rg_result_type(e, 0);
  const rg_x weights = rg_cast(e, rg_in(e, "self"), AOT_F64);
  const rg_x n = rg_in(e, "num_samples");
  if (e->status != AOT_OK) return;
  const int is_one = n.kind == AOT_ARG_INT && n.u.i == 1;
  const rg_x x = rg_in_bool(e, "replacement", 0) || is_one ? with_replacement(e, weights, &t) : without_replacement(e, weights, n);
  give(e, x, t.dtype, out);
}

void rg_poisson(rg_emit_t *e, aot_value_t *out) {
  const aot_type_t t = rg_result_type(e, 0);
  give(e, rg_sample(e, "aot.philox_poisson.default", &t, 1, (rg_x[]){rg_in(e, "self")}), t.dtype, out);
}

void rg_binomial(rg_emit_t *e, aot_value_t *out) {
  const aot_type_t t = rg_result_type(e, 0);
  give(e, rg_sample(e, "aot.philox_binomial.default", &t, 2, (rg_x[]){rg_in(e, "count"), rg_in(e, "prob")}), t.dtype, out);
}

void rg_gamma(rg_emit_t *e, aot_value_t *out) {
  const aot_type_t t = rg_result_type(e, 0);
  give(e, rg_sample(e, "aot.philox_gamma.default", &t, 1, (rg_x[]){rg_in(e, "self")}), t.dtype, out);
}

/* Gamma draws over their sum. */
void rg_dirichlet(rg_emit_t *e, aot_value_t *out) {
  const aot_type_t t = rg_result_type(e, 0);
  const int64_t last = -1;
  const rg_x x = rg_sample(e, "aot.philox_gamma.default", &t, 1, (rg_x[]){rg_in(e, "self")});
  give(e, RG(e, "div.Tensor", x, RG(e, "sum.dim_IntList", x, aot_arg_ints(&last, 1), rg_b(1))), t.dtype, out);
}
