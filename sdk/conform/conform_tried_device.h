/* A device that is tried: its functions called as a host calls them that loads executables there (aot/device.h), and
 * what they answer judged. What a host may not do (ranges past a buffer, copies that overlap) is not tried. */
#ifndef AOTH_CONFORM_TRIED_DEVICE_H
#define AOTH_CONFORM_TRIED_DEVICE_H

#include <aot/device.h>
#include <sandbox/call.h>
#include <sdk/conform/conform_trial.h>

typedef struct aoth_tried {
  aoth_trial_t *t;
  const aot_device_t *f, *self; /* its functions, and what they are handed: itself */
  kit_arena_t *arena;
  aot_ctx_t ctx; /* of the calls: hears what they report; over its own arena */
  aot_queue_t *one, *two;
  aot_timeline_t *line;
  uint64_t raised; /* to what `line` was raised last */
  uint64_t patience_ns;
} aoth_tried_t;

typedef struct aoth_tried_step {
  const char *about;
  void (*act)(aoth_tried_t *d);
} aoth_tried_step_t;

/* A trial: a unit, two queues, a timeline, the step of the trial's number. */
void aoth_tried_run(aoth_trial_t *t, const aoth_tried_step_t *steps, uint32_t n);
/* A unit alone. 0: there is none, and the trial has ended. */
int aoth_tried_begin(aoth_trial_t *t, aoth_instance_t *unit, aoth_tried_t *out);
int aoth_tried_make_queues(aoth_tried_t *d); /* and the timeline; 0: the trial has ended */
void aoth_tried_drop_queues(aoth_tried_t *d);

/* From here on nothing has been reported. */
void aoth_tried_hear(aoth_tried_t *d);
void aoth_tried_fail(aoth_tried_t *d, const char *doing, const char *why); /* unless the trial has ended */
/* A call that is to go well. 0: it has not, and the trial has ended; without memory, or for what it says not to have,
 * refused. */
int aoth_tried_went(aoth_tried_t *d, aot_status_t status, const char *doing);
/* A call that is to fail, with a diagnostic: with this status, or, 0, any that refuses. */
int aoth_tried_was_refused(aoth_tried_t *d, aot_status_t status, aot_status_t wanted, const char *doing);

/* Calls that are to go well; each answers 0 when the trial has ended. Values are those of the device's one timeline. */
int aoth_tried_alloc(aoth_tried_t *d, uint64_t nbytes, aot_buffer_t *out);
int aoth_tried_free(aoth_tried_t *d, aot_buffer_t b);
int aoth_tried_host_alloc(aoth_tried_t *d, uint64_t nbytes, void **out);
int aoth_tried_host_free(aoth_tried_t *d, void *p, uint64_t nbytes);
int aoth_tried_write(aoth_tried_t *d, aot_queue_t *q, aot_buffer_t to, const void *from);
int aoth_tried_read(aoth_tried_t *d, aot_queue_t *q, void *to, aot_buffer_t from);
int aoth_tried_copy(aoth_tried_t *d, aot_queue_t *q, aot_buffer_t to, uint64_t from);
int aoth_tried_fill(aoth_tried_t *d, aot_queue_t *q, aot_buffer_t to, uint8_t byte);
int aoth_tried_wait(aoth_tried_t *d, aot_queue_t *q, uint64_t value);
int aoth_tried_signal(aoth_tried_t *d, aot_queue_t *q, uint64_t value);
int aoth_tried_reaches(aoth_tried_t *d,
                       uint64_t value); /* the host waits for the timeline, as long as it has patience */
int aoth_tried_finish(aoth_tried_t *d, aot_queue_t *q); /* until all that is on the queue is done */
/* The host's own, to be judged by the caller. */
aot_status_t aoth_tried_wait_host(aoth_tried_t *d, uint64_t value, uint64_t limit_ns);
aot_status_t aoth_tried_signal_host(aoth_tried_t *d, uint64_t value);

aot_buffer_t aoth_tried_part(aot_buffer_t b, uint64_t at, uint64_t nbytes);
void aoth_tried_make_bytes(uint8_t *out, uint64_t n, uint32_t seed);
/* `what` is the same bytes; 0: it is not, and the trial has ended. */
int aoth_tried_is_same(aoth_tried_t *d, const uint8_t *got, const uint8_t *wanted, uint64_t n, const char *what);

#endif
