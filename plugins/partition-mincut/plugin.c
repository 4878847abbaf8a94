/* partition-mincut: the only file here that sees the plugin boundary. */
#include "mincut.h"

#include "common/partition/apply.h"
#include "common/partition/region_split.h"
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/partition.h>
#include <aot/pass.h>
#include <stdlib.h>

#define ID "partition-mincut"
#define HELP "recomputes cheap forward values in the backward so that the fewest bytes are saved"

#define REGIONS ID "-regions"
#define REGIONS_HELP "divides repeated regions, once each, so that the fewest bytes are saved"

typedef struct unit {
  aot_partition_t table;
  aot_host_t host;
  mc_rules_t rules;
} unit_t;

typedef struct regions_unit {
  aot_pass_t table;
  aot_host_t host;
  mc_rules_t rules;
  aot_str_t only;
} regions_unit_t;

static int pick(const void *self, const pt_joint_t *j, uint32_t *out_saved, uint32_t *out_n_saved, uint32_t *out_value) {
  return mc_choose(j, self, out_saved, out_n_saved, out_value);
}

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const unit_t *u = p->self;
  return pt_choose(&u->host, ctx, prog, sink, pick, &u->rules);
}

static aot_status_t apply(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut) {
  return pt_apply(&((const unit_t *)p->self)->host, ctx, prog, cut);
}

static void destroy(const aot_partition_t *p) { free(p->self); }

static mc_rules_t rules_of(const aot_opt_value_t *v) {
  return (mc_rules_t){.ban_materialized = v[0].i != 0,
                      .ban_reductions = v[1].i != 0,
                      .ban_far_apart = v[2].i != 0,
                      .ban_expensive = v[3].i != 0,
                      .recompute_views = v[4].i != 0,
                      .free_static_inputs = v[5].i != 0,
                      .distance_base = v[6].f};
}

static aot_status_t create(const aot_host_t *host, aot_ctx_t *ctx, const aot_opts_t *opts, const void **out_table) {
  unit_t *u = calloc(1, sizeof *u);
  if (!u) return pt_fail(host, ctx, AOT_E_EXHAUSTED, ID ".no-memory", "no memory for the unit", aot_no_value());
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->rules = rules_of(opts->values);
  u->table = (aot_partition_t){.struct_size = sizeof u->table, .self = u, .choose = choose, .apply = apply, .destroy = destroy};
  *out_table = &u->table;
  return AOT_OK;
}

#define RULE(opt_name, opt_help, on)                                                                                     \
  {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .flags = AOT_OPT_AFFECTS_OUTPUT,                           \
   .name = AOT_STR_INIT(opt_name), .help = AOT_STR_INIT(opt_help), .preset = {.i = (on)}, .min = 1, .max = 0}
static const aot_option_t options[] = { /* rules_of() reads them by position */
    RULE("ban-materialized", "never recompute a value that the backward would have to write to memory", 1),
    RULE("ban-reductions", "never recompute an operator whose result is a quarter of what it reads, or less", 1),
    RULE("ban-far-apart", "never recompute a value for a use that no fusion can reach", 1),
    RULE("ban-expensive", "recompute pointwise, view, creation, movement and reduction operators only", 1),
    RULE("recompute-views", "always recompute views instead of saving them", 0),
    RULE("free-static-inputs", "parameters, buffers and constants cost nothing to keep", 1),
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT,
     .name = AOT_STR_INIT("distance-base"), .preset = {.f = 1.1}, .min = 1, .max = 2,
     .help = AOT_STR_INIT("how much dearer a value is to save for each step it lies away from the backward")},
    PT_OPTION_ONLY, /* of the regions alone */
};
#define N_RULES (sizeof options / sizeof *options - 1)

/* ---- repeated regions ---- */

static aot_status_t run_regions(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const regions_unit_t *u = p->self;
  return pt_split_regions(&u->host, ctx, prog, u->only, pick, &u->rules);
}

static void destroy_regions(const aot_pass_t *p) { free(p->self); }

static aot_status_t create_regions(const aot_host_t *host, aot_ctx_t *ctx, const aot_opts_t *opts, const void **out_table) {
  regions_unit_t *u = calloc(1, sizeof *u);
  if (!u) return pt_fail(host, ctx, AOT_E_EXHAUSTED, ID ".no-memory", "no memory for the unit", aot_no_value());
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->rules = rules_of(opts->values);
  u->only = opts->values[N_RULES].s;
  u->table = (aot_pass_t){.struct_size = sizeof u->table, .self = u, .run = run_regions, .destroy = destroy_regions};
  *out_table = &u->table;
  return AOT_OK;
}

static const aot_contract_t regions_contract = {.struct_size = sizeof(aot_contract_t),
                                                .needs = AOT_PROP_FUNCTIONAL | AOT_PROP_JOINT,
                                                .refuses = AOT_PROP_PARTITIONED};
static const aot_unit_t regions = {.struct_size = sizeof(aot_unit_t),
                                   .kind = AOT_STR_INIT("pass/1"),
                                   .id = AOT_STR_INIT(REGIONS),
                                   .version = AOT_STR_INIT(AOT_VERSION),
                                   .help = AOT_STR_INIT(REGIONS_HELP),
                                   .options = options,
                                   .n_options = N_RULES + 1,
                                   .option_stride = sizeof *options,
                                   .contract = &regions_contract,
                                   .create = create_regions};

static const aot_contract_t contract = {.struct_size = sizeof(aot_contract_t),
                                        .needs = AOT_PROP_FUNCTIONAL | AOT_PROP_JOINT,
                                        .gives = AOT_PROP_PARTITIONED,
                                        .drops = AOT_PROP_JOINT,
                                        .refuses = AOT_PROP_PARTITIONED};
static const aot_unit_t unit = {.struct_size = sizeof(aot_unit_t),
                                .kind = AOT_STR_INIT("partition/1"),
                                .id = AOT_STR_INIT(ID),
                                .version = AOT_STR_INIT(AOT_VERSION),
                                .help = AOT_STR_INIT(HELP),
                                .options = options,
                                .n_options = N_RULES,
                                .option_stride = sizeof *options,
                                .contract = &contract,
                                .create = create};
static const aot_unit_t *const units[] = {&unit, &regions};
static const aot_plugin_t plugin = {.struct_size = sizeof(aot_plugin_t),
                                    .abi_epoch = AOT_ABI_EPOCH,
                                    .abi_minor = AOT_ABI_MINOR,
                                    .min_host_minor = 1,
                                    .id = AOT_STR_INIT(ID),
                                    .vendor = AOT_STR_INIT("aothost"),
                                    .version = AOT_STR_INIT(AOT_VERSION),
                                    .license = AOT_STR_INIT("Apache-2.0"),
                                    .units = units,
                                    .n_units = 2};

AOT_PLUGIN_NOTE(AOT_NOTE_HEAD(ID, AOT_VERSION) AOT_NOTE_UNIT("partition/1", ID, HELP) "," AOT_NOTE_UNIT("pass/1", REGIONS, REGIONS_HELP)
                    AOT_NOTE_TAIL);

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_minor;
  if (host_epoch == AOT_ABI_EPOCH) return &plugin;
  *why_not = aot_str("made for ABI epoch 1");
  return NULL;
}
