/* Ranks that are processes of one machine, and meet in a file that all of them map: for what is said next to NCCL,
 * which has no memory of the host's. An exchange lays pieces into the ranks' slots in rounds; who waits for another
 * rank looks whether its process lives, whether something else has given up, and how late it is. */
#ifndef NL_FILE_RANKS_H
#define NL_FILE_RANKS_H

#include "kit/ranks/rank_group.h"

#define FR_MOST_RANKS 64u

typedef struct fr_how {
  const char *path; /* of the meeting place: alike on all ranks; gone when all have come */
  uint32_t rank, n_ranks;
  uint64_t patience_ns;
} fr_how_t;

/* AOT_E_UNAVAILABLE: not all have come in time; who. */
aot_status_t fr_join(const fr_how_t *how, rn_transport_t *out, rn_error_t *error);

/* Whether a process has ended without leaving, or something else has given up: says so in `error`. [any-thread] */
int fr_has_failed(const rn_transport_t *t, rn_error_t *error);

#endif
