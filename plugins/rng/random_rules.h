/* How each operator that draws hidden numbers is written with explicit draws: random_rules.def, one line an operator. */
#ifndef RG_RANDOM_RULES_H
#define RG_RANDOM_RULES_H

#include "draws.h"

/* Writes the node e->node in other operators before it; out[i] replaces its i-th result (AOT_NO_ID: nobody may read it).
 * e->is_left set: the node draws nothing and stays. */
typedef void (*rg_rule_t)(rg_emit_t *e, aot_value_t *out);

typedef struct rg_row {
  const char *op;
  rg_rule_t rule;
} rg_row_t;

uint32_t rg_n_rows(void);
const rg_row_t *rg_row_at(uint32_t i);

/* draw_dropout.c */
void rg_dropout(rg_emit_t *e, aot_value_t *out);
void rg_native_dropout(rg_emit_t *e, aot_value_t *out);
void rg_fused_dropout(rg_emit_t *e, aot_value_t *out);
void rg_feature_dropout(rg_emit_t *e, aot_value_t *out);
void rg_alpha_dropout(rg_emit_t *e, aot_value_t *out);
void rg_feature_alpha_dropout(rg_emit_t *e, aot_value_t *out);
void rg_rrelu(rg_emit_t *e, aot_value_t *out);
/* draw_fill.c: in the shape of the result */
void rg_rand(rg_emit_t *e, aot_value_t *out);
void rg_randn(rg_emit_t *e, aot_value_t *out);
void rg_randint_rule(rg_emit_t *e, aot_value_t *out);
void rg_random(rg_emit_t *e, aot_value_t *out);
void rg_uniform_rule(rg_emit_t *e, aot_value_t *out);
void rg_normal_rule(rg_emit_t *e, aot_value_t *out);
void rg_log_normal(rg_emit_t *e, aot_value_t *out);
void rg_exponential(rg_emit_t *e, aot_value_t *out);
void rg_cauchy(rg_emit_t *e, aot_value_t *out);
void rg_geometric(rg_emit_t *e, aot_value_t *out);
void rg_bernoulli(rg_emit_t *e, aot_value_t *out);
/* draw_choice.c */
void rg_randperm(rg_emit_t *e, aot_value_t *out);
void rg_multinomial(rg_emit_t *e, aot_value_t *out);
void rg_poisson(rg_emit_t *e, aot_value_t *out);
void rg_binomial(rg_emit_t *e, aot_value_t *out);
void rg_gamma(rg_emit_t *e, aot_value_t *out);
void rg_dirichlet(rg_emit_t *e, aot_value_t *out);
/* draw_attention.c */
void rg_attention(rg_emit_t *e, aot_value_t *out);
void rg_attention_backward(rg_emit_t *e, aot_value_t *out);
/* draw_recurrent.c */
void rg_recurrent(rg_emit_t *e, aot_value_t *out);

#endif
