/* Kernels of collectives (aot.kernels/1): each hands its tensors to the communicator that the host has joined. Those of
 * _c10d_functional are done when their node is, so that waiting for them is nothing; those that aot.start_* begins go
 * on until aot.wait_for_ranks has waited for their result: on the host by under_way.h, on a device's queue as the
 * backend has it, which knows what comes after what. */
#ifndef FS_COLLECTIVES_H
#define FS_COLLECTIVES_H

#include "rank_groups.h"
#include "under_way.h"

#include <aot/ext/kernels.h>
#include <aot/ext/queue_kernel.h>
#include <aot/ext/ranks.h>
#include <aot/ext/waited.h>

#define FS_N_KERNELS 10

typedef struct fs_kernels {
  fs_groups_t *groups;
  fs_under_way_t *under_way;
  aot_kernel_t rows[FS_N_KERNELS];
  aot_ext_queue_kernel_t on_queue[FS_N_KERNELS]; /* offered where the communicator takes queues of devices */
  const aot_kernel_t *list[FS_N_KERNELS];
  aot_ext_kernels_t ext; /* without a communicator it has none */
  aot_ext_waited_t waited;
} fs_kernels_t;

/* Without a communicator there are none. groups, under_way: of the same ranks; borrowed. */
void fs_kernels_init(fs_kernels_t *k, fs_groups_t *groups, fs_under_way_t *under_way);

#endif
