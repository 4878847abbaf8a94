/* An executable that is tried: the unit's artifact of a program, loaded on a device, its functions called as a host
 * calls them (aot/backend.h). What it computes is held against what it has computed by itself, one call after the
 * other: whether that is right is another rule's (207). */
#ifndef AOTH_CONFORM_TRIED_EXE_H
#define AOTH_CONFORM_TRIED_EXE_H

#include <aot/backend.h>
#include <sandbox/session.h>
#include <step/tensor.h>
#include <sdk/conform/conform_trial.h>

typedef struct aoth_tried_exe {
  aoth_trial_t *t;
  aoth_instance_t unit, device_unit; /* device_unit: none on the host */
  aoth_stage_t device_stage;
  const aot_device_t *device;
  kit_arena_t *arena;
  aot_ctx_t ctx; /* hears what calls report */
  const aot_exe_t *self;
  aot_exe_t exe; /* imported */
  aot_queue_t *queue;
  aot_timeline_t *line;
  uint64_t raised;
} aoth_tried_exe_t;

/* A bound call of the program's first graph on memory of its own. */
typedef struct aoth_tried_call {
  aoth_tensor_t *tensors; /* inputs, then outputs; `data` is the host's copy */
  aot_tensor_t *views;    /* the same, on the device */
  uint32_t n_inputs, n_outputs;
  aot_buffer_t arena;
  aot_bound_t *bound; /* NULL: none */
} aoth_tried_call_t;

/* The session's program becomes one that the unit takes whole, compiled. 0: there is none, and the trial has ended. */
int aoth_tried_compile(aoth_trial_t *t);
/* Each of the following: 0: the trial has ended. device NULL: the host, or the plugin's own where it has one. */
int aoth_tried_load(aoth_trial_t *t, const aoth_stage_t *device, aoth_tried_exe_t *out);
int aoth_tried_drop(aoth_tried_exe_t *x);
int aoth_tried_bind(aoth_tried_exe_t *x, uint32_t seed, aoth_tried_call_t *out); /* seed: of its inputs */
int aoth_tried_unbind(aoth_tried_exe_t *x, aoth_tried_call_t *c);
/* After `wait`, if it has a timeline; signals the next point. */
int aoth_tried_submit_behind(aoth_tried_exe_t *x, const aoth_tried_call_t *c, aot_point_t wait);
int aoth_tried_submit(aoth_tried_exe_t *x, const aoth_tried_call_t *c);
int aoth_tried_wait_all(aoth_tried_exe_t *x);
int aoth_tried_fetch(aoth_tried_exe_t *x, aoth_tried_call_t *c); /* outputs to the host's copies */
/* The same by another queue, after a point of the timeline. */
int aoth_tried_fetch_by(aoth_tried_exe_t *x, aoth_tried_call_t *c, aot_queue_t *q, uint64_t behind);
int aoth_tried_refill(aoth_tried_exe_t *x, aoth_tried_call_t *c, uint32_t seed,
                      aot_queue_t *q); /* inputs, by that queue */
int aoth_tried_exe_went(aoth_tried_exe_t *x, aot_status_t status, const char *doing);
int aoth_tried_same_outputs(aoth_tried_exe_t *x, const aoth_tried_call_t *got, const aoth_tried_call_t *wanted,
                            const char *when);

#endif
