/* What nodes take that run as one loop: values that only the loop's own members read are in no memory, and one read of
 * a tensor serves all of them. A backend reports what each node takes by itself and which nodes may share a loop
 * (aot.cost/1); grouping is that of the simulator and of backends (kit/loops/group.h). */
#ifndef NC_LOOP_TIMES_H
#define NC_LOOP_TIMES_H

#include "node_costs.h"

/* Lowers c->nanoseconds of the members of each loop of a graph, by the share of their bytes that reach memory; dims as
 * for nc_init. 0, or -2 without memory. O((nodes + operands) * alpha). */
int nc_time_loops(nc_costs_t *c, const aot_snapshot_t *s, uint32_t graph_row, const int64_t *dims);

#endif
