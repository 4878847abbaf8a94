/* Whose code it was that crashed. A unit calls others: kernels of operator libraries, backends that answer
 * questions. */
#ifndef AOTH_FAULT_ATTRIBUTION_H
#define AOTH_FAULT_ATTRIBUTION_H

#include <sandbox/session.h>

typedef struct aoth_blame {
  const aoth_unit_t *unit; /* of the plugin; NULL: code that was called */
  aot_str_t op;            /* that its kernel computes, as far as can be reported; empty: none */
} aoth_blame_t;

/* By the program counter; where that is in a library, by the innermost of its callers that is in a plugin.
 * `called`: what the host had called. O(callers * mappings) */
aoth_blame_t aoth_blame(const aoth_session_t *s, const aoth_unit_t *called, const aoth_crash_t *crash);

#endif
