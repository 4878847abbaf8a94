/* The training loop: feed, forward, loss, backward, update; learning rate by schedule; checkpoints; Ctrl-C. */
#ifndef AOTH_TRAIN_H
#define AOTH_TRAIN_H

#include <config/pipeline.h>
#include <step/step.h>
#include <trainer/feed.h>
#include <stdio.h>
#include <trainer/trace.h>

typedef struct aoth_loss_at {
  int64_t step; /* counted from 1 */
  double loss, lr;
} aoth_loss_at_t;

typedef struct aoth_train_result {
  int64_t first, done;          /* steps done before this run and after it */
  double first_loss, last_loss; /* of this run's first and last step; NaN: no step was run */
  double seconds;
  uint64_t items; /* tokens or rows a step */
  /* bytes between host and device, a step; of all but the first, which takes parameters and states there */
  uint64_t moved;
  uint64_t crossed; /* bytes from device to device by a step, likewise */
  const char *unit;
  double loss_scale;   /* at the end; 0: none */
  double n_skipped;    /* steps, since the scale began, that were not accepted: a gradient was not finite */
  int interrupted;     /* Ctrl-C: stopped early, checkpoint written if there is one */
  int diverged;        /* the loss, or with check-finite a gradient, was NaN or infinite at step `done` + 1; reported */
  aoth_loss_at_t *log; /* n_log: the steps that were logged; free with aoth_train_deinit */
  uint32_t n_log, log_capacity;
} aoth_train_result_t;

/* session: of several ranks, by which they talk; of one it may be NULL. out: where progress goes; NULL: nowhere. trace
 * may be NULL. */
aot_status_t aoth_train(aoth_step_t *s, aot_prog_t *prog, const aoth_train_spec_t *spec, const aoth_feed_ranks_t *ranks,
                        aoth_session_t *session, FILE *out, aoth_sink_t *sink, aoth_trace_t *trace,
                        aoth_train_result_t *result);
void aoth_train_deinit(aoth_train_result_t *result);

#endif
