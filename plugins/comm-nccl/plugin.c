/* comm-nccl: the unit of that name. The only file here that sees the plugin boundary. */
#include "file_ranks.h"
#include "nccl_groups.h"
#include "nccl_ranks.h"

#include "kit/ranks/launcher.h"
#include <aot/describe.h>
#include <aot/ext/collect_together.h>
#include <aot/ext/env.h>
#include <aot/host_backend.h>
#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELP "NCCL communicator: one process per GPU, on one or several machines"
#define FILE_PRESET "/dev/shm/aothost-ranks"

enum { MOST_RANKS = 4096 /* of options */ };
enum {
  OPT_RENDEZVOUS,
  OPT_RANK,
  OPT_RANKS,
  OPT_PATIENCE,
  OPT_LIBRARY,
  OPT_RECORD,
  OPT_DEVICE,
  OPT_WINDOWS,
  OPT_WINDOWS_FROM
};

typedef struct comm_nccl_unit {
  rn_communicator_t base;
  aot_host_t host;
  aot_ext_collect_together_t together;
  aot_communicator_t on_host; /* the collectives of the transport, for memory of the host */
  nl_groups_t groups;
  nl_nccl_t nccl;
  char rendezvous[400]; /* the option */
  int64_t device;       /* the option */
  uint32_t rank, n_ranks;
  int is_told_by_options; /* rank and n_ranks */
  uint64_t patience_ns;
  int has_groups;
} comm_nccl_unit_t;

static comm_nccl_unit_t *unit_of(const aot_communicator_t *c) { return c->head.self; } /* base is first */

static const char *variable(const comm_nccl_unit_t *u, aot_ctx_t *ctx, const char *name) {
  const aot_ext_env_t *env = aot_ext(&u->host.head, AOT_EXT_ENV);
  return env ? env->get(env, ctx, name) : NULL;
}

/* ---- where ranks meet ---- */

typedef struct backing_slot {
  int is_address; /* of several machines; else a file of one */
  char text[400];
} backing_slot_t;

static aot_status_t refuse_place(const comm_nccl_unit_t *u, aot_ctx_t *ctx, uint32_t n_ranks, const char *why) {
  char text[500];
  snprintf(
      text, sizeof text,
      "%u ranks of several machines, which meet at an address: %s; set MASTER_ADDR and MASTER_PORT (the machine of "
      "rank 0, and a port in front of a free one), or the option 'rendezvous' to HOST:PORT",
      n_ranks, why);
  return rn_tell(&u->base.table, ctx, AOT_E_PRECONDITION, text);
}

/* The port that is named, at the host that the launcher reports. */
static aot_status_t find_address(const comm_nccl_unit_t *u, aot_ctx_t *ctx, uint32_t n_ranks, const char *port,
                                 backing_slot_t *out) {
  char told[RN_ADDRESS];
  const int is_told = rn_told_address(&u->host, ctx, told);
  out->is_address = 1;
  if (is_told < 0) return refuse_place(u, ctx, n_ranks, told);
  if (!is_told) return refuse_place(u, ctx, n_ranks, "nobody tells one");
  if (*port) *strrchr(told, ':') = 0;
  snprintf(out->text, sizeof out->text, "%s%.8s", told, port);
  return AOT_OK;
}

/* A place that is named (a path has a slash); else NCCL's own variable; else a file where all ranks are of one machine,
 * which reports at once who has ended there; else the launcher's address. */
static aot_status_t choose_place(const comm_nccl_unit_t *u, aot_ctx_t *ctx, uint32_t n_ranks, const char *named,
                                 backing_slot_t *out) {
  const int is_told = !u->is_told_by_options, one = is_told ? rn_told_one_machine(&u->host, ctx) : 1;
  const char *id = is_told ? variable(u, ctx, "NCCL_COMM_ID") : NULL;
  *out = (backing_slot_t){.is_address = named[0] && !strchr(named, '/')};
  if (named[0] == ':') return find_address(u, ctx, n_ranks, named, out);
  snprintf(out->text, sizeof out->text, "%s", named);
  if (named[0]) return AOT_OK;
  out->is_address = n_ranks > 1 && id;
  snprintf(out->text, sizeof out->text, "%s", out->is_address ? id : FILE_PRESET);
  if (out->is_address || one == 1) return AOT_OK;
  char told[RN_ADDRESS];
  return one == 0 || rn_told_address(&u->host, ctx, told) ? find_address(u, ctx, n_ranks, "", out) : AOT_OK;
}

static aot_status_t meet_by_nccl(comm_nccl_unit_t *u, aot_ctx_t *ctx, nl_how_t *how, rn_transport_t *t,
                                 rn_error_t *error) {
  nl_driver_t driver;
  int n_devices = 0;
  if (nl_driver_open(&driver, &n_devices, error->text, sizeof error->text)) return AOT_E_UNAVAILABLE;
  how->nccl = &u->nccl;
  how->driver = &driver;
  how->device = u->device < 0 ? rn_device_of_rank(&u->host, ctx, n_devices) : (int)u->device;
  u->groups.has_failed = nl_has_failed;
  u->groups.windows_from = 0; /* copy engines reach the machine's own devices, and what the host says has to be cheap */
  u->groups.has_one_name = 0; /* the variable has served its purpose */
  return nl_join(how, t, error);
}

static aot_status_t AOT_CALL join(const aot_communicator_t *c, aot_ctx_t *ctx, const aot_join_t *how,
                                  aot_group_t **out) {
  comm_nccl_unit_t *u = unit_of(c);
  aot_join_t own;
  rn_transport_t t;
  rn_error_t error = {""};
  backing_slot_t place;
  char named[400];
  if (aot_import(&own, sizeof own, how) != AOT_OK)
    return rn_tell(c, ctx, AOT_E_TOO_NEW, "the ranks are made for a newer communicator");
  const uint32_t rank = own.n_ranks ? own.rank : u->rank, n_ranks = own.n_ranks ? own.n_ranks : u->n_ranks;
  const uint64_t patience_ns = own.patience_ns ? own.patience_ns : u->patience_ns;
  snprintf(named, sizeof named, "%.*s", own.rendezvous.size ? (int)own.rendezvous.size : (int)strlen(u->rendezvous),
           own.rendezvous.size ? own.rendezvous.data : u->rendezvous);
  AOT_TRY(choose_place(u, ctx, n_ranks, named, &place));
  const fr_how_t file = {.path = place.text, .rank = rank, .n_ranks = n_ranks, .patience_ns = patience_ns};
  nl_how_t address = {.address = place.text, .rank = rank, .n_ranks = n_ranks, .patience_ns = patience_ns};
  const aot_status_t status =
      place.is_address ? meet_by_nccl(u, ctx, &address, &t, &error) : fr_join(&file, &t, &error);
  if (status != AOT_OK) return rn_tell(c, ctx, status, error.text);
  return rn_group_open(c, ctx, &t, out);
}

static const aot_ext_stream_t *stream_of(const aot_collective_t *what) {
  const aot_ext_stream_t *x = what->queue && what->device ? aot_ext(&what->device->head, AOT_EXT_STREAM) : NULL;
  return x && aot_str_eq(x->runtime, aot_str("cuda")) ? x : NULL;
}

/* All of them as this unit knows collectives; on a queue of CUDA's by NCCL. */
static aot_status_t collect_all(comm_nccl_unit_t *u, aot_ctx_t *ctx, aot_group_t *g,
                                const aot_collective_t *const *what, uint64_t n) {
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
  comm_nccl_unit_t *u = x->head.self;
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
  const comm_nccl_unit_t *u = t->self;
  return strcmp(id, AOT_EXT_COLLECT_TOGETHER) == 0 ? &u->together : NULL;
}

static void AOT_CALL leave(const aot_communicator_t *c, aot_group_t *g) {
  comm_nccl_unit_t *u = unit_of(c);
  nl_forget(&u->groups, g);
  u->on_host.leave(c, g);
}

static void AOT_CALL destroy(const aot_table_t *table) {
  comm_nccl_unit_t *u = table->self;
  if (u->has_groups) nl_groups_deinit(&u->groups);
}

/* ---- options ---- */

static uint32_t told(const comm_nccl_unit_t *u, aot_ctx_t *ctx, int what, uint32_t preset) {
  const int64_t number = rn_told_by_launcher(&u->host, ctx, what);
  return number < 0 ? preset : (uint32_t)number;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  const aot_opt_value_t *o = opts->values;
  comm_nccl_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  char why[256], library[400];
  if (!u) return AOT_E_EXHAUSTED;
  memset(u, 0, sizeof *u);
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->patience_ns = (uint64_t)(o[OPT_PATIENCE].f * 1e9);
  u->n_ranks = o[OPT_RANKS].i ? (uint32_t)o[OPT_RANKS].i : told(u, ctx, RN_RANKS, 1);
  u->rank = o[OPT_RANKS].i ? (uint32_t)o[OPT_RANK].i : told(u, ctx, RN_RANK, 0);
  u->is_told_by_options = o[OPT_RANKS].i != 0;
  u->device = o[OPT_DEVICE].i;
  snprintf(u->rendezvous, sizeof u->rendezvous, "%.*s", (int)o[OPT_RENDEZVOUS].s.size, o[OPT_RENDEZVOUS].s.data);
  rn_communicator_init(&u->base, &u->host, AOT_COMMUNICATOR_STREAMS | AOT_COMMUNICATOR_DROPS_NAN);
  snprintf(u->base.record, sizeof u->base.record, "%.*s", (int)o[OPT_RECORD].s.size, o[OPT_RECORD].s.data);
  snprintf(library, sizeof library, "%.*s", (int)o[OPT_LIBRARY].s.size, o[OPT_LIBRARY].s.data);
  if (nl_open(&u->nccl, library, why, sizeof why)) return rn_tell(&u->base.table, ctx, AOT_E_UNAVAILABLE, why);
  u->on_host = u->base.table;
  u->base.table.join = join;
  u->base.table.collect = collect;
  u->base.table.leave = leave;
  u->base.table.head.get_ext = get_ext;
  u->together =
      (aot_ext_collect_together_t){.head = {.struct_size = sizeof u->together, .self = u}, .collect = collect_together};
  u->base.table.head.destroy = destroy;
  nl_groups_init(&u->groups, &u->base.table, &u->nccl, u->patience_ns);
  u->groups.has_failed = fr_has_failed;
  u->groups.has_one_name = variable(u, ctx, "NCCL_COMM_ID") != NULL;
  u->groups.n_ranks = u->n_ranks;
  u->groups.windows_from = o[OPT_WINDOWS].i ? (uint64_t)o[OPT_WINDOWS_FROM].i : 0;
  nl_memory_open(&u->groups.memory);
  u->has_groups = 1;
  *out_table = &u->base.table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    [OPT_RENDEZVOUS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .name = AOT_STR_INIT("rendezvous"),
                        .help = AOT_STR_INIT("where the ranks meet: the path of a file on a file system in memory, for ranks of one machine; or "
                                             "HOST:PORT, of the machine of rank 0, or :PORT; empty: NCCL_COMM_ID, or " FILE_PRESET
                                             " on one machine, or the port behind MASTER_PORT at MASTER_ADDR")},
    [OPT_RANK] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .name = AOT_STR_INIT("rank"),
                  .max = MOST_RANKS - 1, .help = AOT_STR_INIT("number of this rank, where 'ranks' is given")},
    [OPT_RANKS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .name = AOT_STR_INIT("ranks"),
                   .max = MOST_RANKS,
                   .help = AOT_STR_INIT("how many there are; 0: RANK and WORLD_SIZE say it, or Open MPI's or Slurm's variables")},
    [OPT_PATIENCE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_HAS_RANGE,
                      .name = AOT_STR_INIT("patience"), .unit = AOT_STR_INIT("seconds"), .preset = {.f = 30}, .min = 1e-3, .max = 1e6,
                      .help = AOT_STR_INIT("how long another rank is waited for, and a collective")},
    [OPT_LIBRARY] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .name = AOT_STR_INIT("library"),
                     .help = AOT_STR_INIT("NCCL's file; empty: libnccl.so.2 as the loader finds it")},
    [OPT_RECORD] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .name = AOT_STR_INIT("record"),
                    .help = AOT_STR_INIT("when ranks fail, each writes its last collectives to this file's name and .RANK; empty: none")},
    [OPT_DEVICE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_HAS_RANGE, .name = AOT_STR_INIT("device"),
                    .preset = {.i = -1}, .min = -1, .max = 1023,
                    .help = AOT_STR_INIT("with several machines the GPU that has what the ranks say beside tensors, counted from 0; -1: that of "
                                         "the rank's number on its machine, as the device cuda has it")},
    [OPT_WINDOWS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .name = AOT_STR_INIT("windows"), .preset = {.i = 1},
                     .help = AOT_STR_INIT("NCCL (2.28 or later) is told of the memory that collectives of one machine use, and moves it by copy "
                                          "engines where it can")},
    [OPT_WINDOWS_FROM] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BYTES, .flags = AOT_OPT_HAS_RANGE,
                          .name = AOT_STR_INIT("windows-from"), .preset = {.i = 1 << 20}, .min = 1, .max = 1e15,
                          .help = AOT_STR_INIT("the larger side of a collective that it is told for")},
};
/* clang-format on */

AOT_PLUGIN_ONE("communicator/1", "comm-nccl", AOT_VERSION, "aothost", "Apache-2.0", HELP, create, AOT_OPTIONS(options));
