/* Operators without a derivative rule, with the reason. */
#ifndef AG_NO_RULE_H
#define AG_NO_RULE_H

#include <stdint.h>

typedef struct ag_no_rule {
  const char *op, *reason;
} ag_no_rule_t;

uint32_t ag_n_no_rules(void);
const ag_no_rule_t *ag_no_rule_at(uint32_t i);

#endif
