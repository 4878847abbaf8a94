/* What a model file says of the operators in it. */
#ifndef AOTH_OPERATORS_OF_MODEL_H
#define AOTH_OPERATORS_OF_MODEL_H

#include <sandbox/session.h>

/* Into the sink: the schemas that a model file brings, the namespaces of the operators in it. *out_told 0: its importer
 * cannot determine. A text program (no importer) has no schemas, and is not to be requested namespaces
 * (aoth_text_namespaces). */
aot_status_t aoth_model_schemas(aoth_session_t *s, const aoth_model_t *model, const aot_schema_sink_t *sink);
aot_status_t aoth_model_namespaces(aoth_session_t *s, const aoth_model_t *model, const aot_schema_sink_t *sink,
                                   int *out_told);

#endif
