/* Work on a side stream of a call: collectives, on a separate queue, in program order, which is the same on every rank.
 *
 *     stream     a  b  fork       c  d  e     wait 0   f
 *     queue              `-> work 0 --- end 0 -'
 *
 * Work on the queue starts after what the stream had at the fork; the stream continues after a wait when that work is
 * done. Both are events: capturing the stream captures the queue, and the graph has the same two branches. A graph ends
 * when both have ended: join waits for work that no wait has covered. */
#ifndef GC_SIDE_STREAM_H
#define GC_SIDE_STREAM_H

#include "cuda_device.h"

typedef struct gc_beside { /* zero-initialise */
  const gc_driver_t *driver;
  aot_queue_t *queue; /* the device's; NULL: the call has no work on a side stream */
  gc_event_t fork, *ends;
  uint8_t *is_under_way; /* by number: enqueued, and not yet waited for */
  uint32_t n;
} gc_beside_t;

/* For n pieces of work, counted from 0. Failures are reported. No work may be pending at deinit. */
aot_status_t gc_beside_init(gc_beside_t *b, gc_device_t *device, aot_ctx_t *ctx, uint32_t n);
void gc_beside_deinit(gc_beside_t *b);

void gc_beside_begin(gc_beside_t *b); /* a run: nothing is under way */
gc_result_t gc_beside_fork(const gc_beside_t *b, gc_stream_t stream);
gc_result_t gc_beside_end(gc_beside_t *b, uint32_t number);
gc_result_t gc_beside_wait(gc_beside_t *b, gc_stream_t stream, uint32_t number);
gc_result_t gc_beside_join(gc_beside_t *b, gc_stream_t stream);

#endif
