/* A run of a program that was cut (program_parts.h): values that stand between its parts, and the nodes that tell
 * sizes. */
#ifndef BC_LIVE_VALUES_H
#define BC_LIVE_VALUES_H

#include "common/snapshot/snap_learn.h"
#include "program_parts.h"
#include "common/lowering/schedule.h"
#include <aot/backend.h>

typedef struct bc_held {
  rk_tensor_t t; /* dtype 0: nothing is held */
  void *own;     /* NULL: the caller's memory */
} bc_held_t;

typedef struct bc_live {
  const bc_cut_t *cut;
  bc_held_t *values; /* by value row */
  sn_known_t known;
} bc_live_t;

/* symbols: in and out, as in aot_submission_t. */
aot_status_t bc_live_init(bc_live_t *l, const bc_cut_t *cut, int64_t *symbols, uint64_t n_symbols, lw_error_t *error);
void bc_live_deinit(bc_live_t *l);

aot_status_t bc_live_inputs(bc_live_t *l, uint32_t graph, const aot_tensor_t *inputs, lw_error_t *error);
/* Memory for what a part makes: its ports have the types of its schedule. */
aot_status_t bc_live_make(bc_live_t *l, const aot_snap_graph_t *segment, const lw_port_t *types, lw_error_t *error);
/* Tensors of ports, as a call takes them; they point into the live values. */
void bc_live_tensors(const bc_live_t *l, uint32_t port_begin, uint32_t n, aot_tensor_t *out);
/* Runs the node that ends part `number` of its graph. */
aot_status_t bc_live_birth(bc_live_t *l, uint32_t node, lw_error_t *error);
void bc_live_forget(bc_live_t *l, uint32_t graph, uint32_t number); /* values that no later part reads */

#endif
