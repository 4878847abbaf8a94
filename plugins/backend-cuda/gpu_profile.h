/* How long the steps of a schedule take on a stream: an event in front of each that runs, as often as it does, and one
 * after the last, and in front of all a look at the host's clock. Times of a run are used when it is over: before the
 * next, or when something else reads. */
#ifndef GC_GPU_PROFILE_H
#define GC_GPU_PROFILE_H

#include "kit/lowering/step_times.h"
#include "driver.h"
#include <aot/ext/profile.h>

typedef struct gc_mark {
  gc_event_t event;
  uint32_t step;
} gc_mark_t;

typedef struct gc_times {
  gc_mark_t *marks; /* of the run, and what is left of longer ones */
  uint32_t n, n_events, capacity;
  int is_on; /* 0: nothing is timed */
  gc_stream_t stream;
  uint64_t at;            /* the host's clock when the run began: written by the stream */
  int has_begun, has_run; /* a run, and a whole one, whose times are not accepted yet */
} gc_times_t;

void gc_times_init(gc_times_t *t);
/* GC_SUCCESS, or the driver's error. The context is current for all of these. */
void gc_times_deinit(gc_times_t *t, const gc_driver_t *driver);
gc_result_t gc_times_begin(gc_times_t *t, const gc_driver_t *driver, gc_stream_t stream);
/* The stream has come to the step; to the end. */
gc_result_t gc_times_mark(gc_times_t *t, const gc_driver_t *driver, uint32_t step);
gc_result_t gc_times_end(gc_times_t *t, const gc_driver_t *driver);
/* Waits for the last run, and adds its times to the steps'. */
void gc_times_take(gc_times_t *t, const gc_driver_t *driver, lw_schedule_t *s);

typedef struct gc_rows { /* zero-initialise */
  aot_profile_row_t *rows;
  uint64_t n, capacity;
} gc_rows_t;

/* A row for each step that has run. 0: no memory. */
int gc_rows_add(gc_rows_t *r, const lw_schedule_t *s, const nc_rates_t *rates);
int gc_rows_copy(gc_rows_t *to, const gc_rows_t *from);

#endif
