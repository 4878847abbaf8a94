/* No plan within a budget costs less: the bound by prices (lagrangian_bound.h), then by cases.
 *
 * Plans come in whole values, and prices do not know that: what they leave open is closed by branch and bound (A. H.
 * Land, A. G. Doig, 1960). A case is a set of nodes that run again and one of nodes that do not; the case with the
 * least bound is divided by the node about which its cuts disagree most. The bound is that of the weakest case left;
 * a case that is not below the target is done. */
#ifndef MC_LOWER_BOUND_H
#define MC_LOWER_BOUND_H

#include "program_points.h"

/* target: the cost of a plan within the budget, ps; the bound is at most that. most_cuts: effort, for prices and for
 * cases. 0 or -2;
 * *out_bound: ps, not negative. Deterministic. */
int mc_lower_bound(const mc_moments_t *h, uint64_t budget, double target, const uint32_t most_cuts[2],
                   double *out_bound);

#endif
