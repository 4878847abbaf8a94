/* What stands behind aothost.h, for the commands, which bring their own session and pipeline. */
#ifndef AOTH_API_H
#define AOTH_API_H

#include <include/aothost.h>
#include <config/pipeline.h>
#include <step/step.h>

/* A handle over a session and a checked pipeline that stay the caller's. NULL: no memory, told. */
aothost_t *aoth_api_wrap(aoth_session_t *session, const aoth_pipeline_t *pipeline);
aoth_step_t *aoth_api_step(aothost_t *h); /* NULL before compile */

#endif
