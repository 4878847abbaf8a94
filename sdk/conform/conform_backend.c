/* Rules of backends: what they answer when queried, the bytes that they make, and where those run. */
#include <sdk/conform/conform_backend_run.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <compiler/backend_query.h>
#include <sandbox/call.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- verdicts ---- */

typedef struct query {
  aoth_trial_t *t;
  aoth_instance_t unit;
  aot_verdict_sink_t sink;
  uint8_t *has_verdict; /* by node; n_nodes of them */
  uint32_t n_nodes, n_accepted;
  char reason[300]; /* of the first refusal */
} query_t;

static void fail_at(query_t *a, aot_node_t n, const char *what) {
  kit_text_t node = {0};
  aoth_print_node(a->t->s->now.prog, n, &node);
  if (a->t->end == AOTH_CONFORM_PASSED)
    aoth_trial_end(a->t, AOTH_CONFORM_FAILED, "%s: %s", what, node.data ? node.data : "");
  kit_text_deinit(&node);
}

static aot_status_t AOT_CALL put(const aot_verdict_sink_t *sink, const aot_verdict_t *verdict) {
  query_t *a = sink->head.self;
  aot_verdict_t v;
  AOT_TRY(aot_import(&v, sizeof v, verdict));
  if (v.node.id < a->n_nodes) a->has_verdict[v.node.id] = 1;
  if (v.accepted) a->n_accepted++;
  if (!v.accepted && !v.reason.size) fail_at(a, v.node, "it refuses a node without a reason");
  if (!v.accepted && v.reason.size && !*a->reason)
    snprintf(a->reason, sizeof a->reason, "%.*s", (int)(v.reason.size < 250 ? v.reason.size : 250), v.reason.data);
  return AOT_OK;
}

static aot_status_t do_query(void *arg) {
  query_t *a = arg;
  return aoth_backend_query(a->t->s, a->t->stage, &a->unit, a->t->s->now.prog, &a->sink);
}

/* Every node of every graph, regions included, has got one. */
static void check_verdicts(query_t *a) {
  aot_prog_t *p = a->t->s->now.prog;
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n))
      if (n.id < a->n_nodes && !a->has_verdict[n.id]) fail_at(a, n, "it gives no verdict on a node");
}

/* The unit queried about the session's program. 0: the trial has ended. */
static int query(aoth_trial_t *t, query_t *a) {
  *a = (query_t){.t = t, .n_nodes = aoth_graph_n_nodes(t->s->now.prog)};
  a->sink = (aot_verdict_sink_t){.head = {.struct_size = sizeof a->sink, .self = a}, .put = put};
  a->has_verdict = calloc(a->n_nodes + 1u, 1);
  if (!a->has_verdict || !aoth_trial_judge(t, aoth_instance_try(t->s, t->stage, &a->unit))) return 0;
  const aot_status_t status = aoth_call(t->s, t->stage, "query", do_query, a);
  if (t->end != AOTH_CONFORM_PASSED || !aoth_trial_judge(t, status)) return 0;
  check_verdicts(a);
  free(a->has_verdict);
  aoth_instance_destroy(t->s, t->stage, &a->unit);
  return t->end == AOTH_CONFORM_PASSED;
}

/* The programs, then the first plain one with parameters as a forward and a backward graph. */
void aoth_rule_reasons(aoth_trial_t *t) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, NULL, t->number);
  const int is_last = !p && t->number && aoth_trial_nth(t, NULL, t->number - 1);
  query_t a;
  if (is_last) {
    p = aoth_trial_named(t, "plain-mlp");
    t->wants = AOTH_PROP_PARTITIONED;
  }
  if (!p) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s%s", p->name, is_last ? ", forward and backward" : "");
  if (aoth_trial_program(t, p)) query(t, &a);
}

/* ---- 603 ---- */

/* Nodes of it are accepted: are they run, on the host or on the plugin's own device? -1: the machine lacks what it
 * needs. */
static int is_run(aoth_trial_t *t, char why[600]) {
  aoth_backend_run_t r;
  aoth_oracle_answer_t wanted = {0};
  aot_status_t status = AOT_OK;
  if (aoth_backend_run_init(t, &r) && aoth_backend_run_reference(t, &r, &wanted)) {
    aoth_backend_run_compare(t, &r, NULL, &wanted);
    status = r.status;
  }
  aoth_oracle_answer_deinit(&wanted);
  aoth_backend_run_deinit(&r);
  if (t->end == AOTH_CONFORM_PASSED || t->end == AOTH_CONFORM_FAILED) return 1;
  memcpy(why, t->why, sizeof t->why);
  return t->end == AOTH_CONFORM_REFUSED && status != AOT_E_UNIMPLEMENTED ? -1 : 0;
}

void aoth_rule_takes_something(aoth_trial_t *t) {
  const aoth_conform_program_t *p;
  char why[600] = "it gave no reason";
  uint32_t n_asked = 0, n_accepted = 0;
  query_t a;
  if (!aoth_trial_is_first(t)) return;
  for (uint32_t i = 0; (p = aoth_trial_nth(t, NULL, i)); i++) {
    aoth_trial_about(t, "program %s", p->name);
    if (p->dtype || strcmp(p->class, "refused") == 0 || !aoth_trial_program(t, p)) {
      t->end = AOTH_CONFORM_PASSED; /* none for it */
      continue;
    }
    if (!query(t, &a)) return;
    n_asked++;
    n_accepted += a.n_accepted;
    if (!a.n_accepted && n_asked == 1) memcpy(why, a.reason, sizeof a.reason);
    const int found = a.n_accepted ? is_run(t, why) : 0;
    if (found) return;
    t->end = AOTH_CONFORM_PASSED;
  }
  aoth_trial_about(t, "all programs");
  aoth_trial_end(
      t, n_asked ? AOTH_CONFORM_FAILED : AOTH_CONFORM_NOT,
      "of %u programs it accepted %u nodes, and ran none: %.400s. --program F.ir gives a program of its operators",
      n_asked, n_accepted, why);
}

/* ---- 604: a device ---- */

/* Programs of dtypes are left out: there are many, and what they show does not come from where they run. */
static const aoth_conform_program_t *nth_without_dtypes(const aoth_trial_t *t) {
  const aoth_conform_program_t *p;
  uint32_t left = t->number;
  for (uint32_t i = 0; (p = aoth_trial_nth(t, NULL, i)); i++)
    if (!p->dtype && left-- == 0) return p;
  return NULL;
}

void aoth_rule_on_device(aoth_trial_t *t) {
  const aoth_conform_program_t *p = nth_without_dtypes(t);
  aoth_backend_run_t r;
  aoth_oracle_answer_t wanted = {0};
  aoth_stage_t device;
  if (!p) {
    aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (!aoth_trial_program(t, p) || !aoth_trial_device(t, &device)) return;
  aoth_trial_about(t, "program %s on device %s", p->name, device.use);
  if (aoth_backend_run_init(t, &r) && aoth_backend_run_reference(t, &r, &wanted))
    aoth_backend_run_compare(t, &r, &device, &wanted);
  aoth_oracle_answer_deinit(&wanted);
  aoth_backend_run_deinit(&r);
}

/* ---- 605: another process ---- */

void aoth_rule_other_process(aoth_trial_t *t) {
  const aoth_conform_program_t *p = aoth_trial_nth(t, t->number % 2 ? "step" : "plain", t->number / 2);
  aoth_backend_run_t r;
  aoth_oracle_answer_t wanted = {0}, got = {0};
  char path[512] = "";
  if (!p) {
    if (aoth_trial_nth(t, "plain", t->number / 2))
      t->end = AOTH_CONFORM_NOT; /* there are more of the one than of the other */
    else aoth_trial_none(t);
    return;
  }
  aoth_trial_about(t, "program %s", p->name);
  if (!aoth_trial_program(t, p)) return;
  if (aoth_backend_run_init(t, &r)) {
    snprintf(path, sizeof path, "%s/artifact", r.oracle.folder);
    r.oracle.keep = path;
    const int has_run = aoth_backend_run_alone(t, &r, &wanted);
    r.oracle.keep = NULL;
    r.oracle.load = path;
    if (has_run && aoth_backend_run_alone(t, &r, &got))
      aoth_backend_results_agree(t, &got, &wanted, "in the process that compiled it");
    if (t->end == AOTH_CONFORM_FAILED && has_run) {
      char why[sizeof t->why];
      memcpy(why, t->why, sizeof why);
      aoth_trial_end(t, AOTH_CONFORM_FAILED, "the artifact, loaded by another process: %.500s", why);
    }
    unlink(path);
  }
  aoth_oracle_answer_deinit(&wanted);
  aoth_oracle_answer_deinit(&got);
  aoth_backend_run_deinit(&r);
}

/* ---- 602: artifacts ---- */

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
