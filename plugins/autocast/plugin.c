/* autocast: the unit of that name. The only file here that sees the plugin boundary. */
#include "autocast.h"

#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/pass.h>
#include <stdlib.h>

#define HELP "mixed precision: casts by PyTorch's lists of operators, around float32 parameters"

typedef struct unit {
  aot_pass_t table;
  aot_host_t host;
  ac_options_t options;
} unit_t;

static const aot_str_t dtypes[] = {AOT_STR_INIT("bf16"), AOT_STR_INIT("f16")};
static const aot_str_t devices[] = {AOT_STR_INIT("cpu"), AOT_STR_INIT("cuda")};

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const unit_t *u = p->head.self;
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  ac_counts_t n = {0};
  AOT_TRY(ac_run(&u->host, ctx, prog, &u->options, &n));
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("low-precision-nodes"), (double)n.lower, aot_str("nodes")));
  AOT_TRY(r->number(r, ctx, aot_str("float32-nodes"), (double)n.f32, aot_str("nodes")));
  return r->number(r, ctx, aot_str("casts"), (double)n.casts, aot_str("nodes"));
}

static void destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = calloc(1, sizeof *u);
  (void)self, (void)ctx;
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) {
    free(u);
    return AOT_E_EXHAUSTED;
  }
  u->options = (ac_options_t){.dtype = aot_str_eq(opts->values[0].s, dtypes[0]) ? AOT_BF16 : AOT_F16,
                              .device = aot_str_eq(opts->values[1].s, devices[0]) ? AOT_DEVICE_CPU : AOT_DEVICE_CUDA};
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
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
static const aot_unit_t unit = {.struct_size = sizeof(aot_unit_t),
                                .kind = AOT_STR_INIT("pass/1"),
                                .id = AOT_STR_INIT("autocast"),
                                .version = AOT_STR_INIT(AOT_VERSION),
                                .help = AOT_STR_INIT(HELP),
                                .options = options,
                                .n_options = sizeof options / sizeof *options,
                                .option_stride = sizeof *options,
                                .contract = &contract,
                                .create = create};
static const aot_unit_t *const units[] = {&unit};
static const aot_plugin_t plugin = {.struct_size = sizeof(aot_plugin_t),
                                    .abi_epoch = AOT_ABI_EPOCH,
                                    .abi_minor = AOT_ABI_MINOR,
                                    .min_host_minor = 3,
                                    .id = AOT_STR_INIT("autocast"),
                                    .vendor = AOT_STR_INIT("aothost"),
                                    .version = AOT_STR_INIT(AOT_VERSION),
                                    .license = AOT_STR_INIT("Apache-2.0"),
                                    .units = units,
                                    .n_units = 1};

AOT_PLUGIN_NOTE(AOT_NOTE_HEAD_FOR("autocast", AOT_VERSION, 3) AOT_NOTE_UNIT("pass/1", "autocast", HELP) AOT_NOTE_TAIL);

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_minor;
  if (host_epoch == AOT_ABI_EPOCH) return &plugin;
  *why_not = aot_str("made for ABI epoch 1");
  return NULL;
}
