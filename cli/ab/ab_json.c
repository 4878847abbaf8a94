/* The comparison as JSON; its keys are in docs/AB.md. */
#include <cli/ab/ab.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *aoth_ab_outcome(const aoth_ab_arm_run_t *a) {
  static const char *const fates[] = {"ok", "failed", "crashed", "hung"};
  return a->worker.fate == AOTH_CHILD_FINE && a->differs ? "differs" : fates[a->worker.fate];
}

/* ---- choices that differ ---- */

typedef struct mark { /* an arm's word about a value */
  json_int_t id, nbytes;
  uint32_t arm;
  int is_saved;
  const json_t *row;
} mark_t;

typedef struct marks {
  mark_t *at;
  size_t n;
  uint32_t n_arms; /* whose choices can be compared */
} marks_t;

static int by_id(const void *a, const void *b) {
  const mark_t *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  return x->arm != y->arm ? (x->arm < y->arm ? -1 : 1) : y->is_saved - x->is_saved;
}

static const json_t *choice_of(const aoth_ab_arm_run_t *a) {
  const json_t *c = a->compiled ? json_object_get(a->compiled, "choice") : NULL;
  return c && json_is_object(c) ? c : NULL;
}

static void collect(marks_t *m, const json_t *choice, uint32_t arm, const char *key) {
  size_t i;
  json_t *row;
  json_array_foreach(json_object_get(choice, key), i, row) m->at[m->n++] =
      (mark_t){json_integer_value(json_object_get(row, "id")), json_integer_value(json_object_get(row, "bytes")), arm,
               strcmp(key, "saved") == 0, row};
}

/* Of the arms that chose over the same joint graph as the first. 0: no memory. */
static int collect_all(const aoth_ab_t *ab, marks_t *m) {
  const char *joint = NULL;
  size_t n = 0;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    const json_t *c = choice_of(&ab->arms[i]);
    n += json_array_size(json_object_get(c, "saved")) + json_array_size(json_object_get(c, "recomputed"));
  }
  *m = (marks_t){.at = calloc(n + 1, sizeof *m->at)};
  for (uint32_t i = 0; m->at && i < ab->n_arms; i++) {
    const json_t *c = choice_of(&ab->arms[i]);
    const char *its = c ? json_string_value(json_object_get(c, "joint")) : NULL;
    if (!its || (joint && strcmp(joint, its) != 0)) continue;
    joint = its;
    m->n_arms++;
    collect(m, c, i, "saved");
    collect(m, c, i, "recomputed");
  }
  if (m->at) qsort(m->at, m->n, sizeof *m->at, by_id);
  return m->at != NULL;
}

typedef struct group { /* of marks: one value */
  const mark_t *first;
  size_t n;
} group_t;

static int by_bytes(const void *a, const void *b) {
  const mark_t *x = ((const group_t *)a)->first, *y = ((const group_t *)b)->first;
  if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? 1 : -1;
  return (x->id > y->id) - (x->id < y->id);
}

static json_t *group_json(const aoth_ab_t *ab, const group_t *g) {
  json_t *row = json_copy((json_t *)(uintptr_t)g->first->row), *saved = json_array(), *recomputed = json_array();
  for (size_t i = 0; i < g->n; i++)
    json_array_append_new(g->first[i].is_saved ? saved : recomputed, json_string(ab->arms[g->first[i].arm].arm.name));
  json_object_set_new(row, "saved_by", saved);
  json_object_set_new(row, "recomputed_by", recomputed);
  return row;
}

json_t *aoth_ab_differences(const aoth_ab_t *ab) {
  json_t *list = json_array();
  marks_t m;
  if (!collect_all(ab, &m)) return list;
  group_t *groups = calloc(m.n + 1, sizeof *groups);
  size_t n = 0;
  for (size_t i = 0, end; groups && i < m.n; i = end) {
    uint32_t n_saved = 0;
    for (end = i; end < m.n && m.at[end].id == m.at[i].id; end++)
      n_saved +=
          (uint32_t)(m.at[end].is_saved && (end == i || m.at[end - 1].arm != m.at[end].arm || !m.at[end - 1].is_saved));
    if (n_saved && n_saved < m.n_arms) groups[n++] = (group_t){&m.at[i], end - i};
  }
  if (n) qsort(groups, n, sizeof *groups, by_bytes);
  for (size_t i = 0; i < n; i++) json_array_append_new(list, group_json(ab, &groups[i]));
  free(groups);
  free(m.at);
  return list;
}

/* ---- one arm ---- */

static json_t *number_json(double d) { return isfinite(d) ? json_real(d) : json_null(); }

static json_t *interval_json(aoth_interval_t i) {
  return json_pack("{s:o, s:o, s:o}", "value", number_json(i.value), "low", number_json(i.low), "high",
                   number_json(i.high));
}

/* A list a process. */
static json_t *series_json(const aoth_sample_t *s) {
  json_t *list = json_array();
  for (uint32_t g = 0; g < s->n_groups; g++) {
    json_t *group = json_array();
    for (uint32_t i = 0; i < s->n_each; i++) json_array_append_new(group, json_real(s->x[(size_t)g * s->n_each + i]));
    json_array_append_new(list, group);
  }
  return list;
}

static json_t *times_json(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a, int is_baseline) {
  static const char *const verdicts[] = {"faster", "none", "slower"};
  if (!aoth_ab_alive(a) || !ab->n_done) return json_null();
  const aoth_sample_t steps = aoth_ab_sample(ab, a->step_ms);
  json_t *o = json_object();
  json_object_set_new(o, "step_ms", interval_json(a->step));
  json_object_set_new(o, "forward_ms", interval_json(a->forward));
  json_object_set_new(o, "backward_ms", interval_json(a->backward));
  json_object_set_new(o, "ratio", is_baseline ? json_null() : interval_json(a->ratio));
  json_object_set_new(o, "verdict", is_baseline ? json_null() : json_string(verdicts[a->verdict + 1]));
  json_object_set_new(o, "steps_ms", series_json(&steps));
  return o;
}

static json_t *agreement_json(const struct aoth_ab_agreement *g) {
  json_t *worst = g->worst[0] ? json_string(g->worst) : json_null();
  return json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "keys", (int)g->n_keys, "bit_equal", (int)g->n_equal, "within",
                   (int)g->n_close, "max_abs", number_json(g->max_abs), "max_rel", number_json(g->max_rel), "worst",
                   worst ? worst : json_null());
}

static json_t *results_json(const aoth_ab_arm_run_t *a) {
  if (!aoth_ab_alive(a) || !a->results[0]) return json_null();
  return json_pack("{s:b, s:o, s:o}", "agree", !a->differs, "outputs", agreement_json(&a->outputs), "gradients",
                   agreement_json(&a->gradients));
}

/* The answer of a request, or null; what an arm has not come to is not there. */
static json_t *answer_json(const json_t *o, const char *key) {
  json_t *v = o ? json_object_get(o, key) : NULL;
  return v ? json_incref(v) : json_null();
}

static json_t *recomputed_json(const aoth_ab_arm_run_t *a) {
  const json_t *c = choice_of(a);
  if (!c) return json_null();
  return json_pack("{s:o, s:o, s:o, s:o, s:o}", "nodes", answer_json(c, "recomputed_nodes"), "heavy",
                   answer_json(c, "recomputed_heavy"), "bytes", answer_json(c, "recomputed_bytes"), "flops",
                   answer_json(c, "recomputed_flops"), "cost", answer_json(c, "recompute_cost"));
}

static json_t *memory_json(const aoth_ab_arm_run_t *a) {
  static const char *const keys[] = {"saved_bytes",    "arena_bytes",    "peak_intermediate_bytes",
                                     "boundary_bytes", "peak_rss_bytes", "kernels"};
  json_t *o = json_object();
  if (!a->finished) {
    json_decref(o);
    return json_null();
  }
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    json_object_set_new(o, keys[i], answer_json(a->finished, keys[i]));
  return o;
}

static json_t *arm_json(const aoth_ab_t *ab, uint32_t i) {
  const aoth_ab_arm_run_t *a = &ab->arms[i];
  json_t *o = json_object();
  json_object_set_new(o, "name", json_string(a->arm.name));
  json_object_set_new(o, "with", json_string(a->arm.text));
  for (int k = 0; k < 5; k++) {
    static const char *const keys[] = {"unit", "kind", "plugin", "version", "options"};
    json_object_set_new(o, keys[k], answer_json(a->about, keys[k]));
  }
  json_object_set_new(o, "outcome", json_string(aoth_ab_outcome(a)));
  json_object_set_new(o, "during", a->worker.doing ? json_string(a->worker.doing) : json_null());
  json_t *why = a->worker.why ? json_string(a->worker.why) : NULL; /* NULL, too: not UTF-8 */
  json_object_set_new(o, "why", why ? why : json_null());
  json_object_set_new(o, "stage_ms", number_json(a->stage.value));
  json_object_set_new(o, "compile_ms", number_json(a->compile.value));
  json_object_set_new(o, "compiles", json_integer(a->n_compiled));
  json_object_set_new(o, "stage_interval_ms", a->n_compiled ? interval_json(a->stage) : json_null());
  json_object_set_new(o, "compile_interval_ms", a->n_compiled ? interval_json(a->compile) : json_null());
  json_object_set_new(o, "stages", answer_json(a->compiled, "stages"));
  json_object_set_new(o, "saved", answer_json(a->compiled, "saved"));
  json_object_set_new(o, "recomputed", recomputed_json(a));
  json_object_set_new(o, "simulated", answer_json(a->memory, "simulated"));
  json_object_set_new(o, "planned", answer_json(a->memory, "planned"));
  json_object_set_new(o, "memory", memory_json(a));
  json_object_set_new(o, "times", times_json(ab, a, (int64_t)i == ab->baseline));
  json_object_set_new(o, "results", results_json(a));
  return o;
}

/* ---- the whole ---- */

static json_t *name_json(const aoth_ab_t *ab, int64_t arm) {
  return arm < 0 ? json_null() : json_string(ab->arms[arm].arm.name);
}

const json_t *aoth_ab_common(const aoth_ab_t *ab, const char *key) {
  for (uint32_t i = 0; i < ab->n_arms; i++)
    if (ab->arms[i].compiled && json_object_get(ab->arms[i].compiled, key))
      return json_object_get(ab->arms[i].compiled, key);
  return NULL;
}

static json_t *common_json(const aoth_ab_t *ab, const char *key) {
  const json_t *v = aoth_ab_common(ab, key);
  return v ? json_incref((json_t *)(uintptr_t)v) : json_null();
}

json_t *aoth_ab_json(const aoth_ab_t *ab, json_t *differences) {
  json_t *o = json_object(), *arms = json_array();
  int ok = 1;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    ok &= strcmp(aoth_ab_outcome(&ab->arms[i]), "ok") == 0;
    json_array_append_new(arms, arm_json(ab, i));
  }
  json_object_set_new(o, "command", json_string("ab"));
  json_object_set_new(o, "pipeline", json_string(ab->cli->positional[0]));
  json_object_set_new(o, "model", ab->pipeline->model_path ? json_string(ab->pipeline->model_path) : json_null());
  json_object_set_new(o, "stage", json_string(ab->pipeline->stages[ab->stage].name));
  json_object_set_new(o, "ok", json_boolean(ok));
  json_object_set_new(o, "isolate", json_string(ab->is_isolated ? "worker" : "none"));
  json_object_set_new(o, "inputs", common_json(ab, "inputs"));
  json_object_set_new(o, "made_up", common_json(ab, "made_up"));
  json_object_set_new(o, "seed", common_json(ab, "seed"));
  json_object_set_new(o, "tangents", common_json(ab, "tangents"));
  json_object_set_new(o, "processes", json_integer(ab->n_done));
  json_object_set_new(o, "steps", json_integer(ab->n_steps));
  json_object_set_new(o, "warmup", json_integer(ab->n_warmup));
  json_object_set_new(o, "interrupted", json_boolean(ab->interrupted));
  json_object_set_new(o, "rtol", json_real(ab->rtol));
  json_object_set_new(o, "atol", json_real(ab->atol));
  json_object_set_new(o, "level", json_real(ab->level));
  json_object_set_new(o, "baseline", name_json(ab, ab->baseline));
  json_object_set_new(o, "reference", name_json(ab, ab->reference));
  json_object_set_new(o, "arms", arms);
  json_object_set(o, "differences", differences);
  return o;
}
