/* The graphs of a program as a step sees them: tables of ports. Private to the files step*.c. */
#ifndef AOTH_STEP_PORTS_H
#define AOTH_STEP_PORTS_H

#include <device/input_staging.h>
#include <step/boundary.h>
#include <step/leaves.h>
#include <step/sizes.h>
#include <step/step.h>

/* Memory of the caller's for a port (step_lent.c). */
typedef struct aoth_lent {
  struct aoth_lent *next;
  int32_t kind;
  uint32_t index;                  /* of the user input, user output, saved value; the leaf of a gradient */
  aoth_tensor_t tensor;            /* as the caller has it */
  aoth_mirrored_buffer_t resident; /* its storage, where the call uses it directly */
} aoth_lent_t;

typedef struct aoth_slot {
  int32_t role;
  uint32_t index;
  aot_type_t type;      /* kind NONE: the output is None */
  aoth_tensor_t tensor; /* geometry under the present sizes, where its memory is: its own, a leaf's, another port's */
  uint64_t at;          /* place in the block; AOTH_NOWHERE: its data is elsewhere */
  int open;             /* its sizes need symbols that the user inputs do not determine */
  aoth_lent_t *lent;    /* where it lies instead; NULL: nowhere else */
  uint64_t version;     /* a leaf that the backward reads: the one that the forward read */
  aoth_mirrored_buffer_t own; /* a part of the block; an open slot has memory by itself */
  int has_number;             /* a scalar that the host has given: */
  union {
    double real;   /* a learning rate */
    int64_t whole; /* a seed */
  } number;
} aoth_slot_t;
#define AOTH_NOWHERE UINT64_MAX

typedef struct aoth_step_call { /* one graph: the number-th of its kind */
  int present;
  int32_t kind;
  uint32_t number;
  uint32_t n_in, n_out;
  aoth_slot_t *in, *out;
  aot_tensor_t *in_views, *out_views; /* what the executable is handed */
  /* of a step, by output: the input in whose memory it lies; AOT_NO_INDEX: it has its own. NULL: all have */
  uint32_t *home;
  /* ports in the order in which they are looked at: first those that belong to calls (user inputs, scalars, what lies
   * in the block), n_fresh of them, then those of leaves that stay */
  uint32_t *in_order, *out_order, n_fresh_in, n_fresh_out;
  /* A step that has found, and left, everything where it is; that holds while the queue's n_stirs is at settled_at
   * (device/mirrored_buffer.h). Again, such a step looks at fresh ports alone. */
  int can_settle, is_settled;
  uint64_t settled_at;
  uint64_t known; /* what the executable calls its binding; 0: it is to be looked at */
} aoth_step_call_t;

#define AOTH_CALL_FORWARD 0
#define AOTH_CALL_BACKWARD 1
#define AOTH_CALL_UPDATE 2
#define AOTH_CALL_STEP 3  /* instead of the others; a micro step where there is an apply */
#define AOTH_CALL_APPLY 4 /* the second STEP graph: the update, of gradients that were added up */
#define AOTH_N_CALLS 5
#define AOTH_PHASE_FORWARD 1 /* what has run since the inputs were given */
#define AOTH_PHASE_BACKWARD 2
#define AOTH_PHASE_UPDATE 3

#define AOTH_CHANGED_NUMBERS 1u
#define AOTH_CHANGED_SHAPE 2u

typedef struct aoth_variants aoth_variants_t;

struct aoth_step {
  aot_prog_t *prog;
  aoth_exec_t exec;
  aoth_sink_t *sink;
  kit_arena_t *arena; /* tables that live as long as the step */
  aoth_leaves_t leaves;
  aoth_step_call_t call[AOTH_N_CALLS];
  uint32_t n_saved, n_outputs, n_bases, n_rules;
  uint32_t n_given;   /* user inputs of the caller; bases that they are views of follow (ir/aliasing.h) */
  uint32_t *entry;    /* by leaf: the rule that says what it is a view of at the entry, or AOT_NO_INDEX */
  uint32_t *saved;    /* by saved slot: forward output port or AOT_NO_INDEX */
  uint32_t *gradient; /* by leaf: backward output port or AOT_NO_INDEX */
  aot_rule_t *rules;  /* as the program has them */
  aot_rule_t *now;    /* with numbers */
  int64_t *rule_dims; /* numbers of `now` */
  aoth_sizes_t sizes;
  int planned;
  int lent_fits; /* what is borrowed was looked at since then */
  int phase;
  int running;          /* AOTH_CALL_*: that was put on the queue last */
  int64_t *planned_for; /* values of the symbols that the plan was made for */
  int64_t *symbols;     /* what executables are given: AOT_SYMBOL_UNKNOWN where not known */
  int64_t *learned;     /* the same after a run */
  int has_entry_rules;
  int rules_open;            /* some rule's geometry needs symbols that the forward reports */
  aot_buffer_t block;        /* of the device; address 0: none */
  aoth_input_staging_t *fed; /* the block's first nbytes_fed: user inputs, and the scalars of the step graph */
  uint64_t nbytes_block, nbytes_saved, nbytes_fed;
  uint64_t nbytes_copied; /* since the inputs were given: new values of leaves */
  uint64_t n_looked_at;   /* ports, by calls so far */
  /* after forward */
  aoth_given_t *told;     /* by user input number: room for what is reported to sizes */
  aoth_slot_t *given;     /* by user input number: its copy in the block, with the geometry that executables expect */
  aoth_tensor_t *after;   /* by leaf: the tensor as the boundary leaves it */
  aoth_tensor_t *outputs; /* by user output */
  aoth_tensor_t *bases;
  const aoth_tensor_t **updates; /* by leaf: UPDATE output of the call that has just run */
  unsigned char *changed;        /* by leaf: AOTH_CHANGED_* by the rules of the boundary */
  int64_t seed, offset;
  const aoth_tensor_t *offset_at; /* where a call has left the offset; NULL: `offset` is it */
  aoth_lent_t *lent;              /* what the caller provides to this call */
  aoth_variants_t *variants;      /* of which this is the selected one */
};

/* step_bind.c: contents of an empty step: tables, leaves. After a failure, too: unbind. */
aot_status_t aoth_step_bind(aoth_step_t *s, aot_prog_t *prog, const aoth_exec_t *exec, aoth_sink_t *sink);
void aoth_step_unbind(aoth_step_t *s);
int aoth_step_block_has(const aoth_step_t *s, const void *data);

aot_status_t aoth_step_read(aoth_step_t *s); /* step_read.c: tables from the program */
aot_status_t aoth_step_plan(aoth_step_t *s); /* step_plan.c: geometry and places under the present sizes */

/* step_memory.c: a tensor of the step as the host reads it, or writes it (as it is, if `keep`); the one into the
 * other, where they lie. */
aot_status_t aoth_step_on_host(const aoth_step_t *s, const aoth_tensor_t *t, aoth_tensor_t *out);
aot_status_t aoth_step_edit(const aoth_step_t *s, const aoth_tensor_t *t, int keep, aoth_tensor_t *out);
aot_status_t aoth_step_copy(void *step, const aoth_tensor_t *to, const aoth_tensor_t *from);
aot_status_t aoth_step_free_memory(aoth_step_t *s); /* the block, and what slots have by themselves */
aot_status_t aoth_step_drop_lent(aoth_step_t *s, aoth_lent_t *l);
void aoth_step_free_lent(aoth_step_t *s);
aot_status_t aoth_step_take_offset(aoth_step_t *s); /* to the host: its place is about to go */

/* step_lent.c: slots that are in the caller's memory, before places are given; does all of it fit; the caller may have
 * written it; results into it, of a kind; gradients as the caller left them. */
aot_status_t aoth_step_place_lent(aoth_step_t *s);
aot_status_t aoth_step_check_lent(aoth_step_t *s);
aot_status_t aoth_step_refresh_lent(const aoth_step_t *s, aoth_slot_t *p);
aot_status_t aoth_step_deliver(aoth_step_t *s, int32_t kind);
aot_status_t aoth_step_take_gradients(aoth_step_t *s);
void aoth_step_replan(aoth_step_t *s); /* variants.c: every call, before it runs again */
/* step_keys.c: the port that a key means; 0: none. The gradient of a leaf, if there is one now. */
int aoth_step_port_of(const aoth_step_t *s, const char *key, int32_t *out_kind, uint32_t *out_index);
uint32_t aoth_step_leaf_of(const aoth_step_t *s, const char *key); /* AOT_NO_ID: none */
int aoth_step_gradient(const aoth_step_t *s, uint32_t leaf, aoth_tensor_t *out);

const char *aoth_role_what(int32_t role); /* step_plan.c, for messages: "a saved value" */
/* step_plan.c: the rules with numbers for dimensions; those that are not known yet are left for later, or an error. */
aot_status_t aoth_step_rules(aoth_step_t *s, int may_be_open);

/* step_submit.c */
int aoth_step_is_at_home(const aoth_step_call_t *c, uint32_t output); /* it is in the memory of an input */
aot_status_t aoth_step_give_lr(const aoth_step_t *s, const aoth_step_call_t *c, double lr);
int aoth_step_is_settled(const aoth_step_t *s, const aoth_step_call_t *c);
aot_status_t aoth_step_bind_ports(aoth_step_t *s, aoth_step_call_t *c, int fresh_alone);
aot_status_t aoth_step_run(aoth_step_t *s, aoth_step_call_t *c, const aot_output_sink_t *open); /* ports are bound */
/* The call is on the queue: what it writes is the device's. */
void aoth_step_written(aoth_step_t *s, const aoth_step_call_t *c, int fresh_alone);

/* step_dynamic.c: sizes that the run reports. */
aot_status_t aoth_step_run_open(aoth_step_t *s, aoth_step_call_t *c); /* outputs' memory is had during the run */
aot_status_t aoth_step_place_open(aoth_step_t *s);                    /* after forward: ports of the backward, rules */

const aoth_step_call_t *
aoth_step_first(const aoth_step_t *s); /* the call that takes the user inputs: forward or step */

#endif
