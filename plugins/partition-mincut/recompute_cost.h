/* What running a node once more costs: a plain model of time, in picoseconds.
 *
 * cost = 20 ps an operation of matrix products and convolutions + 100 ps a byte read or written + 1 ns a node; views
 * cost nothing. That is a core of 50 GFLOP/s with memory of 10 GB/s: what matters is the ratio, and that no node but
 * a view is free. */
#ifndef MC_RECOMPUTE_COST_H
#define MC_RECOMPUTE_COST_H

#include "joint/joint_arrays.h"

#define MC_PS_PER_FLOP 20u
#define MC_PS_PER_BYTE 100u
#define MC_PS_PER_NODE 1000u
#define MC_MAX_COST (INT64_C(1) << 46) /* of one node; a hundred thousand of them add up without overflow */

/* cost: by node. flops: by node, operations of heavy nodes; NULL: estimated from the sizes of operands and results. */
void mc_recompute_cost(const pt_joint_t *j, const uint64_t *flops, int64_t *cost);

#endif
