/* Units that the host adds to a pipeline by itself: rows of pipelines/default-units.yaml, which the build compiles in,
 * under those of the pipeline's own `default-units:`. So no unit id is written in the host's code. */
#ifndef AOTH_DEFAULT_UNITS_H
#define AOTH_DEFAULT_UNITS_H

#include <config/fields.h>
#include <config/pipeline.h>

/* The keys of `default-units:`, by AOTH_UNIT_*. */
extern const char *const aoth_default_unit_keys[AOTH_N_DEFAULT_UNITS];

/* The unit that pipelines/default-units.yaml names for AOTH_UNIT_*. */
const char *aoth_default_unit(uint32_t which);

/* node: the pipeline's `default-units:`; NULL: none. */
void aoth_default_units_read(const aoth_fields_t *f, const aoth_yaml_t *node, aoth_default_units_t *out);

/* Sets use, name and where of a stage. Errors point to the row of `default-units:` if the pipeline has one, else to
 * `where`. */
void aoth_default_units_stage(const aoth_default_units_t *units, uint32_t which, const aoth_where_t *where,
                              aoth_stage_t *stage);

/* The rows that the pipeline replaces, as YAML; nothing if it replaces none. */
void aoth_default_units_print(const aoth_default_units_t *units, kit_text_t *out);

#endif
