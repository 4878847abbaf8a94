/* What is on the search path: plugins by their notes, units by id. Opens nothing (load.h does).
 *
 * Search order: --plugin-dir, AOT_PLUGIN_PATH, ~/.local/lib/aothost, aothost next to libaothost.so, ../lib/aothost
 * next to the executable, the build's folder (for programs of that build), the installed folder. Never the current
 * folder. The first unit of an id wins. */
#ifndef AOTH_REGISTRY_H
#define AOTH_REGISTRY_H

#include <aot/plugin.h>
#include <plugin/elf_note.h>
#include <base/sink.h>
#include <ir/program.h>
#include <plugin/signature.h>
#include <plugin/trust.h>

typedef struct aoth_unit aoth_unit_t; /* a unit found on the search path */

#define AOTH_PLUGIN_FOUND 0   /* its note was read */
#define AOTH_PLUGIN_OPEN 1    /* opened, its descriptor agrees */
#define AOTH_PLUGIN_REFUSED 2 /* why says the cause */

typedef struct aoth_plugin {
  const char *path; /* absolute */
  const char *from; /* the entry of the search path: "--plugin-dir", "AOT_PLUGIN_PATH", .. */
  int32_t state;
  uint32_t n_units;
  const char *why, *cure; /* REFUSED */
  aoth_note_t note;
  aoth_unit_t *units;
  int is_initialised;
  const aot_plugin_t *self; /* OPEN: the plugin's own descriptor */
  aot_plugin_t desc;        /* OPEN: imported copy */
  aot_host_t *host;         /* OPEN: what this plugin is handed, cut to its minor */
} aoth_plugin_t;

struct aoth_unit {
  aoth_plugin_t *plugin;
  const char *kind, *id, *help;   /* from the note, terminated */
  const char *claims;             /* of an opset, from the note (aot/note.h); NULL: it says nothing */
  const aoth_unit_t *shadowed_by; /* a unit of the same id that comes first; NULL: this one counts */
  int is_hiding_told;             /* that it hides others */
  int is_left_out;                /* an opset that could not be opened where it may not be needed */
  /* once the plugin is OPEN: */
  const char *version;
  aot_unit_t desc;
  const aot_option_t *options; /* desc.n_options imported copies */
  int has_contract;
  aoth_contract_t contract;
};

typedef struct aoth_registry aoth_registry_t;
/* What a plugin of this ABI minor is handed, in the arena; NULL: no memory. bridge.h has it. */
typedef aot_host_t *(*aoth_host_maker_t)(kit_arena_t *arena, uint32_t minor);
/* Reads every note. Complains of --plugin-dir entries that are not there or, when they name a file, no plugin. */
aoth_registry_t *aoth_registry_create(kit_arena_t *arena, const char *const *plugin_dirs, uint32_t n_plugin_dirs,
                                      aoth_sink_t *sink, aoth_host_maker_t make_host);
aot_host_t *aoth_registry_make_host(const aoth_registry_t *r, kit_arena_t *arena, uint32_t minor);
/* From now on only plugins that are in it are opened. Borrowed. */
void aoth_registry_set_lock(aoth_registry_t *r, const aoth_lock_t *lock);
const aoth_lock_t *aoth_registry_lock(const aoth_registry_t *r); /* NULL: none */
/* Called before a plugin that is not the host's own is first opened: why it must not be, in the arena, as a sentence
 * about it ("it ended the process while it was being opened"); NULL: it may be. */
typedef const char *(*aoth_vet_plugin_t)(const char *path, kit_arena_t *arena);
void aoth_registry_set_vet(aoth_registry_t *r, aoth_vet_plugin_t vet); /* NULL: none */
aoth_vet_plugin_t aoth_registry_vet(const aoth_registry_t *r);
/* From now on of plugins that are not the host's own only those that one of these keys has signed. Borrowed. */
void aoth_registry_set_keys(aoth_registry_t *r, const aoth_keys_t *keys);
const aoth_keys_t *aoth_registry_keys(const aoth_registry_t *r); /* NULL: none */
uint32_t aoth_registry_n_plugins(const aoth_registry_t *r);
aoth_plugin_t *aoth_registry_plugin(aoth_registry_t *r,
                                    uint32_t i); /* refused ones and files without a note included */
aoth_unit_t *aoth_registry_find(aoth_registry_t *r, const char *id); /* NULL: none */
/* The id nearest to a slip among units of the kinds ("pass/1 partition/1"; NULL: any), or NULL. */
const char *aoth_registry_nearest(aoth_registry_t *r, const char *id, const char *kinds);
int aoth_plugin_is_own(
    const aoth_plugin_t *p); /* it was found where this build, or this installation, has its plugins */
uint32_t aoth_registry_n_dirs(const aoth_registry_t *r);
const char *aoth_registry_dir(const aoth_registry_t *r, uint32_t i, const char **out_from, const char **out_note);
/* A decision, printed with AOT_LOADER_DEBUG=1. */
void aoth_registry_debug(const aoth_registry_t *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

int aoth_kind_in(const char *kind, const char *kinds); /* is kind one of the space-separated kinds? */
const aot_option_t *aoth_unit_option(const aoth_unit_t *unit, uint32_t i);
const char *aoth_property_names(aoth_properties_t properties, kit_arena_t *arena); /* "functional, joint" */
#define AOTH_STAGE_KINDS "pass/1 partition/1 backend/2"

#endif
