#include "common/ranks/launcher.h"

#include <aot/ext/env.h>
#include <aot/inline.h>
#include <stdlib.h>

/* docs.pytorch.org/docs/stable/elastic/run.html, docs.open-mpi.org (environment variables of mpirun), slurm.schedmd.com/srun.html */
static const char *const variables[][RN_N_TOLD] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

int64_t rn_told_by_launcher(const aot_host_t *host, aot_ctx_t *ctx, int what) {
  const aot_ext_env_t *env = aot_ext(&host->head, AOT_EXT_ENV);
  for (size_t l = 0; env && l < sizeof variables / sizeof *variables; l++) {
    const char *rank = env->get(env, ctx, variables[l][RN_RANK]), *text = env->get(env, ctx, variables[l][what]);
    if (rank && rank[0]) return text && text[0] ? (int64_t)strtoul(text, NULL, 10) : -1;
  }
  return -1;
}
