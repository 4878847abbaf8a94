/* The life of a handle: aothost.h over session and pipeline. Messages are collected by the sink; after every call the
 * new part is handed on. */
#include <step/api_handle.h>

#include <aot/inline.h>
#include <ir/aliasing.h>
#include <compiler/compile.h>
#include <process/crash.h>
#include <compiler/run_ranks.h>
#include <step/tensor.h>
#include <stdlib.h>
#include <string.h>

/* The model that the caller has in memory, at an address where a mapped file could be: importers and kernels count
 * on it. */
static aot_status_t take_model(aothost_t *h, const aothost_config_t *c, aoth_overrides_t *out) {
  const void *data = c->model_data;
  out->model = c->model;
  if (!data) return AOT_OK;
  if ((uintptr_t)data % AOTH_ALIGN != 0) {
    if (c->model_nbytes >= SIZE_MAX / 2 || posix_memalign(&h->model, AOTH_ALIGN, (size_t)c->model_nbytes + 1) != 0)
      return aoth_api_refuse(h, AOT_E_EXHAUSTED, "no memory to copy the model");
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
      .lock = c->lock,
      .keys = c->keys,
  };
  aoth_overrides_t overrides = {.sets = c->sets, .n_sets = c->n_sets, .text = text};
  h->session = aoth_session_create(&config);
  if (!h->session && aoth_sink_count(h->sink, AOT_SEVERITY_ERROR)) return AOT_E_INVALID; /* a lock, or keys */
  if (!h->session) return aoth_api_refuse(h, AOT_E_EXHAUSTED, "no memory for a session");
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
  aoth_api_hold(h);
  h->owned = 1;
  h->sink = aoth_sink_create(NULL);
  if (!h->sink) {
    free(h);
    *out = NULL;
    return AOT_E_EXHAUSTED;
  }
  if (config && aot_import(&c, sizeof c, config) != AOT_OK)
    return aoth_api_refuse(h, AOT_E_TOO_NEW, "the configuration was made for a newer version of this library");
  h->message = c.message;
  h->message_self = c.message_self;
  if (c.flags & AOTHOST_CONTAIN) {
    h->contains = aoth_contain_begin();
    if (!h->contains) return aoth_api_refuse(h, AOT_E_EXHAUSTED, "no thread, or no memory, to contain crashes with");
  }
  return aoth_api_tell(h, open_owned(h, path, text, &c));
}

aot_status_t aothost_open(const char *pipeline, const aothost_config_t *config, aothost_t **out) {
  return open_handle(pipeline, (aot_str_t){0}, config, out);
}
aot_status_t aothost_open_text(const char *text, uint64_t nbytes, const char *name, const aothost_config_t *config,
                               aothost_t **out) {
  return open_handle(name, (aot_str_t){text, nbytes}, config, out);
}

aothost_t *aoth_api_wrap(aoth_session_t *session, const aoth_pipeline_t *pipeline, aoth_save_call_t save_call) {
  aothost_t *h = calloc(1, sizeof *h);
  if (!h) {
    aoth_sink_report(aoth_session_sink(session), AOT_SEVERITY_ERROR, NULL, "api.memory", "no memory for a handle");
    return NULL;
  }
  aoth_api_hold(h);
  h->session = session;
  h->plan = pipeline;
  h->save_call = save_call;
  h->sink = aoth_session_sink(session);
  return h;
}

void aoth_api_hold(aothost_t *h) { atomic_fetch_add(&h->n_users, 1); }

void aoth_api_release(aothost_t *h) {
  if (atomic_fetch_sub(&h->n_users, 1) > 1) return;
  if (h->session) aoth_session_keep_calls(h->session, NULL, NULL);
  aoth_step_destroy(h->step);
  if (h->owned) {
    aoth_session_destroy(h->session);
    aoth_pipeline_destroy(h->pipeline);
    aoth_sink_destroy(h->sink);
  }
  free(h->model);
  if (h->contains) aoth_contain_end();
  free(h);
}

void aothost_close(aothost_t *h) {
  if (!h) return;
  aoth_api_calls_free(h);
  h->message = NULL;
  aoth_api_release(h);
}

const char *aothost_messages(const aothost_t *h) { return aoth_sink_text(h->sink); }
aoth_step_t *aoth_api_step(aothost_t *h) { return h->step; }

static aot_status_t run_exe(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                            uint64_t *known) {
  const aothost_t *h = self;
  return aoth_session_run_exe(h->session, what, symbols, open, known);
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

static struct aoth_queue *leaf_home(void *self, const aot_prog_t *prog, uint32_t leaf) {
  const aothost_t *h = self;
  return aoth_session_leaf_home(h->session, prog, leaf);
}

static void leaf_is(void *self, uint32_t leaf, uint64_t version) {
  const aothost_t *h = self;
  aoth_session_leaf_is(h->session, leaf, version);
}

static void select_program(void *self, uint32_t program) { aoth_session_select(((aothost_t *)self)->session, program); }

static aot_status_t save_call(void *self, const char *path, aoth_sink_t *sink) {
  const aothost_t *h = self;
  return h->save_call(h->step, path, sink);
}

static aot_status_t compile(aothost_t *h, uint32_t flags) {
  const aoth_exec_t exec = {
      .self = h,
      .queue = aoth_session_queue(h->session),
      .run = run_exe,
      .home = leaf_home,
      .leaf_is = aoth_session_has_several(h->session) ? leaf_is : NULL,
      .specialise = specialise,
      .select = select_program,
      .max_patterns = h->plan->run.alias_patterns,
  };
  h->flags = flags & AOTHOST_OPTIMIZER ? AOTH_STAGES_OPTIMIZER | (flags & AOTHOST_STEP ? AOTH_STAGES_STITCH : 0) : 0;
  if (aoth_api_call_init(&h->first, h) != AOT_OK) return aoth_api_refuse(h, AOT_E_EXHAUSTED, "no memory for results");
  AOT_TRY(aoth_pipeline_compile(h->session, h->plan, h->flags));
  if (!aoth_session_exe(h->session)) {
    aoth_sink_report(h->sink, AOT_SEVERITY_ERROR, NULL, "run.backend",
                     "the pipeline %s has no backend stage, so there is nothing to run; end its stages with a backend, "
                     "such as backend-ref",
                     h->plan->path ? h->plan->path : "");
    return AOT_E_PRECONDITION;
  }
  AOT_TRY(aoth_step_create(aoth_session_prog(h->session), &exec, h->sink, &h->step));
  if (h->save_call) aoth_session_keep_calls(h->session, save_call, h);
  aoth_step_seed(h->step, h->plan->run.seed, 0);
  return AOT_OK;
}

aot_status_t aothost_compile(aothost_t *h, uint32_t flags) {
  if (!h->plan) return aoth_api_refuse(h, AOT_E_PRECONDITION, "the pipeline was not opened");
  if (h->first.h) return aoth_api_refuse(h, AOT_E_PRECONDITION, "the pipeline was compiled before");
  const aot_status_t status = compile(h, flags);
  if (status != AOT_OK) aoth_session_give_up(h->session);
  return aoth_api_tell(h, status);
}

void aothost_cancel(aothost_t *h) {
  if (h->session) aoth_session_cancel(h->session);
}

uint32_t aothost_n_inputs(const aothost_t *h) { return h->step ? aoth_step_n_inputs(h->step) : 0; }
uint32_t aothost_n_outputs(const aothost_t *h) { return h->step ? aoth_step_n_outputs(h->step) : 0; }
uint32_t aothost_n_saved(const aothost_t *h) { return h->step ? aoth_step_n_saved(h->step) : 0; }
int aothost_has_backward(const aothost_t *h) { return h->step && aoth_step_has(h->step, AOT_GRAPH_BACKWARD); }
int aothost_has_update(const aothost_t *h) { return h->step && aoth_step_has(h->step, AOT_GRAPH_UPDATE); }
int aothost_has_step(const aothost_t *h) { return h->step && aoth_step_has(h->step, AOT_GRAPH_STEP); }
int aothost_backward_reads(const aothost_t *h, const char *key) {
  return h->step && aoth_step_backward_reads(h->step, key);
}
