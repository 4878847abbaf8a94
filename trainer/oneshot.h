/* One call of a compiled program: inputs from a feed, forward, gradients on demand, results to a file. */
#ifndef AOTH_ONESHOT_H
#define AOTH_ONESHOT_H

#include <config/pipeline.h>
#include <step/step.h>

/* Runs forward, and with `grads` backward: with the tangents tangent.K of the inputs' file when it has some, else one
 * for output 0, which must then be one number. */
aot_status_t aoth_oneshot_run(aoth_step_t *s, aot_prog_t *prog, const aoth_run_spec_t *spec, int grads,
                              aoth_sink_t *sink);
/* The results that there are: output.K, input_after.K of changed inputs, and gradients after a backward. */
aot_status_t aoth_oneshot_write(const aoth_step_t *s, const char *path, aoth_sink_t *sink);

#endif
