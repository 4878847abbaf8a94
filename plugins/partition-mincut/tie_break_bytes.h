/* Of all minimum cuts of a solved network, one that costs the fewest bytes.
 *
 * A set of vertices with the source and without the sink is a minimum cut exactly when no arc with capacity left leaves
 * it (Picard and Queyranne, On the structure of all minimum cuts in a network, 1980). Among these sets the cheapest in
 * bytes is a minimum cut of a second network: what is left of the first becomes infinite, and every arc that may be cut
 * gets its bytes. Only the vertices that the first flow leaves open take part: what the source still reaches is on
 * its side in every minimum cut, what still reaches the sink is on the other. */
#ifndef MC_TIE_BREAK_BYTES_H
#define MC_TIE_BREAK_BYTES_H

#include "maxflow.h"

typedef struct mc_choice {
  uint32_t from, to; /* vertices; cut where from is on the source's side and to is not */
  int64_t nbytes;
} mc_choice_t;

/* f: solved. out_side[v] = 1: on the source's side; of equal ones the smallest such set. 0 or -2. */
int mc_fewest_bytes(const mc_flow_t *f, uint32_t source, uint32_t sink, const mc_choice_t *choices, uint32_t n_choices,
                    uint8_t *out_side);

#endif
