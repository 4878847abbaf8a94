/* Looking for the first NaN (aot.check-nan/1): of a machine that is watched (lw_machine_t.is_watched) every node runs
 * by itself, and the schedule knows where each result lies when its last step has run. */
#ifndef LW_OBSERVED_VALUES_H
#define LW_OBSERVED_VALUES_H

#include "lower.h"

typedef struct lw_watched {
  uint32_t step;  /* looked at when it has run; of what nothing here computes: whenever it is next */
  uint32_t value; /* row */
  uint32_t node;  /* row; AOT_NO_ID: only looked at */
  lw_tensor_t t;
} lw_watched_t;

typedef struct lw_watch {
  lw_watched_t *before, *after; /* by step */
  uint32_t n_before, n_after, before_capacity, after_capacity;
  uint8_t *held; /* by value row: NF_* that it held when it was looked at last */
} lw_watch_t;

/* While a graph is lowered, of a machine that is watched: its inputs; the results of the node at row `node`, whose
 * steps begin at first_step. */
aot_status_t lw_watch_inputs(lw_build_t *b);
aot_status_t lw_watch_results(lw_build_t *b, const aot_snap_node_t *node, uint32_t first_step);
void lw_watch_deinit(lw_watch_t *w);

/* Where [begin, end) of a storage lies for the host, from `begin` on; valid until the next call. */
typedef struct lw_watcher {
  void *self;
  aot_status_t (*read)(void *self, uint32_t storage, int64_t begin, int64_t end, const char **out, lw_error_t *error);
} lw_watcher_t;
/* A run has come to a step, or has run it. AOT_E_RANGE: a node has made a NaN or an infinity; it is named. */
aot_status_t lw_look_before(const lw_schedule_t *schedule, uint32_t step, const lw_watcher_t *watcher,
                            lw_error_t *error);
aot_status_t lw_look_after(const lw_schedule_t *schedule, const aot_snapshot_t *s, uint32_t step,
                           const lw_watcher_t *watcher, lw_error_t *error);

#endif
