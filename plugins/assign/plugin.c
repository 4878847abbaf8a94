/* assign: the unit of that name. The only file here that sees the plugin boundary. */
#include "assign.h"

#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <string.h>

#define HELP "partitions a program among several backends: one subgraph per backend segment, and calls to them"

typedef struct assign_unit {
  aot_pass_t table;
  aot_host_t host;
  as_options_t options;
  char texts[]; /* of the options */
} assign_unit_t;

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const assign_unit_t *u = p->head.self;
  return as_assign(&u->host, ctx, prog, &u->options);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  const aot_str_t devices = opts->values[1].s, withheld = opts->values[4].s;
  assign_unit_t *u =
      host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u + devices.size + withheld.size + 1);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  if (devices.size) memcpy(u->texts, devices.data, (size_t)devices.size);
  if (withheld.size) memcpy(u->texts + devices.size, withheld.data, (size_t)withheld.size);
  u->options = (as_options_t){.least_nodes = (uint32_t)opts->values[0].i,
                              .devices = {u->texts, devices.size},
                              .withheld = {u->texts + devices.size, withheld.size},
                              .move_delay = (uint64_t)opts->values[2].i,
                              .move_rate = (uint64_t)opts->values[3].i};
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("min-nodes"),
     .help = AOT_STR_INIT("nodes that compute, views left out: with fewer a part goes to the next backend"), .preset = {.i = 1},
     .min = 0, .max = 1000000},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .flags = AOT_OPT_AFFECTS_OUTPUT, .name = AOT_STR_INIT("devices"),
     .help = AOT_STR_INIT("where the backends run, in their order, between commas; empty: where the run does. A pipeline says it itself"),
     .preset = {.s = AOT_STR_INIT("")}},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("move-delay"), .help = AOT_STR_INIT("nanoseconds that a value takes from device to device, beside its bytes"),
     .preset = {.i = 20000}, .min = 0, .max = 1000000000},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("move-rate"), .help = AOT_STR_INIT("bytes that go from device to device in a microsecond"),
     .preset = {.i = 10000}, .min = 1, .max = 1000000000},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING, .flags = AOT_OPT_AFFECTS_OUTPUT, .name = AOT_STR_INIT("withhold"),
     .help = AOT_STR_INIT("operators that a backend is not given: NAME=OPERATOR,OPERATOR;NAME=.."), .preset = {.s = AOT_STR_INIT("")}},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .refuses = AOT_NAMES(AOT_PROP_JOINT, AOT_PROP_LOWERED),
};
AOT_PLUGIN_ONE("pass/1", "assign", AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
