/* comm-nccl: the unit of that name. The only file here that sees the plugin boundary. */
#include "nccl_groups.h"

#include "common/ranks/launcher.h"
#include <aot/describe.h>
#include <aot/ext/collect_together.h>
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
  aot_ext_collect_together_t together;
  aot_communicator_t on_host; /* the collectives of the transport, for memory of the host */
  nl_groups_t groups;
  char path[400];
  uint32_t rank, n_ranks, n_local; /* n_local: on this machine; 0: nobody tells */
  uint64_t patience_ns;
  int has_groups;
} unit_t;

static unit_t *unit_of(const aot_communicator_t *c) { return c->head.self; } /* base stands first */

static aot_status_t refuse_machines(const unit_t *u, aot_ctx_t *ctx, uint32_t n_ranks) {
  char text[200];
  snprintf(
      text, sizeof text,
      "%u ranks, and %u of them on this machine: ranks of comm-nccl meet in a file, which is one machine's; comm-mpi "
      "has ranks on several, by way of the host's memory",
      n_ranks, u->n_local);
  return rn_tell(&u->base.table, ctx, AOT_E_UNIMPLEMENTED, text);
}

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
  if (u->n_local && u->n_local < meeting.n_ranks) return refuse_machines(u, ctx, meeting.n_ranks);
  const aot_status_t status = fr_join(&meeting, &t, &error);
  if (status != AOT_OK) return rn_tell(c, ctx, status, error.text);
  return rn_group_open(c, ctx, &t, out);
}

static const aot_ext_stream_t *stream_of(const aot_collective_t *what) {
  const aot_ext_stream_t *x = what->queue && what->device ? aot_ext(&what->device->head, AOT_EXT_STREAM) : NULL;
  return x && aot_str_eq(x->runtime, aot_str("cuda")) ? x : NULL;
}

/* All of them as this unit knows collectives; on a queue of CUDA's by NCCL. */
static aot_status_t collect_all(unit_t *u, aot_ctx_t *ctx, aot_group_t *g, const aot_collective_t *const *what,
                                uint64_t n) {
  const aot_communicator_t *c = &u->base.table;
  const aot_ext_stream_t *stream = stream_of(what[0]);
  aot_status_t status = AOT_OK;
  aot_str_t why;
  for (uint64_t k = 0; k < n && !stream && status == AOT_OK; k++) status = u->on_host.collect(c, ctx, g, what[k]);
  if (!stream) return status;
  status = nl_collect(&u->groups, ctx, g, what, n, stream);
  if (status == AOT_OK) return AOT_OK;
  c->failure(c, g, &why);
  return rn_tell(c, ctx, status, why.data);
}

static aot_status_t AOT_CALL collect(const aot_communicator_t *c, aot_ctx_t *ctx, aot_group_t *g,
                                     const aot_collective_t *what) {
  aot_collective_t own;
  const aot_collective_t *const one = &own;
  if (aot_import(&own, sizeof own, what) == AOT_OK) return collect_all(unit_of(c), ctx, g, &one, 1);
  return rn_tell(c, ctx, AOT_E_TOO_NEW, "the collective is made for a newer communicator");
}

static aot_status_t AOT_CALL collect_together(const aot_ext_collect_together_t *x, aot_ctx_t *ctx, aot_group_t *g,
                                              const aot_collective_t *const *what, uint64_t n) {
  unit_t *u = x->head.self;
  aot_collective_t *own = calloc((size_t)n + 1, sizeof *own);
  const aot_collective_t **list = calloc((size_t)n + 1, sizeof *list);
  aot_status_t status = own && list ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint64_t k = 0; k < n && status == AOT_OK; k++) {
    status = aot_import(&own[k], sizeof own[k], what[k]);
    list[k] = &own[k];
  }
  if (status == AOT_OK) status = collect_all(u, ctx, g, list, n);
  else rn_tell(&u->base.table, ctx, status, "collectives cannot go together");
  free(own);
  free(list);
  return status;
}

static const void *AOT_CALL get_ext(const aot_table_t *t, const char *id) {
  const unit_t *u = t->self;
  return strcmp(id, AOT_EXT_COLLECT_TOGETHER) == 0 ? &u->together : NULL;
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

static uint32_t told(const unit_t *u, aot_ctx_t *ctx, int what, uint32_t preset) {
  const int64_t number = rn_told_by_launcher(&u->host, ctx, what);
  return number < 0 ? preset : (uint32_t)number;
}

static const char *variable(const unit_t *u, aot_ctx_t *ctx, const char *name) {
  const aot_ext_env_t *env = aot_ext(&u->host.head, AOT_EXT_ENV);
  return env ? env->get(env, ctx, name) : NULL;
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
  u->n_ranks = o[OPT_RANKS].i ? (uint32_t)o[OPT_RANKS].i : told(u, ctx, RN_RANKS, 1);
  u->rank = o[OPT_RANKS].i ? (uint32_t)o[OPT_RANK].i : told(u, ctx, RN_RANK, 0);
  u->n_local = o[OPT_RANKS].i ? 0 : told(u, ctx, RN_LOCAL_RANKS, 0);
  snprintf(u->path, sizeof u->path, "%.*s", (int)o[OPT_RENDEZVOUS].s.size, o[OPT_RENDEZVOUS].s.data);
  rn_communicator_init(&u->base, &u->host, AOT_COMMUNICATOR_STREAMS);
  snprintf(u->base.record, sizeof u->base.record, "%.*s", (int)o[OPT_RECORD].s.size, o[OPT_RECORD].s.data);
  snprintf(library, sizeof library, "%.*s", (int)o[OPT_LIBRARY].s.size, o[OPT_LIBRARY].s.data);
  if (nl_open(&nccl, library, why, sizeof why)) return rn_tell(&u->base.table, ctx, AOT_E_UNAVAILABLE, why);
  u->on_host = u->base.table;
  u->base.table.join = join;
  u->base.table.collect = collect;
  u->base.table.leave = leave;
  u->base.table.head.get_ext = get_ext;
  u->together =
      (aot_ext_collect_together_t){.head = {.struct_size = sizeof u->together, .self = u}, .collect = collect_together};
  u->base.table.head.destroy = destroy;
  nl_groups_init(&u->groups, &u->base.table, &nccl, u->patience_ns);
  u->groups.has_one_name = variable(u, ctx, "NCCL_COMM_ID") != NULL;
  u->groups.n_ranks = u->n_ranks;
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
