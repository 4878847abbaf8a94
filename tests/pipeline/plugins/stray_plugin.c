/* Opsets that ordinary programs do not need, one a define: STRAY_EXIT and STRAY_CRASH end the process when they are
 * created, STRAY_LOADING when it is loaded, STRAY_FAIL fails, STRAY_LIAR brings another's operator, STRAY_TWICE an
 * operator that aten has. CLAIMS: its note's, none when undefined. */
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/opset.h>
#include <aot/plugin.h>
#include <signal.h>
#include <stdlib.h>

#define HELP "an opset that nobody needs"

static const aot_schema_arg_t args[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR}};
static const aot_schema_arg_t results[] = {{.type = AOT_STYPE_TENSOR}};
#if defined(STRAY_LIAR)
#define OPERATOR "elsewhere.f.default"
#elif defined(STRAY_TWICE)
#define OPERATOR "aten.relu.default"
#else
#define OPERATOR "stray.f.default"
#endif
static const aot_op_desc_t op = {
    .struct_size = sizeof op,
    .name = AOT_STR_INIT(OPERATOR),
    .schema = AOT_STR_INIT("(Tensor x) -> Tensor"),
    .args = args,
    .results = results,
    .n_args = 1,
    .n_results = 1,
};
static const aot_op_desc_t *const ops[] = {&op};

#if defined(STRAY_LOADING)
static void __attribute__((constructor)) too_early(void) { raise(SIGSEGV); }
#endif

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  (void)self;
  static const aot_opset_t table = {.head = {.struct_size = sizeof table}, .ops = ops, .n_ops = 1};
  (void)self, (void)host, (void)ctx, (void)opts;
#if defined(STRAY_EXIT)
  exit(0);
#elif defined(STRAY_CRASH)
  raise(SIGSEGV);
#elif defined(STRAY_FAIL)
  return AOT_E_INTERNAL;
#endif
  *out_table = &table.head;
  return AOT_OK;
}

static const aot_unit_t unit = {
    .struct_size = sizeof unit,
    .kind = AOT_STR_INIT("opset/1"),
    .id = AOT_STR_INIT(ID),
    .version = AOT_STR_INIT("1.0"),
    .help = AOT_STR_INIT(HELP),
    .create = create,
};
static const aot_unit_t *const units[] = {&unit};
static const aot_plugin_t plugin = {
    .struct_size = sizeof plugin,
    .abi_epoch = AOT_ABI_EPOCH,
    .abi_minor = AOT_ABI_MINOR,
    .min_host_minor = 1,
    .id = AOT_STR_INIT(ID),
    .vendor = AOT_STR_INIT("tests"),
    .version = AOT_STR_INIT("1.0"),
    .license = AOT_STR_INIT("Apache-2.0"),
    .units = units,
    .n_units = 1,
};

#ifdef CLAIMS
AOT_PLUGIN_NOTE(AOT_NOTE_HEAD(ID, "1.0") AOT_NOTE_OPSET(ID, HELP, CLAIMS) AOT_NOTE_TAIL);
#else
AOT_PLUGIN_NOTE(AOT_NOTE_HEAD(ID, "1.0") AOT_NOTE_UNIT("opset/1", ID, HELP) AOT_NOTE_TAIL);
#endif

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_epoch, (void)host_minor, (void)why_not;
  return &plugin;
}
