/* A compiled program bound to tensors: one training step is forward, backward, update.
 *
 * The step owns every tensor at the boundary. Their sizes follow from the user inputs of a call (sizes.h); all that
 * does not live in leaves is in one block, planned when the sizes change:
 *
 *     | user inputs, user outputs, bases, gradients, tangents' and scalars' slots | saved values, updates of forward |
 *     |                                                                           | updates of the optimizer         |
 *
 * The block is the device's; so are leaves, and the host has copies of what it has requested
 * (device/mirrored_buffer.h). The saved values are dead when the optimizer runs, so its results take their place until
 * they are copied back. Tensors of data-dependent size (nonzero, masks) are outside the block, in separate
 * allocations (step_dynamic.c). Executables see the geometry of their ports; what the caller sees afterwards is the
 * boundary's business (boundary.h).
 *
 * Scalars stay on the device like all else: the seed and the learning rate are written when they are others than the
 * last time, the offset of random numbers is where the last call left it.
 *
 * Results go by the keys of expectation files: output.K, input_after.K, grad.NAME, grad.input.K, buffer_after.NAME;
 * leaves by param.NAME, buffer.NAME, state.NAME. */
#ifndef AOTH_STEP_H
#define AOTH_STEP_H

#include <aot/backend.h>
#include <ir/program.h>
#include <step/tensor.h>

/* A program that was compiled for inputs that share memory in one way (variants.h). */
typedef struct aoth_pattern {
  const char *text; /* aoth_aliasing_print */
  uint64_t n_calls;
  uint32_t program; /* the exec's number for it */
  int is_cached;    /* it came out of the compile cache */
  double ms;        /* to compile it */
} aoth_pattern_t;

/* How a graph is run; aoth_session_run_exe follows it, or a test's own function. */
struct aoth_aliasing;
typedef struct aoth_exec {
  void *self;
  struct aoth_queue *queue; /* on the device that the memory is of */
  /* Puts it on the queue. symbols: in and out (aot_submission_t), borrowed until it is done. open NULL: no output is
   * open. known: in and out: the number of what is bound (device/bound_calls.h); 0: it is to be looked at. */
  aot_status_t (*run)(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                      uint64_t *known);
  /* On several devices: the queue of the one that a leaf of the program lives on; NULL: `queue`. What a leaf of the
   * program that `run` runs holds: a number that grows with each change. NULL: there is one device. */
  struct aoth_queue *(*home)(void *self, const aot_prog_t *prog, uint32_t leaf);
  void (*leaf_is)(void *self, uint32_t leaf, uint64_t version);
  /* The program again, compiled for these inputs; `run` runs it from then on. out: program, is_cached, ms. NULL: inputs
   * are tensors of their own, whatever they share. */
  aot_status_t (*specialise)(void *self, const struct aoth_aliasing *a, aot_prog_t **out_prog, aoth_pattern_t *out);
  void (*select)(void *self, uint32_t program); /* which program `run` runs; 0: the first */
  uint32_t max_patterns;                        /* that specialise is requested */
} aoth_exec_t;

typedef struct aoth_step aoth_step_t;

/* Ports for which the caller may provide memory. */
enum { AOTH_LENT_INPUT = 1, AOTH_LENT_OUTPUT, AOTH_LENT_TANGENT, AOTH_LENT_SAVED, AOTH_LENT_GRADIENT };

/* prog, exec->self and sink are borrowed until destroy. Complains about a program that cannot be run (a joint graph
 * that was not divided, an update without a rule). */
aot_status_t aoth_step_create(aot_prog_t *prog, const aoth_exec_t *exec, aoth_sink_t *sink, aoth_step_t **out);
void aoth_step_destroy(aoth_step_t *s); /* NULL is fine */

/* After a failure: what the call that was last put on the queue was given, and leaves as they are: input.K, tangent.K,
 * param.NAME .., as the host has them, since the device may be what failed. data NULL: zeros. Tensors in device memory
 * alone are left out. `each` stops the walk with its status. */
aot_status_t aoth_step_given(const aoth_step_t *s,
                             aot_status_t (*each)(void *self, const char *key, const aoth_tensor_t *t), void *self);
typedef struct aoth_given_call {
  const char *name; /* "forward", "backward", "update", "step" or "apply" */
  int64_t seed, offset;
} aoth_given_call_t;
aoth_given_call_t aoth_step_given_call(const aoth_step_t *s);

int aoth_step_has(const aoth_step_t *s, int32_t graph_kind); /* a FORWARD, BACKWARD, UPDATE or STEP graph */
uint32_t aoth_step_n_inputs(const aoth_step_t *s);
uint32_t aoth_step_n_outputs(const aoth_step_t *s);
const aot_leaf_info_t *aoth_step_input(const aoth_step_t *s, uint32_t k); /* name, type, sample data of user input k */
int64_t aoth_step_loss(const aoth_step_t *s); /* number of the user output that the program marks as the loss, or -1 */
int aoth_step_takes_tangent(const aoth_step_t *s, uint32_t output);
int aoth_step_backward_reads(const aoth_step_t *s, const char *key); /* the leaf of this key is an input of it */
/* Number of the loss whose gradients the backward gives without being handed a tangent (a model exported with its
 * backward); -1: tangents are used. */
int64_t aoth_step_own_loss(const aoth_step_t *s);
/* For programs with explicit random numbers: the seed that they are given, and how many draws have been used. A
 * forward moves the offset on by a constant of the program; its backward is given the offset that the forward was
 * given. */
void aoth_step_seed(aoth_step_t *s, int64_t seed, int64_t offset);
int64_t aoth_step_offset(const aoth_step_t *s);

/* The caller's memory for a port of the entered call, from its next forward on; NULL: no longer. Borrowed until then,
 * or until the call is closed. Keys: input.K, output.K, tangent.K, saved.K, grad.NAME, grad.input.K. If its
 * layout is the program's nothing is copied; else results are copied into it, inputs out of it. AOT_E_NOT_FOUND: no
 * such key; a layout that does not fit is reported when the call is planned. */
aot_status_t aoth_step_lend(aoth_step_t *s, const char *key, const aoth_tensor_t *memory);
const aoth_tensor_t *aoth_step_lent_input(const aoth_step_t *s, uint32_t input); /* NULL: none */
int aoth_step_has_lent(const aoth_step_t *s, int32_t kind);
/* The same for a leaf, which has the contents of that memory from now on, and is updated there. NULL: it is copied to
 * memory of the step's. It must be whole, with the leaf's strides, and where programs may count on it. */
aot_status_t aoth_step_lend_leaf(aoth_step_t *s, const char *key, const aoth_tensor_t *memory);
/* A leaf where programs read and write it, for something else who keeps looking at it as long as the step lives. 0:
 * there is none, or the host cannot look there, or it is borrowed. */
int aoth_step_export_leaf(aoth_step_t *s, const char *key, aoth_tensor_t *out);
uint32_t aoth_step_n_saved(const aoth_step_t *s);
/* Sizes and places for inputs of these sizes; data may be NULL. Runs nothing. */
aot_status_t aoth_step_measure(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs);
/* The geometry of such a port in a planned call, nbytes that its storage needs; AOT_E_NOT_FOUND: it is None. */
aot_status_t aoth_step_shape(aoth_step_t *s, const char *key, aoth_tensor_t *out);

/* Inputs that are borrowed (all are the same descriptors, aoth_step_lent_input) stay where they are. Others are copied,
 * converted to the strides that the program was compiled for. Inputs that share memory are one memory to the program,
 * too, where it can determine: then another program is compiled (variants.h). */
aot_status_t aoth_step_forward(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs);
/* After a forward: what it changed in its inputs, written over `inputs`: the same tensors, with the geometry from
 * before the call. */
aot_status_t aoth_step_store_inputs(const aoth_step_t *s, const aoth_tensor_t *inputs);
/* tangents[k] belongs to user output k; NULL: zeros. May be called again with other tangents. A leaf that it reads and
 * that was changed since the forward: AOT_E_PRECONDITION, named. */
aot_status_t aoth_step_backward(aoth_step_t *s, const aoth_tensor_t *const *tangents, uint32_t n_tangents);
/* The same from output 0 with tangent 1, as loss.backward() has it. AOT_E_NOT_FOUND, without a complaint: it is not one
 * float number. */
aot_status_t aoth_step_backward_of_loss(aoth_step_t *s);
aot_status_t aoth_step_update(aoth_step_t *s, double lr);
/* Forward, backward and update in one graph (stage stitch), which leaves the loss, and new leaves in the place of
 * the old. inputs NULL: those of the last step, which are where they are used. */
aot_status_t aoth_step_whole(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs, double lr);
/* Where steps are micro steps: the update, of the gradients that they have added up. Else nothing. */
aot_status_t aoth_step_apply(aoth_step_t *s, double lr);
/* The same two without waiting: several may be queued; a failure is returned by the wait. */
aot_status_t aoth_step_put(aoth_step_t *s, const aoth_tensor_t *inputs, uint32_t n_inputs, double lr);
aot_status_t aoth_step_put_apply(aoth_step_t *s, double lr);
struct aoth_queue *aoth_step_queue(const aoth_step_t *s);
/* Ports whose tensors were looked at to put calls on the queue so far. Of a step that is the last one again, with
 * nothing moved in between, they are those that belong to calls: inputs, scalars, outputs; not parameters and
 * states. */
uint64_t aoth_step_looked_at(const aoth_step_t *s);
/* User output k of what was put last, where it lies: its data is not the host's. 0: there is none. */
int aoth_step_output(const aoth_step_t *s, uint32_t k, aoth_tensor_t *out);

/* Calls: each keeps what its forward left until it runs again or is closed, so that several forwards may be in flight
 * before their backwards. Call 0 is there from the beginning, and never closed. What runs, and what is read by key, is
 * of the call that was entered last; leaves are of all. */
aot_status_t aoth_step_open_call(aoth_step_t *s, uint32_t *out);
aot_status_t aoth_step_enter(aoth_step_t *s, uint32_t call);
void aoth_step_close_call(aoth_step_t *s, uint32_t call); /* 0 is entered, if it was this one */

aot_status_t aoth_step_reset(aoth_step_t *s); /* leaves as the model file has them; results are gone */

/* A result or leaf by key: 1, or 0 when there is none (yet). Borrowed until the next call that runs or resets. */
/* 0 also when the device fails, reported */
int aoth_step_get(const aoth_step_t *s, const char *key, aoth_tensor_t *out);
/* What the program says of that leaf: AOT_LEAF_*; 0: there is none of this key. */
uint32_t aoth_step_leaf_flags(const aoth_step_t *s, const char *key);
/* New contents for param.NAME, buffer.NAME or state.NAME: same dtype and sizes. AOT_E_NOT_FOUND without a complaint
 * when there is no such leaf. */
aot_status_t aoth_step_set(aoth_step_t *s, const char *key, const aoth_tensor_t *value);

/* All keys there are now, for writing files. `each` stops the walk with its status. */
#define AOTH_KEYS_OUTPUTS 1u   /* output.K, input_after.K of inputs that the call changed */
#define AOTH_KEYS_GRADIENTS 2u /* grad.NAME, grad.input.K */
#define AOTH_KEYS_LEAVES 4u    /* param.NAME, buffer.NAME, state.NAME by first names */
#define AOTH_KEYS_BUFFERS 8u   /* buffer.NAME alone: what a forward may change */
#define AOTH_KEYS_TYPES 16u /* with any of them: dtypes and sizes alone, `data` NULL; nothing is read from a device */
aot_status_t aoth_step_keys(const aoth_step_t *s, uint32_t which,
                            aot_status_t (*each)(void *self, const char *key, const aoth_tensor_t *t), void *self);

/* data is in a block of the step's, which forward uses again */
int aoth_step_owns(const aoth_step_t *s, const void *data);

/* Programs for inputs that share memory, in the order of their making; the first program is not among them. */
uint32_t aoth_step_n_patterns(const aoth_step_t *s);
const aoth_pattern_t *aoth_step_pattern(const aoth_step_t *s, uint32_t k);

typedef struct aoth_step_sizes {
  uint64_t nbytes_block;  /* of the planned block */
  uint64_t nbytes_saved;  /* saved values alone */
  uint64_t nbytes_leaves; /* leaves in memory of their own */
  uint64_t nbytes_copied; /* new values copied over old ones by the last call or step */
} aoth_step_sizes_t;
aoth_step_sizes_t aoth_step_sizes(const aoth_step_t *s);
uint64_t aoth_step_moved(const aoth_step_t *s);   /* bytes that went between host and device so far */
uint64_t aoth_step_crossed(const aoth_step_t *s); /* bytes that went from device to device within calls so far */

#endif
