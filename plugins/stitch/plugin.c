/* stitch: the unit of that name. The only file here that sees the plugin boundary. */
#include "stitch.h"

#include <aot/inline.h>
#include <aot/note.h>
#include <aot/pass.h>
#include <stdlib.h>

#define HELP "makes one graph of forward, backward and update: a whole training step"

typedef struct unit {
  aot_pass_t table;
  aot_host_t host;
  st_options_t options;
} unit_t;

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const unit_t *u = p->head.self;
  return st_stitch(&u->host, ctx, prog, &u->options);
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
  u->options = (st_options_t){
      .loss = (uint32_t)opts->values[0].i, .accumulate = opts->values[1].i, .clip_norm = opts->values[2].f};
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
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
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_PARTITIONED),
    .gives = AOT_NAMES(AOT_PROP_STITCHED),
    .drops = AOT_NAMES(AOT_PROP_PARTITIONED, AOT_PROP_HOOKED),
    .refuses = AOT_NAMES(AOT_PROP_LOWERED),
};
static const aot_unit_t unit = {
    .struct_size = sizeof(aot_unit_t),
    .kind = AOT_STR_INIT("pass/1"),
    .id = AOT_STR_INIT("stitch"),
    .version = AOT_STR_INIT(AOT_VERSION),
    .help = AOT_STR_INIT(HELP),
    .options = options,
    .n_options = sizeof options / sizeof *options,
    .option_stride = sizeof *options,
    .contract = &contract,
    .create = create,
};
static const aot_unit_t *const units[] = {&unit};
static const aot_plugin_t plugin = {
    .struct_size = sizeof(aot_plugin_t),
    .abi_epoch = AOT_ABI_EPOCH,
    .abi_minor = AOT_ABI_MINOR,
    .min_host_minor = 1,
    .id = AOT_STR_INIT("stitch"),
    .vendor = AOT_STR_INIT("aothost"),
    .version = AOT_STR_INIT(AOT_VERSION),
    .license = AOT_STR_INIT("Apache-2.0"),
    .units = units,
    .n_units = 1,
};

AOT_PLUGIN_NOTE(AOT_NOTE_HEAD("stitch", AOT_VERSION) AOT_NOTE_UNIT("pass/1", "stitch", HELP) AOT_NOTE_TAIL);

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_minor;
  if (host_epoch == AOT_ABI_EPOCH) return &plugin;
  *why_not = aot_str("made for ABI epoch 1");
  return NULL;
}
