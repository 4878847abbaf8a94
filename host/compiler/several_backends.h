/* Several backends in one pipeline, in order of preference: nodes that nothing takes are decomposed, the stage assign
 * divides the program among them, each compiles its parts, and one executable runs the parts in order
 * (device/hetero_exe.h). */
#ifndef AOTH_SEVERAL_BACKENDS_H
#define AOTH_SEVERAL_BACKENDS_H

#include <sandbox/session.h>

/* How many of these stages, from the first on, are backends. */
uint32_t aoth_count_backends(const aoth_stage_t *stages, uint32_t n_stages);

/* The program lowered to `n` backends. The session's backends must be queried (backend_route.h). */
aot_status_t aoth_session_lower_to_several(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n,
                                           const aoth_stage_t *assign);
/* The executable of an artifact of several backends, as aoth_session_load_artifact. The program has been divided. */
aot_status_t aoth_session_load_several(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n, const void *artifact,
                                       uint64_t nbytes);

/* What each runs; a new reference. NULL: one backend runs all. */
struct json_t;
struct json_t *aoth_shares_json(const aoth_share_t *shares, uint32_t n);
void aoth_shares_restore(aoth_session_t *s, const struct json_t *shares); /* as aoth_shares_json gave it */

#endif
