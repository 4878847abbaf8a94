/* What running a node again costs, in picoseconds: the time that the backend reports (aot.cost/1), or by a plain
 * model
 *
 * cost = 20 ps an operation of matrix products and convolutions + 100 ps a byte read or written + 1 ns a node; views
 * (results that are in an operand) cost nothing. That is a core of 50 GFLOP/s with memory of 10 GB/s: what matters is
 * the ratio, and that no node but a view is free. */
#ifndef MC_RECOMPUTE_COST_H
#define MC_RECOMPUTE_COST_H

#include "kit/model/simulate.h"
#include "kit/graph/joint_arrays.h"

#define MC_PS_PER_FLOP 20u
#define MC_PS_PER_BYTE 100u
#define MC_PS_PER_NODE 1000u
#define MC_MAX_COST (INT64_C(1) << 46) /* of one node; a hundred thousand of them add up without overflow */

typedef struct mc_work {       /* by node */
  const uint64_t *flops;       /* operations of heavy nodes */
  const uint64_t *nanoseconds; /* 0: not reported */
} mc_work_t;

/* cost: by node. graph: which results are views. work: NULL: estimated from the sizes of operands and results. */
void mc_recompute_cost(const jg_joint_t *j, const ms_graph_t *graph, const mc_work_t *work, int64_t *cost);

#endif
