/* What is left of a failure, to be run again. */
#ifndef AOTH_BUNDLE_H
#define AOTH_BUNDLE_H

#include <pipeline/session.h>

void aoth_bundle_write(aoth_session_t *s, const aoth_stage_t *stage, const char *journal);

#endif
