/* Objective `memory`: of all plans whose peak is within a budget, one that costs little, with a bound of how little it
 * can be.
 *
 * Where the pipeline's backend reports its own memory plan (aot.memory/1), each plan that fits by the simulation is
 * tried on the program (aot.trial/1) and the backend is queried; the first in order of cost that fits by both is used.
 * So the budget bounds what the backend will really take, and the choice stays monotone: what a larger budget passes
 * over, a smaller one does, too.
 *
 * Views, loops and work space of the simulation are what the backend reports (aot.cost/1), or those of the neutral
 * model (kit/model/node_costs.h) where none does. */
#ifndef MC_MEMORY_OBJECTIVE_H
#define MC_MEMORY_OBJECTIVE_H

#include "budget.h"
#include "kit/partition/apply.h"

/* What the pipeline makes of the forward and backward graphs. */
typedef struct mc_step {
  int is_one_graph; /* one graph with the update (stage stitch) */
  uint32_t loss;    /* number of the user output that it keeps */
  int waits;        /* updates wait for all gradients, which are clipped together */
} mc_step_t;

typedef struct mc_memory_call {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;    /* whose joint graph is divided */
  const pt_how_t *how; /* that the program is divided with */
  mc_budget_t budget;
  double extra_time; /* part of the step's time that less memory may cost; 0: none beyond what the budget needs */
  mc_step_t step;
} mc_memory_call_t;

/* A pt_pick_t; self: mc_memory_call_t. Diagnoses what is wrong itself (PT_TOLD). Reports recompute-cost,
 * cost-lower-bound, step-cost, gap, peak-bytes, peak-arena-bytes (of it), budget-bytes, all-saved-peak-bytes,
 * measured-peak-bytes (the backend's, where it reports), least-peak-bytes, least-peak-bound-bytes, plans-tried,
 * costs-reported. */
int mc_pick_memory(const void *self, const struct jg_joint *j, uint32_t *out_saved, uint32_t *out_n_saved,
                   uint32_t *out_value);

#endif
