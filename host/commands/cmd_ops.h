/* The two halves of `aothost ops`: the list (cmd_ops.c) and the run of recorded cases (ops_cases.c). */
#ifndef AOTH_CMD_OPS_H
#define AOTH_CMD_OPS_H

#include "cli.h"

typedef struct aoth_ops_line {
  aoth_cli_t cli;
  const char *cases, *data, *backend, *stages;
} aoth_ops_line_t;

int aoth_ops_chosen(const aoth_cli_t *cli, const char *op); /* by the names and patterns given; none: every operator */
int aoth_ops_cases_main(aoth_ops_line_t *line);             /* exit status */

#endif
