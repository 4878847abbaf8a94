/* Files that are almost plugins, one a define: BAD_NO_ENTRY, BAD_NO_NOTE, BAD_NEWER, BAD_OLDER, BAD_WRONG_NOTE,
 * BAD_UNITS, BAD_LONG, BAD_SHORT, BAD_DECLINES, BAD_ENTRY_CRASH, BAD_CONSTRUCTOR, BAD_OPTION, BAD_PROPERTY,
 * BAD_LIBRARY, BAD_ASAN, BAD_JSON. Each is found by its id, bad-NAME, and must be refused with file, cause and cure. */
#include <aot/inline.h>
#include <aot/note.h>
#include <aot/pass.h>
#include <aot/plugin.h>
#include <signal.h>

#ifdef BAD_LIBRARY
int gone(void); /* of a library that is not there at run time */
#endif

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  (void)self, (void)host, (void)ctx, (void)opts, (void)out_table;
#ifdef BAD_LIBRARY
  return gone();
#else
  return AOT_E_INTERNAL;
#endif
}

#ifdef BAD_OPTION
static const aot_option_t options[] = {{.struct_size = sizeof(aot_option_t), .kind = 99, .name = AOT_STR_INIT("odd")}};
#define N_OPTIONS 1
#else
static const aot_option_t options[1];
#define N_OPTIONS 0
#endif

static const aot_contract_t contract = {
    .struct_size = sizeof contract,
#ifdef BAD_PROPERTY
    .needs = AOT_NAMES(AOT_PROP_IMPORTED, AOT_STR_INIT("functionall")),
#endif
    .refuses = AOT_NAMES(AOT_PROP_LOWERED),
};

static const aot_unit_t unit = {
    .struct_size = sizeof(aot_unit_t),
    .kind = AOT_STR_INIT("pass/1"),
    .id = AOT_STR_INIT("bad-" BAD_NAME),
    .version = AOT_STR_INIT("1"),
    .help = AOT_STR_INIT("bad"),
    .options = options,
    .n_options = N_OPTIONS,
    .option_stride = sizeof *options,
    .contract = &contract,
    .create = create,
};
static const aot_unit_t *const units[] = {&unit};

/* A descriptor of a later minor: members follow that this host does not know. */
typedef struct longer {
  aot_plugin_t base;
  uint64_t more[4];
} longer_t;

static const longer_t plugin = {
    .base =
        {
#if defined(BAD_LONG)
            .struct_size = sizeof(longer_t),
#elif defined(BAD_SHORT)
            .struct_size = 24,
#else
            .struct_size = sizeof(aot_plugin_t),
#endif
            .abi_epoch = AOT_ABI_EPOCH,
            .abi_minor = AOT_ABI_MINOR,
            .min_host_minor = AOT_PLUGIN_LEAST_MINOR,
#ifdef BAD_ASAN
            .build_flags = AOT_BUILD_ASAN,
#endif
            .id = AOT_STR_INIT("bad-" BAD_NAME),
            .version = AOT_STR_INIT("1"),
            .units = units,
            .n_units = 1},
    .more = {0, 0, 0, 42},
};

#define UNIT_NOTE AOT_NOTE_UNIT("pass/1", "bad-" BAD_NAME, "bad")
#if defined(BAD_NEWER)
AOT_PLUGIN_NOTE(
    "{\"id\":\"bad-" BAD_NAME
    "\",\"version\":\"1\",\"epoch\":1,\"minor\":9,\"min_host_minor\":9,\"units\":[" UNIT_NOTE AOT_NOTE_TAIL);
#elif defined(BAD_OLDER)
AOT_PLUGIN_NOTE(
    "{\"id\":\"bad-" BAD_NAME
    "\",\"version\":\"1\",\"epoch\":1,\"minor\":2,\"min_host_minor\":1,\"units\":[" UNIT_NOTE AOT_NOTE_TAIL);
#elif defined(BAD_WRONG_NOTE)
AOT_PLUGIN_NOTE(AOT_NOTE_HEAD("bad-" BAD_NAME, "2") UNIT_NOTE AOT_NOTE_TAIL);
#elif defined(BAD_UNITS)
AOT_PLUGIN_NOTE(AOT_NOTE_HEAD("bad-" BAD_NAME, "1") UNIT_NOTE "," AOT_NOTE_UNIT("pass/1", "bad-other", "bad")
                    AOT_NOTE_TAIL);
#elif defined(BAD_JSON)
AOT_PLUGIN_NOTE("{\"id\": \"bad-" BAD_NAME "\", ");
#elif !defined(BAD_NO_NOTE)
AOT_PLUGIN_NOTE(AOT_NOTE_HEAD("bad-" BAD_NAME, "1") UNIT_NOTE AOT_NOTE_TAIL);
#endif

#ifdef BAD_CONSTRUCTOR
static void __attribute__((constructor)) too_early(void) { raise(SIGSEGV); }
#endif

#ifdef BAD_NO_ENTRY
AOT_EXPORT const aot_plugin_t *AOT_CALL aot_plugin_entrance(void);
const aot_plugin_t *aot_plugin_entrance(void) { return &plugin.base; }
#else
const aot_plugin_t *aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not) {
  (void)host_epoch, (void)host_minor, (void)why_not;
#ifdef BAD_ENTRY_CRASH
  raise(SIGSEGV);
#endif
#ifdef BAD_DECLINES
  *why_not = aot_str("the moon is in the wrong house");
  return host_epoch == 0 ? &plugin.base : NULL;
#else
  return &plugin.base;
#endif
}
#endif
