/* comm-mpi: the unit of that name. The only file here that sees the plugin boundary. */
#include "mpi_ranks.h"

#include <aot/describe.h>
#include <aot/inline.h>
#include <stdio.h>

#define HELP "MPI communicator: ranks are the processes of one mpirun job"

enum { OPT_PATIENCE, OPT_RECORD };

typedef struct comm_mpi_unit {
  rn_communicator_t base;
  aot_host_t host;
  uint64_t patience_ns;
} comm_mpi_unit_t;

/* Who is there the job knows: rank, number and meeting place are not ours to choose. */
static aot_status_t AOT_CALL join(const aot_communicator_t *c, aot_ctx_t *ctx, const aot_join_t *how,
                                  aot_group_t **out) {
  const comm_mpi_unit_t *u = (const comm_mpi_unit_t *)c->head.self; /* base is first */
  aot_join_t own;
  rn_transport_t t;
  rn_error_t error = {""};
  if (aot_import(&own, sizeof own, how) != AOT_OK)
    return rn_tell(c, ctx, AOT_E_TOO_NEW, "the ranks are made for a newer communicator");
  const aot_status_t status = cm_join(own.patience_ns ? own.patience_ns : u->patience_ns, &t, &error);
  if (status != AOT_OK) return rn_tell(c, ctx, status, error.text);
  if (!own.n_ranks || (own.n_ranks == t.n_ranks && own.rank == t.rank)) return rn_group_open(c, ctx, &t, out);
  t.leave(t.self);
  return rn_tell(c, ctx, AOT_E_PRECONDITION, "the MPI job has another number of ranks, or this one another place");
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  comm_mpi_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->patience_ns = (uint64_t)(opts->values[OPT_PATIENCE].f * 1e9);
  rn_communicator_init(&u->base, &u->host, AOT_COMMUNICATOR_ORDERED);
  snprintf(u->base.record, sizeof u->base.record, "%.*s", (int)opts->values[OPT_RECORD].s.size,
           opts->values[OPT_RECORD].s.data);
  u->base.table.join = join;
  *out_table = &u->base.table.head;
  return AOT_OK;
}

static const aot_option_t options[] = {
    [OPT_PATIENCE] =
        {
            .struct_size = sizeof(aot_option_t),
            .kind = AOT_OPT_F64,
            .flags = AOT_OPT_HAS_RANGE,
            .name = AOT_STR_INIT("patience"),
            .help = AOT_STR_INIT("how long another rank is waited for"),
            .unit = AOT_STR_INIT("seconds"),
            .preset = {.f = 30},
            .min = 1e-3,
            .max = 1e6,
        },
    [OPT_RECORD] =
        {
            .struct_size = sizeof(aot_option_t),
            .kind = AOT_OPT_STRING,
            .name = AOT_STR_INIT("record"),
            .help = AOT_STR_INIT(
                "when ranks fail, each writes its last collectives to this file's name and .RANK; empty: none"),
        },
};

AOT_PLUGIN_ONE("communicator/1", "comm-mpi", AOT_VERSION, "aothost", "Apache-2.0", HELP, create, AOT_OPTIONS(options));
