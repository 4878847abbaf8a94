#include <trainer/trial/oracle.h>

#include <aot/inline.h>
#include <device/host_device.h>
#include <ir/tables.h>
#include <compiler/backend_stage.h>
#include <sandbox/call.h>
#include <compiler/devices.h>
#include <compiler/several_backends.h>
#include <sandbox/session.h>
#include <compiler/stage.h>
#include <compiler/stage_check.h>
#include <trainer/tensors/compare.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/trial/child.h>
#include <trainer/trial/trial_step.h>
#include <unistd.h>

#define N_TIMED 5

/* What completes a program, in this order. */
static const struct {
  const char *unit, *kind;
  uint32_t wants, lacks; /* it runs on programs that have all of the former and none of the latter */
} completing[] = {
    {"functionalize", "pass/1", 0, AOTH_PROP_FUNCTIONAL},
    {"rng", "pass/1", AOTH_PROP_FUNCTIONAL, AOTH_PROP_RNG_EXPLICIT | AOTH_PROP_JOINT | AOTH_PROP_PARTITIONED},
    {"partition-default", "partition/1", AOTH_PROP_JOINT, AOTH_PROP_PARTITIONED},
};

typedef struct query {
  const aoth_oracle_t *oracle;
  aoth_oracle_prepare_t prepare;
  void *self;
} query_t;

/* The stages, the first of which may run on a device of its own. */
static aot_status_t compile(const aoth_oracle_t *o, aoth_session_t *s) {
  aoth_stage_t *own = kit_arena_copy(s->arena, sizeof(void *), o->stages, o->n_stages * sizeof *own);
  if (!own) return AOT_E_EXHAUSTED;
  own[0].device = (aoth_stage_t *)(uintptr_t)o->device;
  const aoth_pipeline_t p = {.arena = s->arena, .stages = own, .n_stages = o->n_stages};
  AOT_TRY(aoth_session_take_devices(s, &p));
  if (!o->load) return aoth_session_run_backends(s, own, o->n_stages, o->assign);
  aoth_map_t map; /* as long as the process */
  AOT_TRY(aoth_file_map(o->load, s->config.sink, &map));
  return aoth_session_load_artifact(s, own, map.data, map.nbytes);
}

static aot_status_t complete(const aoth_oracle_t *o, aoth_session_t *s) {
  aoth_stage_t stage;
  for (size_t i = 0; i < sizeof completing / sizeof *completing; i++) {
    const uint32_t has = aoth_prog_properties(s->now.prog).known;
    if ((has & completing[i].wants) != completing[i].wants || has & completing[i].lacks) continue;
    AOT_TRY(aoth_stage_of_unit(s, completing[i].unit, completing[i].kind, NULL, &stage));
    AOT_TRY(aoth_session_run_list(s, &stage, 1));
  }
  if (o->n_stages) return compile(o, s);
  AOT_TRY(aoth_stage_of_unit(s, o->backend, "backend/2", NULL, &stage));
  return aoth_session_run_list(s, &stage, 1);
}

static aot_status_t exec(void *self, const aot_binding_t *what, int64_t *symbols, const aot_output_sink_t *open,
                         uint64_t *known) {
  return aoth_session_run_exe(self, what, symbols, open, known);
}

static struct aoth_queue *leaf_home(void *self, const aot_prog_t *prog, uint32_t leaf) {
  return aoth_session_leaf_home(self, prog, leaf);
}

static void leaf_is(void *self, uint32_t leaf, uint64_t version) { aoth_session_leaf_is(self, leaf, version); }

static aot_status_t time_steps(aoth_trial_step_t *trial, json_t *answer) {
  double best = 0;
  for (int64_t k = 1; k <= N_TIMED; k++) {
    const uint64_t begin = aoth_now_ns();
    AOT_TRY(aoth_trial_step_whole(trial, k));
    const double ms = (double)(aoth_now_ns() - begin) / 1e6;
    if (k == 1 || ms < best) best = ms;
  }
  json_object_set_new(answer, "ms", json_real(best));
  return AOT_OK;
}

static aot_status_t run(const aoth_oracle_t *o, aoth_session_t *s, const char *path, json_t *answer) {
  const aoth_exec_t how = {.self = s,
                           .queue = &s->queue,
                           .run = exec,
                           .home = leaf_home,
                           .leaf_is = aoth_session_has_several(s) ? leaf_is : NULL};
  aoth_step_t *step;
  aoth_trial_step_t trial;
  aot_exe_stats_t stats = {.struct_size = sizeof stats};
  AOT_TRY(aoth_step_create(s->now.prog, &how, s->config.sink, &step));
  AOT_TRY(aoth_trial_step_init(&trial, step, s->now.prog, o->run, NULL, s->config.sink));
  AOT_TRY(aoth_trial_step_fill_leaves(&trial, s->now.prog));
  for (int64_t k = 0; k == 0 || k < o->n_steps; k++) AOT_TRY(aoth_trial_step_whole(&trial, k));
  AOT_TRY(aoth_session_exe_stats(s, &stats));
  AOT_TRY(aoth_trial_step_keep(&trial, path));
  json_object_set_new(answer, "peak", json_integer((json_int_t)stats.peak_nbytes));
  return o->n_stages && !o->n_steps ? time_steps(&trial, answer) : AOT_OK;
}

static uint64_t count_nodes(aoth_session_t *s) {
  const aoth_share_t *shares;
  return aoth_session_shares(s, &shares) ? shares[0].n_nodes : aoth_count_nodes(s->now.prog);
}

static aot_status_t keep_artifact(const aoth_oracle_t *o, const aoth_session_t *s) {
  FILE *f = o->keep ? fopen(o->keep, "wb") : NULL;
  if (!f) return o->keep ? AOT_E_UNAVAILABLE : AOT_OK;
  const size_t n = (size_t)s->now.artifact_nbytes;
  const int is_whole = fwrite(s->now.artifact, 1, n, f) == n;
  return fclose(f) == 0 && is_whole ? AOT_OK : AOT_E_UNAVAILABLE;
}

/* At run time: a program or data at fault would be so for the reference, too, whichever of several backends is
 * blamed. */
static int is_refused_at_run(const aoth_oracle_t *o, const aoth_session_t *s) {
  if (!o->n_stages || !s->failed_doing || strcmp(s->failed_doing, "run") != 0) return 0;
  switch (s->status) {
    case AOT_E_INVALID:
    case AOT_E_NOT_FOUND:
    case AOT_E_PRECONDITION:
    case AOT_E_RANGE: return 1;
    default: return 0;
  }
}

/* Why it was refused: query is where a backend says what it does not take. */
static void tell_refusal(const aoth_oracle_t *o, const aoth_session_t *s, json_t *answer) {
  const int is_told = s->outcome == AOTH_CALL_TOLD || s->outcome == AOTH_CALL_OK;
  const int is_fault = !is_told || !aoth_is_refusal(s->status);
  const int is_its = o->n_stages && s->failed_doing && s->failed_unit == o->stages[0].unit;
  const int is_late = is_its && s->status == AOT_E_UNIMPLEMENTED &&
                      (strcmp(s->failed_doing, "compile") == 0 || strcmp(s->failed_doing, "run") == 0);
  json_object_set_new(answer, "status", json_integer(s->status));
  json_object_set_new(answer, "is_fault", json_boolean(is_fault));
  json_object_set_new(answer, "is_late", json_boolean(is_late));
  json_object_set_new(answer, "is_at_run", json_boolean(is_refused_at_run(o, s)));
}

void aoth_session_alone(aoth_session_t *s, aoth_sink_t *sink) {
  s->config.watch = NULL;
  s->config.bundle_dir = s->config.dump_dir = NULL;
  s->config.n_dump_after = s->config.check_replay = 0;
  s->config.sink = s->ctx.sink = sink;
  s->device = aoth_host_device();
}

aot_status_t aoth_oracle_as_it_was(void *self, aoth_session_t *s) {
  (void)self;
  aoth_journal_undo(s->now.prog);
  s->has_journal--;
  return AOT_OK;
}

aot_status_t aoth_oracle_as_it_is(void *self, aoth_session_t *s) { return aoth_stage_commit(s, self); }

/* The child ends after this: nothing is taken down. */
static aot_status_t answer_one(void *self, const aoth_request_t *request, json_t *answer) {
  const query_t *a = self;
  aoth_session_t *s = a->oracle->session;
  aoth_sink_t *sink = aoth_sink_create(NULL);
  char why[512];
  int end = AOTH_ORACLE_UNFIT;
  aoth_session_alone(s, sink);
  if (a->oracle->is_guarded) setenv("AOT_VALIDATE", "1", 1);
  s->outcome = AOTH_CALL_OK;
  s->status = AOT_OK;
  aot_status_t status = a->prepare ? a->prepare(a->self, s) : AOT_OK;
  if (status == AOT_OK) {
    end = AOTH_ORACLE_REFUSED;
    status = complete(a->oracle, s);
  }
  if (status == AOT_OK) status = keep_artifact(a->oracle, s);
  if (status == AOT_OK) json_object_set_new(answer, "n_nodes", json_integer((json_int_t)count_nodes(s)));
  if (status == AOT_OK) status = run(a->oracle, s, request->path, answer);
  if (status != AOT_OK) tell_refusal(a->oracle, s, answer);
  aoth_first_error(aoth_sink_text(sink), why, sizeof why);
  json_object_set_new(answer, "end", json_integer(status == AOT_OK ? AOTH_ORACLE_RAN : end));
  json_object_set_new(answer, "why", json_string(*why ? why : "it gave no reason"));
  return AOT_OK;
}

/* ---- in the parent ---- */

double aoth_program_tolerance(aot_prog_t *p) {
  double most = 0;
  for (uint32_t v = 1; v < aoth_graph_n_values(p); v++) {
    aot_type_t t;
    if (aoth_graph_value_type(p, (aot_value_t){v}, &t) != AOT_OK || t.kind != AOT_TYPE_TENSOR) continue;
    const double one = aot_dtype_is_float(t.dtype) ? aoth_usual_tolerance(t.dtype, 1) : 0;
    if (one > most) most = one;
  }
  return most;
}

aot_status_t aoth_oracle_init(aoth_oracle_t *o, aoth_session_t *s, const aoth_run_spec_t *run, const char *backend) {
  const char *tmp = getenv("TMPDIR");
  aoth_stage_t stage;
  *o = (aoth_oracle_t){.session = s, .run = run, .backend = backend, .timeout = 600};
  AOT_TRY(aoth_stage_of_unit(s, backend, "backend/2", NULL, &stage));
  snprintf(o->folder, sizeof o->folder, "%s/aothost-oracle-XXXXXX", tmp && *tmp ? tmp : "/tmp");
  if (mkdtemp(o->folder)) return AOT_OK;
  aoth_sink_report(s->config.sink, AOT_SEVERITY_ERROR, NULL, "oracle.folder",
                   "no folder for results on their way can be made in %s", tmp && *tmp ? tmp : "/tmp");
  o->folder[0] = 0;
  return AOT_E_INVALID;
}

void aoth_oracle_deinit(aoth_oracle_t *o) {
  if (o->folder[0]) rmdir(o->folder);
  o->folder[0] = 0;
}

static void take(const aoth_oracle_t *o, json_t *answer, const char *path, aoth_oracle_answer_t *out) {
  const char *why = json_string_value(json_object_get(answer, "why"));
  out->end = (int)json_integer_value(json_object_get(answer, "end"));
  out->ms = json_number_value(json_object_get(answer, "ms"));
  out->peak = (uint64_t)json_integer_value(json_object_get(answer, "peak"));
  out->n_nodes = (uint64_t)json_integer_value(json_object_get(answer, "n_nodes"));
  out->status = (aot_status_t)json_integer_value(json_object_get(answer, "status"));
  out->is_fault = json_is_true(json_object_get(answer, "is_fault"));
  out->is_late = json_is_true(json_object_get(answer, "is_late"));
  out->is_at_run = json_is_true(json_object_get(answer, "is_at_run"));
  if (out->end != AOTH_ORACLE_RAN) snprintf(out->why, sizeof out->why, "%s", why ? why : "");
  else if (aoth_st_open(path, o->session->config.sink, &out->results) != AOT_OK) out->end = AOTH_ORACLE_REFUSED;
}

void aoth_oracle_ask(aoth_oracle_t *o, aoth_oracle_prepare_t prepare, void *self, aoth_oracle_answer_t *out) {
  query_t asking = {o, prepare, self};
  aoth_served_t served = {answer_one, &asking};
  aoth_child_t child;
  aoth_request_t request = {.is_patient = 0};
  *out = (aoth_oracle_answer_t){.end = AOTH_ORACLE_CRASHED};
  snprintf(request.path, sizeof request.path, "%s/results.safetensors", o->folder);
  const int started = aoth_child_start(&child, aoth_child_serve_table, &served);
  json_t *answer = started ? aoth_child_ask(&child, &request, "run", (int64_t)(o->timeout * 1000)) : NULL;
  if (answer) take(o, answer, request.path, out);
  else snprintf(out->why, sizeof out->why, "%s", child.why ? child.why : "no process could be made");
  unlink(request.path); /* it is mapped */
  json_decref(answer);
  aoth_child_deinit(&child);
}

void aoth_oracle_answer_deinit(aoth_oracle_answer_t *a) {
  aoth_st_close(a->results);
  a->results = NULL;
}
