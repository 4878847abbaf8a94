/* Ranks that are processes of one MPI job. Everything goes from rank to rank, by the transport that MPI has for the
 * two; so it is known of each who is late. */
#ifndef CM_MPI_RANKS_H
#define CM_MPI_RANKS_H

#include "kit/ranks/rank_group.h"

aot_status_t cm_join(uint64_t patience_ns, rn_transport_t *out, rn_error_t *error);

#endif
