/* comm-nccl: the unit of that name. The only file here that sees the plugin boundary. */
#include "nccl_groups.h"

#include <aot/describe.h>
#include <aot/ext/env.h>
#include <aot/host_backend.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP "ranks that are processes of one machine with a GPU each, whose tensors NCCL moves"

enum { OPT_RENDEZVOUS, OPT_RANK, OPT_RANKS, OPT_PATIENCE, OPT_LIBRARY, OPT_RECORD };

typedef struct unit {
  rn_communicator_t base;
  aot_host_t host;
  aot_communicator_t on_host; /* the collectives of the transport, for memory of the host */
  nl_groups_t groups;
  char path[400];
  uint32_t rank, n_ranks;
  uint64_t patience_ns;
  int has_groups;
} unit_t;

static unit_t *unit_of(const aot_communicator_t *c) { return c->head.self; } /* base stands first */

static aot_status_t AOT_CALL join(const aot_communicator_t *c, aot_ctx_t *ctx, const aot_join_t *how,
                                  aot_group_t **out) {
  const unit_t *u = unit_of(c);
  aot_join_t own;
  rn_transport_t t;
  rn_error_t error = {""};
  char path[400];
  if (aot_import(&own, sizeof own, how) != AOT_OK)
    return rn_tell(c, ctx, AOT_E_TOO_NEW, "the ranks are made for a newer communicator");
  snprintf(path, sizeof path, "%.*s", own.rendezvous.size ? (int)own.rendezvous.size : (int)strlen(u->path),
           own.rendezvous.size ? own.rendezvous.data : u->path);
  const fr_how_t meeting = {.path = path,
                            .rank = own.n_ranks ? own.rank : u->rank,
                            .n_ranks = own.n_ranks ? own.n_ranks : u->n_ranks,
                            .patience_ns = own.patience_ns ? own.patience_ns : u->patience_ns};
  const aot_status_t status = fr_join(&meeting, &t, &error);
  if (status != AOT_OK) return rn_tell(c, ctx, status, error.text);
  return rn_group_open(c, ctx, &t, out);
}

static aot_status_t AOT_CALL collect(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *g,
                                     const aot_collective_t *what) {
  unit_t *u = unit_of(c);
  aot_collective_t own;
  aot_str_t why;
  if (aot_import(&own, sizeof own, what) != AOT_OK)
    return rn_tell(c, ctx, AOT_E_TOO_NEW, "the collective is made for a newer communicator");
  const aot_ext_stream_t *stream = own.queue && own.device ? aot_ext(&own.device->head, AOT_EXT_STREAM) : NULL;
  if (!stream || !aot_str_eq(stream->runtime, aot_str("cuda"))) return u->on_host.collect(c, ctx, g, what);
  const aot_status_t status = nl_collect(&u->groups, ctx, g, &own, stream);
  if (status == AOT_OK) return AOT_OK;
  c->failure(c, g, &why);
  return rn_tell(c, ctx, status, why.data);
}

static void AOT_CALL leave(const aot_communicator_t *c, aot_group_t *g) {
  unit_t *u = unit_of(c);
  nl_forget(&u->groups, g);
  u->on_host.leave(c, g);
}

static void AOT_CALL destroy(const aot_table_t *table) {
  unit_t *u = table->self;
  if (u->has_groups) nl_groups_deinit(&u->groups);
}

/* ---- options ---- */

/* What launchers tell: torchrun, Open MPI, Slurm. */
static const char *const ranks_of_launchers[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"};
static const char *const numbers_of_launchers[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS"};

static uint32_t told(const unit_t *u, aot_ctx_t *ctx, const char *const *names, uint32_t preset) {
  const aot_ext_env_t *env = aot_ext(&u->host.head, AOT_EXT_ENV);
  for (int i = 0; env && i < 3; i++) {
    const char *text = env->get(env, ctx, names[i]);
    if (text && text[0]) return (uint32_t)strtoul(text, NULL, 10);
  }
  return preset;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  const aot_opt_value_t *o = opts->values;
  unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  nl_nccl_t nccl;
  char why[256], library[400];
  if (!u) return AOT_E_EXHAUSTED;
  memset(u, 0, sizeof *u);
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->patience_ns = (uint64_t)(o[OPT_PATIENCE].f * 1e9);
  u->n_ranks = o[OPT_RANKS].i ? (uint32_t)o[OPT_RANKS].i : told(u, ctx, numbers_of_launchers, 1);
  u->rank = o[OPT_RANKS].i ? (uint32_t)o[OPT_RANK].i : told(u, ctx, ranks_of_launchers, 0);
  snprintf(u->path, sizeof u->path, "%.*s", (int)o[OPT_RENDEZVOUS].s.size, o[OPT_RENDEZVOUS].s.data);
  rn_communicator_init(&u->base, &u->host, AOT_COMMUNICATOR_STREAMS);
  snprintf(u->base.record, sizeof u->base.record, "%.*s", (int)o[OPT_RECORD].s.size, o[OPT_RECORD].s.data);
  snprintf(library, sizeof library, "%.*s", (int)o[OPT_LIBRARY].s.size, o[OPT_LIBRARY].s.data);
  if (nl_open(&nccl, library, why, sizeof why)) return rn_tell(&u->base.table, ctx, AOT_E_UNAVAILABLE, why);
  u->on_host = u->base.table;
  u->base.table.join = join;
  u->base.table.collect = collect;
  u->base.table.leave = leave;
  u->base.table.head.destroy = destroy;
  nl_groups_init(&u->groups, &u->base.table, &nccl, u->patience_ns);
  u->has_groups = 1;
  *out_table = &u->base.table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    [OPT_RENDEZVOUS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .name = AOT_STR_INIT("rendezvous"),
                        .preset = {.s = AOT_STR_INIT("/dev/shm/aothost-ranks")},
                        .help = AOT_STR_INIT("a file that the ranks meet in, on a file system that keeps it in memory; another for each "
                                             "run that goes on at once")},
    [OPT_RANK] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .name = AOT_STR_INIT("rank"),
                  .max = FR_MOST_RANKS - 1, .help = AOT_STR_INIT("number of this rank, where 'ranks' is given")},
    [OPT_RANKS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .name = AOT_STR_INIT("ranks"),
                   .max = FR_MOST_RANKS,
                   .help = AOT_STR_INIT("how many there are; 0: RANK and WORLD_SIZE say it, or Open MPI's or Slurm's variables")},
    [OPT_PATIENCE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_HAS_RANGE,
                      .name = AOT_STR_INIT("patience"), .unit = AOT_STR_INIT("seconds"), .preset = {.f = 30}, .min = 1e-3, .max = 1e6,
                      .help = AOT_STR_INIT("how long another rank is waited for, and a collective")},
    [OPT_LIBRARY] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .name = AOT_STR_INIT("library"),
                     .help = AOT_STR_INIT("NCCL's file; empty: libnccl.so.2 as the loader finds it")},
    [OPT_RECORD] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .name = AOT_STR_INIT("record"),
                    .help = AOT_STR_INIT("when ranks fail, each writes its last collectives to this file's name and .RANK; empty: none")},
};
/* clang-format on */

AOT_PLUGIN_ONE("communicator/1", "comm-nccl", AOT_VERSION, "aothost", "Apache-2.0", HELP, create, AOT_OPTIONS(options));
