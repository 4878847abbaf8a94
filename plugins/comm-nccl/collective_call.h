/* A collective on a stream as a call of NCCL, and what of it a stream has no call for. */
#ifndef NL_COLLECTIVE_CALL_H
#define NL_COLLECTIVE_CALL_H

#include "nccl.h"

#include <aot/communicator.h>

int nl_goes_on(int code); /* what NCCL answered is no failure */

/* Puts w, which is not refused, on the stream, by the communicator of n_ranks ranks. Returns NCCL's code.
 * [any-thread] */
int nl_call(const nl_nccl_t *nccl, nl_comm_t comm, uint32_t n_ranks, const aot_collective_t *w, void *stream);

/* NULL, or why w cannot be put on a stream: a sentence that outlives the program. [any-thread] */
const char *nl_refuse(const aot_collective_t *w, uint32_t n_ranks);

#endif
