/* stitch: plugin descriptor and options. The only file here at the plugin boundary. */
#include "stitch.h"

#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/pass.h>

#define HELP "merges forward, backward and update into one step graph"

typedef struct stitch_unit {
  aot_pass_t table;
  aot_host_t host;
  st_options_t options;
} stitch_unit_t;

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const stitch_unit_t *u = p->head.self;
  return st_stitch(&u->host, ctx, prog, &u->options);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  stitch_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->options = (st_options_t){
      .loss = (uint32_t)opts->values[0].i,
      .accumulate = opts->values[1].i,
      .clip_norm = opts->values[2].f,
      .scaling = {.first = opts->values[3].f,
                  .growth = opts->values[4].f,
                  .backoff = opts->values[5].f,
                  .interval = opts->values[6].i},
      .check_finite = opts->values[7].i != 0,
  };
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("loss"),
     .help = AOT_STR_INIT("number of the user output that is minimised"), .preset = {.i = 0}, .min = 0, .max = 65535},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("accumulate"),
     .help = AOT_STR_INIT("micro steps whose gradients are added up for one update"), .preset = {.i = 1}, .min = 1,
     .max = 1000000},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("clip-norm"),
     .help = AOT_STR_INIT("the most that the norm of all gradients together may be; 0: any"), .preset = {.f = 0},
     .min = 0, .max = 1e9},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("loss-scale"),
     .help = AOT_STR_INIT("what the loss is multiplied by at first, and the gradients divided by; 0: nothing"),
     .preset = {.f = 0}, .min = 0, .max = 1e38},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("growth-factor"), .help = AOT_STR_INIT("of the scale, after growth-interval finite steps"),
     .preset = {.f = 2}, .min = 1, .max = 1e9},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_F64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("backoff-factor"),
     .help = AOT_STR_INIT("of the scale, after a step with a gradient that is not finite, which is not taken"),
     .preset = {.f = 0.5}, .min = 1e-9, .max = 1},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("growth-interval"), .help = AOT_STR_INIT("finite steps in a row before the scale grows"),
     .preset = {.i = 2000}, .min = 1, .max = 1e15},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .flags = AOT_OPT_AFFECTS_OUTPUT,
     .name = AOT_STR_INIT("check-finite"),
     .help = AOT_STR_INIT("without loss-scale: a step with a gradient that is not finite is not taken, and a leaf says "
                          "whose gradient it was"), .preset = {.i = 0}},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_PARTITIONED),
    .gives = AOT_NAMES(AOT_PROP_STITCHED),
    .drops = AOT_NAMES(AOT_PROP_PARTITIONED, AOT_PROP_HOOKED),
    .refuses = AOT_NAMES(AOT_PROP_LOWERED),
};

AOT_PLUGIN_ONE("pass/1", "stitch", AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
