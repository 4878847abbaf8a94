/* Parameter groups: rules that give some parameters options of their own.
 *
 *     *.bias, ln_*: weight-decay=0; head.*: lr-scale=0.1, beta1=0.8
 *
 * rule = PATTERN {"," PATTERN} ":" [OPTION "=" VALUE {"," OPTION "=" VALUE}]. Rules are separated by ";" or line ends;
 * of the rules that match a parameter's name the first counts. Options are those of the unit, and lr-scale; what a rule
 * does not set is as the unit has it. */
#ifndef OPT_GROUPS_H
#define OPT_GROUPS_H

#include "adam.h"
#include "sgd.h"

#define OPT_RULE_SGD 1
#define OPT_RULE_ADAM 2

typedef struct opt_rule {
  int kind;       /* OPT_RULE_* */
  const char *id; /* unit id; first part of the names of states */
  opt_sgd_t sgd;
  opt_adam_t adam;
  double lr_scale;    /* of a group */
  aot_str_t patterns; /* of a group: separated by commas */
} opt_rule_t;

typedef struct opt_groups {
  opt_rule_t *rule; /* [session] */
  uint32_t n;
} opt_groups_t;

/* The text's rules, which it must outlive. AOT_E_OPTION, reported: a rule is malformed. */
aot_status_t opt_groups_parse(const aot_host_t *host, aot_ctx_t *ctx, aot_str_t text, const opt_rule_t *unit,
                              opt_groups_t *out);
/* What is wrong with a rule's options, or NULL. */
const char *opt_rule_error(const opt_rule_t *rule);
int opt_rule_matches(const opt_rule_t *rule, const aot_str_t *names, uint32_t n_names);

#endif
