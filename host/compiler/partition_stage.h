/* The stage that divides a joint graph. */
#ifndef AOTH_PARTITION_STAGE_H
#define AOTH_PARTITION_STAGE_H

#include <sandbox/session.h>

/* *out_joint: what was divided, for the check of the forward and backward graphs; destroyed by the caller, also after a
 * failure. */
struct aoth_joint_record;
aot_status_t aoth_stage_divide(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *unit,
                               struct aoth_joint_record **out_joint);

#endif
