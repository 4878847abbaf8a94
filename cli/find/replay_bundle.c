#include <cli/find/replay_bundle.h>

#include <aot/inline.h>
#include <base/file.h>
#include <jansson.h>
#include <step/api.h>
#include <trainer/tensors/safetensors.h>
#include <stdlib.h>
#include <string.h>
#include <cli/run/check_stages.h>
#include <unistd.h>
#include <trainer/tensors/step_file.h>

#define REPLAY_RATE 0.01 /* of updates, whose rate no bundle has */

static const char *in_bundle(const char *bundle, const char *name, char *room, size_t size) {
  snprintf(room, size, "%s/%s", bundle, name);
  return room;
}

/* ---- surroundings ---- */

/* The variables that units had read are set as they were then, by info.json, before the session is made.
 * out_check_stages: a stage may have failed by what its program computes. */
static aot_status_t read_surroundings(const char *bundle, aoth_sink_t *sink, int *out_check_stages) {
  char path[4096];
  json_error_t error;
  const char *name, *why = NULL;
  FILE *f = kit_file_stream(in_bundle(bundle, "info.json", path, sizeof path), &why);
  json_t *info = f ? json_loadf(f, 0, &error) : NULL, *value;
  if (f) fclose(f);
  if (!info) {
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "replay.bundle", "%s is no bundle: %s: %s", bundle, path,
                     f ? error.text : why);
    return AOT_E_INVALID;
  }
  json_object_foreach(json_object_get(info, "environment"), name, value) {
    if (json_is_string(value)) setenv(name, json_string_value(value), 1);
    else unsetenv(name);
  }
  *out_check_stages = json_is_true(json_object_get(info, "check_stages"));
  const char *version = json_string_value(json_object_get(info, "aothost"));
  if (version && strcmp(version, AOT_VERSION) != 0)
    aoth_sink_report(sink, AOT_SEVERITY_WARNING, NULL, "replay.version",
                     "the bundle was made by aothost %s, this is %s", version, AOT_VERSION);
  json_decref(info);
  return AOT_OK;
}

/* ---- a call ---- */

typedef struct call_state {
  aoth_step_t *step;
  const aoth_st_t *given;
  aoth_tensor_t *inputs;
  const aoth_tensor_t **tangents;
} call_state_t;

static const aoth_st_entry_t *numbered(const call_state_t *c, const char *prefix, uint32_t k) {
  char key[40];
  snprintf(key, sizeof key, "%s%u", prefix, k);
  return aoth_st_find(c->given, key);
}

static aot_status_t give(call_state_t *c, aoth_sink_t *sink) {
  const aoth_st_entry_t *e = aoth_st_entries(c->given);
  for (uint32_t i = 0; i < aoth_st_count(c->given); i++) {
    const aot_status_t status = aoth_step_set(c->step, e[i].name, &e[i].tensor);
    if (status != AOT_OK && status != AOT_E_NOT_FOUND) return status;
  }
  for (uint32_t k = 0; k < aoth_step_n_inputs(c->step); k++) {
    e = numbered(c, "input.", k);
    if (e) c->inputs[k] = e->tensor;
    if (e) continue;
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "replay.input", "the bundle lacks input %u: it lay on a device",
                     k);
    return AOT_E_INVALID;
  }
  for (uint32_t k = 0; k < aoth_step_n_outputs(c->step); k++) {
    e = numbered(c, "tangent.", k);
    c->tangents[k] = e ? &e->tensor : NULL;
  }
  return AOT_OK;
}

static aot_status_t call(call_state_t *c, aoth_sink_t *sink) {
  const char *which = aoth_st_meta(c->given, "call"), *seed = aoth_st_meta(c->given, "seed");
  const char *offset = aoth_st_meta(c->given, "offset");
  const uint32_t n = aoth_step_n_inputs(c->step);
  AOT_TRY(give(c, sink));
  if (seed && offset) aoth_step_seed(c->step, strtoll(seed, NULL, 10), strtoll(offset, NULL, 10));
  if (which && (strcmp(which, "step") == 0 || strcmp(which, "apply") == 0)) {
    AOT_TRY(aoth_step_whole(c->step, c->inputs, n, REPLAY_RATE));
    return aoth_step_apply(c->step, REPLAY_RATE);
  }
  AOT_TRY(aoth_step_forward(c->step, c->inputs, n));
  if (!which || strcmp(which, "forward") == 0) return AOT_OK;
  AOT_TRY(aoth_step_backward(c->step, c->tangents, aoth_step_n_outputs(c->step)));
  return strcmp(which, "update") == 0 ? aoth_step_update(c->step, REPLAY_RATE) : AOT_OK;
}

static aot_status_t run_call(aoth_cli_t *cli, const char *path, const aoth_pipeline_t *p) {
  aothost_t *h = aoth_api_wrap(cli->session, p, aoth_step_save_call);
  aoth_st_t *given = NULL;
  aot_status_t status = h ? aothost_compile(h, 0) : AOT_E_EXHAUSTED;
  call_state_t c = {.step = status == AOT_OK ? aoth_api_step(h) : NULL};
  if (status == AOT_OK) status = aoth_st_open(path, cli->sink, &given);
  if (status == AOT_OK) {
    c.given = given;
    c.inputs = calloc((size_t)aoth_step_n_inputs(c.step) + 1, sizeof *c.inputs);
    c.tangents = calloc((size_t)aoth_step_n_outputs(c.step) + 1, sizeof *c.tangents);
    status = c.inputs && c.tangents ? call(&c, cli->sink) : AOT_E_EXHAUSTED;
  }
  free(c.inputs);
  free(c.tangents);
  aoth_st_close(given);
  aothost_close(h);
  return status;
}

static aot_status_t run_bundle(aoth_cli_t *cli, const char *bundle, const aoth_pipeline_t *p) {
  char path[4096];
  in_bundle(bundle, AOTH_BUNDLE_CALL, path, sizeof path);
  if (access(path, F_OK) == 0) return run_call(cli, path, p);
  AOT_TRY(aoth_pipeline_import(cli->session, p));
  return aoth_pipeline_run_stages(cli->session, p, 0);
}

aot_status_t aoth_replay(aoth_cli_t *cli, const char *bundle) {
  char path[4096];
  int check_stages = 0;
  aoth_overrides_t overrides = {0};
  aoth_pipeline_t *p = NULL;
  aoth_stage_checks_t checks;
  in_bundle(bundle, "pipeline.yaml", path, sizeof path);
  aoth_stage_checks_init(&checks);
  cli->common.no_cache = 1;
  aot_status_t status = read_surroundings(bundle, cli->sink, &check_stages);
  if (check_stages) cli->watch = &checks.watch;
  if (status == AOT_OK) status = aoth_cli_pipeline(cli, path, &overrides, &p);
  if (status == AOT_OK && check_stages) status = aoth_stage_checks_begin(&checks, cli->session, NULL);
  if (status == AOT_OK) status = run_bundle(cli, bundle, p);
  aoth_stage_checks_deinit(&checks);
  aoth_pipeline_destroy(p);
  return status;
}
