/* A backend that is tried: by itself where it takes all of a program, else before backend-ref, which takes what it
 * leaves; held against what backend-ref computes by itself. */
#ifndef AOTH_CONFORM_BACKEND_RUN_H
#define AOTH_CONFORM_BACKEND_RUN_H

#include <sdk/conform/conform_trial.h>
#include <trainer/trial/oracle.h>

typedef struct aoth_backend_run {
  aoth_oracle_t oracle;
  aoth_stage_t pair[2], assign;
  aot_status_t status; /* of the last refusal */
} aoth_backend_run_t;

/* Steps on inputs of their own, so that what stays from one to the next shows. */
#define AOTH_BACKEND_STEPS 3u

/* 0: the trial has ended. deinit in any case. */
int aoth_backend_run_init(aoth_trial_t *t, aoth_backend_run_t *r);
void aoth_backend_run_deinit(aoth_backend_run_t *r);
/* The session's program, compiled by the unit for a device (NULL: the host's memory,
 * between guards; the plugin's own device where it does not run on that), run, and compared with
 * `wanted`; NULL: no run may end well. Ends the trial unless all is well: NOT, where no node was its own. */
void aoth_backend_run_compare(aoth_trial_t *t, aoth_backend_run_t *r, const aoth_stage_t *device,
                              const aoth_oracle_answer_t *wanted);
/* What backend-ref computes. 0: the trial has ended. */
int aoth_backend_run_reference(aoth_trial_t *t, aoth_backend_run_t *r, aoth_oracle_answer_t *out);
/* What the unit computes by itself; as aoth_backend_run_compare. 0: the trial has ended. */
int aoth_backend_run_alone(aoth_trial_t *t, aoth_backend_run_t *r, aoth_oracle_answer_t *out);
/* 0: they differ, and the trial has ended. */
int aoth_backend_results_agree(aoth_trial_t *t, const aoth_oracle_answer_t *got, const aoth_oracle_answer_t *wanted,
                               const char *as);

#endif
