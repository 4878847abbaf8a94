#include <sdk/conform/conform_backend_run.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <sandbox/call.h>
#include <config/options.h>
#include <stdio.h>
#include <string.h>
#include <trainer/trial/differences.h>
#include <unistd.h>

int aoth_backend_run_init(aoth_trial_t *t, aoth_backend_run_t *r) {
  *r = (aoth_backend_run_t){.pair = {*t->stage}};
  if (aoth_oracle_init(&r->oracle, t->s, NULL, AOTH_ORACLE_BACKEND) == AOT_OK &&
      aoth_stage_of_unit(t->s, AOTH_ORACLE_BACKEND, "backend/2", NULL, &r->pair[1]) == AOT_OK) {
    r->pair[0].name = "tried"; /* it may be backend-ref itself */
    r->oracle.n_steps = strcmp(t->stage->unit->kind, "backend/2") == 0 ? AOTH_BACKEND_STEPS : 0;
    r->oracle.timeout = t->c->line->timeout;
    return 1;
  }
  aoth_trial_end(t, AOTH_CONFORM_NOT, "there is no " AOTH_ORACLE_BACKEND);
  return 0;
}

void aoth_backend_run_deinit(aoth_backend_run_t *r) { aoth_oracle_deinit(&r->oracle); }

int aoth_backend_run_reference(aoth_trial_t *t, aoth_backend_run_t *r, aoth_oracle_answer_t *out) {
  r->oracle.n_stages = 0;
  aoth_oracle_ask(&r->oracle, NULL, NULL, out);
  if (out->end == AOTH_ORACLE_RAN) return 1;
  aoth_trial_end(t, AOTH_CONFORM_NOT, "%s does not run it: %s", AOTH_ORACLE_BACKEND, out->why);
  return 0;
}

int aoth_backend_results_agree(aoth_trial_t *t, const aoth_oracle_answer_t *got, const aoth_oracle_answer_t *wanted,
                               const char *as) {
  aoth_difference_t d;
  char text[512];
  if (!aoth_results_differ(got->results, wanted->results, aoth_program_tolerance(t->s->now.prog), &d)) return 1;
  aoth_difference_print(&d, as, text, sizeof text);
  aoth_trial_end(t, AOTH_CONFORM_FAILED, "%s", text);
  return 0;
}

/* What an answer without results says of the unit. */
static void judge(aoth_trial_t *t, const aoth_oracle_answer_t *a) {
  const int is_failure = a->end == AOTH_ORACLE_CRASHED || a->is_fault || a->is_late;
  aoth_trial_end(t, is_failure ? AOTH_CONFORM_FAILED : AOTH_CONFORM_REFUSED, "%s%s",
                 a->is_late ? "query accepted every node, and then it is refused: " : "", a->why);
}

static int ask(aoth_trial_t *t, aoth_backend_run_t *r, const aoth_stage_t *device, uint32_t n_stages,
               aoth_oracle_answer_t *out) {
  r->oracle.stages = r->pair;
  r->oracle.n_stages = n_stages;
  r->oracle.assign = n_stages > 1 ? &r->assign : NULL;
  r->oracle.device = device;
  r->oracle.is_guarded = device == NULL;
  aoth_oracle_ask(&r->oracle, NULL, NULL, out);
  r->status = out->status;
  if (out->end == AOTH_ORACLE_RAN) return 1;
  judge(t, out);
  return 0;
}

/* The first of the two has all that it takes, whatever it costs to move. */
static int make_assign(aoth_trial_t *t, aoth_backend_run_t *r, const aoth_stage_t *device) {
  char devices[128];
  snprintf(devices, sizeof devices, "devices=%s,", device ? device->use : "");
  const char *const withs[] = {"min-nodes=0", "move-delay=0", "move-rate=1000000000", devices};
  const char *kept[4];
  for (uint32_t i = 0; i < 4; i++) kept[i] = kit_arena_text(t->s->arena, withs[i], strlen(withs[i]));
  if (aoth_stage_from_flags("assign", kept, device ? 4 : 3, t->s->arena, t->s->config.sink, &r->assign) == AOT_OK &&
      aoth_stage_resolve(t->s, &r->assign, "pass/1", t->s->arena) == AOT_OK)
    return 1;
  aoth_trial_end(t, AOTH_CONFORM_NOT, "there is no stage assign, which divides a program among backends");
  return 0;
}

/* By itself, else before backend-ref. */
static int run(aoth_trial_t *t, aoth_backend_run_t *r, const aoth_stage_t *device, aoth_oracle_answer_t *got) {
  int has_run = ask(t, r, device, 1, got);
  if (t->end == AOTH_CONFORM_REFUSED && make_assign(t, r, device)) {
    t->end = AOTH_CONFORM_PASSED;
    aoth_oracle_answer_deinit(got);
    has_run = ask(t, r, device, 2, got);
  }
  return has_run;
}

void aoth_backend_run_compare(aoth_trial_t *t, aoth_backend_run_t *r, const aoth_stage_t *device,
                              const aoth_oracle_answer_t *wanted) {
  aoth_oracle_answer_t got = {0};
  aoth_stage_t own;
  int has_run = run(t, r, device, &got);
  if (t->end == AOTH_CONFORM_REFUSED && !device && aoth_trial_own_device(t, &own)) {
    t->end = AOTH_CONFORM_PASSED;
    aoth_oracle_answer_deinit(&got);
    has_run = run(t, r, &own, &got);
  }
  if (has_run && !wanted) aoth_trial_end(t, AOTH_CONFORM_FAILED, "a run ends well that fails on " AOTH_ORACLE_BACKEND);
  else if (!wanted && t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_PASSED;
  else if (wanted && t->end == AOTH_CONFORM_REFUSED && got.is_at_run)
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "it fails when it runs, which " AOTH_ORACLE_BACKEND " does not: %s",
                   got.why);
  else if (has_run && aoth_backend_results_agree(t, &got, wanted, AOTH_ORACLE_BACKEND) && !got.n_nodes)
    aoth_trial_end(t, AOTH_CONFORM_NOT, "no node of it was run by the unit");
  aoth_oracle_answer_deinit(&got);
}

int aoth_backend_run_alone(aoth_trial_t *t, aoth_backend_run_t *r, aoth_oracle_answer_t *out) {
  aoth_stage_t own;
  const int has_own = aoth_trial_own_device(t, &own);
  return ask(t, r, has_own ? &own : NULL, 1, out);
}
