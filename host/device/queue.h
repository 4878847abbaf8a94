/* The queue of a session on its device: moves and calls run in the order in which they were put there. Failures are
 * reported, and what follows it is left out until the host has waited and heard of it.
 *
 *     aoth_queue_write(q, buffer, from)
 *     aoth_queue_next(q, &point); submit(call, q->queue, point); aoth_queue_passed(q)
 *     aoth_queue_read(q, to, buffer)
 *     aoth_queue_idle(q)      all of it is done, or a status */
#ifndef AOTH_QUEUE_H
#define AOTH_QUEUE_H

#include <aot/device.h>
#include <device/guards.h>

typedef aot_status_t (*aoth_queue_fn)(void *arg);

typedef struct aoth_queue {
  const aot_device_t *device; /* NULL: not made */
  aot_ctx_t *ctx;
  aot_queue_t *queue;
  aot_timeline_t *timeline;
  uint64_t height;   /* points that were put on the queue */
  uint64_t done;     /* of them, known to be reached */
  uint64_t n_copied; /* bytes that went between host and device */
  uint64_t n_moved;  /* bytes that went from device to device within the calls of this queue */
  uint64_t n_stirs;  /* grows when contents that stay between calls come to be elsewhere (mirrored_buffer.h) */
  uint64_t n_bound;  /* calls that were bound so far (bound_calls.h) */
  uint32_t n_errors; /* that were reported when nothing was under way */
  /* Errors reported while work was queued, by the work or by who submitted it: if all up to that point succeeds,
   * nothing failed that they could be about. */
  uint32_t n_unjudged;
  uint64_t judged_at;
  uint32_t n_contradictions; /* of them, found by the call that is under way */
  uint32_t alignment;
  const char *doing;     /* the call that was put there last, for messages: "the step graph"; NULL: none yet */
  uint64_t patience_ns;  /* of a wait; UINT64_MAX: the device knows what nothing raises any more */
  int has_more;          /* there are moves after the last point */
  int is_shared;         /* the device's memory is the host's */
  int is_lost;           /* the device is: nothing is under way any more, and nothing is put there */
  aoth_guards_t *guards; /* on the host, when overruns are looked for: buffers are its; NULL: they are the device\'s */
  /* How the device is called: by a session in a crash frame; NULL: as it is. */
  aot_status_t (*call)(void *self, aoth_queue_fn fn, void *arg);
  void *self;
  int is_inside; /* of such a call */
  /* Of several devices that work on one call (multi_queue.h): what the host has yet to do so that queues can continue.
   * NULL: nothing. */
  aot_status_t (*run_host_side)(void *lanes);
  void *lanes;
  int host_driven;          /* the host does the work of this queue by that */
  struct aoth_queue *first; /* which counts bytes for this one; NULL: itself */
  struct aoth_queue *feed;  /* what is written ahead of this one; NULL: nothing was yet */
} aoth_queue_t;

/* Of contents that are written ahead: where they lie until the queue takes them. Zeroed at first. */
typedef struct aoth_ahead {
  aot_buffer_t between;
  uint64_t written; /* the host's memory was read when `feed` is there */
  uint64_t taken;   /* and `between` when the queue is */
} aoth_ahead_t;

/* After a failure, too: deinit. */
aot_status_t aoth_queue_init(aoth_queue_t *q, aot_ctx_t *ctx, const aot_device_t *device);
aot_status_t aoth_queue_deinit(aoth_queue_t *q);
aot_status_t
aoth_queue_validate(aoth_queue_t *q); /* of the host's device, before it has buffers: with guards (guards.h) */
aot_status_t aoth_queue_call(aoth_queue_t *q, aoth_queue_fn fn, void *arg);

aot_status_t aoth_queue_alloc(aoth_queue_t *q, uint64_t nbytes, aot_buffer_t *out);
aot_status_t aoth_queue_free(aoth_queue_t *q, aot_buffer_t whole); /* nothing is under way */
aot_status_t aoth_queue_host_alloc(aoth_queue_t *q, uint64_t nbytes, void **out);
aot_status_t aoth_queue_host_free(aoth_queue_t *q, void *memory, uint64_t nbytes);

/* Moves of as many bytes as the buffer has. The host's memory is borrowed until the queue has passed them. In shared
 * memory, with nothing under way, they are done at once. */
aot_status_t aoth_queue_write(aoth_queue_t *q, aot_buffer_t to, const void *from);
aot_status_t aoth_queue_read(aoth_queue_t *q, void *to, aot_buffer_t from);
aot_status_t aoth_queue_copy(aoth_queue_t *q, aot_buffer_t to, uint64_t from);
aot_status_t aoth_queue_zero(aoth_queue_t *q, aot_buffer_t to);

/* A write that does not wait for what is on the queue, but for the device to copy: by another queue into memory
 * that the caller has for it, and from there in its turn. The host's memory is borrowed until it was waited for. */
int aoth_queue_is_busy(const aoth_queue_t *q); /* there may be something to be ahead of */
aot_status_t aoth_queue_write_ahead(aoth_queue_t *q, aot_buffer_t to, const void *from, aoth_ahead_t *a);
aot_status_t aoth_queue_wait_ahead(aoth_queue_t *q, const aoth_ahead_t *a);

/* a point after all that was put so far, if there is more since the last */
aot_status_t aoth_queue_mark(aoth_queue_t *q);
/* A submission raises the next point itself: next, submit, passed; or, when it fails half-way, left out: nothing of
 * it is under way. */
aot_status_t aoth_queue_next(aoth_queue_t *q, aot_point_t *out);
void aoth_queue_passed(aoth_queue_t *q);
void aoth_queue_left_out(aoth_queue_t *q, aot_status_t status);

uint64_t aoth_queue_end(const aoth_queue_t *q); /* the point after all that was put so far, which may yet be to come */
aot_status_t aoth_queue_wait(aoth_queue_t *q, uint64_t height); /* until that point */
aot_status_t aoth_queue_idle(aoth_queue_t *q);                  /* until all is done */

#endif
