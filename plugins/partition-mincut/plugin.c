/* partition-mincut: the only file here that sees the plugin boundary. */
#include "memory_objective.h"
#include "mincut.h"
#include "simulated_memory.h"

#include "kit/base/errors.h"
#include "kit/partition/apply.h"
#include "kit/partition/region_split.h"
#include "kit/partition/use_policy.h"
#include <aot/describe.h>
#include <aot/ext/memory.h>
#include <aot/inline.h>
#include <aot/partition.h>
#include <aot/pass.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "partition-mincut"
#define HELP "min-cut rematerialisation: recomputes cheap forward values in the backward to minimise saved bytes"

#define REGIONS ID "-regions"
#define REGIONS_HELP "partitions each repeated region once by min-cut: minimises saved bytes"

typedef struct partition_mincut_unit {
  aot_partition_t table;
  aot_host_t host;
  mc_rules_t rules;
  pt_policy_t policy;
  pt_how_t how;
  int is_memory;      /* the objective */
  int is_idle_budget; /* one is given, and the objective is not memory */
  mc_budget_t budget;
  double extra_time;
  mc_step_t step;
  aot_ext_memory_t memory;
  mr_rows_t rows; /* of the last plan that was requested */
} partition_mincut_unit_t;

typedef struct regions_unit {
  aot_pass_t table;
  aot_host_t host;
  mc_rules_t rules;
  aot_str_t only;
} regions_unit_t;

/* self: mc_rules_t */
static int pick(const void *self, const jg_joint_t *j, uint32_t *out_saved, uint32_t *out_n_saved,
                uint32_t *out_value) {
  return mc_choose(j, self, out_saved, out_n_saved, out_value);
}

/* Code that gives a budget expects that it is stored. */
static void warn_of_budget(const partition_mincut_unit_t *u, aot_ctx_t *ctx) {
  const aot_diag_t d = kit_diag(AOT_SEVERITY_WARNING, ID ".idle-budget",
                                "option budget bounds nothing with objective bytes; it is for objective memory");
  u->host.diag(&u->host, ctx, &d);
}

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const partition_mincut_unit_t *u = p->head.self;
  mc_memory_call_t call = {&u->host, ctx, prog, &u->how, u->budget, u->extra_time, u->step};
  pt_how_t how = u->how;
  if (u->is_memory) how.pick = mc_pick_memory, how.self = &call;
  if (u->is_idle_budget) warn_of_budget(u, ctx);
  return pt_choose(&u->host, ctx, prog, sink, &how);
}

static aot_status_t apply(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_t *cut) {
  const partition_mincut_unit_t *u = p->head.self;
  return pt_apply(&u->host, ctx, prog, cut, &u->how);
}

static void destroy(const aot_table_t *p) {
  partition_mincut_unit_t *u = p->self;
  pt_policy_deinit(&u->policy);
  mr_deinit(&u->rows);
  free(u);
}

/* ---- aot.memory/1: what the simulator says ---- */

static aot_status_t plan_memory(const aot_ext_memory_t *e, aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols,
                                uint64_t n_symbols, const aot_memory_plan_t **out_plan) {
  partition_mincut_unit_t *u = e->head.self;
  const aot_snapshot_t *s = NULL;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  const nc_question_t question = {&u->host, ctx, prog, s, symbols, n_symbols};
  const aot_status_t status = mc_simulated_memory(&question, &u->rows);
  *out_plan = &u->rows.plan;
  if (status == AOT_OK) return AOT_OK;
  return jg_fail(&u->host, ctx, status, ID ".no-plan",
                 status == AOT_E_PRECONDITION ? "memory is simulated for a divided program: partition it first"
                 : status == AOT_E_RANGE      ? "a size has no value with these symbols"
                 : status == AOT_E_INVALID    ? "there are more symbols than values for them"
                                              : "no memory for the simulation",
                 aot_no_value());
}

static const void *get_ext(const aot_table_t *p, const char *id) {
  const partition_mincut_unit_t *u = p->self;
  return strcmp(id, AOT_EXT_MEMORY) == 0 ? &u->memory : NULL;
}

/* Positions in the table of options, which both units share. */
enum {
  OPT_OPERATORS,
  OPT_TIES,
  OPT_EXPENSIVE,
  OPT_HEAVY,
  OPT_MATERIALIZED,
  OPT_REDUCTIONS,
  OPT_FAR_APART,
  OPT_LONG_CHAINS,
  OPT_GATHERS,
  OPT_VIEWS,
  OPT_FREE_INPUTS,
  OPT_DOUBLE_FUSED,
  OPT_MAX_DISTANCE,
  OPT_DISTANCE_BASE,
  N_RULES,
  OPT_OBJECTIVE = N_RULES, /* of the partition alone, from here on */
  OPT_MERGE_EQUAL,
  OPT_POLICIES,
  OPT_BUDGET,
  OPT_EXTRA_TIME,
  OPT_STEP,
  OPT_LOSS,
  OPT_CLIP_NORM,
  N_OPTIONS
};

static const aot_str_t operators_choices[] = {AOT_STR_INIT("flags"), AOT_STR_INIT("pytorch")};
static const aot_str_t ties_choices[] = {AOT_STR_INIT("fewest-bytes"), AOT_STR_INIT("nearest-source"),
                                         AOT_STR_INIT("nearest-backward")};
static const aot_str_t step_choices[] = {AOT_STR_INIT("three-graphs"), AOT_STR_INIT("one-graph")};
static const aot_str_t objective_choices[] = {AOT_STR_INIT("bytes"), AOT_STR_INIT("memory")};

static int32_t chosen(const aot_str_t *choices, int32_t n, aot_str_t s) {
  int32_t i = 0;
  while (i + 1 < n && !aot_str_eq(choices[i], s)) i++;
  return i;
}

static mc_rules_t rules_of(const aot_opt_value_t *v) {
  return (mc_rules_t){
      .operators = chosen(operators_choices, 2, v[OPT_OPERATORS].s),
      .ties = chosen(ties_choices, 3, v[OPT_TIES].s),
      .ban_expensive = v[OPT_EXPENSIVE].i != 0,
      .ban_heavy = v[OPT_HEAVY].i != 0,
      .ban_materialized = v[OPT_MATERIALIZED].i != 0,
      .ban_reductions = v[OPT_REDUCTIONS].i != 0,
      .ban_far_apart = v[OPT_FAR_APART].i != 0,
      .ban_long_chains = v[OPT_LONG_CHAINS].i != 0,
      .ban_gathers = v[OPT_GATHERS].i != 0,
      .recompute_views = v[OPT_VIEWS].i != 0,
      .free_static_inputs = v[OPT_FREE_INPUTS].i != 0,
      .double_fused = v[OPT_DOUBLE_FUSED].i != 0,
      .max_distance = (uint32_t)v[OPT_MAX_DISTANCE].i,
      .distance_base = v[OPT_DISTANCE_BASE].f,
  };
}

static aot_status_t read_budget(const aot_host_t *host, aot_ctx_t *ctx, aot_str_t text, mc_budget_t *out) {
  char message[300];
  const char *why;
  if (mc_budget_parse(text, out, &why)) return AOT_OK;
  snprintf(message, sizeof message, "budget '%.*s': %s", text.size < 80 ? (int)text.size : 80, text.data, why);
  return jg_fail(host, ctx, AOT_E_INVALID, ID ".budget", message, aot_no_value());
}

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  (void)self;
  partition_mincut_unit_t *u = calloc(1, sizeof *u);
  if (!u) return jg_fail(host, ctx, AOT_E_EXHAUSTED, ID ".no-memory", "no memory for the unit", aot_no_value());
  u->rules = rules_of(opts->values);
  aot_status_t status = aot_import(&u->host, sizeof u->host, host);
  if (status == AOT_OK) status = read_budget(host, ctx, opts->values[OPT_BUDGET].s, &u->budget);
  if (status == AOT_OK) status = pt_policy_read(host, ctx, opts->values[OPT_POLICIES].s, &u->policy);
  if (status != AOT_OK) {
    free(u);
    return status;
  }
  u->how = (pt_how_t){
      .pick = pick,
      .self = &u->rules,
      .prepare = pt_policy_use,
      .prepare_self = &u->policy,
      .merge_equal = opts->values[OPT_MERGE_EQUAL].i != 0,
  };
  u->is_memory = aot_str_eq(opts->values[OPT_OBJECTIVE].s, aot_str("memory"));
  u->extra_time = opts->values[OPT_EXTRA_TIME].f;
  u->step = (mc_step_t){
      .is_one_graph = chosen(step_choices, 2, opts->values[OPT_STEP].s) == 1,
      .loss = (uint32_t)opts->values[OPT_LOSS].i,
      .waits = opts->values[OPT_CLIP_NORM].f > 0,
  };
  u->is_idle_budget = !u->is_memory && !(u->budget.fraction >= 1); /* the default is the whole */
  u->memory = (aot_ext_memory_t){.head = {.struct_size = sizeof u->memory, .self = u}, .plan = plan_memory};
  u->table = (aot_partition_t){
      .head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
      .choose = choose,
      .apply = apply,
  };
  *out_table = &u->table.head;
  return AOT_OK;
}

#define RULE(opt_name, opt_help, on)                                                                                   \
  {                                                                                                                    \
    .struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .flags = AOT_OPT_AFFECTS_OUTPUT,                        \
    .name = AOT_STR_INIT(opt_name), .help = AOT_STR_INIT(opt_help), .preset = {                                        \
      .i = (on)                                                                                                        \
    }                                                                                                                  \
  }
#define CHOICE(opt_name, opt_help, list, first)                                                                        \
  {                                                                                                                    \
    .struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,                        \
    .name = AOT_STR_INIT(opt_name), .help = AOT_STR_INIT(opt_help), .choices = (list),                                 \
    .n_choices = sizeof(list) / sizeof *(list), .preset = {                                                            \
      .s = AOT_STR_INIT(first)                                                                                         \
    }                                                                                                                  \
  }

/* The option of the regions alone, then the rules by their positions, then the options of the partition alone: each
 * unit has a slice of this table. */
/* clang-format off */
static const aot_option_t options[] = {
    PT_OPTION_ONLY,
    [1 + OPT_OPERATORS] = CHOICE("operators", "source of operator classes (cheap, view, compute-intensive): operator flags or PyTorch's name lists", operators_choices,
                                 "flags"),
    [1 + OPT_TIES] = CHOICE("ties", "which of equally cheap cuts to take", ties_choices, "fewest-bytes"),
    [1 + OPT_EXPENSIVE] = RULE("ban-expensive",
                               "recompute pointwise, view, creation, movement and reduction operators only", 1),
    [1 + OPT_HEAVY] = RULE("ban-heavy", "without ban-expensive: recompute all but compute-intensive operators", 1),
    [1 + OPT_MATERIALIZED] =
        RULE("ban-materialized", "never recompute a value that the backward would have to write to memory", 1),
    [1 + OPT_REDUCTIONS] =
        RULE("ban-reductions", "never recompute an operator whose result is a quarter of what it reads, or less", 1),
    [1 + OPT_FAR_APART] = RULE("ban-far-apart", "never recompute a value for a use that no fusion can reach", 1),
    [1 + OPT_LONG_CHAINS] = RULE("ban-long-chains",
                                 "never recompute the end of a fusible chain of more than 100 nodes", 0),
    [1 + OPT_GATHERS] = RULE("ban-gathers", "do not recompute a value that would be the only reason for another parameter all-gather", 1),
    [1 + OPT_VIEWS] = RULE("recompute-views", "always recompute views instead of saving them", 0),
    [1 + OPT_FREE_INPUTS] = RULE("free-static-inputs", "parameters, buffers and constants cost nothing to keep", 1),
    [1 + OPT_DOUBLE_FUSED] = RULE("double-fused", "a value that fusion would not write to memory costs twice to save",
                                  1),
    [1 + OPT_MAX_DISTANCE] =
        {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
         .name = AOT_STR_INIT("max-distance"), .preset = {.i = 1000}, .min = 0, .max = 1000,
         .unit = AOT_STR_INIT("steps"),
         .help = AOT_STR_INIT("never recompute what lies further from the backward, 1000: no limit")},
    [1 + OPT_DISTANCE_BASE] =
        {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
         .name = AOT_STR_INIT("distance-base"), .preset = {.f = 1.1}, .min = 1, .max = 2,
         .help = AOT_STR_INIT("how much more it costs to save a value for each step it lies away from the backward")},
    [1 + OPT_OBJECTIVE] = CHOICE("objective",
                                 "what to make small: the bytes saved, or the work done again within a budget of memory",
                                 objective_choices, "bytes"),
    [1 + OPT_MERGE_EQUAL] = RULE("merge-equal", "compute common subexpressions of forward and backward once", 1),
    [1 + OPT_POLICIES] =
        {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .flags = AOT_OPT_AFFECTS_OUTPUT,
         .name = AOT_STR_INIT("policies"),
         .help = AOT_STR_INIT("what to save and what to recompute, by op, module or region: \"save op aten.mm; recompute module h.*\"")},
    [1 + OPT_BUDGET] =
        {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .flags = AOT_OPT_AFFECTS_OUTPUT,
         .name = AOT_STR_INIT("budget"), .preset = {.s = AOT_STR_INIT("1.0")},
         .help = AOT_STR_INIT("objective memory: peak-memory limit in bytes (64MiB), or as a fraction of the all-saved peak")},
    [1 + OPT_EXTRA_TIME] =
        {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
         .name = AOT_STR_INIT("extra-time"), .preset = {.f = 0}, .min = 0, .max = 1,
         .help = AOT_STR_INIT("objective memory: the least peak for at most this part more time (0.01); 0: the cheapest plan within the budget")},
    [1 + OPT_STEP] = CHOICE("step", "objective memory: whether forward, backward and update become one graph behind this stage; run.train tells",
                            step_choices, "three-graphs"),
    [1 + OPT_LOSS] =
        {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
         .name = AOT_STR_INIT("loss"), .preset = {.i = 0}, .min = 0, .max = 65535,
         .help = AOT_STR_INIT("of one graph: number of the user output that it keeps")},
    [1 + OPT_CLIP_NORM] =
        {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
         .name = AOT_STR_INIT("clip-norm"), .preset = {.f = 0}, .min = 0, .max = 1e9,
         .help = AOT_STR_INIT("of one graph: above 0 updates wait for all gradients")},
};
/* clang-format on */

/* ---- repeated regions ---- */

static aot_status_t run_regions(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const regions_unit_t *u = p->head.self;
  return pt_split_regions(&u->host, ctx, prog, u->only, pick, &u->rules);
}

static aot_status_t create_regions(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out_table) {
  (void)self;
  regions_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->only = opts->values[0].s;
  u->rules = rules_of(opts->values + 1);
  u->table = (aot_pass_t){
      .head = {.struct_size = sizeof u->table, .self = u},
      .run = run_regions,
  };
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t regions_contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};
static const aot_unit_t regions =
    AOT_UNIT("pass/1", REGIONS, AOT_VERSION, REGIONS_HELP, .options = options, .n_options = 1 + N_RULES,
             .option_stride = sizeof *options, .contract = &regions_contract, .create = create_regions);

static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT),
    .gives = AOT_NAMES(AOT_PROP_PARTITIONED),
    .drops = AOT_NAMES(AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};
static const aot_unit_t unit =
    AOT_UNIT("partition/1", ID, AOT_VERSION, HELP, .options = options + 1, .n_options = N_OPTIONS,
             .option_stride = sizeof *options, .contract = &contract, .create = create);
static const aot_unit_t *const units[] = {&unit, &regions};

AOT_PLUGIN(ID, AOT_VERSION, "aothost", "Apache-2.0", units,
           AOT_NOTE_UNIT("partition/1", ID, HELP) "," AOT_NOTE_UNIT("pass/1", REGIONS, REGIONS_HELP));
