/* What a unit says of operators by name: those it handles (aot.coverage/1), those it leaves out and why
 * (aot.uncovered/1), and what an opset can do with its own (aot.opset-info/1). */
#ifndef AOTH_UNIT_COVERAGE_H
#define AOTH_UNIT_COVERAGE_H

#include <aot/ext/opset_info.h>
#include <sandbox/session.h>

typedef struct aoth_left_out {
  aot_str_t op, reason; /* terminated */
} aoth_left_out_t;

typedef struct aoth_coverage {
  const aoth_unit_t *unit;
  aot_str_t *ops; /* n_ops names, sorted, terminated; session memory, as all below */
  uint32_t n_ops;
  aoth_left_out_t *left_out; /* n_left_out, sorted by op */
  uint32_t n_left_out;
  int told; /* 0: the unit does not say what it handles */
} aoth_coverage_t;

/* Creates the unit with its defaults, queries, destroys it. An opset without the extension handles what it defines. A
 * unit that needs_options cannot be queried: *out stays untold. */
aot_status_t aoth_unit_coverage(aoth_session_t *s, const aoth_unit_t *unit, aoth_coverage_t *out);
int aoth_unit_needs_options(const aoth_unit_t *unit);                      /* it has options without a default */
int aoth_covers(const aoth_coverage_t *c, aot_str_t op);                   /* O(log n) */
const char *aoth_left_out_because(const aoth_coverage_t *c, aot_str_t op); /* NULL: it gives no reason; O(log n) */

/* out[operator id] for every operator of the session's open opsets; zeros where an opset does not say. Session
 * memory. */
aot_status_t aoth_opset_infos(aoth_session_t *s, aot_op_info_t **out);

#endif
