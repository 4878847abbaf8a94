/* What nodes cost on a target, by lowering each of them as if it ran alone: its work space is the arena of what the
 * lowering puts next to its results, its views are results that are in an operand's storage, and it shares loops where
 * groups are found (find_groups.c). Nothing is compiled or run. What cannot be lowered keeps the costs that it has in
 * `out`. */
#ifndef LW_LOWERING_COSTS_H
#define LW_LOWERING_COSTS_H

#include "kit/model/node_costs.h"
#include "schedule.h"

/* Of all graphs of the snapshot. dims: values of its expressions; machine: its functions are looked up and not called;
 * has_loops: 0 where it has none. out: as nc_init leaves it. AOT_E_EXHAUSTED, AOT_E_RANGE. O(nodes + operands), regions
 * once a call. */
aot_status_t lw_lowering_costs(const aot_snapshot_t *s, const int64_t *dims, const lw_machine_t *machine, int has_loops,
                               nc_costs_t *out, lw_error_t *error);

#endif
