/* The parts of `aothost ops`: the table (ops_table.c), the run of recorded cases (ops_cases.c), Markdown
 * (ops_markdown.c). */
#ifndef AOTH_CMD_OPS_H
#define AOTH_CMD_OPS_H

#include <cli/base/cli.h>

typedef struct aoth_ops_line {
  aoth_cli_t cli;
  aoth_texts_t backends; /* --backend, as often as given */
  const char *cases, *data, *backend, *device, *stages, *markdown, *mutate, *seed, *part;
  uint64_t n_mutants, mutant_seed;
  uint64_t part_number, n_parts; /* of the cases only each n_parts-th, from that number on; counted from 1 */
} aoth_ops_line_t;

int aoth_ops_chosen(const aoth_cli_t *cli, const char *op); /* by the names and patterns given; none: every operator */

/* Runs the chosen cases of line->cases through line->backend. Prints rows and totals when `as_text`. *out_json, the
 * result as docs/PIPELINE.md has it, is the caller's to release. *out_failed: how many cases fail. */
/* line->n_mutants changed copies of each case. */
aot_status_t aoth_ops_mutants_run(aoth_ops_line_t *line, uint32_t *out_bad);
aot_status_t aoth_ops_cases_run(aoth_ops_line_t *line, int as_text, struct json_t **out_json, uint32_t *out_failed);

#endif
