/* Collectives that go on while nodes run: on a queue of their own, in the order in which they were started, which is
 * that of the program and so the same on every rank. Several tensors of one collective go together, packed side by
 * side. */
#ifndef FS_UNDER_WAY_H
#define FS_UNDER_WAY_H

#include "kit/base/map.h"
#include <aot/ext/ranks.h>
#include <pthread.h>

typedef struct fs_await {
  const void *result; /* its memory, by which a reader finds it */
  uint64_t point;     /* 0: already waited for */
} fs_await_t;

typedef struct fs_under_way {
  aot_run_ranks_t ranks;
  aot_queue_t *queue; /* made by the first that is started */
  aot_timeline_t *timeline;
  uint64_t height;    /* of the last one started */
  uint64_t waited_ns; /* in all, by who needs what is not there yet */
  fs_await_t *awaited;
  kit_map_t by_result; /* rows of `awaited`: as many as a model has parameters */
  uint32_t n_awaited, capacity;
  pthread_mutex_t lock;
} fs_under_way_t;

/* One tensor: bytes of one rank's part, as which each side has one, or one of every rank's. */
typedef struct fs_part {
  const void *from;
  void *to;
  uint64_t nbytes;
} fs_part_t;

void fs_under_way_init(fs_under_way_t *u, const aot_run_ranks_t *ranks);
void fs_under_way_deinit(fs_under_way_t *u); /* once all is done */

/* Among the n_ranks of a group. how: kind, reduce, dtype, what; of all parts. Memory is borrowed until it is done. */
aot_status_t fs_start(fs_under_way_t *u, aot_group_t *group, uint32_t n_ranks, const aot_collective_t *how,
                      const fs_part_t *parts, uint32_t n);
/* The collective that makes this memory is done, or has failed. AOT_E_NOT_FOUND: none was started that does. */
aot_status_t fs_await(fs_under_way_t *u, const void *result);
aot_status_t fs_await_all(fs_under_way_t *u); /* all that were started so far */
void fs_settle(fs_under_way_t *u);            /* .. and nobody asks for their results any more */
uint64_t fs_clock_ns(void);
void fs_count_wait(fs_under_way_t *u, uint64_t begin_ns); /* from then on until now */

#endif
