/* aothost.h - the host as a library: open a pipeline, compile it, run steps on tensors, read results.
 *
 *     aothost_t *h;
 *     if (aothost_open("train.yaml", &config, &h) == AOT_OK && aothost_compile(h, AOTHOST_OPTIMIZER) == AOT_OK &&
 *         aothost_forward(h, inputs, 2) == AOT_OK && aothost_backward(h, NULL, 0) == AOT_OK)
 *       aothost_update(h, 1e-3);
 *     aothost_close(h);
 *
 * Tensors are aot_tensor_t of aot/base.h: storage, geometry, dtype. Those given are copied (unless they are bound, see
 * aothost_call_bind), and may be ones that were got; those got are borrowed until the next call that runs, resets or
 * closes (a leaf that is set may from then on stand elsewhere: get it again). Results have the keys of expectation
 * files:
 *
 *     output.K         user output K                   grad.NAME          gradient of a parameter, by any of its names
 *     input_after.K    user input K after the call     grad.input.K       gradient of user input K
 *     param.NAME  buffer.NAME  state.NAME              leaves as they are now (buffer_after.NAME is buffer.NAME)
 *
 * Every function answers AOT_OK or a status (-3: a plugin failed); the story goes to config.message, located and with a
 * hint.
 *
 * Threads: a handle, with its calls, serves one thread at a time, whichever; it may be opened in one and closed in
 * another. Handles share nothing, so several may be opened, compiled and run at once. A function is called by the
 * thread that has the handle, unless it is marked [any-thread]. config.message is called on the thread that called the
 * function. Plugins are loaded once in a process and never unloaded. What the caller gives (texts, tensors, config) is
 * the caller's and is read only while the function runs, unless it is bound; what it gets belongs to the handle. docs/
 * has it all in LIBRARY.md and THREADS.md.
 *
 * The process is the caller's too: no signal handler is installed, no signal blocked, no exit made, unless a handle is
 * opened with AOTHOST_CONTAIN. While such a handle is open, a plugin call that ends in SIGSEGV, SIGBUS, SIGFPE, SIGILL
 * or SIGABRT, or calls exit(), is named on the standard error with its stage and last node, leaves its bundle if one
 * was requested, and the process ends with status 3: what a crash leaves of memory and locks can not be worked on with.
 * Other crashes go to the handlers that were there before; these are put back when the last such handle is closed. */
#ifndef AOTHOST_H
#define AOTHOST_H

#include <aot/base.h>
#include <aot/diag.h>
#include <aot/status.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct aothost aothost_t;

/* text: one or more complete lines, as the command prints them; severity (AOT_SEVERITY_* of aot/diag.h) of the
 * worst. */
typedef void (*aothost_message_t)(void *self, int32_t severity, const char *text);

#define AOTHOST_NO_CACHE 1u /* recompile, keep nothing */
#define AOTHOST_CONTAIN 2u  /* name the plugin that crashes: see above */

typedef struct aothost_config {
  uint32_t struct_size; /* sizeof(aothost_config_t) */
  uint32_t n_sets, n_plugin_dirs;
  uint32_t flags;                 /* AOTHOST_NO_CACHE, AOTHOST_CONTAIN */
  const char *model;              /* model file, or what messages call model_data; NULL: the pipeline's, or "model" */
  const char *const *sets;        /* "stages.partition-mincut.distance-base=1.5" */
  const char *const *plugin_dirs; /* searched before the usual places */
  aothost_message_t message;      /* NULL: messages are stored for aothost_messages */
  void *message_self;
  /* The bytes of a model file, an archive or a text program, instead of a file. Borrowed until close, for parameters
   * may be read there; copied at once where the address is no multiple of 64. A text program has a name that ends in
   * .ir, or the pipeline says `import: ir`. NULL: the file is read. */
  const void *model_data;
  uint64_t model_nbytes;
  /* Which plugin files may be opened: those whose digests are in this file, as `aothost plugins --lock` writes it;
   * and, of others than aothost's own, those that a public key of this file has signed (`aothost sign`). A file that
   * cannot be read is an error of the open, one that is not let in an error of its plugin, -3. NULL: any may. */
  const char *lock, *keys;
} aothost_config_t;

/* Reads and checks the pipeline file. config may be NULL. On failure *out is NULL, unless memory allows a handle that
 * only holds the messages: aothost_close it in any case. [any-thread] */
aot_status_t aothost_open(const char *pipeline, const aothost_config_t *config, aothost_t **out);
/* The same of a pipeline's text, nbytes of YAML in UTF-8, which is copied. name is what messages call it, as they would
 * a file; paths in the text begin in the folder of that name. [any-thread] */
aot_status_t aothost_open_text(const char *text, uint64_t nbytes, const char *name, const aothost_config_t *config,
                               aothost_t **out);
void aothost_close(aothost_t *h);                 /* NULL is fine; exported tensors live on (aothost_dlpack.h) */
const char *aothost_messages(const aothost_t *h); /* everything reported so far */

#define AOTHOST_OPTIMIZER 1u /* also add run.train.optimizer's update to the program */
/* with OPTIMIZER: forward, backward and update as one graph (aothost_step), where run.train.step says so; none of them
 * by itself then */
#define AOTHOST_STEP 2u
/* Import the model, run the stages, load the executable. Once. */
aot_status_t aothost_compile(aothost_t *h, uint32_t flags);
/* What the handle compiles, now or later, is to stop: the stage that runs is queried to (its unit hears it by
 * aot_host_t.cancelled, also in a process of its own), those after it are not run, and aothost_compile, or the call
 * that compiles another program (aothost_forward), answers AOT_E_CANCELLED. A unit that never asks comes to its end
 * first. Calls of a compiled program continue to their end. While the handle is open: [any-thread], and in a signal
 * handler. */
void aothost_cancel(aothost_t *h);

/* The calling convention of the compiled program. */
uint32_t aothost_n_inputs(const aothost_t *h);
uint32_t aothost_n_outputs(const aothost_t *h);
int aothost_has_backward(const aothost_t *h);
int aothost_has_update(const aothost_t *h);
int aothost_has_step(const aothost_t *h);
/* Whether the backward reads this leaf (param.NAME, buffer.NAME, state.NAME): then it must not change between a forward
 * and the last of its backwards. */
int aothost_backward_reads(const aothost_t *h, const char *key);

/* Inputs may be the same tensor, or tensors that overlap: the program sees one memory where there is one. When that
 * matters (it writes an input), another program is compiled for the way in which they share it, up to
 * run.alias-patterns of them. */
aot_status_t aothost_forward(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs);
/* The same, and the new numbers of inputs that the program writes go to the caller's own memory, which then must be
 * writable. An input whose sizes and strides the program changes keeps its descriptor: input_after.K has the new
 * one. */
aot_status_t aothost_forward_in_place(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs);
/* tangents[k] belongs to user output k; data NULL with nbytes 0, and those beyond n: zeros. tangents NULL with n 0: one
 * for output 0, which must be one number (a loss). */
aot_status_t aothost_backward(aothost_t *h, const aot_tensor_t *tangents, uint32_t n_tangents);
aot_status_t aothost_update(aothost_t *h, double lr);
/* Forward, backward and update at once, of a program compiled with AOTHOST_STEP that has_step. Leaves output.N of the
 * loss, and the parameters, buffers and states after it; no other outputs and no gradients. inputs NULL: those of the
 * last step, as it has left them, on the device: nothing is copied. */
aot_status_t aothost_step(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs, double lr);
/* With run.train.accumulate aothost_step adds its gradients up only, and this updates by their sum, the mean over
 * micro steps. */
aot_status_t aothost_apply(aothost_t *h, double lr);
aot_status_t aothost_reset(aothost_t *h); /* leaves as in the model file, offset 0 */

/* Of a program whose random numbers are explicit (stage rng): what the next forward draws is a function of seed and
 * offset. Each forward moves the offset on; a run that continues from a saved offset draws what it would have drawn.
 * At first run.seed, 0. */
aot_status_t aothost_seed(aothost_t *h, int64_t seed, int64_t offset);
int64_t aothost_offset(const aothost_t *h);

/* AOT_E_NOT_FOUND: no such result; with run.ranks, the ranks' failure: there is none */
aot_status_t aothost_get(aothost_t *h, const char *key, aot_tensor_t *out);
aot_status_t aothost_set(aothost_t *h, const char *key, const aot_tensor_t *value); /* param., buffer., state. */

/* ---- calls in flight ---- */

/* A call of the program with memory of its own: what its forward left for its backward, its outputs, its gradients. A
 * handle has as many as the caller likes, which share parameters, buffers and states; any number of forwards may have
 * run before their backwards, which come in any order. The functions above are those of a first call, which every
 * handle has. A backward may be run again, with other tangents. One that reads a parameter or buffer that was changed
 * since its forward, by an update, a set, a reset or another forward, is refused with AOT_E_PRECONDITION, and says
 * which.
 *
 * A call belongs to its handle, and is used on the thread that uses the handle. It is closed before the handle is; one
 * that is not goes with it. */
typedef struct aothost_call aothost_call_t;
aot_status_t aothost_call_open(aothost_t *h, aothost_call_t **out); /* after compile; on failure *out is NULL */
void aothost_call_close(aothost_call_t *c);                         /* NULL is fine */

#define AOTHOST_IN_PLACE 1u /* as aothost_forward_in_place */
aot_status_t aothost_call_forward(aothost_call_t *c, const aot_tensor_t *inputs, uint32_t n_inputs, uint32_t flags);
aot_status_t aothost_call_backward(aothost_call_t *c, const aot_tensor_t *tangents, uint32_t n_tangents);
aot_status_t aothost_call_update(aothost_call_t *c, double lr); /* by the gradients of this call */
aot_status_t aothost_call_step(aothost_call_t *c, const aot_tensor_t *inputs, uint32_t n_inputs, double lr);

/* Memory of the caller's for a port of the call:
 *
 *     input.K  output.K  tangent.K  grad.NAME  grad.input.K      as in keys of results
 *     saved.K                                                    K below aothost_n_saved: what the forward keeps
 *
 * It is bound once, borrowed until it is unbound (memory NULL) or the call closed, and used by every run. Where it
 * lies as the program has it (dtype, sizes and strides as aothost_call_shape reports them, at a multiple of 64) the
 * program reads and writes it there: a run of a call that is bound so copies nothing. Elsewhere results are copied into
 * it and inputs out of it; saved values must lie so. Inputs, saved values and tangents are left alone between a forward
 * and the last of its backwards; a gradient may be changed before aothost_call_update, which takes what is there then.
 *
 * A call with inputs bound is given none (inputs NULL), and needs all of them bound; likewise tangents, of which those
 * that are not bound are zeros. Binding ends what the last forward left. AOT_E_NOT_FOUND: no such key. Memory that does
 * not fit is an error of the next forward, AOT_E_INVALID, and both shapes are reported; so is memory that a call writes
 * and that overlaps with other that is bound. */
aot_status_t aothost_call_bind(aothost_call_t *c, const char *key, const aot_tensor_t *memory);
uint32_t aothost_n_saved(const aothost_t *h);
/* What a forward with inputs of these sizes would need, without running it: their data may be NULL. inputs NULL: those
 * that are bound. Ends what the last forward left. */
aot_status_t aothost_call_plan(aothost_call_t *c, const aot_tensor_t *inputs, uint32_t n_inputs);
/* The tensor of a port of a planned call, without data; nbytes is what its memory needs. AOT_E_NOT_FOUND: it is None;
 * AOT_E_PRECONDITION: its size is known only when the call has run. Valid as a result is. */
aot_status_t aothost_call_shape(aothost_call_t *c, const char *key, aot_tensor_t *out);
/* A parameter, buffer or state in the caller's memory, whose contents it has from then on: programs read it there, and
 * updates write it there. Borrowed until unbound (memory NULL: the contents are copied) or the handle closed. It must
 * be of the leaf's dtype, sizes and strides, whole, at a multiple of 64: else AOT_E_INVALID. A caller who writes it
 * between a forward and its backward is not noticed. On a device that has memory of its own (run.device) the caller's
 * has the new values after aothost_get of the leaf. */
aot_status_t aothost_bind(aothost_t *h, const char *key, const aot_tensor_t *memory);

/* Results of this call, valid until it runs again or is closed; leaves as they are now. */
aot_status_t aothost_call_get(aothost_call_t *c, const char *key, aot_tensor_t *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
