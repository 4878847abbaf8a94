/* A plugin whose entry answers another descriptor each time it is queried: rule 101. */
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/pass.h>
#include <aot/plugin.h>

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  (void)self, (void)ctx, (void)host, (void)opts, (void)out_table;
  return AOT_E_UNIMPLEMENTED;
}

static const aot_unit_t unit = {
    .struct_size = sizeof unit,
    .kind = AOT_STR_INIT("pass/1"),
    .id = AOT_STR_INIT("wrong.entry"),
    .version = AOT_STR_INIT("0.1"),
    .help = AOT_STR_INIT("is never the same"),
    .create = create,
};
static const aot_unit_t *const units[] = {&unit};
#define DESCRIPTOR                                                                                                     \
  {                                                                                                                    \
    .struct_size = sizeof(aot_plugin_t), .abi_epoch = AOT_ABI_EPOCH, .abi_minor = AOT_ABI_MINOR,                       \
    .min_host_minor = AOT_PLUGIN_LEAST_MINOR, .id = AOT_STR_INIT("wrong-entry"), .version = AOT_STR_INIT("0.1"),       \
    .units = units, .n_units = 1                                                                                       \
  }
static const aot_plugin_t plugins[] = {DESCRIPTOR, DESCRIPTOR};

AOT_PLUGIN_NOTE(AOT_NOTE_HEAD("wrong-entry", "0.1") AOT_NOTE_UNIT("pass/1", "wrong.entry", "is never the same")
                    AOT_NOTE_TAIL);

const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  static int n;
  (void)host_epoch, (void)host_minor, (void)why_not;
  return &plugins[n++ % 2];
}
