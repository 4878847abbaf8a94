/* What a program will take, told before it is compiled: the schedules of its graphs with their arena plans, on one
 * axis.
 *
 * The schedules are those that a run has (schedule.h), with one stand-in for every generated function; without a C
 * compiler, or where one fails, groups are run node by node, which takes more: `compiles` says which it is. The arena
 * is one block for all graphs, the update's too, which has no steps on the axis. What BLAS and reference kernels
 * take for themselves is not counted. */
#ifndef BC_PLANNED_MEMORY_H
#define BC_PLANNED_MEMORY_H

#include "common/memory/rows.h"
#include "common/lowering/schedule.h"

/* For schedules that never run: one stand-in for every generated function. */
lw_machine_t bc_planning_machine(int32_t n_threads, const cu_program_t *custom, int compiles);

/* symbols: a value for each symbol of the block. out->plan is filled; buffers without a value of the program are
 * scratch. AOT_E_PRECONDITION: a joint graph that is not divided; AOT_E_UNIMPLEMENTED: sizes that only a run tells,
 * a node that is refused. */
aot_status_t bc_plan_memory(const aot_snapshot_t *s, const cu_world_t *world, int32_t n_threads, int compiles,
                            const int64_t *symbols, mr_rows_t *out, lw_error_t *error);

#endif
