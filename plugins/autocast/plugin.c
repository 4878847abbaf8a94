/* autocast: the unit of that name. The only file here that sees the plugin boundary. */
#include "autocast.h"

#include <aot/describe.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>

#define HELP "mixed precision: inserts casts by PyTorch's autocast operator lists; parameters stay float32"

typedef struct autocast_unit {
  aot_pass_t table;
  aot_host_t host;
  ac_options_t options;
} autocast_unit_t;

static const aot_str_t dtypes[] = {AOT_STR_INIT("bf16"), AOT_STR_INIT("f16")};
static const aot_str_t devices[] = {AOT_STR_INIT("cpu"), AOT_STR_INIT("cuda")};

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const autocast_unit_t *u = p->head.self;
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  ac_counts_t n = {0};
  AOT_TRY(ac_run(&u->host, ctx, prog, &u->options, &n));
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("low-precision-nodes"), (double)n.lower, aot_str("nodes")));
  AOT_TRY(r->number(r, ctx, aot_str("float32-nodes"), (double)n.f32, aot_str("nodes")));
  return r->number(r, ctx, aot_str("casts"), (double)n.casts, aot_str("nodes"));
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  autocast_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->options = (ac_options_t){.dtype = aot_str_eq(opts->values[0].s, dtypes[0]) ? AOT_BF16 : AOT_F16,
                              .device = aot_str_eq(opts->values[1].s, devices[0]) ? AOT_DEVICE_CPU : AOT_DEVICE_CUDA};
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t),
     .kind = AOT_OPT_ENUM,
     .flags = AOT_OPT_AFFECTS_OUTPUT,
     .name = AOT_STR_INIT("dtype"),
     .help = AOT_STR_INIT("the low precision"),
     .n_choices = 2,
     .choices = dtypes,
     .preset = {.s = AOT_STR_INIT("bf16")}},
    {.struct_size = sizeof(aot_option_t),
     .kind = AOT_OPT_ENUM,
     .flags = AOT_OPT_AFFECTS_OUTPUT,
     .name = AOT_STR_INIT("device"),
     .help = AOT_STR_INIT("whose lists of operators count"),
     .n_choices = 2,
     .choices = devices,
     .preset = {.s = AOT_STR_INIT("cpu")}},
};
static const aot_contract_t contract = {.struct_size = sizeof(aot_contract_t),
                                        .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
                                        .refuses = AOT_NAMES(AOT_PROP_JOINT, AOT_PROP_PARTITIONED)};

AOT_PLUGIN_ONE("pass/1", "autocast", AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
