/* Reading a model into a session. */
#ifndef AOTH_SESSION_LIFETIME_H
#define AOTH_SESSION_LIFETIME_H

#include <sandbox/session.h>

/* Opsets, model file, importer: everything that reading needs. The map belongs to the session. */
aot_status_t aoth_pipeline_open_model(aoth_session_t *s, const aoth_pipeline_t *p, aoth_model_t *out);
/* an empty one takes the place of the last */
aot_status_t aoth_session_new_program(aoth_session_t *s, const aoth_model_t *model);
aot_status_t aoth_session_read_model(aoth_session_t *s, aoth_model_t *model);

#endif
