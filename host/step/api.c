/* aothost.h over session, pipeline and step. Messages are collected by the sink; after every call the new part is
 * handed on. */
#include <step/api.h>

#include <aot/inline.h>
#include <ir/aliasing.h>
#include <pipeline/compile.h>
#include <pipeline/crash.h>
#include <step/tensor.h>
#include <stdlib.h>
#include <string.h>

struct aothost {
  aoth_sink_t *sink;
  aoth_session_t *session;
  aoth_pipeline_t *pipeline;   /* NULL when borrowed */
  const aoth_pipeline_t *plan; /* the pipeline in use */
  aoth_step_t *step;
  int owned;   /* sink, session and pipeline are ours */
  void *model; /* the caller's model at a better address; NULL: where he has it */
  aothost_message_t message;
  void *message_self;
  size_t told;                              /* bytes of the sink's text that were handed on */
  uint32_t counted[AOT_SEVERITY_ERROR + 1]; /* reports of at least each severity, then */
  uint32_t flags;                           /* of the compile */
  int contains;                             /* crashes, until it is closed */
  aoth_arena_t *results;                    /* geometry of tensors got; until the next call that runs or resets */
};

/* Hand on what was said during a call, and pass its status through. */
static aot_status_t tell(aothost_t *h, aot_status_t status) {
  const char *text = h->owned ? aoth_sink_text(h->sink) : NULL;
  size_t size = text ? strlen(text) : 0;
  int32_t worst = AOT_SEVERITY_NOTE;
  if (size <= h->told) return status;
  for (int32_t severity = AOT_SEVERITY_NOTE; severity <= AOT_SEVERITY_ERROR; severity++) {
    uint32_t n = aoth_sink_count(h->sink, severity);
    if (n > h->counted[severity]) worst = severity;
    h->counted[severity] = n;
  }
  if (h->message) h->message(h->message_self, worst, text + h->told);
  h->told = size;
  return status;
}

static aot_status_t refuse(aothost_t *h, aot_status_t status, const char *what) {
  aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "api.order", "%s", what);
  return tell(h, status);
}

/* The model that the caller has in memory, at an address where a mapped file could be: importers and kernels count
 * on it. */
static aot_status_t take_model(aothost_t *h, const aothost_config_t *c, aoth_overrides_t *out) {
  const void *data = c->model_data;
  out->model = c->model;
  if (!data) return AOT_OK;
  if ((uintptr_t)data % AOTH_ALIGN != 0) {
    if (c->model_nbytes >= SIZE_MAX / 2 || posix_memalign(&h->model, AOTH_ALIGN, (size_t)c->model_nbytes + 1) != 0)
      return refuse(h, AOT_E_EXHAUSTED, "no memory to copy the model");
    data = memcpy(h->model, data, (size_t)c->model_nbytes);
  }
  if (!out->model) out->model = "model";
  out->model_bytes = (aot_str_t){data, c->model_nbytes};
  return AOT_OK;
}

static aot_status_t open_owned(aothost_t *h, const char *path, aot_str_t text, const aothost_config_t *c) {
  aoth_session_config_t config = {
      .sink = h->sink,
      .plugin_dirs = c->plugin_dirs,
      .n_plugin_dirs = c->n_plugin_dirs,
      .no_cache = (c->flags & AOTHOST_NO_CACHE) != 0,
  };
  aoth_overrides_t overrides = {.sets = c->sets, .n_sets = c->n_sets, .text = text};
  h->session = aoth_session_create(&config);
  if (!h->session) return refuse(h, AOT_E_EXHAUSTED, "no memory for a session");
  AOT_TRY(take_model(h, c, &overrides));
  AOT_TRY(aoth_pipeline_load(path, &overrides, h->sink, &h->pipeline));
  h->plan = h->pipeline;
  return aoth_pipeline_check(h->session, h->pipeline);
}

static aot_status_t open_handle(const char *path, aot_str_t text, const aothost_config_t *config, aothost_t **out) {
  aothost_config_t c = {0};
  aothost_t *h = calloc(1, sizeof *h);
  *out = h;
  if (!h) return AOT_E_EXHAUSTED;
  h->owned = 1;
  h->sink = aoth_sink_create(NULL);
  if (!h->sink) {
    free(h);
    *out = NULL;
    return AOT_E_EXHAUSTED;
  }
  if (config && aot_import(&c, sizeof c, config) != AOT_OK)
    return refuse(h, AOT_E_TOO_NEW, "the configuration was made for a newer version of this library");
  h->message = c.message;
  h->message_self = c.message_self;
  if (c.flags & AOTHOST_CONTAIN) {
    h->contains = aoth_contain_begin();
    if (!h->contains) return refuse(h, AOT_E_EXHAUSTED, "no thread, or no memory, to contain crashes with");
  }
  return tell(h, open_owned(h, path, text, &c));
}

aot_status_t aothost_open(const char *pipeline, const aothost_config_t *config, aothost_t **out) {
  return open_handle(pipeline, (aot_str_t){0}, config, out);
}
aot_status_t aothost_open_text(const char *text, uint64_t nbytes, const char *name, const aothost_config_t *config,
                               aothost_t **out) {
  return open_handle(name, (aot_str_t){text, nbytes}, config, out);
}

aothost_t *aoth_api_wrap(aoth_session_t *session, const aoth_pipeline_t *pipeline) {
  aothost_t *h = calloc(1, sizeof *h);
  if (!h) {
    aoth_sink_report(aoth_session_sink(session), AOT_SEVERITY_ERROR, NULL, "api.memory", "no memory for a handle");
    return NULL;
  }
  h->session = session;
  h->plan = pipeline;
  h->sink = aoth_session_sink(session);
  return h;
}

void aothost_close(aothost_t *h) {
  if (!h) return;
  aoth_step_destroy(h->step);
  aoth_arena_destroy(h->results);
  if (h->owned) {
    aoth_session_destroy(h->session);
    aoth_pipeline_destroy(h->pipeline);
    aoth_sink_destroy(h->sink);
  }
  free(h->model);
  if (h->contains) aoth_contain_end();
  free(h);
}

const char *aothost_messages(const aothost_t *h) { return aoth_sink_text(h->sink); }
aoth_step_t *aoth_api_step(aothost_t *h) { return h->step; }

static aot_status_t run_exe(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open) {
  const aothost_t *h = self;
  return aoth_session_run_exe(h->session, what, symbols, open);
}

/* Inputs share memory: the same stages over the same model, with that in the program's boundary. */
static aot_status_t specialise(void *self, const aoth_aliasing_t *a, aot_prog_t **out_prog, aoth_pattern_t *out) {
  const aothost_t *h = self;
  uint64_t begin = aoth_now_ns();
  AOT_TRY(aoth_pipeline_specialise(h->session, h->plan, h->flags, a, &out->program, &out->is_cached));
  *out_prog = aoth_session_prog(h->session);
  out->ms = (double)(aoth_now_ns() - begin) / 1e6;
  return AOT_OK;
}

static void select_program(void *self, uint32_t program) { aoth_session_select(((aothost_t *)self)->session, program); }

static aot_status_t compile(aothost_t *h, uint32_t flags) {
  const aoth_exec_t exec = {
      .self = h,
      .run = run_exe,
      .specialise = specialise,
      .select = select_program,
      .max_patterns = h->plan->run.alias_patterns,
  };
  h->flags = flags & AOTHOST_OPTIMIZER ? AOTH_STAGES_OPTIMIZER | (flags & AOTHOST_STEP ? AOTH_STAGES_STITCH : 0) : 0;
  h->results = aoth_arena_create();
  if (!h->results) return refuse(h, AOT_E_EXHAUSTED, "no memory for results");
  AOT_TRY(aoth_pipeline_compile(h->session, h->plan, h->flags));
  if (!aoth_session_exe(h->session)) {
    aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "run.backend",
                     "the pipeline %s has no backend stage, so there is nothing to run; end its stages with a backend, "
                     "such as backend-ref",
                     h->plan->path ? h->plan->path : "");
    return AOT_E_PRECONDITION;
  }
  AOT_TRY(aoth_step_create(aoth_session_prog(h->session), &exec, h->sink, &h->step));
  aoth_step_seed(h->step, h->plan->run.seed, 0);
  return AOT_OK;
}

aot_status_t aothost_compile(aothost_t *h, uint32_t flags) {
  if (!h->plan) return refuse(h, AOT_E_PRECONDITION, "the pipeline was not opened");
  if (h->results) return refuse(h, AOT_E_PRECONDITION, "the pipeline was compiled before");
  return tell(h, compile(h, flags));
}

uint32_t aothost_n_inputs(const aothost_t *h) { return h->step ? aoth_step_n_inputs(h->step) : 0; }
uint32_t aothost_n_outputs(const aothost_t *h) { return h->step ? aoth_step_n_outputs(h->step) : 0; }
int aothost_has_backward(const aothost_t *h) { return h->step && aoth_step_has(h->step, AOT_GRAPH_BACKWARD); }
int aothost_has_update(const aothost_t *h) { return h->step && aoth_step_has(h->step, AOT_GRAPH_UPDATE); }
int aothost_has_step(const aothost_t *h) { return h->step && aoth_step_has(h->step, AOT_GRAPH_STEP); }

/* ---- steps ---- */

/* Every call that runs or resets begins and ends here. What was got before is no longer valid at its end, and not
 * sooner: it may be what the call was given. */
static aot_status_t begin(aothost_t *h) {
  return h->step ? AOT_OK : refuse(h, AOT_E_PRECONDITION, "the pipeline is not compiled yet");
}
static aot_status_t end(aothost_t *h, aot_status_t status) {
  aoth_arena_reset(h->results);
  return tell(h, status);
}

static aot_status_t bad_tensor(aothost_t *h, const char *what, uint32_t k) {
  aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "api.tensor",
                   "%s %u is no tensor that can be read: it must be on the CPU, and its sizes and strides must stay "
                   "inside its storage",
                   what, k);
  return tell(h, AOT_E_INVALID);
}

/* A tensor of the caller, checked against its own storage. */
static int import_tensor(const aot_tensor_t *from, aoth_tensor_t *out) {
  uint64_t reach;
  return (!from->device || from->device == AOT_DEVICE_CPU) && aot_dtype_size(from->dtype) &&
         aoth_tensor_from(from, out) && aoth_tensor_extent(out, &reach) && reach <= out->nbytes &&
         (reach == 0 || out->data);
}

static int by_place(const void *a, const void *b) {
  const aoth_tensor_t *x = *(aoth_tensor_t *const *)a, *y = *(aoth_tensor_t *const *)b;
  return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : (uintptr_t)x->data > (uintptr_t)y->data;
}

/* Storages that overlap are copied in one piece, so that they go on sharing what they share. 0: no memory. */
static int keep_run(aoth_tensor_t **run, uint32_t n, uint64_t nbytes, aoth_arena_t *arena) {
  const char *begin = run[0]->data;
  char *copy = aoth_arena_copy(arena, AOTH_ALIGN, begin, (size_t)nbytes);
  for (uint32_t i = 0; copy && i < n; i++) run[i]->data = copy + ((const char *)run[i]->data - begin);
  return copy != NULL;
}

/* Inputs that are results of the step itself: its memory is about to be used anew. 0: no memory. */
static int keep_inputs(const aothost_t *h, aoth_tensor_t *list, uint32_t n, aoth_arena_t *arena) {
  aoth_tensor_t **ours = aoth_arena_alloc(arena, 16, ((size_t)n + 1) * sizeof *ours);
  uint32_t n_ours = 0;
  if (!ours) return 0;
  for (uint32_t k = 0; k < n; k++)
    if (aoth_step_owns(h->step, list[k].data)) ours[n_ours++] = &list[k];
  qsort(ours, n_ours, sizeof *ours, by_place);
  for (uint32_t first = 0, last; first < n_ours; first = last) {
    uint64_t end = ours[first]->nbytes, at;
    for (last = first + 1; last < n_ours; last++) {
      at = (uint64_t)((const char *)ours[last]->data - (const char *)ours[first]->data);
      if (at >= end) break;
      if (at + ours[last]->nbytes > end) end = at + ours[last]->nbytes;
    }
    if (!keep_run(ours + first, last - first, end, arena)) return 0;
  }
  return 1;
}

/* to_caller: inputs that the program writes get their new numbers where the caller has them. lr: of a whole step;
 * NULL: a forward. */
static aot_status_t run_inputs(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs, int to_caller,
                               const double *lr, aoth_arena_t *arena) {
  aoth_tensor_t *list = aoth_arena_alloc(arena, 16, ((size_t)n_inputs + 1) * sizeof *list);
  if (!list) return refuse(h, AOT_E_EXHAUSTED, "no memory for the inputs");
  for (uint32_t k = 0; k < n_inputs; k++)
    if (!import_tensor(&inputs[k], &list[k])) return bad_tensor(h, "input", k);
  for (uint32_t k = 0; to_caller && k < n_inputs; k++)
    if (aoth_step_owns(h->step, list[k].data))
      return refuse(h, AOT_E_INVALID,
                    "a result of an earlier call cannot be written in place: its memory is used anew; pass a copy");
  if (!keep_inputs(h, list, n_inputs, arena)) return refuse(h, AOT_E_EXHAUSTED, "no memory for the inputs");
  AOT_TRY(lr ? aoth_step_whole(h->step, list, n_inputs, *lr) : aoth_step_forward(h->step, list, n_inputs));
  if (to_caller) aoth_step_store_inputs(h->step, list);
  return AOT_OK;
}

static aot_status_t run_with(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs, int to_caller,
                             const double *lr) {
  AOT_TRY(begin(h));
  aoth_arena_t *arena = aoth_arena_create();
  aot_status_t status = arena ? run_inputs(h, inputs, n_inputs, to_caller, lr, arena)
                              : refuse(h, AOT_E_EXHAUSTED, "no memory for the inputs");
  aoth_arena_destroy(arena);
  return end(h, status);
}

aot_status_t aothost_forward(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs) {
  return run_with(h, inputs, n_inputs, 0, NULL);
}
aot_status_t aothost_forward_in_place(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs) {
  return run_with(h, inputs, n_inputs, 1, NULL);
}
aot_status_t aothost_step(aothost_t *h, const aot_tensor_t *inputs, uint32_t n_inputs, double lr) {
  return run_with(h, inputs, n_inputs, 0, &lr);
}

/* No tangents at all: one for the loss. */
static aot_status_t backward_of_loss(aothost_t *h) {
  aoth_tensor_t loss, one;
  double storage;
  if (!aoth_step_get(h->step, "output.0", &loss) || aoth_tensor_numel(&loss) != 1 || !aot_dtype_is_float(loss.dtype))
    return refuse(h, AOT_E_PRECONDITION,
                  "output 0 is not one float number (or there was no forward); give tangents to the backward");
  one = aoth_tensor_make(&storage, loss.dtype, loss.rank, loss.sizes);
  aoth_tensor_fill(&one, 1);
  const aoth_tensor_t *list[1] = {&one};
  return end(h, aoth_step_backward(h->step, list, 1));
}

aot_status_t aothost_backward(aothost_t *h, const aot_tensor_t *tangents, uint32_t n_tangents) {
  AOT_TRY(begin(h));
  if (!tangents) return backward_of_loss(h);
  aoth_tensor_t *list = calloc((size_t)n_tangents + 1, sizeof *list);
  const aoth_tensor_t **pointers = calloc((size_t)n_tangents + 1, sizeof *pointers);
  aot_status_t status = list && pointers ? AOT_OK : refuse(h, AOT_E_EXHAUSTED, "no memory for the tangents");
  for (uint32_t k = 0; k < n_tangents && status == AOT_OK; k++) {
    if (!tangents[k].data && !tangents[k].nbytes) continue;
    pointers[k] = &list[k];
    if (!import_tensor(&tangents[k], &list[k])) status = bad_tensor(h, "tangent", k);
  }
  if (status == AOT_OK) status = aoth_step_backward(h->step, pointers, n_tangents);
  free(pointers);
  free(list);
  return end(h, status);
}

aot_status_t aothost_update(aothost_t *h, double lr) {
  AOT_TRY(begin(h));
  return end(h, aoth_step_update(h->step, lr));
}

aot_status_t aothost_apply(aothost_t *h, double lr) {
  AOT_TRY(begin(h));
  return end(h, aoth_step_apply(h->step, lr));
}

aot_status_t aothost_reset(aothost_t *h) {
  AOT_TRY(begin(h));
  return end(h, aoth_step_reset(h->step));
}

aot_status_t aothost_seed(aothost_t *h, int64_t seed, int64_t offset) {
  AOT_TRY(begin(h));
  aoth_step_seed(h->step, seed, offset);
  return AOT_OK;
}

int64_t aothost_offset(const aothost_t *h) { return h->step ? aoth_step_offset(h->step) : 0; }

aot_status_t aothost_get(const aothost_t *h, const char *key, aot_tensor_t *out) {
  aoth_tensor_t t, *kept;
  if (!h->step || !aoth_step_get(h->step, key, &t)) return AOT_E_NOT_FOUND;
  kept = aoth_arena_copy(h->results, 16, &t, sizeof t);
  if (!kept) return AOT_E_EXHAUSTED;
  *out = aoth_tensor_view(kept);
  return AOT_OK;
}

aot_status_t aothost_set(aothost_t *h, const char *key, const aot_tensor_t *value) {
  aoth_tensor_t t;
  AOT_TRY(begin(h));
  if (!import_tensor(value, &t)) return bad_tensor(h, "value", 0);
  aot_status_t status = aoth_step_set(h->step, key, &t);
  if (status == AOT_E_NOT_FOUND)
    aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "api.key",
                     "there is no %s; keys are param.NAME, buffer.NAME, state.NAME", key);
  return tell(h, status);
}
