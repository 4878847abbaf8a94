/* What a stage may be handed, and what it must leave: contract -> verifier -> types. */
#ifndef AOTH_STAGE_CHECK_H
#define AOTH_STAGE_CHECK_H

#include <sandbox/session.h>

/* Its contract's drops removed, its gives added. 0: no memory. */
int aoth_properties_after(const aoth_unit_t *unit, kit_arena_t *arena, aoth_properties_t before,
                          aoth_properties_t *out);
/* needs and refuses against `properties`; complains at the stage with the units that could help. */
aot_status_t aoth_contract_check(aoth_session_t *s, const aoth_stage_t *stage, aoth_properties_t properties);
aot_status_t aoth_stage_check_memory(aoth_session_t *s, const aoth_stage_t *stage); /* was every edit of it made? */
/* Contract and verifier over the open journal, or AOTH_CALL_BROKE. */
aot_status_t aoth_stage_check(aoth_session_t *s, const aoth_stage_t *stage);
/* The types that it set against those that the operators give. Opsets answer, as in a call. */
aot_status_t aoth_stage_check_types(aoth_session_t *s, const aoth_stage_t *stage);
/* With the new properties. */
aot_status_t aoth_stage_commit(aoth_session_t *s, const aoth_stage_t *stage);

#endif
