/* The UPDATE graph around a rule: which parameters there are, their gradients, states, outputs and copy-back rules. */
#ifndef OPT_UPDATE_H
#define OPT_UPDATE_H

#include "adam.h"
#include "sgd.h"

#define OPT_RULE_SGD 1
#define OPT_RULE_ADAM 2

typedef struct opt_rule {
  int kind;       /* OPT_RULE_* */
  const char *id; /* unit id; first part of the names of states */
  opt_sgd_t sgd;
  opt_adam_t adam;
} opt_rule_t;

/* Adds the graph to a partitioned program. One update for every parameter that has a gradient. */
aot_status_t opt_add_update(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const opt_rule_t *rule);

#endif
