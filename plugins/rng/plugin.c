/* rng: the only file here that sees the plugin boundary. */
#include "rng_stage.h"

#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/pass.h>
#include <aot/plugin.h>
#include <stdlib.h>

#define ID "rng"
#define HELP "makes every random number an explicit Philox draw from a seed and an offset"

typedef struct unit {
  aot_pass_t table;
  aot_host_t host;
} unit_t;

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const unit_t *u = p->head.self;
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  rg_counts_t n = {0};
  AOT_TRY(rg_make_explicit(&u->host, ctx, prog, &n));
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("random-operators"), n.nodes, aot_str("nodes")));
  return r->number(r, ctx, aot_str("draws"), (double)n.draws, aot_str(""));
}

static void destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  (void)self;
  unit_t *u = calloc(1, sizeof *u);
  (void)self, (void)opts;
  if (!u) {
    const aot_diag_t d = {
        .struct_size = sizeof d,
        .severity = AOT_SEVERITY_ERROR,
        .code = aot_str(ID ".no-memory"),
        .message = aot_str("no memory for the unit"),
        .node = aot_no_node(),
        .value = aot_no_value(),
    };
    host->diag(host, ctx, &d);
    return AOT_E_EXHAUSTED;
  }
  if (aot_import(&u->host, sizeof u->host, host) != AOT_OK) {
    free(u);
    return AOT_E_TOO_NEW;
  }
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .gives = AOT_NAMES(AOT_PROP_RNG_EXPLICIT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED, AOT_PROP_LOWERED),
};
static const aot_unit_t unit = {
    .struct_size = sizeof(aot_unit_t),
    .kind = AOT_STR_INIT("pass/1"),
    .id = AOT_STR_INIT(ID),
    .version = AOT_STR_INIT(AOT_VERSION),
    .help = AOT_STR_INIT(HELP),
    .option_stride = sizeof(aot_option_t),
    .contract = &contract,
    .create = create,
};
static const aot_unit_t *const units[] = {&unit};
static const aot_plugin_t plugin = {
    .struct_size = sizeof(aot_plugin_t),
    .abi_epoch = AOT_ABI_EPOCH,
    .abi_minor = AOT_ABI_MINOR,
    .min_host_minor = 1,
    .id = AOT_STR_INIT(ID),
    .vendor = AOT_STR_INIT("aothost"),
    .version = AOT_STR_INIT(AOT_VERSION),
    .license = AOT_STR_INIT("Apache-2.0"),
    .units = units,
    .n_units = 1,
};

AOT_PLUGIN_NOTE(AOT_NOTE_HEAD(ID, AOT_VERSION) AOT_NOTE_UNIT("pass/1", ID, HELP) AOT_NOTE_TAIL);

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_minor;
  if (host_epoch == AOT_ABI_EPOCH) return &plugin;
  *why_not = aot_str("made for ABI epoch 1");
  return NULL;
}
