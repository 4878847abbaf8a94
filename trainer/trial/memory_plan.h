/* aot.memory/1 on the host's side: asking a unit for the memory that the program takes. */
#ifndef AOTH_MEMORY_PLAN_H
#define AOTH_MEMORY_PLAN_H

#include <aot/ext/memory.h>
#include <sandbox/session.h>

/* The unit of `stage` (backend/2 or partition/1) is created, queried about the session's program as it is, with
 * symbols at their hints, and destroyed. Rows are copied to the arena and checked: every step and place inside the
 * plan. backend: whom the unit may ask in turn what nodes cost; NULL: nothing. AOT_E_UNIMPLEMENTED, reported: the unit
 * does not offer aot.memory/1. Failures of the unit as for stages. O(rows). */
aot_status_t aoth_session_memory(aoth_session_t *s, const aoth_stage_t *stage, const aoth_stage_t *backend,
                                 kit_arena_t *arena, aot_memory_plan_t *out);
/* creates and destroys it; 0: it cannot be created */
int aoth_unit_offers_memory(aoth_session_t *s, const aoth_stage_t *stage);

#endif
