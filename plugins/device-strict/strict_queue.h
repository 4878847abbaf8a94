/* Queues of work that run late and out of step with each other, and the timelines between them. Work is put at a
 * queue's end and stays there; sd_queues_pick says which queue continues next, by a generator, among those whose first
 * item can continue. Nothing here locks or touches memory: strict_device.c does. */
#ifndef STRICT_QUEUE_H
#define STRICT_QUEUE_H

#include <aot/device.h>
#include <stddef.h>

#define SD_STAY 8u /* items in a row of one queue, on the average: far out of step */

typedef enum sd_kind { SD_WAIT, SD_SIGNAL, SD_WRITE, SD_READ, SD_COPY, SD_FILL, SD_WORK } sd_kind_t;

typedef struct sd_item {
  sd_kind_t kind;
  aot_ctx_t *ctx;            /* of whoever put it there */
  aot_point_t point;         /* WAIT SIGNAL */
  uint64_t to, from, nbytes; /* WRITE READ COPY FILL: addresses, one of them the host's */
  uint8_t byte;              /* FILL */
  aot_host_work_t work;      /* WORK */
  void *self;
} sd_item_t;

struct aot_queue {
  uint32_t number;  /* from 1, for messages */
  int32_t kind;     /* AOT_QUEUE_* */
  sd_item_t *items; /* [head, end) wait */
  size_t head, end;
  uint32_t capacity;
  aot_status_t failed; /* since the last signal */
};

typedef struct sd_failure { /* points (from, to] were reached by work that failed */
  uint64_t from, to;
  aot_status_t status;
} sd_failure_t;

struct aot_timeline {
  uint32_t number; /* from 1, for messages */
  uint64_t value;
  sd_failure_t *failures;
  size_t n_failures;
  uint32_t capacity;
};

typedef struct sd_queues {
  aot_queue_t **queues;
  aot_timeline_t **timelines;
  size_t n_queues, n_timelines;
  uint32_t queue_capacity, timeline_capacity;
  uint32_t n_queues_made, n_timelines_made; /* ever */
  uint64_t random;
  aot_queue_t *last; /* that went on; it may be gone */
} sd_queues_t;

void sd_queues_init(sd_queues_t *s, uint64_t seed);
void sd_queues_deinit(sd_queues_t *s);
aot_queue_t *sd_queue_create(sd_queues_t *s, int32_t kind); /* NULL: no memory */
void sd_queue_destroy(sd_queues_t *s, aot_queue_t *q);
aot_timeline_t *sd_timeline_create(sd_queues_t *s);
void sd_timeline_destroy(sd_queues_t *s, aot_timeline_t *t);
int sd_has_queue(const sd_queues_t *s, const aot_queue_t *q);
int sd_has_timeline(const sd_queues_t *s, const aot_timeline_t *t);

int sd_queue_put(aot_queue_t *q, const sd_item_t *item); /* 0: no memory */
sd_item_t sd_queue_take(aot_queue_t *q);                 /* the first, which there must be */
aot_queue_t *sd_queues_any(const sd_queues_t *s);        /* with items that may wait for ever; NULL: none is left */
uint64_t sd_queues_random(sd_queues_t *s);               /* the generator's next number */
aot_queue_t *sd_queues_pick(sd_queues_t *s);             /* NULL: nothing can continue */

/* 0: not higher, or no memory to note a failure */
int sd_timeline_raise(aot_timeline_t *t, uint64_t to, aot_status_t status);
aot_status_t sd_timeline_status(const aot_timeline_t *t, uint64_t at); /* of a point that was reached */

#endif
