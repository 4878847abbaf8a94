/* Calls of an executable, bound to memory once and submitted as often as the same memory is used again. The memory is
 * the host's; where the device has its own, buffers stand for it (staging.h). */
#ifndef AOTH_BOUND_CALLS_H
#define AOTH_BOUND_CALLS_H

#include <aot/backend.h>
#include <device/staging.h>

enum { AOTH_MAX_BOUND = 16 }; /* of one executable at a time; the one that was not used for longest makes room */

typedef struct aoth_bound_call {
  aot_bound_t *call;     /* NULL: the row is free */
  aot_binding_t binding; /* as it was asked for; arrays are of `copy` */
  void *copy;
  aoth_staging_t staging; /* empty where the device's memory is the host's */
  uint64_t last_used;
} aoth_bound_call_t;

/* An executable on a device, with its queue and arena. */
typedef struct aoth_bound_calls {
  const aot_device_t *device;
  const aot_exe_t *exe, *exe_self; /* the imported table; what its functions are called with */
  aot_queue_t *queue;
  aot_queue_t *copies; /* NULL: the device's memory is the host's */
  aot_timeline_t *timeline;
  uint64_t height;   /* as far as the timeline is to be raised */
  uint64_t n_copied; /* bytes, to and from the device */
  aot_buffer_t arena;
  uint64_t clock; /* runs so far */
  uint64_t n_bound;
  aoth_bound_call_t rows[AOTH_MAX_BOUND];
} aoth_bound_calls_t;

/* Queues, timeline, no calls. After a failure, too: deinit. */
aot_status_t aoth_bound_calls_init(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_device_t *device,
                                   const aot_exe_t *exe, const aot_exe_t *exe_self);
aot_status_t aoth_bound_calls_deinit(aoth_bound_calls_t *b, aot_ctx_t *ctx); /* while the executable lives */

/* Bind unless it is bound so already, submit, wait. symbols: in and out, as in aot_submission_t. [run-thread] */
aot_status_t aoth_bound_calls_run(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_binding_t *what, int64_t *symbols,
                                  const aot_output_sink_t *open);

#endif
