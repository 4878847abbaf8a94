/* The host waits for the device in the middle of a run, where the device decides what is put on the queue next: jumps
 * (gpu_call.h), values between parts (gpu_parts.h). */
#ifndef GC_STREAM_SYNC_H
#define GC_STREAM_SYNC_H

#include "gpu_exe.h"

/* Returns when the queue has done all that was put on it. A failure is reported. */
aot_status_t gc_exe_settle(gc_exe_t *e, aot_ctx_t *ctx, aot_queue_t *queue, lw_error_t *error);
void gc_exe_settle_deinit(gc_exe_t *e);

#endif
