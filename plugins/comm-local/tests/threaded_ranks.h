/* Ranks of comm-local as threads of a test. */
#ifndef PLUGINS_COMM_LOCAL_THREADED_RANKS_H
#define PLUGINS_COMM_LOCAL_THREADED_RANKS_H

#include "hub.h"

#include <aot/communicator.h>

#define TR_MAX_RANKS 8u

/* What a rank does in its group. NULL: all is well; else what is not. */
typedef const char *(*tr_test_fn)(const aot_communicator_t *c, aot_group_t *g);

typedef struct tr_rank {
  cl_meeting_t how;
  tr_test_fn test;
  const char *wrong; /* what the test says */
  aot_status_t joined;
  char text[320]; /* why it has not joined, or how its group has failed */
} tr_rank_t;

extern const aot_host_t tr_host; /* says nothing */

/* Ranks 0 to n - 1 of n, not begun. */
void tr_make(tr_rank_t *ranks, uint32_t n, tr_test_fn test);
/* The first n run, each in its thread, to their ends. */
void tr_run(tr_rank_t *ranks, uint32_t n);

#endif
