/* Which opsets a session opens. */
#ifndef AOTH_OPSETS_H
#define AOTH_OPSETS_H

#include <sandbox/session.h>

/* unless it is open */
aot_status_t aoth_session_open_opset(aoth_session_t *s, const char *id, const aoth_where_t *where);
/* Those whose operators the model, the texts of a pipeline's `operators:` or the stages have, by what they claim
 * (aot/note.h). */
aot_status_t aoth_session_open_needed(aoth_session_t *s, const aoth_model_t *model, const aoth_yaml_t *const *texts,
                                      uint32_t n_texts);

#endif
