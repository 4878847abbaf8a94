#include "strict_queue.h"
#include "kit/base/vector.h"
#include "kit/base/splitmix.h"

#include <stdlib.h>
#include <string.h>

void sd_queues_init(sd_queues_t *s, uint64_t seed) {
  memset(s, 0, sizeof *s);
  s->random = seed;
}

void sd_queues_deinit(sd_queues_t *s) {
  while (s->n_queues) sd_queue_destroy(s, s->queues[s->n_queues - 1]);
  while (s->n_timelines) sd_timeline_destroy(s, s->timelines[s->n_timelines - 1]);
  free(s->queues);
  free(s->timelines);
  memset(s, 0, sizeof *s);
}

static uint64_t next_random(sd_queues_t *s) { return kit_splitmix64(&s->random); }

uint64_t sd_queues_random(sd_queues_t *s) { return next_random(s); }

/* ---- queues ---- */

aot_queue_t *sd_queue_create(sd_queues_t *s, int32_t kind) {
  aot_queue_t **bigger = kit_grow(s->queues, &s->queue_capacity, s->n_queues + 1, sizeof(void *));
  if (bigger) s->queues = bigger;
  aot_queue_t *q = bigger ? calloc(1, sizeof *q) : NULL;
  if (!q) return NULL;
  q->number = ++s->n_queues_made;
  q->kind = kind;
  return s->queues[s->n_queues++] = q;
}

static size_t queue_row(const sd_queues_t *s, const aot_queue_t *q) {
  size_t i = 0;
  while (i < s->n_queues && s->queues[i] != q) i++;
  return i;
}

int sd_has_queue(const sd_queues_t *s, const aot_queue_t *q) { return queue_row(s, q) < s->n_queues; }

void sd_queue_destroy(sd_queues_t *s, aot_queue_t *q) {
  s->queues[queue_row(s, q)] = s->queues[s->n_queues - 1];
  s->n_queues--;
  free(q->items);
  free(q);
}

int sd_queue_put(aot_queue_t *q, const sd_item_t *item) {
  if (q->head == q->end) q->head = q->end = 0;
  sd_item_t *items = kit_grow(q->items, &q->capacity, q->end + 1, sizeof *items);
  if (!items) return 0;
  q->items = items;
  q->items[q->end++] = *item;
  return 1;
}

sd_item_t sd_queue_take(aot_queue_t *q) { return q->items[q->head++]; }

static int can_go_on(const aot_queue_t *q) {
  if (q->head == q->end) return 0;
  const sd_item_t *first = &q->items[q->head];
  return first->kind != SD_WAIT || first->point.timeline->value >= first->point.value;
}

aot_queue_t *sd_queues_any(const sd_queues_t *s) {
  for (size_t i = 0; i < s->n_queues; i++)
    if (s->queues[i]->head < s->queues[i]->end) return s->queues[i];
  return NULL;
}

aot_queue_t *sd_queues_pick(sd_queues_t *s) {
  aot_queue_t *picked = NULL;
  uint64_t n = 0;
  const int goes_on = sd_has_queue(s, s->last) && can_go_on(s->last);
  if (goes_on && next_random(s) % SD_STAY) return s->last;
  for (size_t i = 0; i < s->n_queues; i++) {
    if (!can_go_on(s->queues[i])) continue;
    if (next_random(s) % ++n == 0) picked = s->queues[i];
  }
  return s->last = picked;
}

/* ---- timelines ---- */

aot_timeline_t *sd_timeline_create(sd_queues_t *s) {
  aot_timeline_t **bigger = kit_grow(s->timelines, &s->timeline_capacity, s->n_timelines + 1, sizeof(void *));
  if (bigger) s->timelines = bigger;
  aot_timeline_t *t = bigger ? calloc(1, sizeof *t) : NULL;
  if (!t) return NULL;
  t->number = ++s->n_timelines_made;
  return s->timelines[s->n_timelines++] = t;
}

static size_t timeline_row(const sd_queues_t *s, const aot_timeline_t *t) {
  size_t i = 0;
  while (i < s->n_timelines && s->timelines[i] != t) i++;
  return i;
}

int sd_has_timeline(const sd_queues_t *s, const aot_timeline_t *t) { return timeline_row(s, t) < s->n_timelines; }

void sd_timeline_destroy(sd_queues_t *s, aot_timeline_t *t) {
  s->timelines[timeline_row(s, t)] = s->timelines[s->n_timelines - 1];
  s->n_timelines--;
  free(t->failures);
  free(t);
}

int sd_timeline_raise(aot_timeline_t *t, uint64_t to, aot_status_t status) {
  if (to <= t->value) return 0;
  if (status != AOT_OK) {
    sd_failure_t *failures = kit_grow(t->failures, &t->capacity, t->n_failures + 1, sizeof *failures);
    if (!failures) return 0;
    t->failures = failures;
    t->failures[t->n_failures++] = (sd_failure_t){t->value, to, status};
  }
  t->value = to;
  return 1;
}

aot_status_t sd_timeline_status(const aot_timeline_t *t, uint64_t at) {
  for (size_t i = t->n_failures; i-- > 0;)
    if (at > t->failures[i].from && at <= t->failures[i].to) return t->failures[i].status;
  return AOT_OK;
}
