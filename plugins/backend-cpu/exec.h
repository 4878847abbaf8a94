/* A program ready to run: schedules for the values of the symbols seen, their code, one arena. */
#ifndef BC_EXEC_H
#define BC_EXEC_H

#include "codecache.h"
#include "kit/base/host_call.h"
#include <aot/backend.h>
#include <aot/ext/profile.h>

typedef struct bc_program bc_program_t;

/* Everything that can be prepared before a call: schedules at the hints of the symbols, and the code of their
 * loops. The block passed sn_check, and is borrowed. Kernels that are not in kit/reference are looked up in `world`.
 * When there is no compiler *out_warning holds why, and the program runs without generated code; its text is empty
 * otherwise. threads 0: one a processor. */
aot_status_t bc_program_create(const aot_snapshot_t *s, const custom_world_t *world, bc_cache_t *cache, int64_t threads,
                               bc_program_t **out, lw_error_t *out_warning, lw_error_t *error);
void bc_program_destroy(bc_program_t *p);

aot_status_t bc_program_run(bc_program_t *p, const hc_run_t *run, lw_error_t *error);
/* Bytes of arena that a run of the graph takes; 0 where a run finds them itself, because sizes are reported by it. */
aot_status_t bc_program_arena(bc_program_t *p, const aot_graph_at_t *graph, uint64_t *out_nbytes, lw_error_t *error);

typedef struct bc_program_stats {
  uint32_t n_steps, n_groups, n_fallback; /* of one run of every graph */
  uint64_t loop_nbytes;                   /* that generated loops read and write in it */
  uint32_t n_functions;                   /* generated */
  uint64_t arena_nbytes, live_nbytes, n_runs, copied_nbytes;
  bc_code_stats_t code;
} bc_program_stats_t;
bc_program_stats_t bc_program_stats(const bc_program_t *p);
/* From here on every step is timed, and counted from nothing (aot.profile/1). */
void bc_program_profile_start(bc_program_t *p);
/* The steps of all schedules that there are. *out: borrowed until the next call or run. AOT_E_EXHAUSTED */
aot_status_t bc_program_profile(bc_program_t *p, const aot_profile_row_t **out, uint64_t *out_n);
/* From here on nodes run one by one, and what they give is looked at (aot.check-nan/1). Nothing runs meanwhile. */
void bc_program_watch(bc_program_t *p);
const custom_program_t *bc_program_custom(const bc_program_t *p); /* nodes that plugins' kernels run */

#endif
