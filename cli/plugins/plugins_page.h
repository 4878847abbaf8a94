/* What is installed, as a page: every unit with its plugin, contract and options; what was left out and why. */
#ifndef AOTH_PLUGINS_PAGE_H
#define AOTH_PLUGINS_PAGE_H

#include "kit/base/text.h"
#include <config/pipeline.h>
#include <plugin/registry.h>

/* units: in the order in which they are to are. Plugins are loaded for it, as `plugins ID` does; one that cannot be
 * has no more than its note says, and is reported to the sink: then its status is answered. */
aot_status_t aoth_plugins_html(aoth_registry_t *r, const aoth_unit_t *const *units, uint32_t n, kit_arena_t *arena,
                               aoth_sink_t *sink, kit_text_t *out);

#endif
