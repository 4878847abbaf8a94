/* A derivative rule bound to a program's operator: a row of rules.def or an opset's derivative, and its conditions. */
#ifndef AG_BOUND_RULE_H
#define AG_BOUND_RULE_H

#include "ag_emit.h"

#include <aot/ext/derivative.h>

/* What a rule needs of the forward next to the node: other nodes before it, whose results represent its own.
 * AOT_E_UNIMPLEMENTED: everything is there. */
typedef aot_status_t (*ag_prepare_fn)(em_t *a, aot_value_t *out_values);

typedef struct ag_rule {
  const char *op;
  const char *formula; /* NULL: code */
  const char *covers;  /* arguments with a gradient, for code */
  ag_rule_fn code;
} ag_rule_t;

/* The rules of one program's operators. */
typedef struct ag_bound {
  const ag_rule_t *rule;           /* NULL: none */
  const aot_derivative_t *outside; /* an opset's, where there is no rule; NULL: none */
  ag_when_fn when;                 /* NULL: always */
  ag_prepare_fn prepare;           /* NULL: nothing */
  uint64_t covered;                /* bit i: argument i has a gradient */
  uint32_t first_only;             /* results after the first are constants */
  int32_t complex_way;             /* AG_COMPLEX_*: how the rule holds for complex numbers */
  const char *complex_formula;     /* instead of the rule; NULL: the rule itself */
  uint64_t complex_covered;
} ag_bound_t;

enum { AG_COMPLEX_REFUSED, AG_COMPLEX_AS_IT_STANDS, AG_COMPLEX_CONJUGATED }; /* complex_rules.def says what they mean */

static inline int ag_has_rule(const ag_bound_t *b) { return b->rule || b->outside; }

#endif
