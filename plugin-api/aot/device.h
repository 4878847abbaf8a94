/* aot/device.h - unit kind device/1: memory, and queues of work upon it.
 *
 *     alloc -> buffer      memory that the host may not touch, unless AOT_DEVICE_HOST_VISIBLE says so
 *     queue                work in the order in which it was put there; queues go on independently of each other
 *     timeline             a number that only grows; queues and the host raise it, and wait until it is high enough
 *
 *     write(q, ..); signal(q, t, 1)        the host fills a buffer ..
 *     wait(q2, t, 1); submit(call, q2)     .. a queue waits for that, and computes ..
 *     signal(q2, t, 2); wait_host(t, 2)    .. the host waits, and may read.
 *
 * Nothing blocks but wait_host. (Models: Vulkan's timeline semaphores, IREE's HAL.)
 *
 * Work that fails: the queue leaves out what stands behind it, up to the next signal; that point of the timeline is
 * reached all the same, but whoever waits for it gets the failure's status. Waits in between are kept. Then the queue
 * goes on. What failed has told it. A device that is lost fails every point with AOT_E_DATA_LOSS.
 *
 * Table functions: [any-thread], except destroy and the *_destroy: [host-main], once nothing is under way. Failures are
 * diagnosed: out of memory with the bytes asked for and those free. */
#ifndef AOT_DEVICE_H
#define AOT_DEVICE_H

#include <aot/base.h>
#include <aot/status.h>

/* Memory of a device: a range of its addresses. A part of a buffer is a range within its range. Frozen. */
typedef struct aot_buffer {
  uint64_t address; /* as the device counts; nobody else may follow it. 0: no memory */
  uint64_t nbytes;
} aot_buffer_t;

typedef struct aot_queue aot_queue_t;       /* the device's, opaque */
typedef struct aot_timeline aot_timeline_t; /* the device's, opaque */

/* A moment: when the timeline has reached the value. Frozen. */
typedef struct aot_point {
  aot_timeline_t *timeline;
  uint64_t value;
} aot_point_t;

#define AOT_QUEUE_COMPUTE 1
#define AOT_QUEUE_COPY 2
#define AOT_QUEUE_COLLECTIVE 3

#define AOT_DEVICE_HOST_VISIBLE 1u /* addresses are the host's own; it may use memory that no queue is working on */

typedef struct aot_device_info {
  uint32_t struct_size;
  uint32_t flags;                     /* AOT_DEVICE_* */
  aot_str_t name;                     /* "NVIDIA H200" [borrow until destroy] */
  aot_str_t architecture;             /* what code is made for: "sm_90", "x86-64" */
  uint32_t ordinal;                   /* which of several alike, from 0 */
  uint32_t alignment;                 /* bytes; of every buffer */
  uint64_t total_nbytes, free_nbytes; /* 0: unknown */
} aot_device_info_t;

typedef struct aot_device {
  aot_table_t head;
  aot_status_t(AOT_CALL *info)(const struct aot_device *d, aot_device_info_t *out); /* set out->struct_size first */
  /* memory */
  /* contents: any; 0 bytes: an address of its own, with nothing at it */
  aot_status_t(AOT_CALL *alloc)(const struct aot_device *d, aot_ctx_t *ctx, uint64_t nbytes, aot_buffer_t *out);
  /* as alloc gave it; no queue may be using it */
  aot_status_t(AOT_CALL *free)(const struct aot_device *d, aot_ctx_t *ctx, aot_buffer_t whole);
  /* host memory that read and write reach fastest: pinned */
  aot_status_t(AOT_CALL *host_alloc)(const struct aot_device *d, aot_ctx_t *ctx, uint64_t nbytes, void **out);
  aot_status_t(AOT_CALL *host_free)(const struct aot_device *d, aot_ctx_t *ctx, void *memory, uint64_t nbytes);
  /* queues and timelines */
  aot_status_t(AOT_CALL *queue_create)(const struct aot_device *d, aot_ctx_t *ctx, int32_t kind, aot_queue_t **out);
  /* nothing may stand on it */
  aot_status_t(AOT_CALL *queue_destroy)(const struct aot_device *d, aot_ctx_t *ctx, aot_queue_t *q);
  aot_status_t(AOT_CALL *timeline_create)(const struct aot_device *d, aot_ctx_t *ctx, aot_timeline_t **out); /* at 0 */
  aot_status_t(AOT_CALL *timeline_destroy)(const struct aot_device *d, aot_ctx_t *ctx, aot_timeline_t *t);
  /* work on a queue; ctx and host memory are borrowed until the queue has passed it */
  aot_status_t(AOT_CALL *write)(const struct aot_device *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to,
                                const void *from);
  aot_status_t(AOT_CALL *read)(const struct aot_device *d, aot_ctx_t *ctx, aot_queue_t *q, void *to, aot_buffer_t from);
  /* may not overlap */
  aot_status_t(AOT_CALL *copy)(const struct aot_device *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to,
                               uint64_t from);
  aot_status_t(AOT_CALL *fill)(const struct aot_device *d, aot_ctx_t *ctx, aot_queue_t *q, aot_buffer_t to,
                               uint8_t byte);
  aot_status_t(AOT_CALL *wait)(const struct aot_device *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point);
  /* higher than all before it */
  aot_status_t(AOT_CALL *signal)(const struct aot_device *d, aot_ctx_t *ctx, aot_queue_t *q, aot_point_t point);
  /* the host's side of timelines */
  aot_status_t(AOT_CALL *signal_host)(const struct aot_device *d, aot_ctx_t *ctx, aot_point_t point);
  /* Until the point is reached: AOT_OK, or the status of the work that failed on the way to it. AOT_E_UNAVAILABLE: it
   * was not within `timeout_ns` (UINT64_MAX: for ever), or the device knows that nobody raises it any more; what is
   * waited for is named. */
  aot_status_t(AOT_CALL *wait_host)(const struct aot_device *d, aot_ctx_t *ctx, aot_point_t point, uint64_t timeout_ns);
  uint64_t(AOT_CALL *value)(const struct aot_device *d, aot_timeline_t *t); /* reached so far */
} aot_device_t;

/* ---- extension "aot.host-work/1" of a device whose memory the CPU computes on ---- */

#define AOT_EXT_HOST_WORK "aot.host-work/1"

/* before: AOT_OK; else work that was to come before it has failed: it does nothing but let go of what it holds, and
 * answers `before`. */
typedef aot_status_t(AOT_CALL *aot_host_work_t)(void *self, aot_status_t before);

typedef struct aot_ext_host_work {
  aot_table_t head;
  /* The function as an item of the queue, called once whatever happens, also when this fails. While it runs, addresses
   * of the device's buffers are pointers, for the thread that calls it and those it waits for. */
  aot_status_t(AOT_CALL *enqueue)(const struct aot_ext_host_work *x, aot_ctx_t *ctx, aot_queue_t *q,
                                  aot_host_work_t work, void *self);
} aot_ext_host_work_t;

#endif
