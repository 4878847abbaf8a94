/* Programs in text form, compiled one after the other in one session: opening the operator set costs more than a small
 * program.
 *
 *     ws_t w = {.stages = "functionalize backend-ref"};
 *     if (ws_compile(&w, text)) .. aoth_step_forward(w.step, ..) ..; else puts(ws_complaints(&w));
 *     ws_close(&w); */
#ifndef WORKSHOP_H
#define WORKSHOP_H

#include <config/pipeline.h>
#include <step/step.h>

typedef struct ws {
  const char *stages; /* units, with blanks between them */
  aoth_step_t *step;  /* of the last program; NULL: it did not compile */
  aoth_sink_t *sink;
  aoth_pipeline_t *pipeline;
  aoth_session_t *session;
  char folder[64];
  unsigned n_programs, n_complaints; /* since the session was opened; bytes of messages before the last program */
} ws_t;

int ws_compile(ws_t *w, const char *ir); /* 1: w->step can be run. ws_import, ws_build */
int ws_import(ws_t *w, const char *ir);  /* 1: the program is in the session as it was written */
int ws_build(ws_t *w);
const char *ws_complaints(const ws_t *w); /* about the last program */
void ws_close(ws_t *w);

#endif
