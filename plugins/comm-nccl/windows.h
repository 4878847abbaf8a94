/* Buffers of a group that NCCL knows on all ranks (ncclCommWindowRegister): what is in them it moves by copy engines,
 * next to kernels that hold every multiprocessor. A window is a whole allocation that other processes may map; it has
 * to be of one size on all ranks, and a collective's buffers have to be as far from its beginning on all of them. So
 * before each piece of work the ranks report each other where its buffers lie:
 *
 *     alike       allocations that are new become windows; windows without memory after them are returned
 *     not alike   nothing goes through windows from there on; nor where a window cannot be made
 *
 * Addresses of freed memory are never another buffer's (backend-cuda's shared_memory.h), so the driver's word on an
 * address is that on the window. */
#ifndef NL_WINDOWS_H
#define NL_WINDOWS_H

#include "nccl.h"

#include <aot/communicator.h>
#include <aot/ext/stream.h>

enum { NL_MOST_WINDOWS = 64 };

typedef struct nl_memory { /* functions of cuda.h; NULL, all: the driver has not got them */
  int (*get_address_range)(uint64_t *out_begin, size_t *out_nbytes, uint64_t address);
  int (*retain_handle)(uint64_t *out, void *address); /* of memory that others may map; fails for any other */
  int (*release)(uint64_t handle);
  int (*stream_create)(void **out, unsigned flags);
  int (*stream_synchronize)(void *stream);
  int (*stream_destroy)(void *stream);
} nl_memory_t;

typedef struct nl_window {
  uint64_t begin, nbytes; /* nbytes 0: none */
  void *handle;
} nl_window_t;

typedef struct nl_windows {
  /* Bytes of the larger side from which a collective uses windows; 0: none does, or does any more. */
  uint64_t from;
  nl_window_t rows[NL_MOST_WINDOWS];
} nl_windows_t;

/* All borrowed. */
typedef struct nl_windows_how {
  const aot_communicator_t *table; /* by which the ranks of the group agree */
  aot_group_t *group;
  const nl_nccl_t *nccl;
  const nl_memory_t *memory;
  nl_comm_t comm;
  const aot_ext_stream_t *stream;
  uint32_t n_ranks;
  uint64_t patience_ns;
} nl_windows_how_t;

void nl_memory_open(nl_memory_t *out);

uint64_t nl_larger_side(const aot_collective_t *what); /* bytes */
/* What each rank says to all of its group on the host: n_ranks times nbytes, in their order. A failure is the
 * group's. */
aot_status_t nl_tell_all(const aot_communicator_t *table, aot_group_t *group, uint32_t n_ranks, const void *own,
                         void *all, uint64_t nbytes);
/* The same on all ranks; broadcasts do not. */
int nl_goes_through_windows(const nl_windows_t *w, const aot_collective_t *what);
/* Before collectives of which some go through windows are put on a queue, by all ranks; afterwards they may do so no
 * more. Called from a thread that captures, too: NCCL is queried by another. Not AOT_OK: `why`, or the group has failed
 * with a sentence. */
aot_status_t nl_windows_prepare(nl_windows_t *w, const nl_windows_how_t *how, const aot_collective_t *const *what,
                                uint64_t n, char *why, size_t size);
void nl_windows_drop(nl_windows_t *w, const nl_nccl_t *nccl, nl_comm_t comm); /* before it is destroyed */

#endif
