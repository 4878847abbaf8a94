/* What follows aothost.h, for the commands, which bring their own session and pipeline. */
#ifndef AOTH_API_H
#define AOTH_API_H

#include <include/aothost.h>
#include <config/pipeline.h>
#include <step/step.h>

/* Writes what the last call was given (aoth_step_given) to a file, for the bundle of a run that failed. */
typedef aot_status_t (*aoth_save_call_t)(const aoth_step_t *s, const char *path, aoth_sink_t *sink);
/* A handle over a session and a checked pipeline that remain the caller's. save_call NULL: bundles have no call. NULL:
 * no memory, reported. */
aothost_t *aoth_api_wrap(aoth_session_t *session, const aoth_pipeline_t *pipeline, aoth_save_call_t save_call);
aoth_step_t *aoth_api_step(aothost_t *h); /* NULL before compile */

#endif
