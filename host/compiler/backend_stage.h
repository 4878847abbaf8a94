/* Backends: lowering, artifacts, executables. */
#ifndef AOTH_BACKEND_STAGE_H
#define AOTH_BACKEND_STAGE_H

#include <sandbox/session.h>

aot_status_t aoth_stage_lower(aoth_session_t *s, const aoth_stage_t *stage, aoth_instance_t *backend,
                              uint64_t *out_edits);
void aoth_session_exe_drop(aoth_session_t *s);

/* ---- what it is made of, for several backends ---- */
/* Every node is accepted by one of the n backends; those that none takes are decomposed. shares: what each leaves. A
 * failure has been dealt with as a stage's. */
aot_status_t aoth_backends_make_acceptable(aoth_session_t *s, const aoth_stage_t *stages,
                                           const aoth_instance_t *backends, uint32_t n, aoth_share_t *shares,
                                           uint64_t *out_edits);
/* Reports "no memory WHAT" at the stage; the session's status is AOT_E_EXHAUSTED from then on. */
aot_status_t aoth_lowering_no_memory(aoth_session_t *s, const aoth_stage_t *stage, const char *what);
/* The program as it is, after what is in the session's artifact. */
aot_status_t aoth_backend_compile(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend);
aot_status_t aoth_artifact_add(aoth_session_t *s, const void *data, uint64_t nbytes);
aot_status_t aoth_backend_load(aoth_session_t *s, const aoth_stage_t *stage, const aoth_instance_t *backend,
                               const void *bytes, uint64_t nbytes, const aot_device_t *device, aoth_loaded_t *out);
aot_status_t aoth_session_take_executable(aoth_session_t *s, const aoth_loaded_t *loaded); /* the program runs on it */
aoth_stage_t aoth_stage_kept(aoth_session_t *s,
                             const aoth_stage_t *stage); /* with texts that last longer than the pipeline */

/* The executable of an artifact that outlives the session's use of it (a cache entry). stage: of a backend. */
aot_status_t aoth_session_load_artifact(aoth_session_t *s, const aoth_stage_t *stage, const void *artifact,
                                        uint64_t nbytes);

#endif
