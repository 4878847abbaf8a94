/* What calls of regions take: the arena of a region's body, simulated as a run of its own, with what it calls in turn.
 * What the body hands over is a result of the call and not counted here. */
#ifndef MS_SIM_REGIONS_H
#define MS_SIM_REGIONS_H

#include "node_costs.h"

/* out: by graph row of the snapshot, zeroed by the caller; rows that no region call names stay 0. dims, costs: as for
 * ms_sim_init. 0, or -2 without memory. O(nodes + operands) of all bodies, and what a simulation takes. */
int ms_region_memory(const aot_snapshot_t *s, const int64_t *dims, const nc_costs_t *costs, uint64_t *out);

#endif
