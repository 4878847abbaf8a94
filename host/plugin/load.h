/* Opening a plugin: dlopen, entry, import by copy, agreement with its note. A refusal names file, cause and cure. */
#ifndef AOTH_LOAD_H
#define AOTH_LOAD_H

#include <plugin/registry.h>

/* Opened once; a refusal stays one and is reported again at each place that wants the plugin. sink NULL: silently.
 * where: what wants it. AOTH_E_PLUGIN: refused. */
aot_status_t aoth_plugin_open(aoth_registry_t *r, aoth_plugin_t *p, kit_arena_t *arena, const aoth_where_t *where,
                              aoth_sink_t *sink);

#endif
