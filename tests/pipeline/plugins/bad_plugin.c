/* Files that are almost plugins, one a define: BAD_NO_ENTRY, BAD_NO_NOTE, BAD_NEWER, BAD_OLDER, BAD_WRONG_NOTE,
 * BAD_UNITS, BAD_LONG, BAD_SHORT, BAD_DECLINES, BAD_ENTRY_CRASH, BAD_CONSTRUCTOR, BAD_OPTION, BAD_PROPERTY,
 * BAD_LIBRARY, BAD_ASAN, BAD_JSON, BAD_MUTE, BAD_UNIT_LONG, BAD_UNIT_SHORT, BAD_OPTION_LONG, BAD_OPTION_SHORT,
 * BAD_CONTRACT_LONG, BAD_CONTRACT_SHORT, BAD_PRESET. Each is found by its id, bad-NAME, and must be refused with file,
 * cause and cure. */
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

/* Structs of a later minor: members follow that this host does not know, and one of them is set. */
#define LONGER(type, name)                                                                                             \
  typedef struct longer_##name {                                                                                       \
    type base;                                                                                                         \
    uint64_t more[4];                                                                                                  \
  } longer_##name##_t
LONGER(aot_plugin_t, plugin);
LONGER(aot_unit_t, unit);
LONGER(aot_option_t, option);
LONGER(aot_contract_t, contract);
#define MORE .more = {0, 0, 0, 42}

/* What a struct says of its size. */
#if defined(BAD_OPTION_LONG)
#define OPTION_SIZE sizeof(longer_option_t)
#elif defined(BAD_OPTION_SHORT)
#define OPTION_SIZE 16
#else
#define OPTION_SIZE sizeof(aot_option_t)
#endif
#if defined(BAD_UNIT_LONG)
#define UNIT_SIZE sizeof(longer_unit_t)
#elif defined(BAD_UNIT_SHORT)
#define UNIT_SIZE 24
#else
#define UNIT_SIZE sizeof(aot_unit_t)
#endif
#if defined(BAD_CONTRACT_LONG)
#define CONTRACT_SIZE sizeof(longer_contract_t)
#elif defined(BAD_CONTRACT_SHORT)
#define CONTRACT_SIZE 24
#else
#define CONTRACT_SIZE sizeof(aot_contract_t)
#endif

#if defined(BAD_PRESET) || defined(BAD_OPTION) || defined(BAD_OPTION_LONG) || defined(BAD_OPTION_SHORT)
#define N_OPTIONS 1
#else
#define N_OPTIONS 0
#endif
#ifdef BAD_PRESET
#define PRESET 9
#else
#define PRESET 3
#endif
static const longer_option_t options[] = {{.base = {.struct_size = OPTION_SIZE,
#ifdef BAD_OPTION
                                                    .kind = 99,
#else
                                                    .kind = AOT_OPT_I64,
                                                    .flags = AOT_OPT_HAS_RANGE,
                                                    .preset = {.i = PRESET},
                                                    .min = 1,
                                                    .max = 4,
#endif
                                                    .name = AOT_STR_INIT("odd"),
                                                    .help = AOT_STR_INIT("from 1 to 4")},
                                           MORE}};

static const longer_contract_t contract = {.base =
                                               {
                                                   .struct_size = CONTRACT_SIZE,
#ifdef BAD_PROPERTY
                                                   .needs = AOT_NAMES(AOT_PROP_IMPORTED, AOT_STR_INIT("functionall")),
#endif
                                                   .refuses = AOT_NAMES(AOT_PROP_LOWERED),
                                               },
                                           MORE};

static const longer_unit_t unit = {.base =
                                       {
                                           .struct_size = UNIT_SIZE,
                                           .kind = AOT_STR_INIT("pass/1"),
                                           .id = AOT_STR_INIT("bad-" BAD_NAME),
                                           .version = AOT_STR_INIT("1"),
                                           .help = AOT_STR_INIT("bad"),
                                           .options = &options[0].base,
                                           .n_options = N_OPTIONS,
                                           .option_stride = sizeof *options,
                                           .contract = &contract.base,
                                           .create = create,
                                       },
                                   MORE};
static const aot_unit_t *const units[] = {&unit.base};

static const longer_plugin_t plugin = {
    .base =
        {
#if defined(BAD_LONG)
            .struct_size = sizeof(longer_plugin_t),
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
    MORE,
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
#if defined(BAD_DECLINES)
  *why_not = aot_str("the moon is in the wrong house");
  return host_epoch == 0 ? &plugin.base : NULL;
#elif defined(BAD_MUTE)
  return host_epoch == 0 ? &plugin.base : NULL;
#else
  return &plugin.base;
#endif
}
#endif
