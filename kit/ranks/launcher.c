#include "launcher.h"

#include <aot/ext/env.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TORCHRUN, OPEN_MPI, SLURM, N_LAUNCHERS };

/* docs.pytorch.org/docs/stable/elastic/run.html, docs.open-mpi.org (environment variables of mpirun),
 * slurm.schedmd.com/srun.html */
static const char *const variables[N_LAUNCHERS][RN_N_TOLD] = {
    [TORCHRUN] = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    [OPEN_MPI] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                  "OMPI_COMM_WORLD_LOCAL_SIZE"},
    [SLURM] = {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"},
};

/* Of those that are set the first. */
static const char *first_set(const aot_host_t *host, aot_ctx_t *ctx, const char *const *names, size_t n) {
  const aot_ext_env_t *env = aot_ext(&host->head, AOT_EXT_ENV);
  for (size_t k = 0; env && k < n; k++) {
    const char *text = env->get(env, ctx, names[k]);
    if (text && text[0]) return text;
  }
  return NULL;
}

static const char *variable(const aot_host_t *host, aot_ctx_t *ctx, const char *name) {
  return first_set(host, ctx, &name, 1);
}

static int launcher_of(const aot_host_t *host, aot_ctx_t *ctx) {
  for (int l = 0; l < N_LAUNCHERS; l++)
    if (variable(host, ctx, variables[l][RN_RANK])) return l;
  return N_LAUNCHERS;
}

int64_t rn_told_by_launcher(const aot_host_t *host, aot_ctx_t *ctx, int what) {
  const int l = launcher_of(host, ctx);
  const char *text = l == N_LAUNCHERS ? NULL : variable(host, ctx, variables[l][what]);
  return text ? (int64_t)strtoul(text, NULL, 10) : -1;
}

int rn_told_one_machine(const aot_host_t *host, aot_ctx_t *ctx) {
  static const char *const nodes[] = {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"};
  const int64_t n = rn_told_by_launcher(host, ctx, RN_RANKS), local = rn_told_by_launcher(host, ctx, RN_LOCAL_RANKS);
  const char *text = launcher_of(host, ctx) == SLURM ? first_set(host, ctx, nodes, 3) : NULL;
  if (n == 1) return 1;
  if (text) return strtoul(text, NULL, 10) == 1;
  return n < 0 || local < 0 ? -1 : local >= n;
}

int rn_device_of_rank(const aot_host_t *host, aot_ctx_t *ctx, int n_devices) {
  const int64_t local = rn_told_by_launcher(host, ctx, RN_LOCAL_RANK);
  return n_devices > 1 && local > 0 ? (int)local : 0;
}

/* ---- where to meet ---- */

void rn_first_host(const char *list, char *out, uint64_t size) {
  uint64_t n = 0;
  for (const char *at = list; *at && *at != ',' && n + 1 < size;) {
    if (*at != '[') {
      out[n++] = *at++;
      continue;
    }
    for (at++; *at && !strchr("-,]", *at) && n + 1 < size;) out[n++] = *at++; /* the first of these numbers */
    while (*at && *at++ != ']') continue;
  }
  out[n] = 0;
}

/* 0: it is none. */
static unsigned long port_of(const char *text) {
  char *end;
  const unsigned long port = strtoul(text, &end, 10);
  return *end || port > 65535 ? 0 : port;
}

/* pytorch-lightning's rule (SLURMEnvironment.main_port): jobs of one machine have different ones, mostly. */
static unsigned long port_of_job(const char *job) {
  const size_t n = strlen(job);
  return 15000 + strtoul(n > 4 ? job + n - 4 : job, NULL, 10);
}

int rn_told_address(const aot_host_t *host, aot_ctx_t *ctx, char *out) {
  static const char *const lists[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"};
  const char *master = variable(host, ctx, "MASTER_ADDR"), *text = variable(host, ctx, "MASTER_PORT"), *job = NULL;
  char name[RN_ADDRESS - 8] = "";
  if (launcher_of(host, ctx) == SLURM) {
    const char *list = first_set(host, ctx, lists, 3);
    job = variable(host, ctx, "SLURM_JOB_ID");
    if (list) rn_first_host(list, name, sizeof name);
  }
  if (master) snprintf(name, sizeof name, "%s", master);
  if (!name[0]) return 0;
  const unsigned long port = text ? port_of(text) + 1 : job ? port_of_job(job) : 0;
  if (port > 1 && port <= 65535) {
    snprintf(out, RN_ADDRESS, strchr(name, ':') ? "[%s]:%lu" : "%s:%lu", name, port);
    return 1;
  }
  if (text) snprintf(out, RN_ADDRESS, "MASTER_PORT is %.20s, and no port of 1 to 65534", text);
  else snprintf(out, RN_ADDRESS, "MASTER_ADDR is %.200s, and MASTER_PORT is not set", name);
  return -1;
}
