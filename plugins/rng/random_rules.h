/* How each operator that draws hidden numbers is written with explicit draws: random_rules.def, one line an
 * operator. */
#ifndef RG_RANDOM_RULES_H
#define RG_RANDOM_RULES_H

#include "draws.h"

/* Writes the node e->node in other operators before it; out[i] replaces its i-th result (AOT_NO_ID: nothing may read
 * it). rg_of(e)->is_left set: the node draws nothing and stays. */
typedef void (*rg_rule_t)(em_t *e, aot_value_t *out);

typedef struct rg_row {
  const char *op;
  rg_rule_t rule;
} rg_row_t;

uint32_t rg_n_rows(void);
const rg_row_t *rg_row_at(uint32_t i);

/* draw_dropout.c */
void rg_dropout(em_t *e, aot_value_t *out);
void rg_native_dropout(em_t *e, aot_value_t *out);
void rg_fused_dropout(em_t *e, aot_value_t *out);
void rg_feature_dropout(em_t *e, aot_value_t *out);
void rg_alpha_dropout(em_t *e, aot_value_t *out);
void rg_feature_alpha_dropout(em_t *e, aot_value_t *out);
void rg_rrelu(em_t *e, aot_value_t *out);
/* draw_fill.c: in the shape of the result */
void rg_rand(em_t *e, aot_value_t *out);
void rg_randn(em_t *e, aot_value_t *out);
void rg_randint_rule(em_t *e, aot_value_t *out);
void rg_random(em_t *e, aot_value_t *out);
void rg_uniform_rule(em_t *e, aot_value_t *out);
void rg_normal_rule(em_t *e, aot_value_t *out);
void rg_log_normal(em_t *e, aot_value_t *out);
void rg_exponential(em_t *e, aot_value_t *out);
void rg_cauchy(em_t *e, aot_value_t *out);
void rg_geometric(em_t *e, aot_value_t *out);
void rg_bernoulli(em_t *e, aot_value_t *out);
/* draw_choice.c */
void rg_randperm(em_t *e, aot_value_t *out);
void rg_multinomial(em_t *e, aot_value_t *out);
void rg_poisson(em_t *e, aot_value_t *out);
void rg_binomial(em_t *e, aot_value_t *out);
void rg_gamma(em_t *e, aot_value_t *out);
void rg_dirichlet(em_t *e, aot_value_t *out);
/* draw_attention.c */
void rg_attention(em_t *e, aot_value_t *out);
void rg_attention_backward(em_t *e, aot_value_t *out);
/* draw_recurrent.c */
void rg_recurrent(em_t *e, aot_value_t *out);

#endif
