/* aot/plugin.h - the entry of a plugin and the units it holds.
 *
 * A plugin exports one function for ever, aot_plugin_entry. It does nothing but choose and return a constant
 * descriptor, or NULL with a sentence in *why_not. All structs of this SDK that carry struct_size are imported by copy:
 * min(n, own size) bytes into an own zeroed struct; a longer struct with a non-zero tail is refused (aot/inline.h
 * does it). */
#ifndef AOT_PLUGIN_H
#define AOT_PLUGIN_H

#include <aot/base.h>
#include <aot/contract.h>
#include <aot/host.h>
#include <aot/option.h>
#include <aot/status.h>

#define AOT_UNIT_NEEDS_DEVICE 1u

#define AOT_BUILD_ASAN 1u /* build_flags: built with AddressSanitizer; must match the host */
#define AOT_BUILD_DEBUG 2u

/* One replaceable part. Constant; readable without creating anything. */
typedef struct aot_unit {
  uint32_t struct_size, flags; /* AOT_UNIT_* */
  aot_str_t kind;              /* "import/1" "opset/1" "pass/1" "partition/1" "backend/2" */
  aot_str_t id;                /* what users type: "functionalize" */
  aot_str_t version;
  aot_str_t help; /* one sentence */
  const aot_option_t *options;
  uint64_t n_options, option_stride; /* stride: the plugin's sizeof(aot_option_t) */
  const aot_contract_t *contract;    /* NULL for opsets and importers */
  /* Makes the unit: *out_table is the head of an aot_pass_t, aot_opset_t, .. that lives until its destroy(). [host-
   * main] */
  aot_status_t(AOT_CALL *create)(const struct aot_unit *unit, aot_ctx_t *ctx, const aot_host_t *host,
                                 const aot_opts_t *opts, const aot_table_t **out_table);
} aot_unit_t;

typedef struct aot_plugin {
  uint32_t struct_size, abi_epoch, abi_minor, min_host_minor;
  uint64_t build_flags; /* AOT_BUILD_* */
  aot_str_t id, vendor, version, license, build_id, url;
  const aot_unit_t *const *units; /* n_units pointers */
  uint64_t n_units;
  /* [host-main] tolerates repeats; may be NULL */
  aot_status_t(AOT_CALL *init)(const struct aot_plugin *p, const aot_host_t *host);
  void(AOT_CALL *shutdown)(const struct aot_plugin *p);                        /* [host-main] may be NULL */
  const void *(AOT_CALL *get_ext)(const struct aot_plugin *p, const char *id); /* [any-thread] may be NULL */
} aot_plugin_t;

#ifdef __cplusplus
extern "C" {
#endif
AOT_EXPORT const aot_plugin_t *AOT_CALL aot_plugin_entry(uint32_t host_epoch, uint32_t host_minor, aot_str_t *why_not);
#ifdef __cplusplus
}
#endif

#endif
