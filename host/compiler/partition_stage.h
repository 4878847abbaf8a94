/* The stage that divides a joint graph. */
#ifndef AOTH_PARTITION_STAGE_H
#define AOTH_PARTITION_STAGE_H

#include <sandbox/session.h>

/* *out_joint: what was divided, for the check of the halves; destroyed by the caller, also after a failure. */
struct aoth_joint_record;
aot_status_t aoth_stage_divide(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *unit,
                               struct aoth_joint_record **out_joint);

/* Does the cut name values and nodes of the joint graph only? NULL: it does; else what the unit did. O(program) */
const char *aoth_cut_wrong(aot_prog_t *p, const aot_cut_t *cut);

#endif
