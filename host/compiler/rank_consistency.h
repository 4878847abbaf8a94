/* Whether ranks run the same. Each says in lines of text what it runs; hashes go round, and only where they differ the
 * lines do, so that it is reported which rank differs from the first, in what, and how. */
#ifndef AOTH_RANK_CONSISTENCY_H
#define AOTH_RANK_CONSISTENCY_H

#include "kit/base/text.h"
#include <sandbox/session.h>

/* The model that is compiled, as far as the ranks' models are to be distinguished. */
aot_status_t aoth_session_note_model(aoth_session_t *s, const aoth_pipeline_t *p, const aoth_model_t *model);
/* The program was compiled: what it is known by among the ranks, also when it comes out of the cache. */
void aoth_session_note_program(aoth_session_t *s);
/* All have compiled the same model's program by the same pipeline; else it is reported which ranks differ, and in
 * what. */
aot_status_t aoth_session_agree(aoth_session_t *s, const aoth_pipeline_t *p);

typedef struct aoth_said {
  const char *what; /* "the pipeline" */
  kit_text_t text;  /* of whom it is stored */
} aoth_said_t;

/* All ranks come here with the same n subjects. AOT_E_PRECONDITION: they differ in one, which is reported. O(bytes
 * said) */
aot_status_t aoth_ranks_alike(aoth_session_t *s, const aoth_said_t *said, uint32_t n, const char *doing);

#endif
