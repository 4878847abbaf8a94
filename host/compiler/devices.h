/* The device that executables are loaded on, and the queue that they run on. */
#ifndef AOTH_DEVICES_H
#define AOTH_DEVICES_H

#include <sandbox/session.h>

/* From here on executables are loaded on this device, made if it is not. use NULL: the host. */
aot_status_t aoth_session_take_device(aoth_session_t *s, const aoth_stage_t *device);
/* The same of the pipeline's devices, made if they are not: run.device, which is the only
 * backend's where there is one, and those of several backends, whose stages receive their lane: 0 is run.device. */
aot_status_t aoth_session_take_devices(aoth_session_t *s, const aoth_pipeline_t *p);
const aot_device_t *aoth_session_lane_device(const aoth_session_t *s, uint32_t lane);
aot_status_t aoth_session_make_lanes(aoth_session_t *s); /* and their queues, unless they are there */
aot_status_t aoth_session_make_queue(aoth_session_t *s); /* on that device, unless it is there */
void aoth_session_drop_queue(aoth_session_t *s);         /* once no executable is left */

#endif
