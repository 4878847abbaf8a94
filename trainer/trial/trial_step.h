/* A step on inputs that nothing has to give: where the pipeline names some, those; else they are made up. What is
 * compared with other steps of the same program runs so, on the same numbers: the arms of ab, a program before and
 * after a stage.
 *
 * Inputs are those of the pipeline (feed.h), tangents those of its file, else 1 for the loss, else normal numbers. A
 * leaf without contents (a program in text has none) is zeros, or normal numbers out of its name. */
#ifndef AOTH_TRIAL_STEP_H
#define AOTH_TRIAL_STEP_H

#include <config/pipeline.h>
#include <trainer/tensors/random.h>
#include <trainer/tensors/safetensors.h>
#include <step/step.h>

struct aoth_feed;
typedef struct aoth_trial_step {
  aoth_step_t *step; /* the caller's */
  const aoth_run_spec_t *run;
  aoth_sink_t *sink;
  aoth_data_spec_t data;
  int made_up;    /* nothing named inputs: they are random */
  int is_updated; /* the last step had an update */
  int64_t seed;
  const char *tangents_from; /* after a backward */
  double forward_ms, backward_ms;
  struct aoth_feed *feed;
  aoth_st_t *file; /* of the inputs, for tangents; NULL: none */
  aoth_random_t random;
  aoth_tensor_t *tangent; /* by user output */
  const aoth_tensor_t **tangents;
} aoth_trial_step_t;

/* seed NULL: the pipeline's. Deinit after a failure, too. */
aot_status_t aoth_trial_step_init(aoth_trial_step_t *v, aoth_step_t *step, aot_prog_t *prog, const aoth_run_spec_t *run,
                                  const int64_t *seed, aoth_sink_t *sink);
void aoth_trial_step_deinit(aoth_trial_step_t *v);
aot_status_t aoth_trial_step_fill_leaves(aoth_trial_step_t *v, aot_prog_t *prog);
/* Forward and, where there is one, backward, on the inputs of that number. */
aot_status_t aoth_trial_step_run(aoth_trial_step_t *v, int64_t number);
/* The same, and the update where there is one; a step graph is all of it. */
aot_status_t aoth_trial_step_whole(aoth_trial_step_t *v, int64_t number);
/* Outputs, gradients and buffers, as a safetensors file; after an update, parameters and state, too. */
aot_status_t aoth_trial_step_keep(aoth_trial_step_t *v, const char *path);

#endif
