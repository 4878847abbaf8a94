/* Work that goes on beside a call's stream: collectives, on a queue of their own, in the order of the program, which is
 * the same on every rank.
 *
 *     stream     a  b  fork       c  d  e     wait 0   f
 *     queue              `-> work 0 --- end 0 -'
 *
 * What is put on the queue comes after what the stream had at the fork; the stream goes on behind a wait when that work
 * is done. Both are events: so a stream that is captured takes the queue along, and the graph has the same two ways. A
 * graph ends when both have: join waits for what nothing has waited for. */
#ifndef GC_SIDE_STREAM_H
#define GC_SIDE_STREAM_H

#include "cuda_device.h"

typedef struct gc_beside { /* zero-initialise */
  const gc_driver_t *driver;
  aot_queue_t *queue; /* the device's; NULL: nothing of the call goes beside its stream */
  gc_event_t fork, *ends;
  uint8_t *is_under_way; /* by number: it has been put there, and nothing waits for it yet */
  uint32_t n;
} gc_beside_t;

/* For n pieces of work, counted from 0. Failures are told. Nothing of it is under way when it is deinited. */
aot_status_t gc_beside_init(gc_beside_t *b, gc_device_t *device, aot_ctx_t *ctx, uint32_t n);
void gc_beside_deinit(gc_beside_t *b);

void gc_beside_begin(gc_beside_t *b); /* a run: nothing is under way */
gc_result_t gc_beside_fork(const gc_beside_t *b, gc_stream_t stream);
gc_result_t gc_beside_end(gc_beside_t *b, uint32_t number);
gc_result_t gc_beside_wait(gc_beside_t *b, gc_stream_t stream, uint32_t number);
gc_result_t gc_beside_join(gc_beside_t *b, gc_stream_t stream);

#endif
