/* optimizer: the units sgd, adam and adamw. The only file here that sees the plugin boundary. */
#include "update.h"

#include "kit/base/errors.h"
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/pass.h>

#define SGD_HELP "adds the SGD update graph to a partitioned program"
#define ADAM_HELP "adds the Adam update graph to a partitioned program"
#define ADAMW_HELP "adds the AdamW update graph (decoupled weight decay) to a partitioned program"

typedef struct optimizer_unit {
  aot_pass_t table;
  aot_host_t host;
  opt_rule_t rule;
  opt_groups_t groups;
} optimizer_unit_t;

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const optimizer_unit_t *u = p->head.self;
  return opt_add_update(&u->host, ctx, prog, &u->rule, &u->groups);
}

static aot_status_t make(const aot_host_t *host, aot_ctx_t *ctx, const opt_rule_t *rule, aot_str_t groups,
                         const aot_table_t **out_table) {
  const char *error = opt_rule_error(rule);
  if (error) return kit_fail(host, ctx, AOT_E_OPTION, "optimizer.option", "%s", error);
  optimizer_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->rule = *rule;
  AOT_TRY(opt_groups_parse(host, ctx, groups, rule, &u->groups));
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static aot_status_t create_sgd(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                               const aot_table_t **out_table) {
  (void)self;
  const aot_opt_value_t *v = opts->values;
  opt_rule_t rule = {.kind = OPT_RULE_SGD, .id = "sgd"};
  rule.sgd = (opt_sgd_t){.momentum = v[0].f,
                         .dampening = v[1].f,
                         .weight_decay = v[2].f,
                         .nesterov = v[3].i != 0,
                         .maximize = v[4].i != 0};
  return make(host, ctx, &rule, v[5].s, out_table);
}

static aot_status_t create_adam_like(const aot_host_t *host, aot_ctx_t *ctx, const aot_opts_t *opts, const char *id,
                                     int decoupled, const aot_table_t **out_table) {
  const aot_opt_value_t *v = opts->values;
  opt_rule_t rule = {.kind = OPT_RULE_ADAM, .id = id};
  rule.adam = (opt_adam_t){
      .beta1 = v[0].f,
      .beta2 = v[1].f,
      .eps = v[2].f,
      .weight_decay = v[3].f,
      .decoupled = decoupled,
      .amsgrad = v[4].i != 0,
      .maximize = v[5].i != 0,
  };
  return make(host, ctx, &rule, v[6].s, out_table);
}

static aot_status_t create_adam(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                const aot_table_t **out_table) {
  (void)self;
  return create_adam_like(host, ctx, opts, "adam", 0, out_table);
}

static aot_status_t create_adamw(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                 const aot_table_t **out_table) {
  (void)self;
  return create_adam_like(host, ctx, opts, "adamw", 1, out_table);
}

/* ---- options: create reads them by position ---- */

#define NUMBER(opt_name, value, low, high, opt_help)                                                                   \
  {                                                                                                                    \
    .struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,     \
    .name = AOT_STR_INIT(opt_name), .help = AOT_STR_INIT(opt_help), .preset = {.f = (value)}, .min = (low),            \
    .max = (high)                                                                                                      \
  }
#define SWITCH(opt_name, opt_help)                                                                                     \
  {                                                                                                                    \
    .struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .flags = AOT_OPT_AFFECTS_OUTPUT,                        \
    .name = AOT_STR_INIT(opt_name), .help = AOT_STR_INIT(opt_help)                                                     \
  }
#define GROUPS                                                                                                         \
  {                                                                                                                    \
    .struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .flags = AOT_OPT_AFFECTS_OUTPUT,                      \
    .name = AOT_STR_INIT("groups"),                                                                                    \
    .help =                                                                                                            \
        AOT_STR_INIT("options of some parameters, by name: \"*.bias, ln_*: weight-decay=0; head.*: lr-scale=0.1\"")    \
  }
#define ADAM_OPTIONS(decay)                                                                                            \
  {                                                                                                                    \
    NUMBER("beta1", 0.9, 0, 1, "decay of the running mean of gradients"),                                              \
        NUMBER("beta2", 0.999, 0, 1, "decay of the running mean of squared gradients"),                                \
        NUMBER("eps", 1e-8, 0, 1e9, "added to the denominator"),                                                       \
        NUMBER("weight-decay", decay, 0, 1e9, "how strongly parameters are pulled to zero"),                           \
        SWITCH("amsgrad", "divide by the largest running mean of squared gradients so far"),                           \
        SWITCH("maximize", "climb instead of descend"), GROUPS                                                         \
  }

static const aot_option_t sgd_options[] = {
    NUMBER("momentum", 0, 0, 1e9, "share of the last step that is kept"),
    NUMBER("dampening", 0, -1e9, 1e9, "share of the gradient that momentum leaves out"),
    NUMBER("weight-decay", 0, 0, 1e9, "how strongly parameters are pulled to zero"),
    SWITCH("nesterov", "look ahead along the momentum"),
    SWITCH("maximize", "climb instead of descend"),
    GROUPS};
static const aot_option_t adam_options[] = ADAM_OPTIONS(0);
static const aot_option_t adamw_options[] = ADAM_OPTIONS(0.01);

static const aot_str_t creates[] = {
    AOT_STR_INIT("aten.add.Tensor"),           AOT_STR_INIT("aten.add.Scalar"),
    AOT_STR_INIT("aten.mul.Tensor"),           AOT_STR_INIT("aten.mul.Scalar"),
    AOT_STR_INIT("aten.div.Tensor"),           AOT_STR_INIT("aten.rsub.Scalar"),
    AOT_STR_INIT("aten.pow.Scalar"),           AOT_STR_INIT("aten.sqrt.default"),
    AOT_STR_INIT("aten.neg.default"),          AOT_STR_INIT("aten.lerp.Scalar"),
    AOT_STR_INIT("aten.addcmul.default"),      AOT_STR_INIT("aten.maximum.default"),
    AOT_STR_INIT("aten.clamp.default"),        AOT_STR_INIT("aten._to_copy.default"),
    AOT_STR_INIT("aten.view_as_real.default"), AOT_STR_INIT("aten.view_as_complex.default")};
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_PARTITIONED),
    .refuses = AOT_NAMES(AOT_PROP_LOWERED),
    .creates = creates,
    .n_creates = sizeof creates / sizeof *creates,
};

#define UNIT(unit_id, unit_help, unit_options, unit_create)                                                            \
  AOT_UNIT("pass/1", unit_id, AOT_VERSION, unit_help, AOT_OPTIONS(unit_options), .contract = &contract,                \
           .create = unit_create)
static const aot_unit_t sgd_unit = UNIT("sgd", SGD_HELP, sgd_options, create_sgd);
static const aot_unit_t adam_unit = UNIT("adam", ADAM_HELP, adam_options, create_adam);
static const aot_unit_t adamw_unit = UNIT("adamw", ADAMW_HELP, adamw_options, create_adamw);
static const aot_unit_t *const units[] = {&sgd_unit, &adam_unit, &adamw_unit};

AOT_PLUGIN("optimizer", AOT_VERSION, "aothost", "Apache-2.0", units,
           AOT_NOTE_UNIT("pass/1", "sgd", SGD_HELP) "," AOT_NOTE_UNIT("pass/1", "adam",
                                                                      ADAM_HELP) "," AOT_NOTE_UNIT("pass/1", "adamw",
                                                                                                   ADAMW_HELP));
