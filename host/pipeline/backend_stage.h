/* Backends: lowering, artifacts, executables. */
#ifndef AOTH_BACKEND_STAGE_H
#define AOTH_BACKEND_STAGE_H

#include <pipeline/session.h>

aot_status_t aoth_stage_lower(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *backend,
                              uint64_t *out_edits);
void aoth_session_exe_drop(aoth_session_t *s);
/* The executable of an artifact that outlives the session's use of it (a cache entry). stage: of a backend. */
aot_status_t aoth_session_load_artifact(aoth_session_t *s, const aoth_stage_t *stage, const void *artifact,
                                        uint64_t nbytes);

#endif
