/* Rules over programs: passes, partitions, backends. */
#include <sdk/conform/conform_backend_run.h>

#include <aot/ext/ranks.h>
#include <aot/inline.h>
#include <sandbox/call.h>
#include <string.h>
#include <sdk/conform/conform_host.h>

/* ---- whole programs ---- */

static void run_class(aoth_trial_t *t, const char *class) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, class, t->number);
  if (!p) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (aoth_trial_program(t, p)) aoth_trial_run(t);
}

void aoth_rule_plain(aoth_trial_t *t) { run_class(t, "plain"); }
void aoth_rule_empty(aoth_trial_t *t) { run_class(t, "empty"); }
void aoth_rule_unused(aoth_trial_t *t) { run_class(t, "unused"); }
void aoth_rule_dtypes(aoth_trial_t *t) { run_class(t, "dtype"); }
void aoth_rule_symbolic(aoth_trial_t *t) { run_class(t, "symbolic"); }
void aoth_rule_large(aoth_trial_t *t) { run_class(t, "large"); }

/* ---- results ---- */

/* Of a program that no run may end well of, as backend-ref has it: nor may one by the unit. */
static void stays_refused(aoth_trial_t *t, aoth_backend_run_t *r, int is_backend) {
  aoth_oracle_answer_t before = {0}, after = {0};
  if (aoth_backend_run_reference(t, r, &before)) {
    aoth_trial_end(t, AOTH_CONFORM_NOT, "backend-ref runs it");
  } else {
    t->end = AOTH_CONFORM_PASSED;
    if (is_backend) aoth_backend_run_compare(t, r, NULL, NULL);
    else if (aoth_trial_run(t) && aoth_backend_run_reference(t, r, &after))
      aoth_trial_end(t, AOTH_CONFORM_FAILED,
                     "before it a run of the program fails, as it has to, and after it none does: %s", before.why);
    else if (t->end == AOTH_CONFORM_NOT) t->end = AOTH_CONFORM_PASSED; /* as before */
  }
  aoth_oracle_answer_deinit(&before);
  aoth_oracle_answer_deinit(&after);
}

static void keeps_results(aoth_trial_t *t, aoth_backend_run_t *r, int is_backend) {
  aoth_oracle_answer_t before = {0}, after = {0};
  if (aoth_backend_run_reference(t, r, &before)) {
    if (is_backend) aoth_backend_run_compare(t, r, NULL, &before);
    else if (aoth_trial_run(t) && aoth_backend_run_reference(t, r, &after))
      aoth_backend_results_agree(t, &after, &before, "was");
  }
  aoth_oracle_answer_deinit(&before);
  aoth_oracle_answer_deinit(&after);
}

void aoth_rule_same_results(aoth_trial_t *t) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, NULL, t->number);
  const int is_backend = strcmp(t->stage->unit->kind, "backend/2") == 0;
  aoth_backend_run_t r;
  if (!p) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (!aoth_trial_program(t, p)) return;
  if (aoth_backend_run_init(t, &r)) {
    if (strcmp(p->class, "refused") == 0) stays_refused(t, &r, is_backend);
    else keeps_results(t, &r, is_backend);
  }
  aoth_backend_run_deinit(&r);
}

static int are_equal(const kit_text_t *a, const kit_text_t *b) {
  return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

void aoth_rule_deterministic(aoth_trial_t *t) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, NULL, t->number);
  kit_text_t first = {0}, second = {0};
  if (!p) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (aoth_trial_program(t, p) && aoth_trial_run(t)) {
    aoth_print(t->s->now.prog, &first);
    if (aoth_trial_program(t, p) && aoth_trial_run(t)) aoth_print(t->s->now.prog, &second);
    if (t->end == AOTH_CONFORM_PASSED && !are_equal(&first, &second))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "the second program is another one than the first");
  }
  kit_text_deinit(&first);
  kit_text_deinit(&second);
}

/* ---- 216: edits ---- */

/* Of the stage that has just run. */
static uint64_t edits_of_last(const aoth_trial_t *t) {
  return t->s->n_records ? t->s->records[t->s->n_records - 1].edits : 0;
}

void aoth_rule_edits(aoth_trial_t *t) {
  const aoth_conform_program_t *p;
  uint32_t n_run = 0;
  if (!aoth_trial_is_first(t)) return;
  aoth_hostile_install(t->c->plugin, t->s->arena);
  for (uint32_t i = 0; (p = aoth_trial_nth(t, NULL, i)); i++) {
    aoth_trial_about(t, "program %s", p->name);
    const int has_run = aoth_trial_program(t, p) && aoth_trial_run(t);
    if (t->end == AOTH_CONFORM_FAILED || (has_run && edits_of_last(t))) return;
    t->end = AOTH_CONFORM_PASSED; /* refused, or there is none for it */
    n_run += has_run != 0;
  }
  aoth_trial_about(t, "all programs");
  if (aoth_hostile_was_asked(AOT_EXT_RANKS))
    aoth_trial_end(t, AOTH_CONFORM_NOT, "it edits by the ranks of a run, and here is one");
  else
    aoth_trial_end(
        t, n_run ? AOTH_CONFORM_FAILED : AOTH_CONFORM_NOT,
        "it edited none of %u programs, so that nothing it does was tried; --program F.ir gives one that it edits",
        n_run);
}

/* ---- a host that does not do what it is queried ---- */

/* The program of rules that need but one. 0: there is none, and the trial has ended. */
static int first_program(aoth_trial_t *t) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, "plain", 0);
  if (p && aoth_trial_program(t, p)) return 1;
  t->end = t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT;
  return 0;
}

static void run_hostile(aoth_trial_t *t, int what, const char *about) {
  const uint64_t n = aoth_trial_spaced(t->number);
  if (!first_program(t)) return;
  aoth_trial_about(t, "%s %llu fails", about, (unsigned long long)n);
  aoth_hostile_install(t->c->plugin, t->s->arena);
  aoth_hostile_arm(what, n);
  aoth_trial_run(t);
  const int has_failed = aoth_hostile_has_failed();
  aoth_hostile_arm(0, 0);
  if (!has_failed) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "%s %llu fails (%s)", about, (unsigned long long)n, aoth_hostile_name());
  if (t->end == AOTH_CONFORM_REFUSED && t->s->status != AOT_E_EXHAUSTED) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "it answers status %d in place of AOT_E_EXHAUSTED", (int)t->s->status);
    return;
  }
  if (t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_PASSED;
}

void aoth_rule_run_memory(aoth_trial_t *t) { run_hostile(t, AOTH_HOSTILE_ALLOC, "allocation"); }
void aoth_rule_edits_fail(aoth_trial_t *t) { run_hostile(t, AOTH_HOSTILE_EDIT, "edit"); }

void aoth_rule_cancelled(aoth_trial_t *t) {
  if (!first_program(t)) return;
  aoth_hostile_install(t->c->plugin, t->s->arena);
  aoth_hostile_arm(AOTH_HOSTILE_CANCELLED, t->number);
  aoth_trial_about(t, "cancelled at question %u", t->number);
  aoth_trial_run(t);
  if (!aoth_hostile_has_failed()) {
    aoth_trial_end(t, t->number ? AOTH_CONFORM_NO_TRIAL : AOTH_CONFORM_NOT, "it never asks");
    return;
  }
  if (t->end == AOTH_CONFORM_REFUSED && t->s->status != AOT_E_CANCELLED) {
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "it answers status %d in place of AOT_E_CANCELLED", (int)t->s->status);
    return;
  }
  if (t->end == AOTH_CONFORM_REFUSED) t->end = AOTH_CONFORM_PASSED;
}

/* The second lives from before the first runs until after it is gone. */
void aoth_rule_two_units(aoth_trial_t *t) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, "plain", t->number);
  aoth_instance_t other;
  kit_text_t alone = {0}, again = {0}, beside = {0};
  if (!p) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (!aoth_trial_program(t, p) || !aoth_trial_run(t)) return;
  aoth_print(t->s->now.prog, &alone);
  if (aoth_trial_program(t, p) && aoth_trial_run(t)) aoth_print(t->s->now.prog, &again);
  if (!are_equal(&alone, &again)) { /* rule 208 reports that */
    t->end = AOTH_CONFORM_NOT;
  } else if (aoth_trial_judge(t, aoth_instance_try(t->s, t->stage, &other))) {
    if (aoth_trial_program(t, p) && aoth_trial_run(t)) aoth_print(t->s->now.prog, &beside);
    aoth_instance_destroy(t->s, t->stage, &other);
    if (t->end == AOTH_CONFORM_PASSED && !are_equal(&alone, &beside))
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "beside another one it makes another program");
  }
  kit_text_deinit(&alone);
  kit_text_deinit(&again);
  kit_text_deinit(&beside);
}

/* ---- the first program, in odd surroundings ---- */

static void run_now(aoth_trial_t *t) { aoth_trial_run(t); }

void aoth_rule_run_options(aoth_trial_t *t) {
  if (first_program(t)) aoth_trial_with_options(t, run_now);
}

void aoth_rule_run_extensions(aoth_trial_t *t) {
  if (first_program(t)) aoth_trial_without_extension(t, run_now);
}

void aoth_rule_run_surroundings(aoth_trial_t *t) {
  if (!aoth_trial_is_first(t) || !first_program(t)) return;
  aoth_trial_about(t, "create, run, destroy");
  aoth_trial_keeps_surroundings(t, run_now);
}
