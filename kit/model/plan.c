#include "plan.h"

#include <aot/assert.h>
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

static uint64_t round_up(uint64_t n, uint64_t align) {
  AOT_ASSERT(align && !(align & (align - 1)));
  return (n + align - 1) & ~(align - 1);
}

static void remove_gap(arena_t *a, uint32_t i) {
  AOT_ASSERT(i < a->n_gaps);
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
  AOT_ASSERT(begin < end && end <= a->top);
  AOT_ASSERT((lo == 0 || a->gaps[lo - 1].end <= begin) && (lo == a->n_gaps || end <= a->gaps[lo].begin));
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

typedef struct event { /* sorted by time; at one time, births precedes deaths of the time before */
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

static uint64_t last_time(const mp_buffer_t *buffers, uint32_t n) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < n; i++)
    if (buffers[i].last > most) most = buffers[i].last;
  return 2 * most + 1;
}

/* By counting how many events each time has, then sorting within a time: times are few and close together. begin: room
 * for n_times + 1. */
static void sort_events(event_t *events, const event_t *unsorted, uint32_t n_events, uint32_t *begin,
                        uint64_t n_times) {
  memset(begin, 0, (size_t)(n_times + 1) * sizeof *begin);
  for (uint32_t i = 0; i < n_events; i++) begin[unsorted[i].when + 1]++;
  for (uint64_t t = 0; t < n_times; t++) begin[t + 1] += begin[t];
  for (uint32_t i = 0; i < n_events; i++) events[begin[unsorted[i].when]++] = unsorted[i];
  for (uint32_t i = 0, end; i < n_events; i = end) {
    for (end = i + 1; end < n_events && events[end].when == events[i].when; end++) {}
    if (end - i > 1) qsort(events + i, end - i, sizeof *events, by_time);
  }
}

static event_t *make_events(const mp_buffer_t *buffers, uint32_t n, uint64_t align) {
  uint64_t n_times = last_time(buffers, n) + 1;
  event_t *events = malloc(((size_t)n * 2 + 1) * sizeof *events),
          *unsorted = malloc(((size_t)n * 2 + 1) * sizeof *events);
  uint32_t *begin = n_times <= 64 * (uint64_t)n + 1024 ? malloc((size_t)(n_times + 1) * sizeof *begin) : NULL;
  event_t *to = begin ? unsorted : events;
  for (uint32_t i = 0; events && unsorted && i < n; i++) {
    AOT_ASSERT(buffers[i].first <= buffers[i].last);
    uint64_t nbytes = round_up(buffers[i].nbytes, align);
    to[2 * i] = (event_t){2 * (uint64_t)buffers[i].first, nbytes, i};
    to[2 * i + 1] = (event_t){2 * (uint64_t)buffers[i].last + 1, nbytes, i};
  }
  if (events && unsorted && begin) sort_events(events, unsorted, 2 * n, begin, n_times);
  else if (events && unsorted) qsort(events, (size_t)n * 2, sizeof *events, by_time);
  free(begin);
  if (!unsorted) {
    free(events);
    events = NULL;
  }
  free(unsorted);
  return events;
}

/* Best fit in order of time. */
static int sweep(mp_buffer_t *buffers, uint32_t n_buffers, uint64_t align, uint64_t *out_nbytes) {
  event_t *events = make_events(buffers, n_buffers, align);
  arena_t a = {.gaps = malloc(((size_t)n_buffers + 2) * sizeof *a.gaps)};
  int status = events && a.gaps ? 0 : -2;
  for (uint32_t i = 0; status == 0 && i < 2 * n_buffers; i++) {
    mp_buffer_t *b = &buffers[events[i].buffer];
    if (events[i].nbytes == 0) b->offset = 0;
    else if (events[i].when % 2 == 0) b->offset = take(&a, events[i].nbytes);
    else give(&a, b->offset, b->offset + events[i].nbytes);
  }
  AOT_ASSERT(status != 0 || (a.top == 0 && a.n_gaps == 0)); /* every buffer was returned */
  *out_nbytes = a.high;
  free(events);
  free(a.gaps);
  return status;
}

/* ---- in other orders than that of time ---- */

typedef struct item {
  uint64_t nbytes, at; /* in the arena, when it has been placed */
  uint32_t first, last, buffer;
} item_t;
typedef struct row {
  uint64_t begin, end;
  uint32_t first, last;
} row_t;

static int by_number(const item_t *a, const item_t *b) { return (a->buffer > b->buffer) - (a->buffer < b->buffer); }
static uint64_t life(const item_t *a) { return (uint64_t)a->last - a->first + 1; }

static int by_size(const void *pa, const void *pb) {
  const item_t *a = pa, *b = pb;
  if (a->nbytes != b->nbytes) return a->nbytes > b->nbytes ? -1 : 1;
  return by_number(a, b);
}
static int by_area(const void *pa, const void *pb) {
  const item_t *a = pa, *b = pb;
  const double area_a = (double)a->nbytes * (double)life(a), area_b = (double)b->nbytes * (double)life(b);
  if (area_a != area_b) return area_a > area_b ? -1 : 1;
  return by_number(a, b);
}
static int by_life(const void *pa, const void *pb) {
  const item_t *a = pa, *b = pb;
  if (life(a) != life(b)) return life(a) > life(b) ? -1 : 1;
  return by_size(a, b);
}

/* Each in turn goes to the lowest place where nothing that was placed is at a time of its own. rows: room for n, in
 * order of their begins. Returns the arena's size. */
static uint64_t place(item_t *items, row_t *rows, uint32_t n) {
  uint64_t high = 0;
  for (uint32_t i = 0; i < n; i++) {
    item_t *x = &items[i];
    uint32_t k = 0, to;
    x->at = 0;
    for (; k < i && rows[k].begin < x->at + x->nbytes; k++)
      if (rows[k].first <= x->last && x->first <= rows[k].last && rows[k].end > x->at) x->at = rows[k].end;
    for (to = i; to > 0 && rows[to - 1].begin > x->at; to--) rows[to] = rows[to - 1];
    rows[to] = (row_t){x->at, x->at + x->nbytes, x->first, x->last};
    if (rows[to].end > high) high = rows[to].end;
  }
  return high;
}

/* Those that end on top of the arena come first, the others after them as they were. spare: room for n. */
static void put_top_first(item_t *items, item_t *spare, uint32_t n, uint64_t high) {
  uint32_t n_top = 0, n_rest = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (items[i].at + items[i].nbytes == high) items[n_top++] = items[i];
    else spare[n_rest++] = items[i];
  }
  AOT_ASSERT(n_top > 0);
  memcpy(items + n_top, spare, n_rest * sizeof *items);
}

/* Keeps what is smaller than *nbytes. */
static void keep(const item_t *items, uint32_t n, uint64_t high, mp_buffer_t *buffers, uint64_t *nbytes) {
  if (high >= *nbytes) return;
  for (uint32_t i = 0; i < n; i++) buffers[items[i].buffer].offset = items[i].at;
  *nbytes = high;
}

/* Keeps the sweep's plan unless another is smaller. */
static int in_other_orders(mp_buffer_t *buffers, uint32_t n_buffers, uint64_t align, uint64_t bound, uint64_t *nbytes) {
  int (*const orders[])(const void *, const void *) = {by_size, by_area, by_life};
  enum { N_ORDERS = sizeof orders / sizeof *orders, N_RAISES = 8 };
  item_t *items = malloc((size_t)n_buffers * 2 * sizeof *items);
  row_t *rows = malloc((size_t)n_buffers * sizeof *rows);
  uint32_t n = 0;
  uint64_t high = 0;
  if (!items || !rows) {
    free(items);
    free(rows);
    return -2;
  }
  for (uint32_t i = 0; i < n_buffers; i++)
    if (buffers[i].nbytes)
      items[n++] = (item_t){round_up(buffers[i].nbytes, align), 0, buffers[i].first, buffers[i].last, i};
  for (int k = 0; *nbytes > bound && k < N_ORDERS + N_RAISES; k++) {
    if (k < N_ORDERS) qsort(items, n, sizeof *items, orders[k]);
    else put_top_first(items, items + n, n, high);
    high = place(items, rows, n);
    keep(items, n, high, buffers, nbytes);
  }
  free(items);
  free(rows);
  return 0;
}

int mp_plan(mp_buffer_t *buffers, uint32_t n_buffers, uint64_t align, uint64_t *out_nbytes) {
  if (sweep(buffers, n_buffers, align, out_nbytes) != 0) return -2;
  const uint64_t bound = mp_lower_bound(buffers, n_buffers, align);
  AOT_ASSERT(bound <= *out_nbytes);
  if (n_buffers > MP_FEW || *out_nbytes == bound) return 0;
  return in_other_orders(buffers, n_buffers, align, bound, out_nbytes);
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
