/* Forward, backward and update become one STEP graph: a training step that a backend plans and runs as a whole.
 *
 *     forward            backward                update                      step
 *     leaves, inputs --> saved, tangents -->     gradients, lr, states       leaves, inputs, lr, states
 *     loss, saved        gradients               new leaves                  loss, new leaves
 *
 * What one graph handed to the next is an ordinary value now: saved values die as the backward reads them, gradients as the update does.
 * The loss's tangent is 1, those of other outputs are 0; user outputs but the loss are not computed. */
#ifndef ST_STITCH_H
#define ST_STITCH_H

#include <aot/host.h>

/* loss: number of the user output that is minimised. Replaces the three graphs. Diagnoses what cannot be stitched. O(program). */
aot_status_t st_stitch(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t loss);

#endif
