/* Ranks that are processes of several machines, and meet by NCCL alone: an address is all that they have in common.
 * What is said next to the program's collectives goes through a communicator of NCCL's own for that, by way of a little
 * memory of the GPU (staging.h): every rank sends a note to every other one, which says what it believes that the
 * exchange is about, and then pieces.
 *
 *     meeting     NCCL_COMM_ID = HOST:PORT while the communicator is made: ncclGetUniqueId is that place on every rank
 *     then,
 *                 the first rank listens there, and no file is needed (nccl: src/bootstrap.cc, src/init.cc)
 *     exchange    notes, then pieces in rounds, each one group of ncclSend and ncclRecv
 *     split       the same communicator, with fewer to send to
 *     failing     who goes no further sends a note that says so, if the others are at an exchange; else they are
 *     patient
 *
 * A call of NCCL's that may wait is made by a thread of its own (attempt.h). */
#ifndef NL_NCCL_RANKS_H
#define NL_NCCL_RANKS_H

#include "kit/ranks/rank_group.h"
#include "nccl.h"
#include "staging.h"

typedef struct nl_how {
  const nl_nccl_t *nccl;
  const nl_driver_t *driver;
  const char *address; /* HOST:PORT, alike on all ranks; the host is the machine of rank 0 */
  uint32_t rank, n_ranks;
  int device; /* of this machine, counted from 0 */
  uint64_t patience_ns;
} nl_how_t;

/* Sets NCCL_COMM_ID in the environment while ranks meet, and takes it out again: communicators that are made later have
 * places of their own. AOT_E_UNAVAILABLE: not all have come in time; AOT_E_INVALID: the address is no place to meet.
 * [host-main] */
aot_status_t nl_join(const nl_how_t *how, rn_transport_t *out, rn_error_t *error);

/* Whether something else has given up, as far as is known here, or NCCL has an error: says so in `error`.
 * [any-thread] */
int nl_has_failed(const rn_transport_t *t, rn_error_t *error);

#endif
