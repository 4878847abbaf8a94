/* What a program will take, reported before it is compiled: the schedules of its graphs with their arena plans, on one
 * axis (aot.memory/1).
 *
 * The schedules are those that a run has (schedule.h), by a machine whose generated functions are stand-ins. The arena
 * is one block for all graphs, the update's too, which has no steps on the axis. What libraries and reference kernels
 * take for themselves is not counted. */
#ifndef LW_PLANNED_MEMORY_H
#define LW_PLANNED_MEMORY_H

#include "schedule.h"
#include "kit/model/rows.h"

/* symbols: a value for each symbol of the block, n_symbols 0: their hints. machine: its kernels of plugins are looked
 * up here. out->plan is filled; buffers without a value of the program are scratch. AOT_E_PRECONDITION: a joint graph
 * that is not divided; AOT_E_UNIMPLEMENTED: sizes that only a run reports, a node that is refused. */
aot_status_t lw_tell_memory(const aot_snapshot_t *s, const custom_world_t *world, const lw_machine_t *machine,
                            const int64_t *symbols, uint64_t n_symbols, mr_rows_t *out, lw_error_t *error);

#endif
