/* What the process of an arm does: it is an `aothost run` in pieces, one piece a request. Whatever a plugin does here,
 * the comparison goes on without it. */
#include <tools/ab.h>

#include <aot/inline.h>
#include <pipeline/options.h>
#include <pipeline/registry.h>
#include <pipeline/stage_print.h>
#include <step/api.h>
#include <train/feed.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define TANGENT_SEED UINT64_C(0x9e3779b97f4a7c15) /* apart from the inputs' numbers */

typedef struct serving {
  const aoth_ab_job_t *job;
  aoth_pipeline_t *pipeline;
  const aoth_stage_t *stage; /* the arm's */
  aoth_watch_t watch;
  json_t *choice; /* of the last partitioner; NULL: none */
  aothost_t *host;
  aoth_step_t *step; /* NULL: the pipeline has no backend */
  aoth_data_spec_t data;
  int made_up; /* nobody named inputs: they are random */
  aoth_feed_t *feed;
  aoth_st_t *file; /* of the inputs, for tangents; NULL: none */
  aoth_random_t random;
  aoth_tensor_t *tangent; /* by user output */
  const aoth_tensor_t **tangents;
  const char *tangents_from;
  int64_t seed;
} serving_t;

/* ---- the pipeline with the arm in it ---- */

/* The arm's options over the file's own. */
static aot_status_t add_options(aoth_arena_t *arena, aoth_stage_t *stage, const aoth_yaml_t *with) {
  aoth_yaml_t *merged = stage->with ? aoth_yaml_copy(arena, stage->with) : NULL;
  if (!stage->with || !with) {
    if (with) stage->with = with;
    return AOT_OK;
  }
  for (uint32_t i = 0; merged && i < with->n; i++)
    if (!aoth_yaml_put(arena, merged, with->pairs[i].key, with->pairs[i].value)) merged = NULL;
  stage->with = merged;
  return merged ? AOT_OK : AOT_E_EXHAUSTED;
}

static aot_status_t place_arm(serving_t *v) {
  const aoth_ab_arm_t *arm = v->job->arm;
  aoth_stage_t *stage = &v->pipeline->stages[v->job->stage], made;
  AOT_TRY(aoth_stage_from_flags(arm->use ? arm->use : stage->use, arm->withs, arm->n_withs, v->pipeline->arena,
                                v->job->cli->sink, &made));
  if (!arm->use) return add_options(v->pipeline->arena, stage, made.with);
  if (strcmp(stage->name, stage->use) == 0) stage->name = made.use;
  stage->use = made.use;
  stage->with = made.with;
  stage->where = made.where;
  stage->at = NULL;
  return AOT_OK;
}

static json_t *options_json(const aoth_stage_t *stage) {
  json_t *o = json_object();
  for (uint32_t i = 0; i < stage->unit->desc.n_options; i++) {
    aoth_text_t name = {0}, value = {0};
    aoth_text_str(&name, stage->unit->options[i].name);
    aoth_print_option_value(&value, stage, i);
    json_object_set_new(o, name.data ? name.data : "", json_string(value.data ? value.data : ""));
    aoth_text_deinit(&name);
    aoth_text_deinit(&value);
  }
  return o;
}

static int has_backend(const aoth_pipeline_t *p) {
  return p->n_stages > 0 && strcmp(p->stages[p->n_stages - 1].unit->kind, "backend/2") == 0;
}

static aot_status_t check(serving_t *v, json_t *answer) {
  aoth_session_t *session = aoth_cli_session(v->job->cli);
  if (!session) return AOT_E_INVALID;
  AOT_TRY(aoth_pipeline_load(v->job->cli->positional[0], v->job->overrides, v->job->cli->sink, &v->pipeline));
  AOT_TRY(place_arm(v));
  AOT_TRY(aoth_pipeline_check(session, v->pipeline));
  v->stage = &v->pipeline->stages[v->job->stage];
  json_object_set_new(answer, "unit", json_string(v->stage->unit->id));
  json_object_set_new(answer, "kind", json_string(v->stage->unit->kind));
  json_object_set_new(answer, "plugin", json_string(v->stage->unit->plugin->note.id));
  json_object_set_new(answer, "version", json_string(v->stage->unit->version));
  json_object_set_new(answer, "options", options_json(v->stage));
  const aoth_stage_t *last = &v->pipeline->stages[v->pipeline->n_stages - 1];
  json_object_set_new(answer, "backend", has_backend(v->pipeline) ? json_string(last->use) : json_null());
  return AOT_OK;
}

/* ---- compiling ---- */

static void see_cut(void *self, aoth_session_t *s, const aoth_stage_t *stage, const aot_cut_t *cut) {
  serving_t *v = self;
  (void)stage;
  json_decref(v->choice);
  v->choice = aoth_ab_choice_json(aoth_session_prog(s), cut);
}

/* What made the inputs up, or where they come from; as `aothost run` has them. */
static aot_status_t open_inputs(serving_t *v) {
  const aoth_run_spec_t *run = &v->pipeline->run;
  const aoth_cli_t *cli = v->job->cli;
  v->data = run->train.present ? run->train.data : run->inputs;
  v->seed = v->job->has_seed ? v->job->seed : run->train.present ? run->train.seed : run->seed;
  v->made_up = v->data.kind == AOTH_DATA_NONE || v->data.kind == AOTH_DATA_RANDOM;
  if (v->made_up) v->data.kind = AOTH_DATA_RANDOM;
  aoth_random_seed(&v->random, (uint64_t)v->seed);
  aoth_step_seed(v->step, v->seed, 0);
  AOT_TRY(aoth_feed_open(&v->data, &(aoth_feed_ranks_t){.n = 1}, v->step, aoth_session_prog(cli->session), cli->sink,
                         &v->feed));
  if (v->data.kind == AOTH_DATA_SAFETENSORS) AOT_TRY(aoth_st_open(v->data.path, cli->sink, &v->file));
  const size_t n = aoth_step_n_outputs(v->step) + (size_t)1;
  v->tangent = calloc(n, sizeof *v->tangent);
  v->tangents = calloc(n, sizeof *v->tangents);
  return v->tangent && v->tangents ? AOT_OK : AOT_E_EXHAUSTED;
}

static aot_status_t compile(serving_t *v, json_t *answer) {
  aoth_session_t *session = v->job->cli->session;
  const uint64_t begin = aoth_now_ns();
  aot_status_t status;
  if (has_backend(v->pipeline)) {
    v->host = aoth_api_wrap(session, v->pipeline);
    status = v->host ? aothost_compile(v->host, 0) : AOT_E_EXHAUSTED;
    v->step = v->host ? aoth_api_step(v->host) : NULL;
  } else {
    status = aoth_pipeline_import(session, v->pipeline);
    if (status == AOT_OK) status = aoth_pipeline_run_stages(session, v->pipeline, 0);
  }
  const double ms = (double)(aoth_now_ns() - begin - v->watch.spent_ns) / 1e6;
  AOT_TRY(status);
  if (v->job->cli->common.time) aoth_records_print(session, stderr);
  const aoth_record_t *records;
  const uint32_t n = aoth_session_records(session, &records);
  double stage_ms = 0;
  for (uint32_t i = 0; i < n; i++)
    if (records[i].number == v->stage->number) stage_ms += records[i].ms;
  json_t *saved = aoth_ab_saved_json(aoth_session_prog(session));
  json_object_set_new(answer, "stage_ms", json_real(stage_ms));
  json_object_set_new(answer, "total_ms", json_real(ms));
  json_object_set_new(answer, "stages", aoth_records_json(session));
  json_object_set_new(answer, "saved", saved ? saved : json_null());
  json_object_set_new(answer, "choice", v->choice ? json_incref(v->choice) : json_null());
  if (!v->step) return AOT_OK;
  AOT_TRY(open_inputs(v));
  json_object_set_new(answer, "inputs", v->made_up ? json_string("random") : json_string(v->data.path));
  json_object_set_new(answer, "made_up", json_boolean(v->made_up));
  json_object_set_new(answer, "seed", json_integer(v->seed));
  json_object_set_new(answer, "backward", json_boolean(aoth_step_has(v->step, AOT_GRAPH_BACKWARD)));
  return AOT_OK;
}

/* ---- a step ---- */

static aot_status_t no_memory(const serving_t *v, const char *what) {
  aoth_sink_report(v->job->cli->sink, AOT_SEVERITY_ERROR, NULL, "ab.memory", "no memory for %s", what);
  return AOT_E_EXHAUSTED;
}

/* Room for a tangent of the output's geometry as the forward has just made it; kept from step to step. */
static aot_status_t fit_tangent(serving_t *v, uint32_t k, const aoth_tensor_t *output) {
  aoth_tensor_t *t = &v->tangent[k], fresh = aoth_tensor_make(NULL, output->dtype, output->rank, output->sizes);
  if (!t->data || t->nbytes != fresh.nbytes) {
    free(t->data);
    t->data = calloc(1, (size_t)fresh.nbytes + 1);
    if (!t->data) return no_memory(v, "the tangents");
  }
  fresh.data = t->data;
  *t = fresh;
  v->tangents[k] = t;
  return AOT_OK;
}

static int output_of(const serving_t *v, int64_t k, aoth_tensor_t *out) {
  char key[32];
  snprintf(key, sizeof key, "output.%lld", (long long)k);
  return k >= 0 && k < aoth_step_n_outputs(v->step) && aoth_step_get(v->step, key, out);
}

/* The output that is one float number and is to be minimised: as training says, the model, or the first; -1: there
 * is none. */
static int64_t find_loss(const serving_t *v) {
  const aoth_train_spec_t *train = &v->pipeline->run.train;
  const int64_t marked = aoth_step_loss(v->step), k = train->present ? train->loss : marked >= 0 ? marked : 0;
  aoth_tensor_t t;
  return output_of(v, k, &t) && aoth_tensor_numel(&t) == 1 && aot_dtype_is_float(t.dtype) &&
                 aoth_step_takes_tangent(v->step, (uint32_t)k)
             ? k
             : -1;
}

static uint32_t tangents_of_file(serving_t *v) {
  uint32_t found = 0;
  for (uint32_t k = 0; v->file && k < aoth_step_n_outputs(v->step); k++) {
    char key[32];
    snprintf(key, sizeof key, "tangent.%u", k);
    const aoth_st_entry_t *e = aoth_st_find(v->file, key);
    v->tangents[k] = e ? &e->tensor : NULL;
    found += e != NULL;
  }
  return found;
}

/* Normal numbers for every output that takes a tangent; of equal steps in every arm the same. */
static aot_status_t make_tangents(serving_t *v, int64_t step) {
  aoth_random_t r;
  aoth_random_seed(&r, ((uint64_t)v->seed ^ TANGENT_SEED) + (uint64_t)step);
  for (uint32_t k = 0; k < aoth_step_n_outputs(v->step); k++) {
    aoth_tensor_t output;
    v->tangents[k] = NULL;
    if (!aoth_step_takes_tangent(v->step, k) || !output_of(v, k, &output) || !aot_dtype_is_float(output.dtype))
      continue;
    AOT_TRY(fit_tangent(v, k, &output));
    const size_t size = (size_t)aot_dtype_size(output.dtype);
    for (int64_t i = 0, n = aoth_tensor_numel(v->tangents[k]); i < n; i++)
      aoth_tensor_store(output.dtype, (char *)v->tangent[k].data + (size_t)i * size, aoth_random_normal(&r));
  }
  return AOT_OK;
}

static aot_status_t set_tangents(serving_t *v, int64_t step) {
  v->tangents_from = "none: the program has a loss of its own";
  if (aoth_step_own_loss(v->step) >= 0) return AOT_OK;
  v->tangents_from = "the inputs' file";
  if (tangents_of_file(v)) return AOT_OK;
  const int64_t loss = find_loss(v);
  v->tangents_from = "random";
  if (loss < 0) return make_tangents(v, step);
  aoth_tensor_t output;
  v->tangents_from = "1 for the loss";
  if (!output_of(v, loss, &output)) return AOT_E_INTERNAL;
  AOT_TRY(fit_tangent(v, (uint32_t)loss, &output));
  aoth_tensor_fill(v->tangents[loss], 1);
  return AOT_OK;
}

static aot_status_t one_step(serving_t *v, int64_t number, json_t *answer) {
  const aoth_tensor_t *inputs;
  uint32_t n;
  AOT_TRY(aoth_feed_next(v->feed, &v->random, number, &inputs, &n));
  uint64_t begin = aoth_now_ns();
  AOT_TRY(aoth_step_forward(v->step, inputs, n));
  json_object_set_new(answer, "forward_ms", json_real((double)(aoth_now_ns() - begin) / 1e6));
  if (!aoth_step_has(v->step, AOT_GRAPH_BACKWARD)) return AOT_OK;
  AOT_TRY(set_tangents(v, number));
  begin = aoth_now_ns();
  AOT_TRY(aoth_step_backward(v->step, v->tangents, aoth_step_n_outputs(v->step)));
  json_object_set_new(answer, "backward_ms", json_real((double)(aoth_now_ns() - begin) / 1e6));
  json_object_set_new(answer, "tangents", json_string(v->tangents_from));
  return AOT_OK;
}

/* ---- results ---- */

typedef struct kept {
  aoth_arena_t *arena;
  aoth_st_entry_t *entries;
  uint32_t n, capacity;
} kept_t;

static aot_status_t keep_one(void *self, const char *key, const aoth_tensor_t *t) {
  kept_t *k = self;
  /* a forward and a backward leave them alone */
  if (strncmp(key, "param.", 6) == 0 || strncmp(key, "state.", 6) == 0) return AOT_OK;
  if (k->n == k->capacity) {
    const uint32_t capacity = k->capacity ? 2 * k->capacity : 64;
    aoth_st_entry_t *bigger = realloc(k->entries, capacity * sizeof *bigger);
    if (!bigger) return AOT_E_EXHAUSTED;
    k->entries = bigger;
    k->capacity = capacity;
  }
  const char *name = aoth_arena_text(k->arena, key, strlen(key));
  if (!name) return AOT_E_EXHAUSTED;
  k->entries[k->n++] = (aoth_st_entry_t){name, *t};
  return AOT_OK;
}

static aot_status_t keep_results(serving_t *v, const char *path) {
  kept_t k = {.arena = aoth_arena_create()};
  aot_status_t status = k.arena ? AOT_OK : AOT_E_EXHAUSTED;
  if (status == AOT_OK)
    status = aoth_step_keys(v->step, AOTH_KEYS_OUTPUTS | AOTH_KEYS_GRADIENTS | AOTH_KEYS_LEAVES, keep_one, &k);
  if (status == AOT_OK) status = aoth_st_write(path, k.entries, k.n, NULL, 0, v->job->cli->sink);
  if (status == AOT_E_EXHAUSTED) no_memory(v, "the results");
  free(k.entries);
  aoth_arena_destroy(k.arena);
  return status;
}

static aot_status_t finish(serving_t *v, json_t *answer) {
  struct rusage usage;
  aot_exe_stats_t stats;
  if (getrusage(RUSAGE_SELF, &usage) == 0) /* Linux counts KiB */
    json_object_set_new(answer, "peak_rss_bytes", json_integer((json_int_t)usage.ru_maxrss * 1024));
  if (!v->step) return AOT_OK;
  AOT_TRY(aoth_session_exe_stats(v->job->cli->session, &stats));
  const aoth_step_sizes_t sizes = aoth_step_sizes(v->step);
  json_object_set_new(answer, "arena_bytes", json_integer((json_int_t)stats.arena_nbytes));
  json_object_set_new(answer, "peak_intermediate_bytes", json_integer((json_int_t)stats.peak_nbytes));
  json_object_set_new(answer, "kernels", json_integer(stats.n_kernels));
  json_object_set_new(answer, "boundary_bytes", json_integer((json_int_t)sizes.nbytes_block));
  json_object_set_new(answer, "saved_bytes", json_integer((json_int_t)sizes.nbytes_saved));
  return AOT_OK;
}

/* ---- serving ---- */

static aot_status_t serve_one(serving_t *v, const aoth_ab_request_t *request, json_t *answer) {
  switch (request->what) {
    case AOTH_AB_CHECK: return check(v, answer);
    case AOTH_AB_COMPILE: return compile(v, answer);
    case AOTH_AB_STEP: return one_step(v, request->number, answer);
    case AOTH_AB_MEMORY: return aoth_ab_tell_memory(v->job->cli->session, v->pipeline, answer);
    case AOTH_AB_KEEP: return keep_results(v, request->path);
    default: return finish(v, answer);
  }
}

static int transfer(int fd, void *data, size_t n, int is_write) {
  for (char *at = data; n;) {
    const ssize_t k = is_write ? send(fd, at, n, MSG_NOSIGNAL) : recv(fd, at, n, 0);
    if (k <= 0) return 0;
    at += k;
    n -= (size_t)k;
  }
  return 1;
}

static int answer_with(int fd, json_t *answer) {
  char *text = json_dumps(answer, JSON_COMPACT);
  uint64_t size = text ? strlen(text) : 0;
  const int sent = text && transfer(fd, &size, sizeof size, 1) && transfer(fd, text, size, 1);
  free(text);
  return sent;
}

void aoth_ab_serve(void *job, int fd) {
  serving_t v = {.job = job};
  aoth_cli_t *cli = v.job->cli;
  aoth_ab_request_t request;
  v.watch = (aoth_watch_t){.self = &v, .cut = see_cut};
  cli->watch = &v.watch;
  cli->common.no_cache = 1; /* compiling is part of the comparison */
  if (v.job->dumps[0]) cli->common.dump_dir = v.job->dumps;
  if (v.job->bundles[0]) cli->common.bundle_dir = v.job->bundles;
  setenv("AOT_CACHE_DIR", v.job->cache, 1);
  cli->sink = aoth_sink_create(stderr); /* which is this arm's own by now */
  aoth_sink_min(cli->sink, cli->common.quiet     ? AOT_SEVERITY_ERROR
                           : cli->common.verbose ? AOT_SEVERITY_NOTE
                                                 : AOT_SEVERITY_WARNING);
  while (transfer(fd, &request, sizeof request, 0)) {
    json_t *answer = json_object();
    const aot_status_t status = serve_one(&v, &request, answer);
    if (status != AOT_OK) {
      json_object_set_new(answer, "failed", json_true());
      json_object_set_new(answer, "input", json_boolean(aoth_exit_code(status) == AOTH_EXIT_INPUT));
    }
    json_object_set_new(answer, "warnings", json_integer(aoth_sink_count(cli->sink, AOT_SEVERITY_WARNING)));
    fflush(NULL);
    if (!answer_with(fd, answer)) break;
    json_decref(answer);
  }
  _exit(0);
}
