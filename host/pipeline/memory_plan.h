/* aot.memory/1 on the host's side: asking a unit for the memory that the program takes, and the way from a stage that
 * asks to the pipeline's backend. */
#ifndef AOTH_MEMORY_PLAN_H
#define AOTH_MEMORY_PLAN_H

#include <aot/ext/memory.h>
#include <pipeline/session.h>

/* The unit of `stage` (backend/2 or partition/1) is created, asked about the session's program as it stands, with
 * symbols at their hints, and destroyed. Rows are copied to the arena and checked: every step and place inside the
 * plan. AOT_E_UNIMPLEMENTED, told: the unit does not offer aot.memory/1. Failures of the unit as for stages.
 * O(rows). */
aot_status_t aoth_session_memory(aoth_session_t *s, const aoth_stage_t *stage, aoth_arena_t *arena,
                                 aot_memory_plan_t *out);
/* creates and destroys it; 0: it cannot be created */
int aoth_unit_offers_memory(aoth_session_t *s, const aoth_stage_t *stage);

/* From begin to end stages that ask the host for aot.memory/1 are answered by the backend among these stages. */
aot_status_t aoth_memory_route_begin(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n_stages);
void aoth_memory_route_end(aoth_session_t *s);
/* What the host's extension does; ctx->memory is the session's route. Gives no diagnostics. */
aot_status_t aoth_memory_route_plan(aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols, uint64_t n_symbols,
                                    const aot_memory_plan_t **out);

#endif
