/* A lower bound of the cost by prices of memory at moments.
 *
 * A plan within the budget holds at most so many bytes at every moment (program_points.h). Let a byte have a price at
 * every moment: then
 *
 *     cost of the plan >= minimum over all plans of (cost + sum over moments of price * (what is held there - budget))
 *
 * (Lagrangian duality), and the minimum is one cut (parametric.h): the price of saving a value is its bytes times the
 * sum of the prices of all moments at which it would not be held anyway. Every choice of prices gives a bound; they are
 * raised where the cut's plan holds too much, lowered where it holds less (subgradient steps as long as B. T. Polyak
 * has it, 1969), and the best bound counts. */
#ifndef MC_LAGRANGIAN_BOUND_H
#define MC_LAGRANGIAN_BOUND_H

#include "program_points.h"

typedef struct mc_prices {
  const mc_moments_t *h;
  double budget;
  size_t n_moments;             /* nodes, and the end of the forward */
  double *rate, *best_rate;     /* by moment: ps a byte, as tried and where the bound was best */
  double *excess, *best_excess; /* by moment: bytes of the cut's plan over the budget */
  double best;
  double *sums[2];   /* by side and moment: of what comes before it */
  double *price;     /* by value */
  uint8_t *runs;     /* by node: in the backward */
  uint8_t *decided;  /* by node: MC_NOT_AGAIN, MC_AGAIN, or 0 (parametric.h) */
  double *again;     /* by node: part of the latest cuts under which it ran again */
  uint32_t n_cuts;   /* so far */
  uint8_t *is_saved; /* by value */
  uint32_t *saved, n_saved;
} mc_prices_t;

typedef struct mc_ascent {
  uint32_t most_cuts, patience; /* patience: cuts without a better bound until steps are shortened */
  double length;                /* of the first steps, as a part of what would reach the target */
} mc_ascent_t;

/* All prices 0, nothing decided. 0 or -2. Deinit in any case. */
int mc_prices_init(mc_prices_t *d, const mc_moments_t *h, uint64_t budget);
void mc_prices_deinit(mc_prices_t *d);

/* From the rates at hand under what is decided. Leaves best, best_rate, again. target: where to stop. 0; -1: no plan
 * is possible; -2. */
int mc_prices_ascend(mc_prices_t *d, double target, const mc_ascent_t *how);

#endif
