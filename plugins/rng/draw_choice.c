/* Choices among numbers: permutations, draws from weights, counts.
 *
 * A permutation is the order of random sort keys of 63 bits. Weighted choice with replacement finds u times the total
 * in the running sums; without, it takes the largest of weight / e with e exponential, which is the order of an
 * exponential race (Efraimidis, Spirakis, Weighted random sampling with a reservoir, 2006). */
#include "random_rules.h"

static void give(em_t *e, em_x_t x, int32_t dtype, aot_value_t *out) { *out = em_value(e, em_cast(e, x, dtype)); }

void rg_randperm(em_t *e, aot_value_t *out) {
  const aot_type_t t = em_result_type(e, 0);
  give(e, EM(e, "argsort", rg_bits(e, &t)), t.dtype, out);
}

static em_x_t with_replacement(em_t *e, em_x_t weights, const aot_type_t *t) {
  const em_x_t sums = EM(e, "cumsum", weights, em_i(-1));
  const em_x_t total = EM(e, "slice.Tensor", sums, em_i(-1), em_i(-1), em_i(INT64_MAX));
  const em_x_t at = EM(e, "mul.Tensor", rg_uniform(e, t, AOT_F64), total);
  return EM(e, "searchsorted.Tensor", sums, at, em_b(0), em_b(1));
}

static em_x_t without_replacement(em_t *e, em_x_t weights, em_x_t n_samples) {
  const aot_type_t t = em_type(e, weights);
  if (e->status != AOT_OK) return em_none();
  /* 1 - u is never 0; where it is 1, its logarithm of 0 becomes the smallest that can be */
  const em_x_t log_rest = EM(e, "log1p", EM(e, "neg", rg_uniform(e, &t, AOT_F64)));
  const em_x_t race = EM(e, "div.Tensor", weights, EM(e, "clamp_min", EM(e, "neg", log_rest), em_f(0x1p-60)));
  return em_nth(EM(e, "topk", race, n_samples, em_i(-1)), 1);
}

void rg_multinomial(em_t *e, aot_value_t *out) {
  const aot_type_t t = em_result_type(e, 0);
  const em_x_t weights = em_cast(e, em_in(e, "self"), AOT_F64);
  const em_x_t n = em_in(e, "num_samples");
  if (e->status != AOT_OK) return;
  const int is_one = n.kind == AOT_ARG_INT && n.u.i == 1;
  const em_x_t x =
      em_in_bool(e, "replacement", 0) || is_one ? with_replacement(e, weights, &t) : without_replacement(e, weights, n);
  give(e, x, t.dtype, out);
}

void rg_poisson(em_t *e, aot_value_t *out) {
  const aot_type_t t = em_result_type(e, 0);
  give(e, rg_sample(e, "aot.philox_poisson.default", &t, 1, (em_x_t[]){em_in(e, "self")}), t.dtype, out);
}

void rg_binomial(em_t *e, aot_value_t *out) {
  const aot_type_t t = em_result_type(e, 0);
  give(e, rg_sample(e, "aot.philox_binomial.default", &t, 2, (em_x_t[]){em_in(e, "count"), em_in(e, "prob")}), t.dtype,
       out);
}

void rg_gamma(em_t *e, aot_value_t *out) {
  const aot_type_t t = em_result_type(e, 0);
  give(e, rg_sample(e, "aot.philox_gamma.default", &t, 1, (em_x_t[]){em_in(e, "self")}), t.dtype, out);
}

/* Gamma draws over their sum. */
void rg_dirichlet(em_t *e, aot_value_t *out) {
  const aot_type_t t = em_result_type(e, 0);
  const int64_t last = -1;
  const em_x_t x = rg_sample(e, "aot.philox_gamma.default", &t, 1, (em_x_t[]){em_in(e, "self")});
  give(e, EM(e, "div.Tensor", x, EM(e, "sum.dim_IntList", x, aot_arg_ints(&last, 1), em_b(1))), t.dtype, out);
}
