/* A file that claims to be a plugin becomes host-side copies of its descriptors, or a refusal.
 *
 * Nothing of the plugin is read through a pointer to a type longer than the plugin's own (aot/plugin.h, import by
 * copy). All of it runs in a crash frame (crash.h): a constructor, the entry or a wild pointer in a descriptor is named
 * when it takes the host down. A library stays mapped for good: RTLD_NODELETE, and no dlclose. */
#include <plugin/load.h>

#include <base/exit_status.h>

#include <aot/float_env.h>
#include <aot/inline.h>
#include <dlfcn.h>
#include <process/crash.h>
#include <ir/text/words.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define MAX_STRUCT 65536u
#define MAX_TEXT 65536u
#define MAX_OPTIONS 256u
#define MAX_PROPERTIES 256u

#if defined(__SANITIZE_ADDRESS__)
#define HOST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOST_ASAN 1
#endif
#endif
#ifndef HOST_ASAN
#define HOST_ASAN 0
#endif

typedef struct open_call {
  aoth_registry_t *r;
  aoth_plugin_t *p;
  kit_arena_t *arena;
  const aoth_where_t *where;
  const char *left; /* of the floating-point environment, not as it was; NULL: nothing */
} open_call_t;

static void refuse(open_call_t *o, const char *cure, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void refuse(open_call_t *o, const char *cure, const char *format, ...) {
  kit_text_t t = {0};
  va_list args;
  va_start(args, format);
  kit_text_v(&t, format, args);
  va_end(args);
  o->p->state = AOTH_PLUGIN_REFUSED;
  o->p->why = kit_arena_text(o->arena, t.data ? t.data : "", t.size);
  o->p->cure = cure;
  kit_text_deinit(&t);
}

static const char *const rebuild = "rebuild the plugin against this host's headers, or ask its vendor";

/* ---- import by copy ---- */

/* NULL: dst holds the copy; else what is wrong. */
static const char *import_struct(void *dst, uint32_t size, uint32_t least, const void *src) {
  uint32_t n;
  if (!src) return "is missing";
  memcpy(&n, src, sizeof n);
  if (n < least) return "is smaller than in ABI 1.1";
  if (n > MAX_STRUCT) return "has an invalid size";
  return aot_import(dst, size, src) == AOT_OK
             ? NULL
             : "is larger than this host supports and uses the additional fields: it requires a newer aothost";
}

static int text_is_sane(aot_str_t s) {
  return s.size <= MAX_TEXT && (s.size == 0 || (s.data && !memchr(s.data, 0, (size_t)s.size)));
}

static int same_text(aot_str_t s, const char *text) {
  return s.size == strlen(text) && (s.size == 0 || memcmp(s.data, text, (size_t)s.size) == 0);
}

static const char *check_option(const aot_option_t *opt) {
  if (!text_is_sane(opt->name) || opt->name.size == 0) return "has no name";
  if (!text_is_sane(opt->help) || !text_is_sane(opt->unit)) return "has an invalid string";
  if (opt->kind < AOT_OPT_BOOL || opt->kind > AOT_OPT_BYTES) return "has a kind that this host does not support";
  if (opt->kind == AOT_OPT_ENUM && (opt->n_choices == 0 || opt->n_choices > 256 || !opt->choices))
    return "lists no choices";
  for (uint32_t i = 0; opt->kind == AOT_OPT_ENUM && i < opt->n_choices; i++)
    if (!text_is_sane(opt->choices[i])) return "has an invalid choice";
  const int is_text = opt->kind == AOT_OPT_STRING || opt->kind == AOT_OPT_ENUM || opt->kind == AOT_OPT_PATH;
  if (is_text && !(opt->flags & AOT_OPT_REQUIRED) && !text_is_sane(opt->preset.s)) return "has an invalid default";
  return NULL;
}

static const char *import_options(open_call_t *o, aoth_unit_t *u) {
  if (u->desc.n_options == 0) return NULL;
  if (u->desc.n_options > MAX_OPTIONS || !u->desc.options) return "its option list is invalid";
  const uint64_t stride = u->desc.option_stride;
  if (stride < 8 || stride > MAX_STRUCT) return "its option_stride is not the size of an option";
  aot_option_t *rows = kit_arena_alloc(o->arena, sizeof(void *), (size_t)u->desc.n_options * sizeof *rows);
  if (!rows) return "out of memory for its options";
  for (uint64_t i = 0; i < u->desc.n_options; i++) {
    const char *why = import_struct(&rows[i], sizeof *rows, offsetof(aot_option_t, max) + sizeof(double),
                                    (const char *)u->desc.options + i * stride);
    if (!why && rows[i].struct_size > stride) why = "is larger than the stride";
    if (!why) why = check_option(&rows[i]);
    if (!why) continue;
    kit_text_t t = {0};
    kit_text_f(&t, "its option %llu %s", (unsigned long long)i, why);
    why = kit_arena_text(o->arena, t.data ? t.data : "", t.size);
    kit_text_deinit(&t);
    return why;
  }
  u->options = rows;
  return NULL;
}

/* A name with a dot is a vendor's, which the host need not know; of others it is held to be mistaken. */
static const char *import_properties(open_call_t *o, const aot_names_t *names, aoth_properties_t *out) {
  if (names->n > MAX_PROPERTIES || (names->n && !names->at)) return "has an invalid contract";
  for (uint64_t i = 0; i < names->n; i++) {
    const aot_str_t name = names->at[i];
    if (!text_is_sane(name)) return "has an invalid contract";
    if (aoth_property_find(name) || aoth_is_vendor_name(name)) {
      if (!aoth_properties_union(o->arena, *out, aoth_properties_one(&names->at[i]), out)) return "out of memory";
      continue;
    }
    const char *near = aoth_property_nearest(name);
    kit_text_t t = {0};
    kit_text_f(&t, "its contract has the unknown property '%.*s'", (int)name.size, name.data);
    if (near) kit_text_f(&t, "; did you mean '%s'?", near);
    else kit_text_z(&t, "; prefix a vendor's property with the vendor, e.g. 'vendor.tiled'");
    const char *why = kit_arena_text(o->arena, t.data ? t.data : "", t.size);
    kit_text_deinit(&t);
    return why ? why : "has an invalid contract";
  }
  return NULL;
}

static const char *import_contract(open_call_t *o, aoth_unit_t *u) {
  aot_contract_t c;
  const char *why =
      import_struct(&c, sizeof c, offsetof(aot_contract_t, n_removes) + sizeof(uint64_t), u->desc.contract);
  u->contract = (aoth_contract_t){0};
  if (!why) why = import_properties(o, &c.needs, &u->contract.needs);
  if (!why) why = import_properties(o, &c.gives, &u->contract.gives);
  if (!why) why = import_properties(o, &c.drops, &u->contract.drops);
  if (!why) why = import_properties(o, &c.refuses, &u->contract.refuses);
  if (why) return why;
  u->contract.creates = c.creates;
  u->contract.n_creates = c.n_creates;
  u->contract.removes = c.removes;
  u->contract.n_removes = c.n_removes;
  return NULL;
}

static const char *import_unit(open_call_t *o, aoth_unit_t *u, const aot_unit_t *src) {
  const char *why = import_struct(&u->desc, sizeof u->desc, offsetof(aot_unit_t, create) + sizeof(void *), src);
  if (why) return why;
  if (!text_is_sane(u->desc.kind) || !text_is_sane(u->desc.id) || !text_is_sane(u->desc.version) ||
      !text_is_sane(u->desc.help))
    return "has an invalid string";
  if (!same_text(u->desc.kind, u->kind) || !same_text(u->desc.id, u->id)) return "differs from its note";
  if (!u->desc.create) return "has no create function";
  u->version = kit_arena_text(o->arena, u->desc.version.size ? u->desc.version.data : u->plugin->note.version,
                              u->desc.version.size ? (size_t)u->desc.version.size : strlen(u->plugin->note.version));
  if (u->desc.contract) {
    why = import_contract(o, u);
    if (why) return why;
    u->has_contract = 1;
  }
  return import_options(o, u);
}

static int import_all(open_call_t *o, const aot_plugin_t *src) {
  aoth_plugin_t *p = o->p;
  const char *why = import_struct(&p->desc, sizeof p->desc, offsetof(aot_plugin_t, get_ext) + sizeof(void *), src);
  if (why) {
    refuse(o, rebuild, "its descriptor %s", why);
    return 0;
  }
  if (!text_is_sane(p->desc.id) || !text_is_sane(p->desc.version) || !text_is_sane(p->desc.build_id) ||
      !text_is_sane(p->desc.vendor) || !text_is_sane(p->desc.license) || !text_is_sane(p->desc.url)) {
    refuse(o, rebuild, "its descriptor has an invalid string");
    return 0;
  }
  if (p->desc.abi_epoch != AOT_ABI_EPOCH || p->desc.min_host_minor > AOT_ABI_MINOR) {
    refuse(o, "update aothost, or use a build of the plugin for this version",
           "requires ABI %u.%u; this host provides %u.%u", p->desc.abi_epoch, p->desc.min_host_minor, AOT_ABI_EPOCH,
           AOT_ABI_MINOR);
    return 0;
  }
  if ((p->desc.build_flags & AOT_BUILD_ASAN) && !HOST_ASAN) {
    refuse(o, "build both with AOT_SANITIZE, or neither", "it was built with AddressSanitizer, this host without");
    return 0;
  }
  if (!same_text(p->desc.id, p->note.id) || !same_text(p->desc.version, p->note.version) ||
      p->desc.abi_minor != p->note.minor || p->desc.min_host_minor != p->note.min_host_minor ||
      p->desc.n_units != p->note.n_units || !p->desc.units) {
    refuse(o, "make AOT_PLUGIN_NOTE match the descriptor, and rebuild",
           "its note says %s %s, ABI %u.%u, %u units; its descriptor says %.*s %.*s, ABI %u.%u, %llu units", p->note.id,
           p->note.version, p->note.epoch, p->note.minor, p->note.n_units, (int)p->desc.id.size, p->desc.id.data,
           (int)p->desc.version.size, p->desc.version.data, p->desc.abi_epoch, p->desc.abi_minor,
           (unsigned long long)p->desc.n_units);
    return 0;
  }
  for (uint32_t i = 0; i < p->n_units; i++) {
    why = import_unit(o, &p->units[i], p->desc.units[i]);
    if (!why) continue;
    refuse(o, rebuild, "unit %s: %s", p->units[i].id, why);
    return 0;
  }
  return 1;
}

/* ---- opening ---- */

static const char *cure_of_dlerror(const char *text) {
  if (strstr(text, "cannot open shared object file"))
    return "install the named library, or add its folder to LD_LIBRARY_PATH";
  if (strstr(text, "undefined symbol")) return "relink the plugin with -Wl,-z,defs to find the library that is missing";
  if (strstr(text, "static TLS")) return "rebuild the plugin without -ftls-model=initial-exec";
  return "rebuild the plugin for this system";
}

static int is_locked_out(open_call_t *o) {
  const aoth_lock_t *lock = aoth_registry_lock(o->r);
  char hex[KIT_SHA256_HEX] = "";
  if (!lock || (aoth_file_sha256(o->p->path, hex) && aoth_lock_has(lock, hex))) return 0;
  refuse(o, "if the file is the right one, update the lock with `aothost plugins --lock PIPELINE`",
         "SHA-256 %s is not listed in %s", hex, aoth_lock_path(lock));
  return 1;
}

/* Where the host's own plugins lie only those write who may change the host as well. */
static int is_unsigned(open_call_t *o) {
  const aoth_keys_t *keys = aoth_plugin_is_own(o->p) ? NULL : aoth_registry_keys(o->r);
  const char *why = keys ? aoth_unsigned_why(keys, o->p->path, o->arena) : NULL;
  if (!why) return 0;
  refuse(o, "get the file and its signature from the vendor, or sign the file yourself with `aothost sign`", "%s", why);
  return 1;
}

static void open_framed(open_call_t *o) {
  aoth_plugin_t *p = o->p;
  aot_str_t why = {NULL, 0};
  void *handle = dlopen(p->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) {
    const char *text = dlerror();
    refuse(o, cure_of_dlerror(text ? text : ""), "%s", text ? text : "dlopen failed");
    return;
  }
  const aot_plugin_t *(AOT_CALL * entry)(uint32_t, uint32_t, aot_str_t *);
  void *symbol = dlsym(handle, "aot_plugin_entry");
  if (!symbol) {
    refuse(o, "export aot_plugin_entry (AOT_EXPORT); plugins/template shows a complete plugin",
           "it has a note but no entry function");
    return;
  }
  memcpy(&entry, &symbol, sizeof entry); /* an object pointer, as POSIX has it */
  p->self = entry(AOT_ABI_EPOCH, AOT_ABI_MINOR, &why);
  if (!p->self) {
    const int told = why.size && text_is_sane(why);
    refuse(o, "update aothost or the plugin", "it rejects ABI %u.%u: %.*s", AOT_ABI_EPOCH, AOT_ABI_MINOR,
           told ? (int)why.size : 15, told ? why.data : "no reason given");
    return;
  }
  if (!import_all(o, p->self)) return;
  p->host = aoth_registry_make_host(o->r, o->arena, p->desc.abi_minor);
  if (p->host) p->state = AOTH_PLUGIN_OPEN;
  else refuse(o, "free some memory", "out of memory");
}

static void complain(const open_call_t *o, aoth_sink_t *sink) {
  aoth_sink_report(sink, AOT_SEVERITY_ERROR, o->where, "load.refused", "cannot load plugin %s: %s", o->p->path,
                   o->p->why ? o->p->why : "unknown");
  if (o->p->cure) aoth_sink_line(sink, "hint: %s", o->p->cure);
}

static void tell_crash(void *self, const aoth_crash_t *crash) {
  open_call_t *o = self;
  if (crash->signal)
    refuse(o, "report this to the plugin's vendor", "it died while it was being opened: %s (%s)",
           aoth_signal_name(crash->signal), aoth_signal_text(crash->signal));
  else if (crash->ends_thread)
    refuse(o, "report this to the plugin's vendor", "it ended the loading thread: it called pthread_exit()");
  else
    refuse(o, "report this to the plugin's vendor", "it ended the process while it was being opened: it called exit()");
  complain(o, aoth_crash_sink());
}

static void open_now(open_call_t *o) {
  aoth_plugin_t *p = o->p;
  if (p->note.epoch != AOT_ABI_EPOCH || p->note.min_host_minor > AOT_ABI_MINOR) {
    refuse(o, "update aothost, or use a build of the plugin for this version",
           "requires ABI %u.%u or later; this host provides %u.%u", p->note.epoch, p->note.min_host_minor,
           AOT_ABI_EPOCH, AOT_ABI_MINOR);
    return;
  }
  if (p->note.minor < AOT_ABI_OLDEST_MINOR) {
    refuse(o, "rebuild the plugin", "built for ABI %u.%u; this host supports %u.%u and later", p->note.epoch,
           p->note.minor, AOT_ABI_EPOCH, AOT_ABI_OLDEST_MINOR);
    return;
  }
  if (p->note.needs_asan && !HOST_ASAN) {
    refuse(o, "build both with AOT_SANITIZE, or neither", "it was built with AddressSanitizer, this host without");
    return;
  }
  if (is_locked_out(o) || is_unsigned(o)) return; /* before any of its code runs, in whatever process */
  const aoth_vet_plugin_t vet = aoth_plugin_is_own(p) ? NULL : aoth_registry_vet(o->r);
  if (vet) {
    const char *why = vet(p->path, o->arena);
    if (why) {
      refuse(o, "report this to the plugin's vendor", "%s", why);
      return;
    }
  }
  aoth_registry_debug(o->r, "%s: opening", p->path);
  kit_text_t what = {0};
  kit_text_f(&what, "opening" AOTH_CALL_PLUGIN "%s", p->path);
  const char *kept = kit_arena_text(o->arena, what.data ? what.data : "", what.size);
  kit_text_deinit(&what);
  aoth_crash_frame_t frame = {
      .what = kept ? kept : p->path, .is_own = aoth_plugin_is_own(p), .tell = tell_crash, .self = o};
  const aot_float_env_t before = aot_float_env();
  aoth_crash_enter(&frame);
  open_framed(o);
  aoth_crash_leave(&frame);
  o->left = aot_float_env_change(before, aot_float_env());
  if (o->left) aot_float_env_restore(before);
}

/* Nothing was computed yet, so that results are right: no failure. */
static void warn_of_float_env(const open_call_t *o, aoth_sink_t *sink) {
  aoth_sink_report(sink, AOT_SEVERITY_WARNING, o->where, "load.float-environment",
                   "plugin %s left %s when it was opened; restored", o->p->path, o->left);
  aoth_sink_line(sink, "hint: link it, and the libraries that it brings, without -ffast-math");
}

aot_status_t aoth_plugin_open(aoth_registry_t *r, aoth_plugin_t *p, kit_arena_t *arena, const aoth_where_t *where,
                              aoth_sink_t *sink) {
  open_call_t o = {r, p, arena, where, NULL};
  if (p->state == AOTH_PLUGIN_FOUND) {
    open_now(&o);
    if (o.left) warn_of_float_env(&o, sink);
    if (p->state == AOTH_PLUGIN_REFUSED) aoth_registry_debug(r, "%s: refused: %s", p->path, p->why);
  }
  if (p->state == AOTH_PLUGIN_OPEN) return AOT_OK;
  complain(&o, sink);
  return AOTH_E_PLUGIN;
}
