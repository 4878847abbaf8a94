/* What is left of a failure, to be run again. */
#ifndef AOTH_BUNDLE_H
#define AOTH_BUNDLE_H

#include <sandbox/session.h>

void aoth_bundle_write(aoth_session_t *s, const aoth_stage_t *stage, const char *journal);

/* Before the program goes to these backends: kept, should a run fail. For aoth_session_config_t. */
void aoth_bundle_lowering(aoth_session_t *s, const aoth_stage_t *const *backends, uint32_t n,
                          const aoth_stage_t *assign);

#endif
