/* A tiny model with an executable that is a C function, so that steps can be tested without plugins:
 *
 *     forward   x f32[s0, 3], w f32[3], calls i64[]   ->  loss = sum(x * w), y = x * w, saved x, calls + 1
 *     backward  tangents of loss and y, saved x        ->  gradient of w, of x
 *     update    w, its gradient, momentum m, lr        ->  m + gradient, w - lr * (m + gradient)
 *
 * s0 is the batch, 1 to 8. w is also called "tied.w". */
#ifndef PRETEND_H
#define PRETEND_H

#include "tiny_opset.h"

#include <device/queue.h>
#include <step/step.h>

typedef struct pretend {
  fixture_t world;
  aoth_queue_t queue; /* of the host */
  aoth_exec_t exec;
  uint32_t n_calls;
  int poison_at; /* the loss of this call (from 1) is NaN; 0: never */
} pretend_t;

extern const char pretend_text[];
void pretend_init(pretend_t *p); /* parses pretend_text */
void pretend_deinit(pretend_t *p);
aoth_step_t *pretend_step(pretend_t *p);      /* asserts that the program can be run */
const char *pretend_said(const pretend_t *p); /* messages so far */

#endif
