/* The tensors of a step as a safetensors file, by their keys (step/step.h). */
#ifndef AOTH_STEP_FILE_H
#define AOTH_STEP_FILE_H

#include <step/step.h>
#include <trainer/tensors/safetensors.h>

/* What aoth_step_keys names, with meta. flags: AOTH_ST_* */
aot_status_t aoth_step_save(const aoth_step_t *s, uint32_t which, const char *path, uint32_t flags,
                            const aoth_st_meta_t *meta, uint32_t n_meta, aoth_sink_t *sink);
/* What the last call was given (aoth_step_given); call, seed and offset as metadata. For bundles. */
aot_status_t aoth_step_save_call(const aoth_step_t *s, const char *path, aoth_sink_t *sink);

#endif
