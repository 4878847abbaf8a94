/* Ranks that are threads of one process, and the hub where they meet: each lays out its pieces, and when all have come
 * each takes its own out of the others' memory. */
#ifndef CL_HUB_H
#define CL_HUB_H

#include "kit/ranks/rank_group.h"

/* What goes wrong on purpose; numbers of exchanges from 1, 0: never. */
typedef struct cl_faults {
  uint64_t die_at, hang_at;
  uint64_t delay_ns; /* before each half of an exchange, at most */
  uint64_t seed;     /* of delays, and of the order in which pieces are taken */
} cl_faults_t;

typedef struct cl_meeting {
  const char *name; /* of the meeting place */
  uint32_t rank, n_ranks;
  uint64_t patience_ns;
  cl_faults_t faults;
} cl_meeting_t;

/* Waits until all ranks of the name are there. A name may be used again once it is full. */
aot_status_t cl_meet(const cl_meeting_t *m, rn_transport_t *out, rn_error_t *error);

#endif
