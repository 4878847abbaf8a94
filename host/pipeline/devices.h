/* The device that executables are loaded on, and the queue that they run on. */
#ifndef AOTH_DEVICES_H
#define AOTH_DEVICES_H

#include <pipeline/session.h>

/* From here on executables are loaded on the pipeline's device, made if it is not. use NULL: the host. */
aot_status_t aoth_session_take_device(aoth_session_t *s, const aoth_stage_t *device);
aot_status_t aoth_session_make_queue(aoth_session_t *s); /* on that device, unless it is there */
void aoth_session_drop_queue(aoth_session_t *s);         /* once no executable is left */

#endif
