/* Ranks of comm-local as threads of a test. */
#ifndef PLUGINS_COMM_LOCAL_LOCAL_RANKS_H
#define PLUGINS_COMM_LOCAL_LOCAL_RANKS_H

#include "kit/ranks/tests/threaded_ranks.h"
#include "hub.h"

static inline aot_status_t lr_join(const void *how, rn_transport_t *out, rn_error_t *error) {
  return cl_meet(how, out, error);
}

/* Ranks 0 to n - 1 of n, not begun; how[i]: of rank i, to be changed until it begins. */
static inline void lr_make(tr_rank_t *ranks, cl_meeting_t *how, uint32_t n, tr_test_fn test) {
  for (uint32_t i = 0; i < n; i++) {
    how[i] = (cl_meeting_t){.name = "unit", .rank = i, .n_ranks = n, .patience_ns = UINT64_C(20000000000)};
    ranks[i] = (tr_rank_t){.join = lr_join, .how = &how[i], .test = test};
  }
}

#endif
