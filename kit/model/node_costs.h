/* What the nodes of a program cost, as a table of its snapshot: filled by who knows, reported by a backend row by row
 * (aot.cost/1), and gathered from such rows by a stage that asks (ask_costs.h).
 *
 *     backend: nc_init, its own lowering's columns, nc_put  ->  rows  ->  stage: nc_init, put(), simulation
 *
 * nc_init fills in what types and marks report, the neutral model of a machine that nothing knows: work from shapes,
 * views where the operator's alias marks say so, no loops of several nodes, no work space. */
#ifndef NC_NODE_COSTS_H
#define NC_NODE_COSTS_H

#include <aot/ext/cost.h>
#include <aot/snapshot.h>

#define NC_ALIGN 64u /* of values in memory, where nothing reports */

typedef struct nc_costs {
  uint64_t *flops, *workspace; /* by node row */
  uint64_t *nanoseconds;       /* by node row; 0: not said */
  uint32_t *fusion;            /* by node row: nodes of one graph with one number may share a loop; 0: it runs alone */
  uint32_t *view_of;           /* by value row: the operand of its node that it is a view of, from 1; 0: none */
  uint32_t max_fused;          /* nodes of one loop; 0: any number */
  uint64_t alignment;
} nc_costs_t;

/* The values of the snapshot's expressions at these values of its symbols, n_given 0: at their hints; freed by the
 * caller. AOT_E_INVALID: too few values; AOT_E_RANGE, AOT_E_EXHAUSTED. */
aot_status_t nc_dims(const aot_snapshot_t *s, const int64_t *given, uint64_t n_given, int64_t **out);

/* The neutral model. 0, or -2 without memory. O(nodes + operands). Deinit in any case. */
int nc_init(nc_costs_t *c, const aot_snapshot_t *s, const int64_t *dims);
void nc_deinit(nc_costs_t *c);

/* What a machine does in a nanosecond, and what each node costs it in addition. */
typedef struct nc_rates {
  double bytes, halves, singles, doubles; /* of memory; multiplications and additions, by the dtype of the result */
  double node_ns;
} nc_rates_t;

double nc_rate_of(const nc_rates_t *rates, int32_t dtype); /* of work in it */

/* Of every node that is not a view: the longer of its moves and its work. O(nodes + operands). */
void nc_time_nodes(nc_costs_t *c, const aot_snapshot_t *s, const int64_t *dims, const nc_rates_t *rates);

/* The rows of the graph of this id, in order; AOT_NO_ID: of all. AOT_E_EXHAUSTED, or the sink's own status. */
aot_status_t nc_put(const nc_costs_t *c, const aot_snapshot_t *s, uint32_t graph, const int64_t *dims,
                    const aot_cost_sink_t *sink);

#endif
