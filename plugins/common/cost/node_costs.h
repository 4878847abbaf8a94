/* The rows of aot.cost/1 from a snapshot: sizes, views, work and work space as the simulation of memory has them
 * (common/memory/sim_graph.h), for backends on the CPU. */
#ifndef NC_NODE_COSTS_H
#define NC_NODE_COSTS_H

#include <aot/ext/cost.h>
#include <aot/snapshot.h>

typedef struct nc_machine {
  int fuses;         /* pointwise nodes of one size run as one loop */
  int has_workspace; /* kernels work in memory beside their operands */
} nc_machine_t;

/* Of the graph of this id; AOT_NO_ID: of all. given: values of the symbols; n_given 0: the hints. AOT_E_INVALID: too
 * few values; AOT_E_EXHAUSTED, AOT_E_RANGE: sizes that cannot be; the sink's own status. */
aot_status_t nc_node_costs(const aot_snapshot_t *s, uint32_t graph, const int64_t *given, uint64_t n_given,
                           nc_machine_t machine, const aot_cost_sink_t *sink);

#endif
