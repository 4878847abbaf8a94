/* No plan within a budget costs less: a lower bound by prices of memory at moments.
 *
 * A plan within the budget holds at most so many bytes at every moment (moments.h). Let a byte have a price at every moment: then
 *
 *     cost of the plan >= minimum over all plans of (cost + sum over moments of price * (what is held there - budget))
 *
 * (Lagrangian duality), and the minimum is one cut (parametric.h): the price of saving a value is its bytes times the sum of the prices of
 * all moments at which it would not be held anyway. Every choice of prices gives a bound; they are raised where the cut's
 * plan holds too much, lowered where it holds less (subgradient steps as long as B. T. Polyak has it, 1969), and the best bound counts. */
#ifndef MC_LOWER_BOUND_H
#define MC_LOWER_BOUND_H

#include "moments.h"

/* target: the cost of a plan within the budget, ps; the bound is at most that. most_cuts: effort. 0 or -2; *out_bound: ps, not negative.
 * O(most_cuts cuts), deterministic. */
int mc_lower_bound(const mc_moments_t *h, uint64_t budget, double target, uint32_t most_cuts, double *out_bound);

#endif
