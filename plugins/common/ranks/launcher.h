/* What launchers tell a process of its place, by the environment: torchrun, Open MPI's mpirun, Slurm's srun. */
#ifndef PLUGINS_COMMON_LAUNCHER_H
#define PLUGINS_COMMON_LAUNCHER_H

#include <aot/host.h>

enum { RN_RANK, RN_RANKS, RN_LOCAL_RANK, RN_LOCAL_RANKS /* on this machine */, RN_N_TOLD };

/* -1: nobody tells. All that is told is of one launcher: the first of these that has given this process a rank. */
int64_t rn_told_by_launcher(const aot_host_t *host, aot_ctx_t *ctx, int what);

#endif
