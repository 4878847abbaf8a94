/* What of a process belongs to everybody in it, and a unit must leave as it found it. */
#ifndef AOTH_PROCESS_STATE_H
#define AOTH_PROCESS_STATE_H

#include "kit/base/text.h"

typedef struct aoth_process_state aoth_process_state_t;

aoth_process_state_t *aoth_process_state_record(void); /* NULL: no memory */
void aoth_process_state_destroy(aoth_process_state_t *s);
/* 1: something is not as it was; *out gets the first such thing, as the end of "it left ..": "a signal handler of its
 * own after, for SIGUSR1". O(environment) */
int aoth_process_state_differs(const aoth_process_state_t *s, kit_text_t *out);

#endif
