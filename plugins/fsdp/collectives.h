/* Kernels of collectives (aot.kernels/1): each hands its tensors to the communicator that the host has joined. A
 * collective is done when its node is, so that waiting for it is nothing. */
#ifndef FS_COLLECTIVES_H
#define FS_COLLECTIVES_H

#include <aot/ext/kernels.h>
#include <aot/ext/ranks.h>

#define FS_N_KERNELS 5

typedef struct fs_kernels {
  aot_run_ranks_t ranks;
  aot_kernel_t rows[FS_N_KERNELS];
  const aot_kernel_t *list[FS_N_KERNELS];
  aot_ext_kernels_t ext; /* without a communicator it has none */
} fs_kernels_t;

void fs_kernels_init(fs_kernels_t *k, const aot_run_ranks_t *ranks);

#endif
