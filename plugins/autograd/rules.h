/* The table of derivative rules, by operator. */
#ifndef AG_RULES_H
#define AG_RULES_H

#include "bound_rule.h"

uint32_t ag_n_rules(void);
const ag_rule_t *ag_rule_at(uint32_t i);

/* out[op id]: the rule of each of the program's operators, n_ops of them; checks every formula against its operator's
 * schema. Failures go to a->status. */
void ag_bind(em_t *a, ag_bound_t *out);

/* Run the rule of the node in *a. */
void ag_apply(em_t *a, const ag_bound_t *b);

/* The functions of rules_<family>.c. */
#define FORMULA(op, text)
#define CODE(op, covers, fn) void fn(em_t *a);
#define ONLY_IF(op, when) int when(em_t *a);
#define FIRST_RESULT(op)
#define PREPARED(op, prepare) aot_status_t prepare(em_t *a, aot_value_t *out_values);
#include "rules.def"
#undef FORMULA
#undef CODE
#undef ONLY_IF
#undef FIRST_RESULT
#undef PREPARED

#endif
