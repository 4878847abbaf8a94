/* Merges forward, backward and update into one STEP graph, a training step that a backend plans and runs as a whole.
 *
 *     forward            backward                update                      step
 *     leaves, inputs --> saved, tangents -->     gradients, lr, states       leaves, inputs, lr, states
 *     loss, saved        gradients               new leaves                  loss, new leaves
 *
 * Values between the graphs become ordinary values: a saved value is freed after its last use in the backward, a
 * gradient after the update. The loss has tangent 1, other outputs 0; user outputs other than the loss are not
 * computed. */
#ifndef ST_STITCH_H
#define ST_STITCH_H

#include "finite.h"

/* With micro steps the gradients of several are added up before an update uses them; the program then has two STEP
 * graphs:
 *
 *     micro_step    leaves, inputs, sums --> loss, new sums            run `accumulate` times
 *     apply         parameters, lr, states, sums --> new ones, zeros   then once */
typedef struct st_options {
  uint32_t loss;        /* number of the user output that is minimised */
  int64_t accumulate;   /* micro steps to an update; 1: one graph */
  double clip_norm;     /* the most that the norm of all gradients together may be; 0: any */
  st_scaling_t scaling; /* of the loss */
  int check_finite;     /* a step with a gradient that is not finite is not accepted, and a leaf says whose it was */
} st_options_t;

/* Replaces the three graphs. Diagnoses what cannot be stitched. O(program). */
aot_status_t st_stitch(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, const st_options_t *options);

#endif
