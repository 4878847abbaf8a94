/* One step, several programs and several calls in flight.
 *
 * How the inputs of a call share memory (overlap.h) decides which program is run.
 *
 * A step begins with the program for inputs that share nothing. When a call's inputs share memory in a way that
 * matters, the step changes over to the program for that pattern, which is compiled when it is met first. The tensors
 * that live outside a call go with it. There are at most as many patterns as the exec allows; one more is an error
 * that lists them.
 *
 * A call has a frame for each program that it was run under: the tables of its ports, and memory for them. The step is
 * one frame at a time; what lives outside calls goes with it when another is entered. O(leaves). */
#ifndef AOTH_VARIANTS_H
#define AOTH_VARIANTS_H

#include <step/step.h>

/* Sizes of the call must be bound. Afterwards the step is the program for these inputs; 1 in *out_changed: another than
 * before, whose sizes are not bound. O(1) when the program neither writes an input nor gives one a gradient. */
aot_status_t aoth_step_specialise(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n, int *out_changed);
/* The facts that the first program has about its inputs. */
aot_status_t aoth_variants_init(aoth_step_t *s);
void aoth_variants_deinit(aoth_step_t *s);

#endif
