/* aot/note.h - the ELF note that says what a plugin holds, readable without loading it.
 *
 * Section .note.aot.plugin, owner "AOT", type 1, description: JSON text
 *   {"id":"aten","version":"0.1.0","epoch":1,"minor":4,"min_host_minor":4,
 *    "units":[{"kind":"opset/1","id":"aten","help":"...","claims":"* aten prims"}]}
 * It survives strip and --gc-sections. Host and descriptor must agree with it, or the plugin is refused. Write it once,
 * at the end of plugin.c: AOT_PLUGIN_NOTE("{...}") with string literals, so that it needs nothing but this header.
 *
 * An opset claims the namespaces of its operators and kernels: "mylib" for mylib::scale, several with blanks between
 * them. It is opened where a program has an operator of one of them, or where a stage of its plugin is used; "*" among
 * them: always. One that claims "" is opened by its id alone. One that says nothing is opened where a program has a
 * namespace that nobody claims. */
#ifndef AOT_NOTE_H
#define AOT_NOTE_H

#include <aot/base.h>

#define AOT_NOTE_SECTION ".note.aot.plugin"
#define AOT_NOTE_TYPE 1u

#define AOT_NOTE_TEXT_(x) #x
#define AOT_NOTE_TEXT(x) AOT_NOTE_TEXT_(x)
/* Hosts of an earlier minor cannot load the plugin. One that needs a member that came later says so before it includes
 * this. */
#ifndef AOT_PLUGIN_LEAST_MINOR
#define AOT_PLUGIN_LEAST_MINOR AOT_ABI_OLDEST_MINOR
#endif

/* The head of the JSON text, up to the units; id and version are string literals. */
#define AOT_NOTE_HEAD(id, version)                                                                                     \
  "{\"id\":\"" id "\",\"version\":\"" version                                                                          \
  "\",\"epoch\":" AOT_NOTE_TEXT(AOT_ABI_EPOCH) ",\"minor\":" AOT_NOTE_TEXT(                                            \
      AOT_ABI_MINOR) ",\"min_host_minor\":" AOT_NOTE_TEXT(AOT_PLUGIN_LEAST_MINOR) ",\"units\":["
#define AOT_NOTE_UNIT(kind, id, help) "{\"kind\":\"" kind "\",\"id\":\"" id "\",\"help\":\"" help "\"}"
#define AOT_NOTE_OPSET(id, help, claims)                                                                               \
  "{\"kind\":\"opset/1\",\"id\":\"" id "\",\"help\":\"" help "\",\"claims\":\"" claims "\"}"
#define AOT_NOTE_TAIL "]}"

#define AOT_PLUGIN_NOTE(json)                                                                                          \
  static const struct {                                                                                                \
    uint32_t name_size, desc_size, type;                                                                               \
    char name[4];                                                                                                      \
    char desc[sizeof(json)];                                                                                           \
  } aot_plugin_note __attribute__((section(AOT_NOTE_SECTION), used, aligned(4))) = {4u, (uint32_t)sizeof(json),        \
                                                                                    AOT_NOTE_TYPE, "AOT", json}

#endif
