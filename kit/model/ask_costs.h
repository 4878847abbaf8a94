/* A stage's side of aot.cost/1: what the pipeline's backend makes of the nodes. */
#ifndef NC_ASK_COSTS_H
#define NC_ASK_COSTS_H

#include "node_costs.h"
#include <aot/host.h>

typedef struct nc_question {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const aot_snapshot_t *snapshot; /* of the program as it stands */
  const int64_t *symbols;         /* their values; n_symbols 0: their hints */
  uint64_t n_symbols;
} nc_question_t;

/* The backend's rows over the neutral model, whole or not at all; *out_is_told: 0 where no backend answers. dims: as
 * for nc_init. 0, or -2 without memory. O(nodes + operands) and the answer. Deinit in any case. */
int nc_ask(nc_costs_t *out, const nc_question_t *q, const int64_t *dims, int *out_is_told);

#endif
