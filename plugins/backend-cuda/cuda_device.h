/* device/1 cuda: one GPU by the CUDA driver. Queues are streams. A timeline is a word of pinned host memory that
 * streams write and wait for (cuStreamWriteValue64, cuStreamWaitValue64), so a wait may be put before its signal, as
 * aot/device.h has it, and the host reads the value without asking the driver. */
#ifndef GC_CUDA_DEVICE_H
#define GC_CUDA_DEVICE_H

#include "driver.h"
#include "shared_memory.h"
#include <aot/device.h>
#include <aot/ext/stream.h>
#include <aot/host.h>
#include <pthread.h>
#include <stdatomic.h>

/* What the host looks at when it has waited: words of its memory that work on queues sets where it fails. A look
 * reports of that by gc_device_fault. */
typedef struct gc_lookout {
  void (*look)(void *self);
  void *self;
  struct gc_lookout *next;
} gc_lookout_t;

typedef struct gc_device {
  aot_device_t table;
  aot_host_t host;
  gc_driver_t driver;
  gc_ordinal_t ordinal;
  char name[128], architecture[16];
  /* The context and the stream `setup` are made on a thread, which takes some 150 ms: there when gc_device_enter is
   * back. */
  pthread_t opener;
  pthread_mutex_t open_lock;
  int is_opening;       /* the thread has not been waited for */
  _Atomic int is_open;  /* it has, or there was none */
  gc_result_t opened;   /* what came of it */
  gc_context_t context; /* the device's primary one, so memory is shared with other libraries of the process */
  pthread_mutex_t lock; /* of all below */
  aot_queue_t *queues;  /* a list */
  gc_lookout_t *lookouts;
  uint32_t n_queues_made, n_timelines_made;
  uint64_t patience_ns;        /* that the host waits for one thing while queues have work */
  _Atomic uint64_t own_nbytes; /* of buffers */
  gc_result_t lost;            /* the error after which nothing runs any more; GC_SUCCESS: none */
  int is_lost_told;            /* by whoever met it first; what fails afterwards does so without a word */
  gc_stream_t setup;           /* of its own: calls are captured from it, numbers copied */
  aot_queue_t *setup_queue;    /* the same, for units that put work of their own into a call */
  aot_queue_t *collectives;    /* NULL: nothing has requested it */
  aot_ext_stream_t stream;     /* aot.stream/1 */
  pthread_mutex_t fault_lock;  /* of the fault */
  struct {                     /* of work on a queue, until a wait reports it */
    aot_status_t status;       /* AOT_OK: none */
    char code[64], text[400];
    uint32_t node;
  } fault;
  int is_shared; /* large buffers are memory that other ranks' devices may map */
  gc_shared_memory_t shared;
} gc_device_t;

/* extension of the table by which this plugin's backend knows its own device: the gc_device_t */
#define GC_EXT_DEVICE "aothost.cuda-device/1"

/* The context is the thread's; failures are reported. Each call of a table does that. [any-thread] */
aot_status_t gc_device_enter(gc_device_t *g, aot_ctx_t *ctx);
gc_stream_t gc_queue_stream(const aot_queue_t *q);
aot_queue_t *gc_stream_queue(gc_device_t *g, gc_stream_t stream); /* NULL: it is none of the device's */
/* The queue that collectives continue next to a call's stream, made for the caller first. Waits do not query how it is:
 * it is captured with calls, and a captured stream may not be queried. NULL: reported. */
aot_queue_t *gc_device_collectives(gc_device_t *g, aot_ctx_t *ctx);
/* Is it an error after which nothing runs any more? Then the device is lost; `told`: and that has been said. */
int gc_device_lost(gc_device_t *g, gc_result_t error, int told);
/* Work has failed, of which the next wait is to report; the first that fails counts. [any-thread] */
void gc_device_fault(gc_device_t *g, aot_status_t status, const char *code, const char *text, uint32_t node);

/* From now on each wait looks there, until it is removed, which looks again. [any-thread] */
void gc_device_look_at(gc_device_t *g, gc_lookout_t *l);
void gc_device_look_away(gc_device_t *g, gc_lookout_t *l); /* also one that is not looked at */

/* Its context is made while the caller continues. ordinal: -1: by the rank on this machine. patience_s: seconds that a
 * wait takes at most. NULL: reported through the host,
 * with the status in out_status. Destroyed by its table. [host-main] */
gc_device_t *gc_device_create(const aot_host_t *host, aot_ctx_t *ctx, int ordinal, int64_t patience_s,
                              aot_status_t *out_status);

#endif
