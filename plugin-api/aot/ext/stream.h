/* aot/ext/stream.h - extension "aot.stream/1" of a device whose queues are streams of a vendor's runtime, for units
 * that put work of the vendor's libraries on them. */
#ifndef AOT_EXT_STREAM_H
#define AOT_EXT_STREAM_H

#include <aot/base.h>
#include <aot/device.h>

#define AOT_EXT_STREAM "aot.stream/1"

typedef struct aot_ext_stream {
  aot_table_t head;
  aot_str_t runtime; /* "cuda": streams are CUstream. [borrow until destroy] */
  /* The calling thread's calls of the runtime are about this device from now on. [any-thread] */
  aot_status_t(AOT_CALL *enter)(const struct aot_ext_stream *x, aot_ctx_t *ctx);
  void *(AOT_CALL *stream)(const struct aot_ext_stream *x, const aot_queue_t *q); /* [borrow until queue_destroy] */
  /* A word of host_alloc's memory has this value when the queue has come here. [any-thread] */
  aot_status_t(AOT_CALL *mark)(const struct aot_ext_stream *x, aot_ctx_t *ctx, aot_queue_t *q, uint64_t *word,
                               uint64_t value);
} aot_ext_stream_t;

#endif
