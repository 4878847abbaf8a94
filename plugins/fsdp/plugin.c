/* fsdp: the pass of that name, and kernels of collectives. The only file here that sees the plugin boundary. */
#include "collectives.h"
#include "shard.h"

#include "kit/base/errors.h"
#include <aot/describe.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdio.h>
#include <stdlib.h>

#define HELP "shards parameters, gradients and optimizer states over the ranks (FSDP)"
#define KERNELS_ID "collectives"
#define KERNELS_HELP "kernels of the collective operators, on the run's communicator"

/* ---- the ranks of the run ---- */

static aot_run_ranks_t ranks_of(const aot_host_t *host, aot_ctx_t *ctx) {
  const aot_ext_ranks_t *x = aot_ext(&host->head, AOT_EXT_RANKS);
  aot_run_ranks_t ranks = {.struct_size = sizeof ranks, .n_ranks = 1};
  if (x) x->get(x, ctx, &ranks);
  return ranks;
}

/* ---- the pass ---- */

enum { OPT_MODE, OPT_COLUMNS, OPT_REPLICATE_UNDER, OPT_BUFFERS, OPT_REDUCE, OPT_LOSS, OPT_RANKS, OPT_RANK, OPT_ALONE };

typedef struct fsdp_unit {
  aot_pass_t table;
  aot_host_t host;
  fs_options_t options;
  int shards_alone; /* one rank, too */
} fsdp_unit_t;

static const aot_str_t modes[] = {AOT_STR_INIT("shard"), AOT_STR_INIT("shard-grad"), AOT_STR_INIT("replicate"),
                                  AOT_STR_INIT("hybrid")};
static const aot_str_t reductions[] = {AOT_STR_INIT("leaf"), AOT_STR_INIT("gathered")};
static const aot_str_t buffer_ways[] = {AOT_STR_INIT("refuse"), AOT_STR_INIT("local")};

static aot_status_t complain(const fsdp_unit_t *u, aot_ctx_t *ctx, const char *text) {
  return kit_fail(&u->host, ctx, AOT_E_PRECONDITION, "fsdp.ranks", "%s", text);
}

static aot_status_t check_mesh(const fsdp_unit_t *u, aot_ctx_t *ctx, const fs_options_t *o) {
  const aot_ext_ranks_t *x = aot_ext(&u->host.head, AOT_EXT_RANKS);
  char text[128];
  snprintf(text, sizeof text, "%u ranks are no mesh with rows of %u", o->n_ranks, o->n_columns);
  if (!o->n_columns) return complain(u, ctx, "mode 'hybrid' needs 'columns', the ranks in a row of the mesh");
  if (o->n_ranks % o->n_columns) return complain(u, ctx, text);
  if (!x || x->head.struct_size < sizeof *x) return complain(u, ctx, "the host is too old for a mesh of ranks");
  return x->parts(x, ctx, o->n_columns);
}

static aot_status_t report(const fsdp_unit_t *u, aot_ctx_t *ctx, const fs_counts_t *n) {
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("sharded-parameters"), (double)n->n_sharded, aot_str("parameters")));
  AOT_TRY(r->number(r, ctx, aot_str("whole-parameters"), (double)n->n_whole, aot_str("parameters")));
  AOT_TRY(r->number(r, ctx, aot_str("gathered-narrow"), (double)n->n_cast, aot_str("parameters")));
  AOT_TRY(r->number(r, ctx, aot_str("held"), (double)(n->sharded_nbytes + n->whole_nbytes), aot_str("bytes")));
  return r->number(r, ctx, aot_str("of"), (double)n->all_nbytes, aot_str("bytes"));
}

static aot_status_t AOT_CALL run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const fsdp_unit_t *u = p->head.self;
  const aot_ext_leaf_part_t *part = aot_ext(&u->host.head, AOT_EXT_LEAF_PART);
  const aot_run_ranks_t ranks = ranks_of(&u->host, ctx);
  fs_options_t options = u->options;
  fs_counts_t counts = {0};
  if (!part) return complain(u, ctx, "the host is too old: it has no aot.leaf-part/1");
  if (!options.n_ranks || ranks.communicator) {
    if (options.n_ranks && options.n_ranks != ranks.n_ranks)
      return complain(u, ctx, "the option 'ranks' is not the number of ranks of the run");
    options.n_ranks = ranks.n_ranks;
    options.rank = ranks.rank;
  }
  if (options.rank >= options.n_ranks) return complain(u, ctx, "'rank' counts from 0 and is smaller than 'ranks'");
  if (options.n_ranks == 1 && !u->shards_alone) return AOT_OK;
  if (options.mode == FS_HYBRID) AOT_TRY(check_mesh(u, ctx, &options));
  AOT_TRY(fs_run(&u->host, ctx, prog, &options, part, &counts));
  return report(u, ctx, &counts);
}

static int32_t choice(aot_str_t word, const aot_str_t *words, int32_t n) {
  for (int32_t i = 0; i < n; i++)
    if (aot_str_eq(word, words[i])) return i;
  return 0;
}

static aot_status_t AOT_CALL create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                    const aot_opts_t *opts, const aot_table_t **out_table) {
  fsdp_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  (void)self;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  const aot_opt_value_t *o = opts->values;
  u->options = (fs_options_t){
      .mode = choice(o[OPT_MODE].s, modes, 4),
      .n_columns = (uint32_t)o[OPT_COLUMNS].i,
      .replicate_under = (uint64_t)o[OPT_REPLICATE_UNDER].i,
      .local_buffers = choice(o[OPT_BUFFERS].s, buffer_ways, 2) == 1,
      .reduces_narrow = choice(o[OPT_REDUCE].s, reductions, 2) == 1,
      .loss = (uint32_t)o[OPT_LOSS].i,
      .n_ranks = (uint32_t)o[OPT_RANKS].i,
      .rank = (uint32_t)o[OPT_RANK].i,
  };
  u->shards_alone = o[OPT_ALONE].i != 0;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* ---- the kernels ---- */

typedef struct opset {
  aot_opset_t table;
  fs_kernels_t kernels;
  fs_groups_t groups;
  fs_under_way_t under_way;
} opset_t;

static const void *AOT_CALL get_ext(const aot_table_t *t, const char *id) {
  const opset_t *o = t->self;
  if (aot_str_eq(aot_str(id), aot_str(AOT_EXT_WAITED))) return &o->kernels.waited;
  return aot_str_eq(aot_str(id), aot_str(AOT_EXT_KERNELS)) ? &o->kernels.ext : NULL;
}

static void destroy_opset(const aot_table_t *t) {
  opset_t *o = t->self;
  fs_under_way_deinit(&o->under_way);
  fs_groups_leave(&o->groups);
  free(o);
}

static aot_status_t AOT_CALL create_opset(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                          const aot_opts_t *opts, const aot_table_t **out_table) {
  aot_host_t own;
  opset_t *o = calloc(1, sizeof *o);
  (void)self;
  (void)opts;
  if (!o || aot_import(&own, sizeof own, host) != AOT_OK) {
    free(o);
    return AOT_E_EXHAUSTED;
  }
  const aot_run_ranks_t ranks = ranks_of(&own, ctx);
  fs_under_way_init(&o->under_way, &ranks);
  o->groups = (fs_groups_t){.ranks = ranks, .made = {{"", ranks.group, ranks.n_ranks}}, .n_made = 1};
  fs_kernels_init(&o->kernels, &o->groups, &o->under_way);
  o->table.head =
      (aot_table_t){.struct_size = sizeof o->table, .self = o, .destroy = destroy_opset, .get_ext = get_ext};
  *out_table = &o->table.head;
  return AOT_OK;
}

/* ---- descriptor ---- */

/* clang-format off */
static const aot_option_t options[] = {
    [OPT_MODE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                  .name = AOT_STR_INIT("mode"), .n_choices = 4, .choices = modes, .preset = {.s = AOT_STR_INIT("shard")},
                  .help = AOT_STR_INIT("shard: all-gather in forward and again in backward (FULL_SHARD); shard-grad: keep gathered in between (SHARD_GRAD_OP); replicate: full parameters on every rank (NO_SHARD); hybrid: shard within each row of a device mesh, replicate along columns (HYBRID_SHARD)")},
    [OPT_COLUMNS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                     .name = AOT_STR_INIT("columns"), .max = 65536,
                     .help = AOT_STR_INIT("hybrid: so many ranks in a row, such as the GPUs of a machine, share parameters out")},
    [OPT_REPLICATE_UNDER] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BYTES, .flags = AOT_OPT_AFFECTS_OUTPUT,
                             .name = AOT_STR_INIT("replicate-under"), .unit = AOT_STR_INIT("bytes"), .preset = {.i = 1024},
                             .help = AOT_STR_INIT("smaller parameters stay whole on every rank")},
    [OPT_BUFFERS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                     .name = AOT_STR_INIT("buffers"), .n_choices = 2, .choices = buffer_ways,
                     .preset = {.s = AOT_STR_INIT("refuse")},
                     .help = AOT_STR_INIT("statistics that the forward writes; local: each rank's own, of its own rows")},
    [OPT_REDUCE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
                    .name = AOT_STR_INIT("reduce"), .n_choices = 2, .choices = reductions, .preset = {.s = AOT_STR_INIT("leaf")},
                    .help = AOT_STR_INIT("of a parameter that is gathered in a smaller dtype, gradients are added up in the "
                                         "dtype that it is held in, or in the one that it is gathered in")},
    [OPT_LOSS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                  .name = AOT_STR_INIT("loss"), .max = 65535,
                  .help = AOT_STR_INIT("number of the user output that is minimised: the mean over ranks")},
    [OPT_RANKS] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                   .name = AOT_STR_INIT("ranks"), .max = 65536,
                   .help = AOT_STR_INIT("0: as many as run the pipeline; else, for looking at programs, so many")},
    [OPT_RANK] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                  .name = AOT_STR_INIT("rank"), .max = 65535, .help = AOT_STR_INIT("of them this one, from 0")},
    [OPT_ALONE] = {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .flags = AOT_OPT_AFFECTS_OUTPUT,
                   .name = AOT_STR_INIT("alone"),
                   .help = AOT_STR_INIT("one rank has collectives, too, with itself: to see what they cost, or whether they run")},
};
/* clang-format on */
static const aot_contract_t contract = {.struct_size = sizeof(aot_contract_t),
                                        .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
                                        .gives = AOT_NAMES(AOT_PROP_SHARDED),
                                        .refuses = AOT_NAMES(AOT_PROP_JOINT, AOT_PROP_PARTITIONED, AOT_PROP_SHARDED)};

static const aot_unit_t pass =
    AOT_UNIT("pass/1", "fsdp", AOT_VERSION, HELP, AOT_OPTIONS(options), .create = create, .contract = &contract);
static const aot_unit_t kernels = AOT_UNIT("opset/1", KERNELS_ID, AOT_VERSION, KERNELS_HELP, .create = create_opset);
static const aot_unit_t *const units[] = {&pass, &kernels};

AOT_PLUGIN("fsdp", AOT_VERSION, "aothost", "Apache-2.0", units,
           AOT_NOTE_UNIT("pass/1", "fsdp", HELP) "," AOT_NOTE_OPSET(KERNELS_ID, KERNELS_HELP, "_c10d_functional"));
