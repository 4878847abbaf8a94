#include "gpu_profile.h"

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

gc_result_t gc_times_init(gc_times_t *t, const gc_driver_t *driver, uint32_t n_steps) {
  gc_result_t result = GC_SUCCESS;
  *t = (gc_times_t){.events = calloc((size_t)n_steps + 1, sizeof *t->events), .n_steps = n_steps};
  if (!t->events) return GC_ERROR_OUT_OF_MEMORY;
  for (uint32_t k = 0; k <= n_steps && result == GC_SUCCESS; k++) result = driver->event_create(&t->events[k], 0);
  return result;
}

void gc_times_deinit(gc_times_t *t, const gc_driver_t *driver) {
  for (uint32_t k = 0; t->events && k <= t->n_steps; k++)
    if (t->events[k]) driver->event_destroy(t->events[k]);
  free(t->events);
  *t = (gc_times_t){0};
}

gc_result_t gc_times_mark(const gc_times_t *t, const gc_driver_t *driver, uint32_t k, gc_stream_t stream) {
  return t->events ? driver->event_record(t->events[k], stream) : GC_SUCCESS;
}

void gc_times_take(gc_times_t *t, const gc_driver_t *driver, lw_schedule_t *s) {
  if (!t->has_run || driver->stream_synchronize(t->stream) != GC_SUCCESS) return;
  t->has_run = 0;
  for (uint32_t k = 0; k < t->n_steps; k++) {
    float ms = 0;
    if (driver->event_elapsed(&ms, t->events[k], t->events[k + 1]) != GC_SUCCESS) continue;
    s->steps[k].ns += (uint64_t)((double)ms * 1e6);
    s->steps[k].n_runs++;
  }
}

static int make_room(gc_rows_t *r, uint64_t n) {
  if (r->n + n <= r->capacity) return 1;
  const uint64_t capacity = 2 * (r->n + n);
  aot_profile_row_t *rows = realloc(r->rows, (size_t)capacity * sizeof *rows);
  if (!rows) return 0;
  r->rows = rows;
  r->capacity = capacity;
  return 1;
}

/* run_loop is called loop */
int gc_rows_add(gc_rows_t *r, const lw_schedule_t *s) {
  if (!make_room(r, s->n_steps)) return 0;
  for (uint32_t k = 0; k < s->n_steps; k++) {
    const lw_step_t *step = &s->steps[k];
    if (!step->n_runs) continue;
    r->rows[r->n++] = (aot_profile_row_t){
        .kernel = aot_str(strncmp(step->kernel, "run_", 4) == 0 ? step->kernel + 4 : step->kernel),
        .node = {step->node},
        .n_runs = step->n_runs,
        .ns = step->ns,
        .nbytes = step->nbytes,
    };
  }
  return 1;
}

int gc_rows_copy(gc_rows_t *to, const gc_rows_t *from) {
  if (!make_room(to, from->n)) return 0;
  if (from->n) memcpy(to->rows + to->n, from->rows, (size_t)from->n * sizeof *to->rows);
  to->n += from->n;
  return 1;
}
