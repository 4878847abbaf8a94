#include "common/memory/plan.h"

#include <stdlib.h>
#include <string.h>

typedef struct gap { /* free bytes [begin, end) */
  uint64_t begin, end;
} gap_t;

typedef struct arena {
  gap_t *gaps; /* in address order, none touching */
  uint32_t n_gaps;
  uint64_t top; /* everything from here on is free */
  uint64_t high;
} arena_t;

static uint64_t round_up(uint64_t n, uint64_t align) { return (n + align - 1) & ~(align - 1); }

static void remove_gap(arena_t *a, uint32_t i) {
  memmove(a->gaps + i, a->gaps + i + 1, (size_t)(a->n_gaps - i - 1) * sizeof *a->gaps);
  a->n_gaps--;
}

static uint64_t take(arena_t *a, uint64_t nbytes) {
  uint32_t best = a->n_gaps;
  for (uint32_t i = 0; i < a->n_gaps; i++) {
    uint64_t room = a->gaps[i].end - a->gaps[i].begin;
    if (room >= nbytes && (best == a->n_gaps || room < a->gaps[best].end - a->gaps[best].begin)) best = i;
  }
  if (best < a->n_gaps) {
    uint64_t offset = a->gaps[best].begin;
    a->gaps[best].begin += nbytes;
    if (a->gaps[best].begin == a->gaps[best].end) remove_gap(a, best);
    return offset;
  }
  uint64_t offset = a->top;
  a->top += nbytes;
  if (a->top > a->high) a->high = a->top;
  return offset;
}

static void give(arena_t *a, uint64_t begin, uint64_t end) {
  uint32_t lo = 0, hi = a->n_gaps;
  while (lo < hi) {
    uint32_t mid = (lo + hi) / 2;
    if (a->gaps[mid].begin < begin) lo = mid + 1;
    else hi = mid;
  }
  int joins_left = lo > 0 && a->gaps[lo - 1].end == begin, joins_right = lo < a->n_gaps && a->gaps[lo].begin == end;
  if (joins_left && joins_right) {
    a->gaps[lo - 1].end = a->gaps[lo].end;
    remove_gap(a, lo);
  } else if (joins_left) {
    a->gaps[lo - 1].end = end;
  } else if (joins_right) {
    a->gaps[lo].begin = begin;
  } else {
    memmove(a->gaps + lo + 1, a->gaps + lo, (size_t)(a->n_gaps - lo) * sizeof *a->gaps);
    a->gaps[lo] = (gap_t){begin, end};
    a->n_gaps++;
  }
  if (a->n_gaps > 0 && a->gaps[a->n_gaps - 1].end == a->top) a->top = a->gaps[--a->n_gaps].begin;
}

typedef struct event { /* sorted by time; at one time, births stand before deaths of the time before */
  uint64_t when;       /* 2 * position for a birth, 2 * last + 1 for a death */
  uint64_t nbytes;
  uint32_t buffer;
} event_t;

/* At one position the larger buffers are placed first; then by number, so that the plan is the same every time. */
static int by_time(const void *pa, const void *pb) {
  const event_t *a = pa, *b = pb;
  if (a->when != b->when) return a->when < b->when ? -1 : 1;
  if (a->nbytes != b->nbytes) return a->nbytes > b->nbytes ? -1 : 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static event_t *make_events(const mp_buffer_t *buffers, uint32_t n, uint64_t align) {
  event_t *events = malloc(((size_t)n * 2 + 1) * sizeof *events);
  for (uint32_t i = 0; events && i < n; i++) {
    uint64_t nbytes = round_up(buffers[i].nbytes, align);
    events[2 * i] = (event_t){2 * (uint64_t)buffers[i].first, nbytes, i};
    events[2 * i + 1] = (event_t){2 * (uint64_t)buffers[i].last + 1, nbytes, i};
  }
  if (events) qsort(events, (size_t)n * 2, sizeof *events, by_time);
  return events;
}

int mp_plan(mp_buffer_t *buffers, uint32_t n_buffers, uint64_t align, uint64_t *out_nbytes) {
  event_t *events = make_events(buffers, n_buffers, align);
  arena_t a = {.gaps = malloc(((size_t)n_buffers + 2) * sizeof *a.gaps)};
  int status = events && a.gaps ? 0 : -2;
  for (uint32_t i = 0; status == 0 && i < 2 * n_buffers; i++) {
    mp_buffer_t *b = &buffers[events[i].buffer];
    if (events[i].nbytes == 0) b->offset = 0;
    else if (events[i].when % 2 == 0) b->offset = take(&a, events[i].nbytes);
    else give(&a, b->offset, b->offset + events[i].nbytes);
  }
  *out_nbytes = a.high;
  free(events);
  free(a.gaps);
  return status;
}

uint64_t mp_lower_bound(const mp_buffer_t *buffers, uint32_t n_buffers, uint64_t align) {
  event_t *events = make_events(buffers, n_buffers, align);
  uint64_t now = 0, most = 0;
  for (uint32_t i = 0; events && i < 2 * n_buffers; i++) {
    if (events[i].when % 2 == 0) now += events[i].nbytes;
    else now -= events[i].nbytes;
    if (now > most) most = now;
  }
  free(events);
  return most;
}
