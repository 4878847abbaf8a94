/* Rules of backends alone: what they answer when asked, and the bytes that they make. */
#include <tools/conform_trial.h>

#include <aot/inline.h>
#include <pipeline/backend_query.h>
#include <pipeline/call.h>
#include <stdlib.h>
#include <string.h>

typedef struct asking {
  aoth_trial_t *t;
  aoth_instance_t unit;
  aot_verdict_sink_t sink;
} asking_t;

static aot_status_t AOT_CALL put(const aot_verdict_sink_t *sink, const aot_verdict_t *verdict) {
  asking_t *a = sink->head.self;
  aot_verdict_t v;
  AOT_TRY(aot_import(&v, sizeof v, verdict));
  if (!v.accepted && !v.reason.size && a->t->end == AOTH_CONFORM_PASSED) {
    aoth_text_t node = {0};
    aoth_print_node(a->t->s->now.prog, v.node, &node);
    aoth_trial_end(a->t, AOTH_CONFORM_FAILED, "it refuses a node without a reason: %s", node.data ? node.data : "");
    aoth_text_deinit(&node);
  }
  return AOT_OK;
}

static aot_status_t do_query(void *arg) {
  asking_t *a = arg;
  return aoth_backend_query(a->t->s, a->t->stage, &a->unit, a->t->s->now.prog, &a->sink);
}

void aoth_rule_reasons(aoth_trial_t *t) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, NULL, t->number);
  asking_t a = {.t = t};
  a.sink = (aot_verdict_sink_t){.head = {.struct_size = sizeof a.sink, .self = &a}, .put = put};
  if (!p) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (!aoth_trial_program(t, p) || !aoth_trial_judge(t, aoth_instance_try(t->s, t->stage, &a.unit))) return;
  const aot_status_t status = aoth_call(t->s, t->stage, "query", do_query, &a);
  if (t->end == AOTH_CONFORM_PASSED) aoth_trial_judge(t, status);
}

void aoth_rule_artifacts(aoth_trial_t *t) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, NULL, t->number);
  if (!p) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (!aoth_trial_program(t, p) || !aoth_trial_run(t)) return;
  const uint64_t n = t->s->now.artifact_nbytes;
  void *first = malloc((size_t)n + 1);
  if (first) memcpy(first, t->s->now.artifact, (size_t)n);
  if (first && aoth_trial_program(t, p) && aoth_trial_run(t) &&
      (t->s->now.artifact_nbytes != n || memcmp(first, t->s->now.artifact, (size_t)n) != 0))
    aoth_trial_end(t, AOTH_CONFORM_FAILED, "the second artifact, of %llu bytes, is another one than the first, of %llu",
                   (unsigned long long)t->s->now.artifact_nbytes, (unsigned long long)n);
  free(first);
}
