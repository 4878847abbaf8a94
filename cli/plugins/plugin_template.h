/* A new plugin's folder: the template of its kind, copied, with the new name in the place of the template's.
 *
 *     templates/KIND/     a plugin that builds as it is; its name is what CMakeLists.txt gives to aot_add_plugin
 *     NAME/               the same files. "example.save-heavy" and, where C wants a word, example_save_heavy have
 *     become
 *                         the new name, wherever they stand */
#ifndef AOTH_PLUGIN_TEMPLATE_H
#define AOTH_PLUGIN_TEMPLATE_H

#include <aot/status.h>
#include "kit/base/arena.h"
#include <base/sink.h>

#define AOTH_MOST_TEMPLATES 32u

typedef struct aoth_templates {
  const char *folder; /* of all kinds */
  const char *prefix; /* of the installation that they belong to */
  uint32_t n;
  const char *kinds[AOTH_MOST_TEMPLATES];  /* in order */
  const char *titles[AOTH_MOST_TEMPLATES]; /* the first line of the README */
} aoth_templates_t;

/* Next to the program's own folder: PREFIX/bin, PREFIX/share. AOT_E_NOT_FOUND: reported. */
aot_status_t aoth_templates_find(kit_arena_t *arena, aoth_sink_t *sink, aoth_templates_t *out);

/* Makes the folder, which must not be there. name: the plugin's. out_files: names of what was written, a line. What
 * fails leaves nothing over. */
aot_status_t aoth_template_copy(const aoth_templates_t *t, const char *kind, const char *name, const char *folder,
                                kit_arena_t *arena, aoth_sink_t *sink, const char **out_files);

#endif
