/* Where operators are defined. Next to a plugin ID.so there may be a text ID.sources (cmake/operator_sources.awk writes
 * those of this tree), a line "operator TAB what TAB file:line" each: schema, decomposition, derivative rule, kernel,
 * loop row. "shape:RULE" in place of an operator gives the function of a shape rule. */
#ifndef AOTH_OP_SOURCES_H
#define AOTH_OP_SOURCES_H

#include <sandbox/session.h>

#include <stdint.h>

typedef struct aoth_op_source {
  const char *op, *what, *place;
  const char *plugin; /* its name on the search path, without folder and .so */
  uint32_t number;    /* in the order in which rows were read */
} aoth_op_source_t;

typedef struct aoth_op_sources {
  aoth_op_source_t *rows; /* sorted by operator, in the order of the search path; session memory */
  uint32_t n, capacity;
} aoth_op_sources_t;

/* The texts ID.ENDING of all plugins found, ENDING "sources" or another of three columns. Files that are missing or
 * cannot be read, and lines of another form, are left out. O(lines log lines). */
aot_status_t aoth_op_sources_read(aoth_session_t *s, const char *ending, aoth_op_sources_t *out);
/* The rows of an operator, or of "shape:RULE"; *out_n of them. */
const aoth_op_source_t *aoth_op_sources_find(const aoth_op_sources_t *sources, const char *op, uint32_t *out_n);

#endif
