/* What the device is made of, and the errors that its files report. */
#ifndef STRICT_STATE_H
#define STRICT_STATE_H

#include "strict_memory.h"
#include "strict_queue.h"
#include <aot/host.h>
#include <pthread.h>

typedef struct sd_options {
  uint64_t seed;
  int takes_host_work; /* it offers aot.host-work/1 */
  uint64_t lose_at;    /* number of the work, from 1, that is not begun: the device is lost. 0: never */
  uint64_t memory;     /* bytes that it has; 0: as many as the machine */
  uint64_t ahead;      /* items, at most, that queues continue with after what the host has waited for */
} sd_options_t;

typedef struct sd_device {
  aot_device_t table;
  aot_ext_host_work_t host_work;
  aot_host_t host;
  sd_options_t options;
  pthread_mutex_t lock;   /* of all below, while no work of the host's runs */
  pthread_cond_t changed; /* a timeline was raised, work is done */
  sd_memory_t memory;
  sd_queues_t queues;
  int is_running; /* work of the host's, by `runner`, without the lock */
  pthread_t runner;
  uint64_t n_works; /* begun */
  int is_lost;
} sd_device_t;

/* One error, reported; each answers a status. */
aot_status_t sd_fail(const sd_device_t *s, aot_ctx_t *ctx, aot_status_t status, const char *code, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));
aot_status_t sd_no_memory(const sd_device_t *s, aot_ctx_t *ctx, uint64_t nbytes);
aot_status_t sd_lost(const sd_device_t *s, aot_ctx_t *ctx); /* it was, before */
aot_status_t sd_not_higher(const sd_device_t *s, aot_ctx_t *ctx, const char *who, aot_point_t point, uint64_t than);

#endif
