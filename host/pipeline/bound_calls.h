/* Calls of an executable, bound to memory once and submitted as often as the same memory is used again. */
#ifndef AOTH_BOUND_CALLS_H
#define AOTH_BOUND_CALLS_H

#include <aot/backend.h>

enum { AOTH_MAX_BOUND = 16 }; /* of one executable at a time; the one that was not used for longest makes room */

typedef struct aoth_bound_call {
  aot_bound_t *call;     /* NULL: the row is free */
  aot_binding_t binding; /* arrays are of `copy` */
  void *copy;
  uint64_t last_used;
} aoth_bound_call_t;

/* An executable on a device, with its queue and arena. */
typedef struct aoth_bound_calls {
  const aot_device_t *device;
  const aot_exe_t *exe, *exe_self; /* the imported table; what its functions are called with */
  aot_queue_t *queue;
  aot_timeline_t *timeline;
  uint64_t n_submitted; /* as far as the timeline is to be raised */
  aot_buffer_t arena;
  uint64_t clock, n_bound;
  aoth_bound_call_t rows[AOTH_MAX_BOUND];
} aoth_bound_calls_t;

/* Queue, timeline, no calls. After a failure, too: deinit. */
aot_status_t aoth_bound_calls_init(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_device_t *device, const aot_exe_t *exe,
                                   const aot_exe_t *exe_self);
void aoth_bound_calls_deinit(aoth_bound_calls_t *b); /* while the executable lives */

/* Bind unless it is bound so already, submit, wait. symbols: in and out, as in aot_submission_t. [run-thread] */
aot_status_t aoth_bound_calls_run(aoth_bound_calls_t *b, aot_ctx_t *ctx, const aot_binding_t *what, int64_t *symbols,
                                  const aot_output_sink_t *open);

#endif
