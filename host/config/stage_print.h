/* Pieces of a resolved pipeline as YAML, shared by `check -v`, bundles and the run section. */
#ifndef AOTH_STAGE_PRINT_H
#define AOTH_STAGE_PRINT_H

#include <config/pipeline.h>

void aoth_print_path(kit_text_t *out, const char *path); /* made absolute, so that the text means the same anywhere */
void aoth_print_double(kit_text_t *out, double d);
/* PREFIX{distance-base: 1.2, ...} and a line end; nothing when the unit has no options. Before check: as written. */
void aoth_print_options(kit_text_t *out, const char *prefix, const aoth_stage_t *stage);
/* PREFIXisolate: worker and PREFIXtimeout: 2, each a line; nothing where nothing was said. */
void aoth_print_isolation(kit_text_t *out, const char *prefix, const aoth_stage_t *stage);
/* The i-th option's value as YAML, which --with takes too. */
void aoth_print_option_value(kit_text_t *out, const aoth_stage_t *stage, uint32_t i);

#endif
