/* The graphs of a program as a step sees them: tables of ports. Private to the files step*.c. */
#ifndef AOTH_STEP_PORTS_H
#define AOTH_STEP_PORTS_H

#include <runtime/boundary.h>
#include <runtime/leaves.h>
#include <runtime/sizes.h>
#include <runtime/step.h>

typedef struct aoth_slot {
  int32_t role;
  uint32_t index;
  aot_type_t type;      /* kind NONE: the output is None */
  aoth_tensor_t tensor; /* geometry under the present sizes; data in the block or in a leaf */
  uint64_t at;          /* place in the block; AOTH_NOWHERE: its data is elsewhere */
} aoth_slot_t;
#define AOTH_NOWHERE UINT64_MAX

typedef struct aoth_call { /* one graph */
  int present;
  uint32_t n_in, n_out;
  aoth_slot_t *in, *out;
  aot_tensor_t *in_views, *out_views; /* what the executable is handed */
} aoth_call_t;

#define AOTH_CALL_FORWARD 0
#define AOTH_CALL_BACKWARD 1
#define AOTH_CALL_UPDATE 2
#define AOTH_N_CALLS 3
#define AOTH_PHASE_FORWARD 1 /* what has run since the inputs were given */
#define AOTH_PHASE_BACKWARD 2
#define AOTH_PHASE_UPDATE 3

struct aoth_step {
  aot_prog_t *prog;
  aoth_exec_t exec;
  aoth_sink_t *sink;
  aoth_arena_t *arena; /* tables that live as long as the step */
  aoth_leaves_t leaves;
  aoth_call_t call[AOTH_N_CALLS];
  uint32_t n_saved, n_outputs, n_bases, n_rules;
  uint32_t *saved;     /* by saved slot: forward output port */
  uint32_t *gradient;  /* by leaf: backward output port or AOT_NO_ID */
  aot_rule_t *rules;   /* as the program has them */
  aot_rule_t *now;     /* with numbers */
  int64_t *rule_dims;  /* numbers of `now` */
  aoth_sizes_t sizes;
  int planned;
  int phase;
  int64_t *planned_for; /* values of the symbols that the plan was made for */
  char *block;
  uint64_t nbytes_block, nbytes_saved, block_capacity;
  /* after forward */
  aoth_slot_t *given;     /* by user input number: its copy in the block, with the geometry that executables expect */
  aoth_tensor_t *after;   /* by leaf: the tensor as the boundary leaves it */
  aoth_tensor_t *outputs; /* by user output */
  aoth_tensor_t *bases;
  const aoth_tensor_t **updates; /* by leaf: UPDATE output of the call that has just run */
  unsigned char *changed;        /* by leaf: the boundary has rules that change it */
  int64_t seed, offset;
};

aot_status_t aoth_step_read(aoth_step_t *s);  /* step_read.c: tables from the program */
aot_status_t aoth_step_plan(aoth_step_t *s);  /* step_plan.c: geometry and places under the present sizes */

int aoth_slot_is_leaf(int32_t role); /* PARAMETER BUFFER CONSTANT USER_INPUT STATE */

#endif
