/* Items of the queues, run one at a time, and the memory opened around each. All of it under the device's lock. */
#ifndef STRICT_RUN_H
#define STRICT_RUN_H

#include "strict_state.h"

int sd_run_one(sd_device_t *s); /* an item of a queue that can continue; 0: none can */
aot_status_t sd_raise(sd_device_t *s, aot_ctx_t *ctx, const char *who, aot_point_t point, aot_status_t status);

#endif
