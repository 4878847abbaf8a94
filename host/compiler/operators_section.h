/* Operators declared by text: those of a pipeline, and those that a model file brings. */
#ifndef AOTH_OPERATORS_SECTION_H
#define AOTH_OPERATORS_SECTION_H

#include <sandbox/session.h>

/* The operators of a pipeline's `operators:` section, made by the opset that offers aot.declare/1: one that is open,
 * else the opset `id`. */
aot_status_t aoth_session_declare(aoth_session_t *s, const char *id, const aoth_yaml_t *const *texts, uint32_t n_texts);
/* The operators that the model file brings, as far as the session does not know them. */
aot_status_t aoth_session_declare_found(aoth_session_t *s, const char *id, const aoth_model_t *model);

#endif
