#include "under_way.h"

#include "kit/base/splitmix.h"
#include "kit/base/vector.h"
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void fs_under_way_init(fs_under_way_t *u, const aot_run_ranks_t *ranks) {
  *u = (fs_under_way_t){.ranks = *ranks};
  pthread_mutex_init(&u->lock, NULL);
}

void fs_under_way_deinit(fs_under_way_t *u) {
  const aot_device_t *d = u->ranks.device;
  if (u->queue) d->queue_destroy(d, NULL, u->queue);
  if (u->timeline) d->timeline_destroy(d, NULL, u->timeline);
  pthread_mutex_destroy(&u->lock);
  kit_map_deinit(&u->by_result);
  free(u->awaited);
}

/* ---- several tensors as one ---- */

typedef struct packed {
  int32_t kind;
  uint32_t n_ranks, n;
  uint64_t nbytes; /* of all parts */
  char *from, *to; /* side by side */
  fs_part_t parts[];
} packed_t;

/* Ranks whose parts stand in what is sent, and in what comes. */
static uint32_t ranks_sent(int32_t kind, uint32_t n) {
  return kind == AOT_COLLECTIVE_REDUCE_SCATTER || kind == AOT_COLLECTIVE_ALL_TO_ALL ? n : 1;
}
static uint32_t ranks_received(int32_t kind, uint32_t n) {
  return kind == AOT_COLLECTIVE_ALL_GATHER || kind == AOT_COLLECTIVE_ALL_TO_ALL ? n : 1;
}

static void pack(const packed_t *p) {
  for (uint32_t r = 0; r < ranks_sent(p->kind, p->n_ranks); r++) {
    char *to = p->from + r * p->nbytes;
    for (uint32_t i = 0; i < p->n; to += p->parts[i++].nbytes)
      memcpy(to, (const char *)p->parts[i].from + r * p->parts[i].nbytes, (size_t)p->parts[i].nbytes);
  }
}

static void unpack(const packed_t *p) {
  for (uint32_t r = 0; r < ranks_received(p->kind, p->n_ranks); r++) {
    const char *from = p->to + r * p->nbytes;
    for (uint32_t i = 0; i < p->n; from += p->parts[i++].nbytes)
      memcpy((char *)p->parts[i].to + r * p->parts[i].nbytes, from, (size_t)p->parts[i].nbytes);
  }
}

static void drop(packed_t *p) {
  if (p) free(p->from);
  if (p) free(p->to);
  free(p);
}

static aot_status_t AOT_CALL do_pack(void *self, aot_status_t before) {
  if (before == AOT_OK) pack(self);
  return before;
}

static aot_status_t AOT_CALL do_unpack(void *self, aot_status_t before) {
  if (before == AOT_OK) unpack(self);
  drop(self);
  return before;
}

static packed_t *make(uint32_t n_ranks, int32_t kind, const fs_part_t *parts, uint32_t n) {
  packed_t *p = calloc(1, sizeof *p + n * sizeof *parts);
  if (!p) return NULL;
  *p = (packed_t){.kind = kind, .n_ranks = n_ranks, .n = n};
  memcpy(p->parts, parts, n * sizeof *parts);
  for (uint32_t i = 0; i < n; i++) p->nbytes += parts[i].nbytes;
  p->from = malloc((size_t)(ranks_sent(kind, p->n_ranks) * p->nbytes + 1));
  p->to = malloc((size_t)(ranks_received(kind, p->n_ranks) * p->nbytes + 1));
  if (p->from && p->to) return p;
  drop(p);
  return NULL;
}

/* ---- starting ---- */

typedef struct among { /* whom it is with */
  aot_group_t *group;
  uint32_t n_ranks;
} among_t;

static aot_status_t put_collective(const fs_under_way_t *u, among_t with, aot_collective_t c, const void *from,
                                   void *to, uint64_t nbytes) {
  const aot_communicator_t *communicator = u->ranks.communicator;
  c.device = u->ranks.device;
  c.queue = u->queue;
  c.from = (aot_buffer_t){(uintptr_t)from, ranks_sent(c.kind, with.n_ranks) * nbytes};
  c.to = (aot_buffer_t){(uintptr_t)to, ranks_received(c.kind, with.n_ranks) * nbytes};
  return communicator->collect(communicator, NULL, with.group, &c);
}

static aot_status_t put_packed(const fs_under_way_t *u, among_t with, const aot_collective_t *how,
                               const fs_part_t *parts, uint32_t n) {
  const aot_ext_host_work_t *work = aot_ext(&u->ranks.device->head, AOT_EXT_HOST_WORK);
  packed_t *p = work ? make(with.n_ranks, how->kind, parts, n) : NULL;
  if (!p) return AOT_E_EXHAUSTED;
  aot_status_t status = work->enqueue(work, NULL, u->queue, do_pack, p);
  if (status == AOT_OK) status = put_collective(u, with, *how, p->from, p->to, p->nbytes);
  const aot_status_t put = work->enqueue(work, NULL, u->queue, do_unpack, p); /* which drops it */
  return status == AOT_OK ? put : status;
}

static uint64_t hash_of(const void *result) { return kit_mix64(0, (uintptr_t)result); }

static int is_result(const void *awaited, uint32_t i, const void *result) {
  return ((const fs_await_t *)awaited)[i].result == result;
}

static uint32_t find_await(const fs_under_way_t *u, const void *result) {
  return kit_map_find(&u->by_result, hash_of(result), is_result, u->awaited, result);
}

static int make_room(fs_under_way_t *u, uint32_t n) {
  fs_await_t *more = kit_grow(u->awaited, &u->capacity, (uint64_t)u->n_awaited + n + 1, sizeof *more);
  if (!more) return 0;
  u->awaited = more;
  return kit_map_reserve(&u->by_result, u->n_awaited + n);
}

/* The latest of that memory counts: an earlier one may have had no reader. There is room. */
static void await_later(fs_under_way_t *u, const void *result, uint64_t point) {
  uint32_t i = find_await(u, result);
  if (i == KIT_MAP_NONE) {
    i = u->n_awaited++;
    u->awaited[i].result = result;
    kit_map_add(&u->by_result, hash_of(result), i);
  }
  u->awaited[i].point = point;
}

static aot_status_t start(fs_under_way_t *u, among_t with, const aot_collective_t *how, const fs_part_t *parts,
                          uint32_t n) {
  const aot_device_t *d = u->ranks.device;
  if (!make_room(u, n)) return AOT_E_EXHAUSTED;
  if (!u->timeline) AOT_TRY(d->timeline_create(d, NULL, &u->timeline));
  if (!u->queue) AOT_TRY(d->queue_create(d, NULL, AOT_QUEUE_COLLECTIVE, &u->queue));
  const aot_status_t status = n == 1 ? put_collective(u, with, *how, parts[0].from, parts[0].to, parts[0].nbytes)
                                     : put_packed(u, with, how, parts, n);
  AOT_TRY(d->signal(d, NULL, u->queue, (aot_point_t){u->timeline, u->height + 1}));
  u->height++;
  for (uint32_t i = 0; i < n; i++) /* what has no bytes may stand where another does */
    if (parts[i].nbytes) await_later(u, parts[i].to, u->height);
  return status;
}

aot_status_t fs_start(fs_under_way_t *u, aot_group_t *group, uint32_t n_ranks, const aot_collective_t *how,
                      const fs_part_t *parts, uint32_t n) {
  pthread_mutex_lock(&u->lock);
  const aot_status_t status = start(u, (among_t){group, n_ranks}, how, parts, n);
  pthread_mutex_unlock(&u->lock);
  return status;
}

/* ---- waiting ---- */

uint64_t fs_clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void fs_count_wait(fs_under_way_t *u, uint64_t begin_ns) {
  const uint64_t ns = fs_clock_ns() - begin_ns;
  pthread_mutex_lock(&u->lock);
  u->waited_ns += ns;
  pthread_mutex_unlock(&u->lock);
}

static aot_status_t reach(fs_under_way_t *u, uint64_t point) {
  const aot_device_t *d = u->ranks.device;
  const uint64_t begin = fs_clock_ns();
  const aot_status_t status = d->wait_host(d, NULL, (aot_point_t){u->timeline, point}, UINT64_MAX);
  fs_count_wait(u, begin);
  return status;
}

/* 0: none */
static uint64_t take_point(fs_under_way_t *u, const void *result) {
  uint64_t point = 0;
  pthread_mutex_lock(&u->lock);
  const uint32_t i = find_await(u, result);
  if (i != KIT_MAP_NONE) {
    point = u->awaited[i].point;
    u->awaited[i].point = 0;
  }
  pthread_mutex_unlock(&u->lock);
  return point;
}

aot_status_t fs_await(fs_under_way_t *u, const void *result) {
  const uint64_t point = take_point(u, result);
  return point ? reach(u, point) : AOT_E_NOT_FOUND;
}

aot_status_t fs_await_all(fs_under_way_t *u) {
  pthread_mutex_lock(&u->lock);
  const uint64_t last = u->height;
  pthread_mutex_unlock(&u->lock);
  return last ? reach(u, last) : AOT_OK;
}

void fs_settle(fs_under_way_t *u) {
  fs_await_all(u);
  pthread_mutex_lock(&u->lock);
  kit_map_clear(&u->by_result);
  u->n_awaited = 0;
  pthread_mutex_unlock(&u->lock);
}
