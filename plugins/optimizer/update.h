/* The UPDATE graph around a rule: which parameters there are, their gradients, states, outputs and copy-back rules. */
#ifndef OPT_UPDATE_H
#define OPT_UPDATE_H

#include "groups.h"

/* Adds the graph to a partitioned program. One update for every parameter that has a gradient, by the first group that
 * matches it, else by the rule. */
aot_status_t opt_add_update(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const opt_rule_t *rule,
                            const opt_groups_t *groups);

#endif
