/* What the process of an arm does: it is an `aothost run` in pieces, one piece a request. Whatever a plugin does here,
 * the comparison continues without it. */
#include <cli/ab/ab.h>

#include <cli/base/compile_report.h>
#include <aot/inline.h>
#include <sandbox/isolation.h>
#include <config/options.h>
#include <config/pipeline.h>
#include <plugin/registry.h>
#include <config/stage_print.h>
#include <step/api.h>
#include <trainer/trial/trial_step.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <trainer/tensors/step_file.h>

typedef struct server {
  const aoth_ab_job_t *job;
  aoth_pipeline_t *pipeline;
  const aoth_stage_t *stage; /* the arm's */
  aoth_watch_t watch;
  json_t *choice; /* of the last partitioner; NULL: none */
  aothost_t *host;
  aoth_step_t *step; /* NULL: the pipeline has no backend */
  aoth_trial_step_t trial;
} server_t;

/* ---- the pipeline with the arm in it ---- */

/* The arm's options over the file's own. */
static aot_status_t add_options(kit_arena_t *arena, aoth_stage_t *stage, const aoth_yaml_t *with) {
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

static aot_status_t place_arm(server_t *v) {
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
    kit_text_t name = {0}, value = {0};
    kit_text_str(&name, stage->unit->options[i].name);
    aoth_print_option_value(&value, stage, i);
    json_object_set_new(o, name.data ? name.data : "", json_string(value.data ? value.data : ""));
    kit_text_deinit(&name);
    kit_text_deinit(&value);
  }
  return o;
}

static int has_backend(const aoth_pipeline_t *p) {
  return p->n_stages > 0 && strcmp(p->stages[p->n_stages - 1].unit->kind, "backend/2") == 0;
}

static aot_status_t check(server_t *v, json_t *answer) {
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
  json_object_set_new(answer, "isolated", json_boolean(aoth_stage_is_isolated(session, v->stage)));
  const aoth_stage_t *last = &v->pipeline->stages[v->pipeline->n_stages - 1];
  json_object_set_new(answer, "backend", has_backend(v->pipeline) ? json_string(last->use) : json_null());
  return AOT_OK;
}

/* ---- compiling ---- */

static void see_cut(void *self, aoth_session_t *s, const aoth_stage_t *stage, const aot_cut_t *cut) {
  server_t *v = self;
  (void)stage;
  json_decref(v->choice);
  v->choice = aoth_ab_choice_json(aoth_session_prog(s), cut);
}

static aot_status_t compile(server_t *v, json_t *answer) {
  aoth_session_t *session = v->job->cli->session;
  const uint64_t begin = aoth_now_ns();
  aot_status_t status;
  if (has_backend(v->pipeline)) {
    v->host = aoth_api_wrap(session, v->pipeline, aoth_step_save_call);
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
  AOT_TRY(aoth_trial_step_init(&v->trial, v->step, aoth_session_prog(session), &v->pipeline->run,
                               v->job->has_seed ? &v->job->seed : NULL, v->job->cli->sink));
  json_object_set_new(answer, "inputs", v->trial.made_up ? json_string("random") : json_string(v->trial.data.path));
  json_object_set_new(answer, "made_up", json_boolean(v->trial.made_up));
  json_object_set_new(answer, "seed", json_integer(v->trial.seed));
  json_object_set_new(answer, "backward", json_boolean(aoth_step_has(v->step, AOT_GRAPH_BACKWARD)));
  return AOT_OK;
}

static aot_status_t one_step(server_t *v, int64_t number, json_t *answer) {
  AOT_TRY(aoth_trial_step_run(&v->trial, number));
  json_object_set_new(answer, "forward_ms", json_real(v->trial.forward_ms));
  if (!aoth_step_has(v->step, AOT_GRAPH_BACKWARD)) return AOT_OK;
  json_object_set_new(answer, "backward_ms", json_real(v->trial.backward_ms));
  json_object_set_new(answer, "tangents", json_string(v->trial.tangents_from));
  return AOT_OK;
}

static aot_status_t finish(server_t *v, json_t *answer) {
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

static aot_status_t serve_one(server_t *v, const aoth_request_t *request, json_t *answer) {
  switch (request->what) {
    case AOTH_AB_CHECK: return check(v, answer);
    case AOTH_AB_ISOLATE: v->pipeline->stages[v->job->stage].isolate = AOTH_ISOLATE_WORKER; return AOT_OK;
    case AOTH_AB_COMPILE: return compile(v, answer);
    case AOTH_AB_STEP: return one_step(v, request->number, answer);
    case AOTH_AB_MEMORY: return aoth_ab_tell_memory(v->job->cli->session, v->pipeline, answer);
    case AOTH_AB_KEEP: return aoth_trial_step_keep(&v->trial, request->path);
    default: return finish(v, answer);
  }
}

static aot_status_t serve_request(void *self, const aoth_request_t *request, json_t *answer) {
  server_t *v = self;
  const aot_status_t status = serve_one(v, request, answer);
  if (aoth_session_crashed(v->job->cli->session)) json_object_set_new(answer, "crashed", json_true());
  json_object_set_new(answer, "warnings", json_integer(aoth_sink_count(v->job->cli->sink, AOT_SEVERITY_WARNING)));
  return status;
}

void aoth_ab_serve(void *job, int fd) {
  server_t v = {.job = job};
  aoth_cli_t *cli = v.job->cli;
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
  aoth_child_serve(fd, serve_request, &v);
}
