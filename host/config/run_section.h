/* The run: section of a pipeline file, typed; and the tables that the JSON Schema and the printer share with it. */
#ifndef AOTH_RUN_SECTION_H
#define AOTH_RUN_SECTION_H

#include <config/fields.h>
#include <config/pipeline.h>

/* device: and device-with: of a map, where the first is there. */
void aoth_device_read(const aoth_fields_t *f, const aoth_yaml_t *map, aoth_stage_t *out);
/* Unit and options as text: equal for stages of one device. NULL: no memory. */
const char *aoth_device_name(kit_arena_t *arena, const aoth_stage_t *device);
void aoth_run_read(const aoth_fields_t *f, const aoth_yaml_t *node, const aoth_default_units_t *units,
                   aoth_run_spec_t *out);
void aoth_run_print(const aoth_run_spec_t *run, kit_text_t *out);

extern const char *const aoth_precisions[3];  /* by AOTH_PRECISION_* */
extern const char *const aoth_loss_scales[2]; /* by AOTH_SCALE_*; CONSTANT is a number */
extern const char *const aoth_steps[2];       /* by AOTH_STEP_* */
extern const char *const aoth_schedules[3];   /* by AOTH_SCHEDULE_* */
extern const int32_t aoth_token_dtypes[6];    /* what tokens: files may hold */

#endif
