#include "gpu_profile.h"

#include "kit/base/vector.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

void gc_times_init(gc_times_t *t) { *t = (gc_times_t){.is_on = 1}; }

void gc_times_deinit(gc_times_t *t, const gc_driver_t *driver) {
  if (t->has_begun) driver->stream_synchronize(t->stream);
  for (uint32_t k = 0; k < t->n_events; k++) driver->event_destroy(t->marks[k].event);
  free(t->marks);
  *t = (gc_times_t){0};
}

static void look_at_clock(void *self) {
  gc_times_t *t = self;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  t->at = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

gc_result_t gc_times_begin(gc_times_t *t, const gc_driver_t *driver, gc_stream_t stream) {
  if (!t->is_on) return GC_SUCCESS;
  t->stream = stream;
  t->has_begun = 1;
  t->has_run = 0;
  t->n = 0;
  return driver->launch_host_func(stream, look_at_clock, t);
}

static gc_result_t need_event(gc_times_t *t, const gc_driver_t *driver) {
  if (t->n < t->n_events) return GC_SUCCESS;
  gc_mark_t *marks = kit_grow(t->marks, &t->capacity, (uint64_t)t->n + 1, sizeof *marks);
  if (!marks) return GC_ERROR_OUT_OF_MEMORY;
  t->marks = marks;
  const gc_result_t result = driver->event_create(&t->marks[t->n].event, 0);
  t->n_events += result == GC_SUCCESS;
  return result;
}

gc_result_t gc_times_mark(gc_times_t *t, const gc_driver_t *driver, uint32_t step) {
  if (!t->is_on) return GC_SUCCESS;
  const gc_result_t result = need_event(t, driver);
  if (result != GC_SUCCESS) return result;
  t->marks[t->n].step = step;
  return driver->event_record(t->marks[t->n++].event, t->stream);
}

gc_result_t gc_times_end(gc_times_t *t, const gc_driver_t *driver) {
  const gc_result_t result = gc_times_mark(t, driver, LW_NONE);
  t->has_run = t->is_on && result == GC_SUCCESS;
  return result;
}

static int elapsed_ns(const gc_driver_t *driver, gc_event_t begin, gc_event_t end, uint64_t *out) {
  float ms = 0;
  const int has = driver->event_elapsed(&ms, begin, end) == GC_SUCCESS;
  *out = (uint64_t)((double)ms * 1e6);
  return has;
}

void gc_times_take(gc_times_t *t, const gc_driver_t *driver, lw_schedule_t *s) {
  const int has_run = t->has_run && driver->stream_synchronize(t->stream) == GC_SUCCESS;
  if (!has_run) return;
  t->has_begun = t->has_run = 0;
  lw_times_begin(s);
  for (uint32_t k = 0; k + 1 < t->n; k++) {
    uint64_t after, ns;
    if (elapsed_ns(driver, t->marks[0].event, t->marks[k].event, &after) &&
        elapsed_ns(driver, t->marks[k].event, t->marks[k + 1].event, &ns))
      lw_times_add(&s->steps[t->marks[k].step], t->at + after, ns);
  }
}

static int make_room(gc_rows_t *r, uint64_t n) {
  if (r->n + n <= r->capacity) return 1;
  aot_profile_row_t *rows = kit_grow64(r->rows, &r->capacity, r->n + n, sizeof *rows);
  if (!rows) return 0;
  r->rows = rows;
  return 1;
}

int gc_rows_add(gc_rows_t *r, const lw_schedule_t *s, const nc_rates_t *rates) {
  if (!make_room(r, s->n_steps)) return 0;
  for (uint32_t k = 0; k < s->n_steps; k++)
    if (s->steps[k].n_runs) r->rows[r->n++] = lw_times_row(s, &s->steps[k], rates);
  return 1;
}

int gc_rows_copy(gc_rows_t *to, const gc_rows_t *from) {
  if (!make_room(to, from->n)) return 0;
  if (from->n) memcpy(to->rows + to->n, from->rows, (size_t)from->n * sizeof *to->rows);
  to->n += from->n;
  return 1;
}
