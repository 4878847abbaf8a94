/* What launchers report a process of its place, by the environment: torchrun, Open MPI's mpirun, Slurm's srun. */
#ifndef PLUGINS_COMMON_LAUNCHER_H
#define PLUGINS_COMMON_LAUNCHER_H

#include <aot/host.h>

enum { RN_RANK, RN_RANKS, RN_LOCAL_RANK, RN_LOCAL_RANKS /* on this machine */, RN_N_TOLD };
#define RN_ADDRESS 300u /* bytes of "HOST:PORT", at most */

/* -1: nothing reports. All that is reported is of one launcher: the first of these that has given this process a
 * rank. */
int64_t rn_told_by_launcher(const aot_host_t *host, aot_ctx_t *ctx, int what);

/* 1: the launcher has all ranks on this machine; 0: it has some elsewhere; -1: nothing reports. */
int rn_told_one_machine(const aot_host_t *host, aot_ctx_t *ctx);

/* Of the devices of this machine, counted from 0, that of this process's number on it. Where the launcher has given it
 * one to see, that is it. */
int rn_device_of_rank(const aot_host_t *host, aot_ctx_t *ctx, int n_devices);

/* Where ranks of several machines can meet, "HOST:PORT" or "[IPv6]:PORT", in `out` of RN_ADDRESS bytes:
 *
 *     MASTER_ADDR, MASTER_PORT     the port after that one, at which torchrun's own store listens while the job runs
 *     of srun the first host of SLURM_STEP_NODELIST (SLURM_JOB_NODELIST, SLURM_NODELIST), which has rank 0 unless tasks
 *     are placed otherwise, and for the port MASTER_PORT as above, or 15000 and the last four digits of SLURM_JOB_ID
 *
 * 1: there it is; 0: nothing reports; -1: what is reported is no address, and `out` says why. */
int rn_told_address(const aot_host_t *host, aot_ctx_t *ctx, char *out);

/* The first name of Slurm's list of hosts: "gpu[07-09,12],cpu1" has gpu07. */
void rn_first_host(const char *list, char *out, uint64_t size);

#endif
