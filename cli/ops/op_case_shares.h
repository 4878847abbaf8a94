/* Which argument a result of a recorded call is, or is a view of: what the opset says against what was recorded
 * ("shares", docs/PIPELINE.md). */
#ifndef AOTH_OP_CASE_SHARES_H
#define AOTH_OP_CASE_SHARES_H

#include <aot/graph.h>
#include <jansson.h>
#include <cli/ops/op_case_text.h>

/* prog holds the call as `program` wrote it. AOT_OK, AOT_E_INVALID with out_why where the two differ; other errors are
 * reported to the program's sink. O(arguments + results). */
aot_status_t aoth_case_shares(aot_prog_t *prog, aot_op_t op, const aoth_case_program_t *program, json_t *recorded,
                              char *out_why, size_t capacity);

#endif
