/* The table of no_rule.def. */
#include "no_rule.h"

static const ag_no_rule_t NO_RULES[] = {
#define NO_RULE(op, reason) {op, reason},
#include "no_rule.def"
#undef NO_RULE
};

uint32_t ag_n_no_rules(void) { return (uint32_t)(sizeof NO_RULES / sizeof *NO_RULES); }
const ag_no_rule_t *ag_no_rule_at(uint32_t i) { return &NO_RULES[i]; }
