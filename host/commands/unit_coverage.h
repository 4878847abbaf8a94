/* What a unit says it handles by name (aot.coverage/1). */
#ifndef AOTH_UNIT_COVERAGE_H
#define AOTH_UNIT_COVERAGE_H

#include <pipeline/session.h>

typedef struct aoth_coverage {
  const aoth_unit_t *unit;
  aot_str_t *ops; /* n_ops names, sorted; session memory */
  uint32_t n_ops;
  int told; /* 0: the unit does not offer the extension */
} aoth_coverage_t;

/* Creates the unit with its defaults, asks, destroys it. */
aot_status_t aoth_unit_coverage(aoth_session_t *s, const aoth_unit_t *unit, aoth_coverage_t *out);
int aoth_covers(const aoth_coverage_t *c, aot_str_t op); /* O(log n) */

#endif
