/* A loaded program: a schedule per graph (kit/lowering), the code of its loops, runs. */
#ifndef KB_PROGRAM_H
#define KB_PROGRAM_H

#include "kit/base/host_call.h"
#include "kit/lowering/schedule.h"

typedef struct kb_program kb_program_t;

typedef struct kb_stats { /* of one run of each graph */
  uint32_t n_steps, n_loops, n_functions, n_fallback;
  uint64_t arena_nbytes; /* the largest */
} kb_stats_t;

/* Schedules at the hints of symbolic sizes, and their code. cache: of the
 * host, NULL: none. s, cache and compiler are borrowed until destroy. */
aot_status_t kb_program_create(const aot_snapshot_t *s, const custom_world_t *world, const char *cache,
                               const char *compiler, kb_program_t **out, lw_error_t *error);
void kb_program_destroy(kb_program_t *p);
/* Bytes that a run of the graph at these sizes needs. */
aot_status_t kb_program_arena(kb_program_t *p, const aot_graph_at_t *at, uint64_t *out_nbytes, lw_error_t *error);
aot_status_t kb_program_run(kb_program_t *p, const hc_run_t *run, lw_error_t *error);
kb_stats_t kb_program_stats(kb_program_t *p);

/* A machine that plans and never runs, for lw_tell_memory. */
lw_machine_t kb_planning_machine(const custom_program_t *custom);

#endif
