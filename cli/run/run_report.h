/* What `aothost run` reports about a run: stages, losses, memory; for people and as JSON. */
#ifndef AOTH_RUN_REPORT_H
#define AOTH_RUN_REPORT_H

#include <cli/base/cli.h>
#include <cli/run/run_profile.h>

#include <step/step.h>
#include <trainer/train.h>

/* What a rank reports the others of itself. */
typedef struct aoth_rank_row {
  uint64_t leaf_nbytes, arena_nbytes, peak_nbytes, gathered_nbytes, scattered_nbytes, spent_ns, waited_ns;
} aoth_rank_row_t;

typedef struct aoth_run {
  aoth_cli_t *cli;
  aoth_session_t *session;
  const aoth_pipeline_t *pipeline;
  aoth_step_t *step;                  /* NULL: not compiled */
  FILE *out;                          /* text for people; NULL: none */
  int trained, called;                /* which parts ran */
  const aoth_profile_view_t *profile; /* --profile; NULL: not requested */
  aoth_train_result_t train;
  struct aoth_stage_checks *checks; /* --check-stages; NULL: not requested */
  aoth_rank_row_t *ranks;           /* of several, one each; the caller frees them. NULL: there is one, or they fail */
} aoth_run_t;

struct json_t;
/* programs compiled for inputs that share memory; a new reference; NULL: none */
struct json_t *aoth_patterns_json(const aoth_step_t *s);
void aoth_run_print_stages(const aoth_run_t *r);       /* after compiling */
void aoth_run_hear_ranks(aoth_run_t *r);               /* at the end; all ranks come here */
void aoth_run_print_summary(const aoth_run_t *r);      /* at the end */
aot_status_t aoth_run_write_json(const aoth_run_t *r); /* --json; keys: docs/RUN.md */

#endif
