/* The cheapest plan when a byte that is saved has a price: minimum over all plans of
 *
 *     cost of what runs again + sum over saved values of price
 *
 * as one minimum cut. A node on the sink's side runs in the backward, a value whose in-vertex is on the source's side
 * and whose out-vertex is on the sink's is saved:
 *
 *     source --cost--> n        n runs again (infinite: it must not)
 *     v_out --inf--> u          u runs before the backward, or in it
 *     n -----price---> n_out    its result is saved (infinite: tags say that it is computed again where it is read)
 *     v_out --inf----> sink     the backward reads v, or v is a gradient
 *
 * With the price of a byte as the multiplier this is the Lagrangian relaxation of "least cost with at most so many
 * saved bytes"; its value is a lower bound of the cost. Source: M. Held, R. M. Karp, 1971, for the bound; network as
 * in cut.c. */
#ifndef MC_PARAMETRIC_H
#define MC_PARAMETRIC_H

#include "plan_memory.h"

#define MC_NOT_AGAIN 1u
#define MC_AGAIN 2u

/* price: by value, ps to save it; of inputs: to hand them over. Not negative. decided: by node, what must not or must
 * run again, 0 for what may; NULL: all may. out_saved: room for n_values; *out_value: at most the minimum, as exact as
 * 61 bits of capacity are. 0; -1: no plan, *out_bad names a value at fault; -2: no memory. */
int mc_parametric(const mc_model_t *m, const double *price, const uint8_t *decided, uint32_t *out_saved,
                  uint32_t *out_n_saved, double *out_value, uint32_t *out_bad);

#endif
