/* Which nodes bring symbols into the world: their results have a size, or are a number, that only the run can
 * determine. */
#ifndef SNAP_BIRTHS_H
#define SNAP_BIRTHS_H

#include <aot/snapshot.h>
#include <stdint.h>

/* out[nodes.count]: 1 where a result's size or number is a symbol that neither a leaf, nor an input of the node's
 * graph, nor an earlier result of it holds, nor a number among arguments so far: what a node is given by its number has
 * been reported before the graph ran, as a backward graph receives what its forward graph has found; else 0. -1: no
 * memory. One pass over values and expressions; the block has passed sn_check or comes from the host. */
int sn_births(const aot_snapshot_t *s, uint8_t *out);

#endif
