/* comm-local: the unit of that name. The only file here that sees the plugin boundary. */
#include "hub.h"

#include <aot/describe.h>
#include <aot/inline.h>
#include <stdio.h>

#define HELP "in-process communicator for tests: ranks are threads; injects delays and faults"

enum { OPT_RENDEZVOUS, OPT_RANK, OPT_RANKS, OPT_PATIENCE, OPT_DELAY, OPT_SEED, OPT_DIE_AT, OPT_HANG_AT, OPT_RECORD };

typedef struct comm_local_unit {
  rn_communicator_t base;
  aot_host_t host;
  char rendezvous[128];
  cl_meeting_t meeting;
} comm_local_unit_t;

static aot_status_t AOT_CALL join(const aot_communicator_t *c, aot_ctx_t *ctx, const aot_join_t *how,
                                  aot_group_t **out) {
  const comm_local_unit_t *u = (const comm_local_unit_t *)c->head.self; /* base is first */
  cl_meeting_t m = u->meeting;
  char name[128];
  aot_join_t own;
  rn_transport_t t;
  rn_error_t error = {""};
  if (aot_import(&own, sizeof own, how) != AOT_OK)
    return rn_tell(c, ctx, AOT_E_TOO_NEW, "the ranks are made for a newer communicator");
  if (own.n_ranks) {
    m.rank = own.rank;
    m.n_ranks = own.n_ranks;
  }
  if (own.patience_ns) m.patience_ns = own.patience_ns;
  if (own.rendezvous.size) {
    snprintf(name, sizeof name, "%.*s", (int)own.rendezvous.size, own.rendezvous.data);
    m.name = name;
  }
  if (m.rank >= m.n_ranks)
    return rn_tell(c, ctx, AOT_E_OPTION, "comm-local: 'rank' counts from 0 and is smaller than 'ranks'");
  const aot_status_t status = cl_meet(&m, &t, &error);
  if (status != AOT_OK) return rn_tell(c, ctx, status, error.text);
  return rn_group_open(c, ctx, &t, out);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  const aot_opt_value_t *o = opts->values;
  comm_local_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  snprintf(u->rendezvous, sizeof u->rendezvous, "%.*s", (int)o[OPT_RENDEZVOUS].s.size, o[OPT_RENDEZVOUS].s.data);
  u->meeting = (cl_meeting_t){
      .name = u->rendezvous,
      .rank = (uint32_t)o[OPT_RANK].i,
      .n_ranks = (uint32_t)o[OPT_RANKS].i,
      .patience_ns = (uint64_t)(o[OPT_PATIENCE].f * 1e9),
      .faults =
          {
              .die_at = (uint64_t)o[OPT_DIE_AT].i,
              .hang_at = (uint64_t)o[OPT_HANG_AT].i,
              .delay_ns = (uint64_t)(o[OPT_DELAY].f * 1e3),
              .seed = (uint64_t)o[OPT_SEED].i,
          },
  };
  rn_communicator_init(&u->base, &u->host, AOT_COMMUNICATOR_ORDERED | AOT_COMMUNICATOR_CONCURRENT);
  snprintf(u->base.record, sizeof u->base.record, "%.*s", (int)o[OPT_RECORD].s.size, o[OPT_RECORD].s.data);
  u->base.table.join = join;
  *out_table = &u->base.table.head;
  return AOT_OK;
}

#define OPTION(name_, kind_, help_, ...)                                                                               \
  {                                                                                                                    \
    .struct_size = sizeof(aot_option_t), .kind = AOT_OPT_##kind_, .name = AOT_STR_INIT(name_),                         \
    .help = AOT_STR_INIT(help_), __VA_ARGS__                                                                           \
  }
static const aot_option_t options[] = {
    [OPT_RENDEZVOUS] =
        OPTION("rendezvous", STRING, "name of the place where the ranks meet", .preset = {.s = AOT_STR_INIT("local")}),
    [OPT_RANK] = OPTION("rank", I64, "number of this rank, from 0", .flags = AOT_OPT_HAS_RANGE, .max = 65535),
    [OPT_RANKS] = OPTION("ranks", I64, "how many there are", .flags = AOT_OPT_HAS_RANGE, .preset = {.i = 1}, .min = 1,
                         .max = 65536),
    [OPT_PATIENCE] = OPTION("patience", F64, "how long another rank is waited for", .flags = AOT_OPT_HAS_RANGE,
                            .unit = AOT_STR_INIT("seconds"), .preset = {.f = 30}, .min = 1e-3, .max = 1e6),
    [OPT_DELAY] = OPTION("delay", F64, "a fault: before each half of an exchange, a wait of at most so long",
                         .flags = AOT_OPT_HAS_RANGE, .unit = AOT_STR_INIT("microseconds"), .max = 1e9),
    [OPT_SEED] = OPTION("seed", I64, "of delays and of the order in which pieces are taken; 0: in that of ranks",
                        .flags = AOT_OPT_HAS_RANGE, .max = 1e15),
    [OPT_DIE_AT] = OPTION("die-at", I64, "a fault: this rank is gone at that exchange, from 1; 0: never",
                          .flags = AOT_OPT_HAS_RANGE, .max = 1e15),
    [OPT_HANG_AT] = OPTION("hang-at", I64, "a fault: this rank hangs at that exchange, from 1; 0: never",
                           .flags = AOT_OPT_HAS_RANGE, .max = 1e15),
    [OPT_RECORD] =
        OPTION("record", STRING, "when ranks fail, each writes its last collectives to this file's name and .RANK",
               .preset = {.s = AOT_STR_INIT("")}),
};

AOT_PLUGIN_ONE("communicator/1", "comm-local", AOT_VERSION, "aothost", "Apache-2.0", HELP, create,
               AOT_OPTIONS(options));
