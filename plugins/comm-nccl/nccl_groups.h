/* Groups whose collectives on a device's queues are NCCL's. A communicator a group, and one for what goes through
 * windows, made when the first such collectives need them, by a thread of its own: the caller may be in the middle of a
 * stream's capture, in which memory cannot be had.
 *
 *     collect     word = number of the collective    its kernel    word = 0        on the stream, also of a graph's
 *     replay watcher     every 20 ms: has a rank ended or given up? has NCCL an error? does a word stay for longer than
 *     patience?
 *                 then the group fails, the others are informed, and ncclCommAbort ends the kernels that wait
 *
 * What the host says (other collectives, names of communicators, failures) goes by the group's transport. */
#ifndef NL_NCCL_GROUPS_H
#define NL_NCCL_GROUPS_H

#include "nccl.h"
#include "windows.h"

#include "kit/ranks/rank_group.h"
#include <aot/ext/stream.h>
#include <pthread.h>

typedef struct nl_groups nl_groups_t;
struct nl_channel;

struct nl_groups {
  const aot_communicator_t *table;
  nl_nccl_t nccl;
  uint64_t patience_ns;
  int (*has_failed)(const rn_transport_t *t,
                    rn_error_t *error); /* of the transport that the groups have [any-thread] */
  int has_one_name;                     /* NCCL_COMM_ID: every communicator would have that name .. */
  uint32_t n_ranks;                     /* .. and so only that of all ranks can be made */
  uint64_t windows_from; /* bytes of collectives whose memory NCCL is to know; 0: it is not to know any */
  nl_memory_t memory;
  pthread_mutex_t lock;        /* of all below */
  struct nl_channel *channels; /* of groups that have used a device; a list */
  pthread_t watcher;
  int is_watched, ends;
};

/* nccl is open already. table: whose groups they are; borrowed. */
void nl_groups_init(nl_groups_t *g, const aot_communicator_t *table, const nl_nccl_t *nccl, uint64_t patience_ns);
void nl_groups_deinit(nl_groups_t *g); /* once all groups have been left */

/* n collectives of one kind, at least one, as one piece of work on a queue of a device with aot.stream/1. A failure is
 * the group's, with its sentence. */
aot_status_t nl_collect(nl_groups_t *g, aot_ctx_t *ctx, aot_group_t *group, const aot_collective_t *const *what,
                        uint64_t n, const aot_ext_stream_t *stream);
void nl_forget(nl_groups_t *g, aot_group_t *group); /* before it is left */

#endif
