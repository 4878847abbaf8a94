/* Calls of an executable, bound to memory of the device once and submitted as often as the same memory is used
 * again. */
#ifndef AOTH_BOUND_CALLS_H
#define AOTH_BOUND_CALLS_H

#include <aot/backend.h>
#include <device/queue.h>

enum { AOTH_MAX_BOUND = 64 }; /* of one executable at a time; the one that was not used for longest makes room */

typedef struct aoth_bound_call {
  aot_bound_t *call;     /* NULL: the row is free */
  aot_binding_t binding; /* arrays are of `copy` */
  void *copy;
  uint64_t last_used;
  uint64_t number; /* from 1, of all that were bound on the queue */
} aoth_bound_call_t;

/* An executable with its arena. */
typedef struct aoth_bound_calls {
  aoth_queue_t *queue;
  const aot_exe_t *exe, *exe_self; /* the imported table; what its functions are called with */
  aot_buffer_t arena;
  uint64_t clock; /* runs so far */
  uint64_t n_bound;
  uint64_t n_compared; /* tensors that were held against those of a bound call */
  aoth_bound_call_t rows[AOTH_MAX_BOUND];
} aoth_bound_calls_t;

/* No calls. The queue is borrowed. */
void aoth_bound_calls_init(aoth_bound_calls_t *b, aoth_queue_t *queue, const aot_exe_t *exe, const aot_exe_t *exe_self);
aot_status_t aoth_bound_calls_deinit(aoth_bound_calls_t *b); /* while the executable lives */

/* Bind unless it is bound so already, and put it on the queue. symbols: in and out, as in aot_submission_t, borrowed
 * until it is done. With open outputs, and on devices that are done at once, it waits.
 *
 * known: out: the number of the bound call; in: that number again says that nothing of `what` has changed since, and it
 * is not looked at where the call is still bound; 0: look. NULL: look, and nothing queries. [run-thread] */
aot_status_t aoth_bound_calls_run(aoth_bound_calls_t *b, const aot_binding_t *what, int64_t *symbols,
                                  const aot_output_sink_t *open, uint64_t *known);

#endif
