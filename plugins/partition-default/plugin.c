/* partition-default: the only file here that sees the plugin boundary. */
#include "kit/partition/save_all.h"

#include "kit/partition/apply.h"
#include "kit/partition/region_split.h"
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/partition.h>
#include <aot/pass.h>

#define ID "partition-default"
#define HELP "saves every forward value that the backward reads, except values tagged for recomputation"

#define REGIONS ID "-regions"
#define REGIONS_HELP "partitions each repeated region once: saves every value that the region's backward reads"

typedef struct partition_default_unit {
  aot_partition_t table;
  aot_host_t host;
} partition_default_unit_t;

typedef struct regions_unit {
  aot_pass_t table;
  aot_host_t host;
  aot_str_t only;
} regions_unit_t;

static int pick(const void *self, const jg_joint_t *j, uint32_t *out_saved, uint32_t *out_n_saved,
                uint32_t *out_value) {
  (void)self;
  (void)out_value;
  return pt_save_all(j, out_saved, out_n_saved);
}

static const pt_how_t how = {.pick = pick};

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  return pt_choose(&((const partition_default_unit_t *)p->head.self)->host, ctx, prog, sink, &how);
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  partition_default_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  (void)self, (void)opts;
  u->table = (aot_partition_t){.head = {.struct_size = sizeof u->table, .self = u}, .choose = choose};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* ---- repeated regions ---- */

static aot_status_t run_regions(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const regions_unit_t *u = p->head.self;
  return pt_split_regions(&u->host, ctx, prog, u->only, pick, NULL);
}

static aot_status_t create_regions(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out_table) {
  (void)self;
  regions_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->only = opts->values[0].s;
  u->table = (aot_pass_t){
      .head = {.struct_size = sizeof u->table, .self = u},
      .run = run_regions,
  };
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_option_t regions_options[] = {PT_OPTION_ONLY};
static const aot_contract_t regions_contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};
static const aot_unit_t regions =
    AOT_UNIT("pass/1", REGIONS, AOT_VERSION, REGIONS_HELP, .options = regions_options, .n_options = 1,
             .option_stride = sizeof *regions_options, .contract = &regions_contract, .create = create_regions);

static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT),
    .gives = AOT_NAMES(AOT_PROP_PARTITIONED),
    .drops = AOT_NAMES(AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};
static const aot_unit_t unit = AOT_UNIT("partition/1", ID, AOT_VERSION, HELP, .contract = &contract, .create = create);
static const aot_unit_t *const units[] = {&unit, &regions};

AOT_PLUGIN(ID, AOT_VERSION, "aothost", "Apache-2.0", units,
           AOT_NOTE_UNIT("partition/1", ID, HELP) "," AOT_NOTE_UNIT("pass/1", REGIONS, REGIONS_HELP));
