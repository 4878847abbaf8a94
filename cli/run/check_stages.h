/* aothost run --check-stages, aothost opt --check-stages: after every stage the program as it was and as it is runs on
 * the reference backend, on the same small inputs (oracle.h); a stage that changes results has failed. */
#ifndef AOTH_CHECK_STAGES_H
#define AOTH_CHECK_STAGES_H

#include <jansson.h>
#include <step/step.h>
#include <trainer/trial/oracle.h>

typedef struct aoth_stage_checks {
  aoth_watch_t watch; /* that the session is to have */
  aoth_oracle_t oracle;
  aoth_oracle_answer_t before; /* of the program as the last stage left it */
  int has_before;
  uint32_t n_compared, n_not;
  json_t *rows; /* {stage, compared, keys, why}, in order */
} aoth_stage_checks_t;

/* watch is to be the session's from before it is made; begin once the session knows its pipeline. */
void aoth_stage_checks_init(aoth_stage_checks_t *c);
aot_status_t aoth_stage_checks_begin(aoth_stage_checks_t *c, aoth_session_t *s, const aoth_run_spec_t *run);
/* The compiled program itself, against the last of what was compared. AOTH_E_PLUGIN: reported. The step is reset. */
aot_status_t aoth_stage_checks_step(aoth_stage_checks_t *c, aoth_step_t *step, const char *backend);
void aoth_stage_checks_print(const aoth_stage_checks_t *c, FILE *out); /* one line */
void aoth_stage_checks_deinit(aoth_stage_checks_t *c);

#endif
