/* Ranks as threads of a test, whatever the transport between them is. */
#ifndef PLUGINS_COMMON_RANKS_THREADED_RANKS_H
#define PLUGINS_COMMON_RANKS_THREADED_RANKS_H

#include "kit/ranks/rank_group.h"

#define TR_MAX_RANKS 8u

/* What a rank does in its group. NULL: all is well; else what is not. */
typedef const char *(*tr_test_fn)(const aot_communicator_t *c, aot_group_t *g);
/* How it comes to the others, as the transport's own function does. */
typedef aot_status_t (*tr_join_fn)(const void *how, rn_transport_t *out, rn_error_t *error);

typedef struct tr_rank {
  tr_join_fn join;
  const void *how; /* borrowed */
  tr_test_fn test;
  const char *wrong; /* what the test says */
  aot_status_t joined;
  char text[320]; /* why it has not joined, or how its group has failed */
} tr_rank_t;

extern const aot_host_t tr_host; /* says nothing */

/* The first n run, each in its thread, to their ends. */
void tr_run(tr_rank_t *ranks, uint32_t n);
/* Fails the test, unless all n have joined and their tests say nothing. */
void tr_assert_well(const tr_rank_t *ranks, uint32_t n);

#endif
