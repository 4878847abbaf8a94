#include "side_stream.h"

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

aot_status_t gc_beside_init(gc_beside_t *b, gc_device_t *device, aot_ctx_t *ctx, uint32_t n) {
  const gc_driver_t *cu = &device->driver;
  b->queue = gc_device_collectives(device, ctx);
  if (!b->queue) return AOT_E_UNAVAILABLE;
  b->driver = cu;
  b->ends = calloc((size_t)n + 1, sizeof *b->ends);
  b->is_under_way = calloc((size_t)n + 1, 1);
  if (!b->ends || !b->is_under_way || cu->event_create(&b->fork, GC_EVENT_WITHOUT_TIME)) return AOT_E_EXHAUSTED;
  for (; b->n < n; b->n++)
    if (cu->event_create(&b->ends[b->n], GC_EVENT_WITHOUT_TIME)) return AOT_E_EXHAUSTED;
  return AOT_OK;
}

void gc_beside_deinit(gc_beside_t *b) {
  for (uint32_t k = 0; k < b->n; k++) b->driver->event_destroy(b->ends[k]);
  if (b->fork) b->driver->event_destroy(b->fork);
  free(b->ends);
  free(b->is_under_way);
  *b = (gc_beside_t){0};
}

void gc_beside_begin(gc_beside_t *b) {
  if (b->n) memset(b->is_under_way, 0, b->n);
}

gc_result_t gc_beside_fork(const gc_beside_t *b, gc_stream_t stream) {
  const gc_result_t result = b->driver->event_record(b->fork, stream);
  return result ? result : b->driver->stream_wait_event(gc_queue_stream(b->queue), b->fork, 0);
}

gc_result_t gc_beside_end(gc_beside_t *b, uint32_t number) {
  b->is_under_way[number] = 1;
  return b->driver->event_record(b->ends[number], gc_queue_stream(b->queue));
}

/* A piece of the call that has ended has joined what it had put there. */
gc_result_t gc_beside_wait(gc_beside_t *b, gc_stream_t stream, uint32_t number) {
  if (!b->is_under_way[number]) return GC_SUCCESS;
  b->is_under_way[number] = 0;
  return b->driver->stream_wait_event(stream, b->ends[number], 0);
}

gc_result_t gc_beside_join(gc_beside_t *b, gc_stream_t stream) {
  gc_result_t result = GC_SUCCESS;
  for (uint32_t k = 0; k < b->n && result == GC_SUCCESS; k++) result = gc_beside_wait(b, stream, k);
  return result;
}
