/* The rounds: every arm takes the same step once, in turn, A B C A B C ..; the others stand still meanwhile. */
#include <cli/ab/ab.h>

#include <aot/inline.h>
#include <trainer/interrupt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int aoth_ab_alive(const aoth_ab_arm_run_t *a) { return a->worker.fate == AOTH_CHILD_FINE; }

static int64_t timeout_ms(const aoth_ab_t *ab) { return (int64_t)(ab->timeout * 1000); }

void aoth_ab_progress(const aoth_ab_t *ab, const char *format, ...) {
  va_list args;
  if (ab->cli->common.quiet || !isatty(STDERR_FILENO)) return;
  fputs("\r\033[K", stderr);
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fflush(stderr);
}

/* ---- results on their way ---- */

/* The file is unlinked as soon as it is mapped. */
static void keep(aoth_ab_t *ab, uint32_t arm, int which) {
  aoth_ab_arm_run_t *a = &ab->arms[arm];
  aoth_request_t r = {.what = AOTH_AB_KEEP, .is_patient = 1};
  snprintf(r.path, sizeof r.path, "%s/%u.safetensors", ab->folder, arm);
  json_t *answer = aoth_child_ask(&a->worker, &r, "results", timeout_ms(ab));
  json_decref(answer);
  if (answer && aoth_st_open(r.path, ab->cli->sink, &a->results[which]) != AOT_OK) a->results[which] = NULL;
  unlink(r.path);
}

static void keep_all(aoth_ab_t *ab, int which) {
  for (uint32_t i = 0; i < ab->n_arms; i++)
    if (aoth_ab_alive(&ab->arms[i])) keep(ab, i, which);
}

/* ---- rounds ---- */

static double number(const json_t *o, const char *key) { return json_number_value(json_object_get(o, key)); }

/* Every other process goes backwards: what follows whom does not always are there. */
static void one_round(aoth_ab_t *ab, uint32_t step) {
  const int counts = step >= ab->n_warmup;
  const size_t at = (size_t)ab->n_done * ab->n_steps + (counts ? step - ab->n_warmup : 0);
  for (uint32_t k = 0; k < ab->n_arms; k++) {
    const uint32_t i = ab->n_done % 2 ? ab->n_arms - 1 - k : k;
    aoth_ab_arm_run_t *a = &ab->arms[i];
    const aoth_request_t r = {.what = AOTH_AB_STEP, .is_patient = 1, .number = step};
    json_t *answer = aoth_child_ask(&a->worker, &r, "run", timeout_ms(ab));
    if (answer && counts) {
      a->forward_ms[at] = number(answer, "forward_ms");
      a->backward_ms[at] = number(answer, "backward_ms");
      a->step_ms[at] = a->forward_ms[at] + a->backward_ms[at];
    }
    if (answer && step == 0) json_object_set(a->compiled, "tangents", json_object_get(answer, "tangents"));
    json_decref(answer);
  }
}

static int n_alive(const aoth_ab_t *ab) {
  int n = 0;
  for (uint32_t i = 0; i < ab->n_arms; i++) n += aoth_ab_alive(&ab->arms[i]);
  return n;
}

void aoth_ab_step_rounds(aoth_ab_t *ab) {
  const uint32_t n = ab->n_warmup + ab->n_steps;
  ab->n_rounds = 0;
  for (uint32_t step = 0; step < n && n_alive(ab) > 0 && !ab->interrupted; step++) {
    aoth_ab_progress(
        ab, "process %u of %u, %s %u of %u", ab->n_done + 1, ab->n_processes, step < ab->n_warmup ? "warm-up" : "round",
        step < ab->n_warmup ? step + 1 : step - ab->n_warmup + 1, step < ab->n_warmup ? ab->n_warmup : ab->n_steps);
    one_round(ab, step);
    if (step >= ab->n_warmup) ab->n_rounds++;
    if (step == 0 && ab->n_done == 0) keep_all(ab, 0);
    ab->interrupted = aoth_interrupt_asked();
  }
  if (ab->n_done == 0) keep_all(ab, 1);
  aoth_ab_progress(ab, "%s", "");
}

/* ---- what the times say ---- */

/* More draws where they cost nothing: the ends of narrow intervals are few of them. */
static aoth_bootstrap_t bootstrap(const aoth_ab_t *ab, double level) {
  return (aoth_bootstrap_t){level, (uint64_t)ab->n_done * ab->n_steps <= 1000 ? 10000 : 2000, (uint64_t)ab->seed};
}

aoth_sample_t aoth_ab_sample(const aoth_ab_t *ab, const double *times) {
  return (aoth_sample_t){times, ab->n_done, ab->n_steps};
}

void aoth_ab_weigh_compiles(aoth_ab_t *ab) {
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    aoth_ab_arm_run_t *a = &ab->arms[i];
    const aoth_sample_t stage = {a->stage_ms, a->n_compiled, 1}, all = {a->compile_ms, a->n_compiled, 1};
    const aoth_bootstrap_t how = {0.95, 2000, (uint64_t)ab->seed};
    a->stage = aoth_median_interval(&stage, how);
    a->compile = aoth_median_interval(&all, how);
  }
}

void aoth_ab_weigh_times(aoth_ab_t *ab) {
  const int others = n_alive(ab) - 1;
  ab->baseline = -1;
  ab->level = 1 - 0.05 / (others > 1 ? others : 1); /* Bonferroni: the verdicts together keep 95 % */
  for (uint32_t i = 0; i < ab->n_arms && ab->n_done; i++) {
    aoth_ab_arm_run_t *a = &ab->arms[i];
    if (!aoth_ab_alive(a)) continue;
    if (ab->baseline < 0) ab->baseline = i;
    const aoth_sample_t step = aoth_ab_sample(ab, a->step_ms), forward = aoth_ab_sample(ab, a->forward_ms),
                        backward = aoth_ab_sample(ab, a->backward_ms),
                        baseline = aoth_ab_sample(ab, ab->arms[ab->baseline].step_ms);
    a->step = aoth_median_interval(&step, bootstrap(ab, 0.95));
    a->forward = aoth_median_interval(&forward, bootstrap(ab, 0.95));
    a->backward = aoth_median_interval(&backward, bootstrap(ab, 0.95));
    if ((int64_t)i == ab->baseline) continue;
    a->ratio = aoth_ratio_interval(&baseline, &step, bootstrap(ab, ab->level));
    a->verdict = aoth_verdict(&baseline, &step, a->ratio);
  }
}
