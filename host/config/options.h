/* Options as written -> typed values against a unit's schema. */
#ifndef AOTH_OPTIONS_H
#define AOTH_OPTIONS_H

#include <config/pipeline.h>
#include <plugin/registry.h>

/* Fills stage->opts from stage->with; every complaint in one go. stage->unit is set and open. AOT_E_OPTION. */
aot_status_t aoth_options_resolve(aoth_stage_t *stage, kit_arena_t *arena, aoth_sink_t *sink);
/* In the place of the default of an option that the pipeline does not give, if the unit has one of the name; in the
 * pipeline's arena. */
void aoth_option_set(const aoth_stage_t *stage, const char *name, aot_opt_value_t value);
const char *aoth_option_kind(int32_t kind);                           /* "bool", "integer", .. */
void aoth_option_range(const aot_option_t *option, kit_text_t *out);  /* "0 .. 1", "at least 1", "" */
void aoth_option_preset(const aot_option_t *option, kit_text_t *out); /* as a user would write it; "required" */
/* A stage from the command line: --use and its --with texts. */
aot_status_t aoth_stage_from_flags(const char *use, const char *const *withs, uint32_t n_withs, kit_arena_t *arena,
                                   aoth_sink_t *sink, aoth_stage_t *out);

#endif
