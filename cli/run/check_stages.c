#include <cli/run/check_stages.h>

#include <aot/inline.h>
#include <sandbox/call.h>
#include <string.h>
#include <trainer/trial/differences.h>
#include <trainer/trial/trial_step.h>
#include <unistd.h>

static void note(aoth_stage_checks_t *c, const char *stage, uint32_t n_keys, const char *why) {
  json_array_append_new(c->rows, json_pack("{s:s, s:b, s:i, s:s?}", "stage", stage, "compared", why == NULL, "keys",
                                           (int)n_keys, "why", why));
  c->n_compared += why == NULL;
  c->n_not += why != NULL;
}

static void not_compared(aoth_stage_checks_t *c, const aoth_stage_t *stage, const char *when, const char *why) {
  kit_text_t t = {0};
  kit_text_f(&t, "the program %s it does not run on %s: %s", when, c->oracle.backend, why);
  aoth_sink_report(aoth_session_sink(c->oracle.session), AOT_SEVERITY_NOTE, &stage->where, "stage.not-compared",
                   "results of stage %s are not compared: %s", stage->name, t.data ? t.data : "");
  note(c, stage->name, 0, t.data ? t.data : "no memory");
  kit_text_deinit(&t);
}

static aot_status_t compare(aoth_stage_checks_t *c, aoth_session_t *s, const aoth_stage_t *stage,
                            const aoth_oracle_answer_t *after) {
  aoth_difference_t d;
  char text[512];
  aoth_results_differ(after->results, c->before.results, aoth_program_tolerance(s->now.prog), &d);
  note(c, stage->name, d.n_keys, NULL);
  if (!d.n_differ) return AOT_OK;
  aoth_difference_print(&d, "was", text, sizeof text);
  aoth_contract_violation(s, stage, "changed what the program computes: %s", text);
  aoth_sink_line(s->config.sink, "hint: %u of %u results differ on %s; `aothost bisect` finds the edit", d.n_differ,
                 d.n_keys, c->oracle.backend);
  return s->status = AOT_E_CONTRACT;
}

static aot_status_t edited(void *self, aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_stage_checks_t *c = self;
  aoth_oracle_answer_t after;
  aot_status_t status = AOT_OK;
  if (!c->has_before) aoth_oracle_ask(&c->oracle, aoth_oracle_as_it_was, NULL, &c->before);
  c->has_before = 1;
  aoth_oracle_ask(&c->oracle, aoth_oracle_as_it_is, (void *)(uintptr_t)stage, &after);
  if (c->before.end != AOTH_ORACLE_RAN) not_compared(c, stage, "before", c->before.why);
  else if (after.end != AOTH_ORACLE_RAN) not_compared(c, stage, "after", after.why);
  else status = compare(c, s, stage, &after);
  aoth_oracle_answer_deinit(&c->before);
  c->before = after;
  return status;
}

void aoth_stage_checks_init(aoth_stage_checks_t *c) {
  *c = (aoth_stage_checks_t){.rows = json_array()};
  c->watch = (aoth_watch_t){.self = c, .edited = edited};
}

aot_status_t aoth_stage_checks_begin(aoth_stage_checks_t *c, aoth_session_t *s, const aoth_run_spec_t *run) {
  return aoth_oracle_init(&c->oracle, s, run, AOTH_ORACLE_BACKEND);
}

aot_status_t aoth_stage_checks_step(aoth_stage_checks_t *c, aoth_step_t *step, const char *backend) {
  aoth_sink_t *sink = aoth_session_sink(c->oracle.session);
  aot_prog_t *prog = aoth_session_prog(c->oracle.session);
  aoth_trial_step_t trial;
  aoth_st_t *results = NULL;
  aoth_difference_t d;
  char path[512], text[512];
  if (c->before.end != AOTH_ORACLE_RAN || !c->before.results) return AOT_OK;
  snprintf(path, sizeof path, "%s/step.safetensors", c->oracle.folder);
  aot_status_t status = aoth_trial_step_init(&trial, step, prog, c->oracle.run, NULL, sink);
  if (status == AOT_OK) status = aoth_trial_step_fill_leaves(&trial, prog);
  if (status == AOT_OK) status = aoth_trial_step_whole(&trial, 0);
  if (status == AOT_OK) status = aoth_trial_step_keep(&trial, path);
  if (status == AOT_OK) status = aoth_st_open(path, sink, &results);
  unlink(path);
  if (status == AOT_OK && aoth_results_differ(results, c->before.results, aoth_program_tolerance(prog), &d)) {
    aoth_difference_print(&d, c->oracle.backend, text, sizeof text);
    aoth_sink_report(sink, AOT_SEVERITY_ERROR, NULL, "stage.results", "results of %s differ from %s: %s", backend,
                     c->oracle.backend, text);
    status = AOTH_E_PLUGIN;
  }
  if (results) note(c, backend, d.n_keys, NULL);
  aoth_st_close(results);
  aoth_trial_step_deinit(&trial);
  const aot_status_t reset = aoth_step_reset(step);
  return status == AOT_OK ? reset : status;
}

void aoth_stage_checks_print(const aoth_stage_checks_t *c, FILE *out) {
  fprintf(out, "stages: %u keep the results, as %s has them", c->n_compared, c->oracle.backend);
  if (c->n_not) fprintf(out, "; %u not compared (-v says why)", c->n_not);
  fputc('\n', out);
}

void aoth_stage_checks_deinit(aoth_stage_checks_t *c) {
  aoth_oracle_answer_deinit(&c->before);
  aoth_oracle_deinit(&c->oracle);
  json_decref(c->rows);
}
