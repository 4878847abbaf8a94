/* Random states that PyTorch saves and sets around an operator, so that the backward draws what the forward drew:
 *
 *     run_and_save_rng_state(op, ..) -> state, results      run_with_rng_state(state, op, ..) -> results
 *     graphsafe_run_with_rng_state(op, .., rng_state)       with a state (a CUDA generator) of its own
 *
 * A state is a seed and the offset of a draw. Where a state comes from a node of the same graph, that is all it is: the
 * second operator has the draw numbers of the first. A state that leaves the graph, or comes from outside, is bytes, as
 * many as it was declared with: seed and offset, 8 bytes each, then zeros (the layout of PyTorch's CUDA generators). */
#ifndef RG_SAVED_STATES_H
#define RG_SAVED_STATES_H

#include "draw_state.h"

#define RG_N_STATE_OPS 3

struct rg_saved_state;

typedef struct rg_states {
  aot_op_t ops[RG_N_STATE_OPS];    /* AOT_NO_ID: no opset has it */
  struct rg_saved_state *by_value; /* n_values rows; made when the first state is met */
  uint32_t n_values;
  uint32_t *saved, n_saved; /* nodes that gave a state; they stand until rg_states_finish */
} rg_states_t;

void rg_states_init(rg_states_t *s, const aot_host_t *host, aot_prog_t *prog);
int rg_is_state_node(const rg_states_t *s, const em_t *e);

/* The operator itself, in whose results the node's are replaced: it and the nodes that it is written with, up to
 * `stop`, are to draw from `stream`. */
typedef struct rg_state_use {
  aot_node_t inner, stop;
  rg_stream_t *stream;
} rg_state_use_t;

/* Takes e->node apart. Diagnoses. */
aot_status_t rg_states_enter(rg_states_t *s, em_t *e, rg_state_use_t *out);

/* At the end of a graph: states that another owner reads become bytes. */
aot_status_t rg_states_finish(rg_states_t *s, em_t *e);

#endif
