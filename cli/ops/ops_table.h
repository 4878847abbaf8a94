/* The operators of a session and what units make of them: the rows that `aothost ops` shows as text, JSON and
 * Markdown. */
#ifndef AOTH_OPS_TABLE_H
#define AOTH_OPS_TABLE_H

#include <cli/ops/op_sources.h>
#include <cli/ops/ops_line.h>
#include <cli/ops/unit_coverage.h>

#include <jansson.h>

#define AOTH_MAX_UNITS 64u

typedef struct aoth_op_row {
  const aot_op_desc_t *desc; /* the host's; its name is not terminated, `name` is */
  const char *name;
  const char *opset; /* id of the opset that defines it */
  aot_op_info_t info;
  const struct aoth_op_row *twin; /* of one that writes: the operator that does not; NULL: none, or not one operator */
  int has_kernel, has_derivative; /* brought by an opset: aot.kernels/1, aot.derivative/1 */
} aoth_op_row_t;

typedef struct aoth_ops_table {
  aoth_ops_line_t *line;
  aoth_session_t *s;
  aoth_op_row_t *rows; /* n_rows, chosen, sorted by name */
  uint32_t n_rows;
  aoth_coverage_t gradients[AOTH_MAX_UNITS]; /* units that differentiate: passes that give the property joint */
  aoth_coverage_t backends[AOTH_MAX_UNITS];
  uint32_t n_gradients, n_backends;
  aoth_op_sources_t sources; /* read for -v and --json */
} aoth_ops_table_t;

/* Opens every opset and queries every pass and backend found, or the backends of the command line. Zero-initialise with
 * line and s; trouble is reported to the line's sink. O(operators x log names x units). */
aot_status_t aoth_ops_table_make(aoth_ops_table_t *t);
void aoth_ops_table_deinit(aoth_ops_table_t *t);

/* What a unit makes of an operator: one word and, where there is more to say, why. */
typedef struct aoth_op_answer {
  const char *word, *why; /* why: "" when the word says it all */
} aoth_op_answer_t;
/* yes; functional, decomposed (through what it becomes); none (nothing to differentiate); no; unsaid */
aoth_op_answer_t aoth_op_gradient(const aoth_coverage_t *c, const aoth_op_row_t *row);
/* native; functional, decomposed; no; unsaid */
aoth_op_answer_t aoth_op_support(const aoth_coverage_t *c, const aoth_op_row_t *row);
/* "composite" (PyTorch makes it of others), "on-request" (its opset can, too), "-" */
const char *aoth_op_decomposition(const aoth_op_row_t *row);
uint32_t aoth_op_marks(const aoth_op_row_t *row, const char *out[32]); /* AOT_OP_* in words; how many */

/* Markdown to t->line->markdown. cases: what aoth_ops_cases_json gave, or NULL. */
aot_status_t aoth_ops_markdown(const aoth_ops_table_t *t, const json_t *cases);

#endif
