#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <sdk/conform/conform.h>

#include <aot/inline.h>
#include <sandbox/call.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <config/options.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <trainer/trial/child.h>
#include <sdk/conform/conform_trial.h>
#include <trainer/trial/oracle.h>

#define ALL_KINDS "import/1 opset/1 pass/1 partition/1 backend/2 device/1 communicator/1"
#define MOST_WITHS 64u

static const aoth_rule_t rules[] = {
#define RULE(number, name, kinds, base, about) {number, base, #name, kinds, about, aoth_rule_##name},
#include <sdk/conform/conform_rules.def>
#undef RULE
};
#define N_RULES (sizeof rules / sizeof *rules)
#define RULE_LOADS 101u
#define RULE_CREATED 103u
#define MOST_TRIALS 10000u
#define FIRST_OF_PROGRAMS 201u /* rules that run a class of programs, each its own */
#define LAST_OF_PROGRAMS 206u

static const char *const verdicts[] = {"passed", "failed", "refused", "not applicable", "not reached"};

/* How a rule went for a unit. */
typedef struct outcome {
  int verdict;               /* AOTH_CONFORM_* */
  uint32_t n[3];             /* trials, by PASSED, FAILED, REFUSED */
  uint32_t trial;            /* the first that failed; else the first that was refused */
  char about[200], why[600]; /* of it; of NOT and UNREACHED: why */
} outcome_t;

/* ---- a trial ---- */

typedef struct trial_call {
  aoth_conform_t *c;
  const aoth_rule_t *rule;
} trial_call_t;

/* In the child. What it says is in memory that both see, so that its last words are there should it die. */
static aot_status_t answer_trial(void *self, const aoth_request_t *request, json_t *answer) {
  const trial_call_t *y = self;
  aoth_trial_t *t = y->c->shared;
  (void)answer;
  (void)request;
  aoth_session_alone(t->s, aoth_sink_create(NULL));
  t->s->config.isolate = AOTH_ISOLATE_NONE;
  t->s->config.timeout = 0;
  y->rule->run(t);
  const char *said = aoth_sink_text(t->s->config.sink);
  fputs(said ? said : "", stderr);
  return AOT_OK;
}

static void try(aoth_conform_t *c, const aoth_rule_t *rule, const aoth_stage_t *stage, uint32_t number,
                kit_text_t *log) {
  aoth_trial_t *t = c->shared;
  trial_call_t trying = {c, rule};
  aoth_served_t served = {answer_trial, &trying};
  aoth_child_t child = AOTH_NO_CHILD;
  const aoth_request_t request = {.number = number};
  *t = (aoth_trial_t){.c = c, .s = c->s, .stage = stage, .number = number, .n_refused_ranks = t->n_refused_ranks};
  const int started = aoth_child_start(&child, aoth_child_serve_table, &served);
  json_t *answer = started ? aoth_child_ask(&child, &request, "trial", (int64_t)(c->line->timeout * 1000)) : NULL;
  if (!answer) aoth_trial_end(t, AOTH_CONFORM_FAILED, "%s", child.why ? child.why : "no process could be made");
  if (log) aoth_child_log(&child, log);
  json_decref(answer);
  aoth_child_deinit(&child);
}

static void try_all(aoth_conform_t *c, const aoth_rule_t *rule, const aoth_stage_t *stage, outcome_t *out) {
  const aoth_trial_t *t = c->shared;
  kit_text_t log = {0};
  const int is_one = c->line->trial >= 0 && c->line->rule == rule->number; /* before it comes the opening of the file */
  *out = (outcome_t){.verdict = AOTH_CONFORM_NOT};
  for (uint32_t k = is_one ? (uint32_t)c->line->trial : 0;; k++) {
    try(c, rule, stage, k, is_one ? &log : NULL);
    if (t->end == AOTH_CONFORM_NO_TRIAL) break;
    if (t->end <= AOTH_CONFORM_REFUSED) out->n[t->end]++;
    const int is_news = t->end == AOTH_CONFORM_FAILED || (t->end == AOTH_CONFORM_REFUSED && out->n[t->end] == 1) ||
                        (t->end == AOTH_CONFORM_NOT && !*out->why);
    if (is_news) {
      out->trial = k;
      snprintf(out->about, sizeof out->about, "%s", t->about);
      snprintf(out->why, sizeof out->why, "%s", t->why);
    }
    if (is_one || t->end == AOTH_CONFORM_FAILED || k == MOST_TRIALS) break;
  }
  if (out->n[AOTH_CONFORM_FAILED]) out->verdict = AOTH_CONFORM_FAILED;
  else if (out->n[AOTH_CONFORM_PASSED]) out->verdict = AOTH_CONFORM_PASSED;
  else if (out->n[AOTH_CONFORM_REFUSED]) out->verdict = AOTH_CONFORM_REFUSED;
  if (log.size) fwrite(log.data, 1, log.size, stderr);
  kit_text_deinit(&log);
}

/* ---- the report ---- */

/* The command line that does this trial again. */
static const char *repeat(aoth_conform_t *c, const aoth_unit_t *u, const aoth_rule_t *rule, uint32_t trial) {
  kit_text_t t = {0};
  kit_text_f(&t, "aothost conform %s --unit %s --rule %u --trial %u", c->line->plugin, u->id, rule->number, trial);
  for (uint32_t i = 0; i < c->line->withs.n; i++) kit_text_f(&t, " --with %s", c->line->withs.items[i]);
  for (uint32_t i = 0; i < c->line->programs.n; i++) kit_text_f(&t, " --program %s", c->line->programs.items[i]);
  const char *kept = kit_arena_text(c->arena, t.data ? t.data : "", t.size);
  kit_text_deinit(&t);
  return kept ? kept : "";
}

static FILE *out_of(const aoth_conform_t *c) {
  const char *json = c->line->json_path;
  return json && strcmp(json, "-") == 0 ? stderr : stdout;
}

static void print_rule(aoth_conform_t *c, const aoth_unit_t *u, const aoth_rule_t *rule, const outcome_t *o) {
  FILE *f = out_of(c);
  const uint32_t n = o->n[0] + o->n[1] + o->n[2];
  const int is_quiet = c->line->is_quiet && o->verdict != AOTH_CONFORM_FAILED;
  if (is_quiet) return;
  fprintf(f, "  %u %-14s %s", rule->number, o->verdict == AOTH_CONFORM_FAILED ? "FAILED" : verdicts[o->verdict],
          rule->about);
  if (n > 1) fprintf(f, " (%u trials", n);
  if (n > 1 && o->n[AOTH_CONFORM_REFUSED] && n > o->n[AOTH_CONFORM_REFUSED])
    fprintf(f, ", %u refused", o->n[AOTH_CONFORM_REFUSED]);
  fprintf(f, n > 1 ? ")\n" : "\n");
  if (o->verdict == AOTH_CONFORM_FAILED)
    fprintf(f, "      %s%s%s\n      again: %s\n", o->about, *o->about ? ": " : "", o->why,
            repeat(c, u, rule, o->trial));
  else if (*o->why && c->line->is_verbose) fprintf(f, "      %s%s%s\n", o->about, *o->about ? ": " : "", o->why);
  fflush(f);
}

static void keep(aoth_conform_t *c, json_t *rows, const aoth_unit_t *u, const aoth_rule_t *rule, const outcome_t *o) {
  json_t *row = json_pack("{s:i, s:s, s:s, s:s, s:i, s:i}", "rule", (int)rule->number, "name", rule->name, "about",
                          rule->about, "verdict", verdicts[o->verdict], "trials", (int)(o->n[0] + o->n[1] + o->n[2]),
                          "refused", (int)o->n[AOTH_CONFORM_REFUSED]);
  c->n_rules[o->verdict]++;
  if (*o->why) json_object_set_new(row, "why", json_string(o->why));
  if (*o->about) json_object_set_new(row, "trial_about", json_string(o->about));
  if (o->verdict == AOTH_CONFORM_FAILED) {
    json_object_set_new(row, "trial", json_integer(o->trial));
    json_object_set_new(row, "again", json_string(repeat(c, u, rule, o->trial)));
  }
  json_array_append_new(rows, row);
  print_rule(c, u, rule, o);
}

/* ---- a unit ---- */

static int is_kind(const char *kind, const char *wanted) {
  const size_t n = strcspn(kind, "/");
  if (!wanted || strcmp(kind, wanted) == 0 || (strlen(wanted) == n && strncmp(kind, wanted, n) == 0)) return 1;
  return strcmp(wanted, "importer") == 0 && strncmp(kind, "import/", 7) == 0;
}

static int has_option(const aoth_unit_t *u, const char *text) {
  const size_t n = strcspn(text, "=");
  for (uint32_t i = 0; i < u->desc.n_options; i++)
    if (u->options[i].name.size == n && strncmp(u->options[i].name.data, text, n) == 0) return 1;
  return 0;
}

/* Options from the line, as far as it has them; a choice that must be made takes the first. */
static aot_status_t resolve(aoth_conform_t *c, const aoth_unit_t *u, aoth_stage_t *out) {
  const char *withs[MOST_WITHS];
  uint32_t n = 0;
  AOT_TRY(
      aoth_plugin_open(c->s->registry, u->plugin, c->s->arena, NULL, c->s->config.sink)); /* so far in a child alone */
  for (uint32_t i = 0; i < u->desc.n_options && n < MOST_WITHS / 2; i++) {
    const aot_option_t *o = &u->options[i];
    if (o->kind != AOT_OPT_ENUM || !(o->flags & AOT_OPT_REQUIRED)) continue;
    kit_text_t t = {0};
    int is_given = 0;
    for (uint32_t k = 0; k < c->line->withs.n; k++) {
      const char *with = c->line->withs.items[k];
      is_given |= strcspn(with, "=") == o->name.size && strncmp(with, o->name.data, (size_t)o->name.size) == 0;
    }
    kit_text_f(&t, "%.*s=%.*s", (int)o->name.size, o->name.data, (int)o->choices[0].size, o->choices[0].data);
    if (!is_given) withs[n++] = kit_arena_text(c->arena, t.data ? t.data : "", t.size);
    kit_text_deinit(&t);
  }
  for (uint32_t i = 0; i < c->line->withs.n && n < MOST_WITHS; i++)
    if (has_option(u, c->line->withs.items[i])) withs[n++] = c->line->withs.items[i];
  AOT_TRY(aoth_stage_from_flags(u->id, withs, n, c->arena, c->s->config.sink, out));
  const aot_status_t status = aoth_stage_resolve(c->s, out, ALL_KINDS, c->arena);
  if (status == AOT_E_OPTION)
    aoth_sink_line(c->s->config.sink, "hint: --with OPTION=VALUE gives it to the units that have it");
  return status;
}

/* Opens the opsets that programs need, once for all trials; not where the plugin brings operators, which are tried,
 * too. */
static void open_opsets(aoth_conform_t *c, const aoth_unit_t *u) {
  for (uint32_t i = 0; i < u->plugin->n_units; i++)
    if (strcmp(u->plugin->units[i].kind, "opset/1") == 0) return;
  for (uint32_t i = 0; i < c->programs.n && aoth_kind_in(u->kind, STAGES); i++) {
    if (strcmp(c->programs.rows[i].class, "plain") != 0 || c->programs.rows[i].is_own) continue;
    aoth_session_import(c->s, "ir", NULL, c->programs.rows[i].path, NULL);
    return;
  }
}

/* As the files of its programs begin. */
static const char *class_of(const aoth_rule_t *rule) {
  return strcmp(rule->name, "dtypes") == 0 ? "dtype" : rule->name;
}

/* The rule that this one builds on and that has failed; 0: none has. */
static uint32_t failed_base(const aoth_rule_t *rule, const int *verdicts_so_far) {
  for (size_t i = 0; i < N_RULES && rule->base; i++) {
    if (rules[i].number != rule->base) continue;
    const int v = verdicts_so_far[i], was_created = rule->base != RULE_CREATED || v != AOTH_CONFORM_REFUSED;
    if (v == AOTH_CONFORM_FAILED || v == AOTH_CONFORM_UNREACHED || !was_created) return rule->base;
  }
  return 0;
}

static aot_status_t conform_unit(aoth_conform_t *c, const aoth_unit_t *u) {
  json_t *rows = json_array();
  aoth_stage_t stage = {.use = NULL};
  outcome_t o;
  int so_far[N_RULES] = {0};
  aot_status_t status = AOT_OK;
  c->n_broken = c->shared->n_refused_ranks = 0;
  if (!c->line->is_quiet) fprintf(out_of(c), "%s (%s) of %s\n", u->id, u->kind, u->plugin->path);
  for (size_t i = 0; i < N_RULES && status == AOT_OK; i++) {
    const aoth_rule_t *rule = &rules[i];
    const int is_asked = !c->line->rule || c->line->rule == rule->number;
    const int is_class = rule->number >= FIRST_OF_PROGRAMS && rule->number <= LAST_OF_PROGRAMS;
    const uint32_t base = failed_base(rule, so_far);
    if ((!is_asked && rule->number != RULE_LOADS) || (*rule->kinds && !aoth_kind_in(u->kind, rule->kinds))) continue;
    if (!base) try_all(c, rule, stage.use ? &stage : NULL, &o);
    else o = (outcome_t){.verdict = AOTH_CONFORM_UNREACHED};
    if (base) snprintf(o.why, sizeof o.why, "rule %u did not pass", base);
    so_far[i] = o.verdict;
    if (is_class && o.verdict == AOTH_CONFORM_FAILED) c->broken[c->n_broken++] = class_of(rule);
    if (is_asked || o.verdict == AOTH_CONFORM_FAILED) keep(c, rows, u, rule, &o);
    if (rule->number != RULE_LOADS || o.verdict != AOTH_CONFORM_PASSED) continue;
    status = resolve(c, u, &stage);
    open_opsets(c, u);
  }
  json_array_append_new(c->units, json_pack("{s:s, s:s, s:o}", "unit", u->id, "kind", u->kind, "rules", rows));
  return status;
}

/* ---- the plugin ---- */

static aoth_plugin_t *find_plugin(const aoth_conform_t *c) {
  char *wanted = realpath(c->line->plugin, NULL);
  aoth_plugin_t *found = NULL;
  for (uint32_t i = 0; i < aoth_registry_n_plugins(c->s->registry) && !found && wanted; i++) {
    aoth_plugin_t *p = aoth_registry_plugin(c->s->registry, i);
    char *path = realpath(p->path, NULL);
    if (path && strcmp(path, wanted) == 0) found = p;
    free(path);
  }
  free(wanted);
  aoth_unit_t *u = found ? NULL : aoth_registry_find(c->s->registry, c->line->plugin);
  return u ? u->plugin : found;
}

static aot_status_t usage(aoth_conform_t *c, const char *format, const char *a, const char *b) {
  aoth_sink_report(c->s->config.sink, AOT_SEVERITY_ERROR, NULL, "conform.usage", format, a, b);
  return AOT_E_INVALID;
}

static int is_asked(const aoth_conform_t *c, const aoth_unit_t *u) {
  return is_kind(u->kind, c->line->kind) && (!c->line->unit || strcmp(u->id, c->line->unit) == 0);
}

static aot_status_t check_line(aoth_conform_t *c) {
  uint32_t n = 0;
  int known = !c->line->rule;
  for (size_t i = 0; i < N_RULES; i++) known |= rules[i].number == c->line->rule;
  if (!known) return usage(c, "there is no such rule; docs/CONFORM.md has them%.0s%.0s", "", "");
  if (c->line->trial >= 0 && !c->line->rule)
    return usage(c, "--trial is one of a rule: give --rule, too%.0s%.0s", "", "");
  if (!c->plugin) return usage(c, "%s is neither a plugin's file nor the id of a unit%.0s", c->line->plugin, "");
  if (c->plugin->state == AOTH_PLUGIN_REFUSED && c->plugin->n_units == 0)
    return usage(c, "%s is no plugin: %s", c->line->plugin, c->plugin->why ? c->plugin->why : "it has no note");
  for (uint32_t i = 0; i < c->plugin->n_units; i++) n += is_asked(c, &c->plugin->units[i]) != 0;
  return n ? AOT_OK : usage(c, "%s has no such unit%.0s; `aothost plugins` lists what there is", c->line->plugin, "");
}

static void print_sum(const aoth_conform_t *c) {
  FILE *f = out_of(c);
  const char *between = "rules: ";
  for (int v = 0; v < 5; v++) {
    if (c->n_rules[v]) fprintf(f, "%s%u %s", between, c->n_rules[v], verdicts[v]);
    if (c->n_rules[v]) between = ", ";
  }
  fputc('\n', f);
}

aot_status_t aoth_conform_run(aoth_conform_t *c, aoth_session_t *s, const aoth_conform_line_t *line) {
  *c = (aoth_conform_t){.s = s, .line = line, .units = json_array(), .arena = kit_arena_create()};
  void *shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  c->shared = shared == MAP_FAILED ? NULL : shared;
  if (!c->arena || !c->shared) return AOT_E_EXHAUSTED;
  AOT_TRY(aoth_conform_programs_find(c->arena, s->config.sink, &c->programs));
  AOT_TRY(aoth_conform_programs_add(&c->programs, line->programs.items, line->programs.n, s->config.sink));
  c->plugin = find_plugin(c);
  AOT_TRY(check_line(c));
  for (uint32_t i = 0; i < c->plugin->n_units; i++)
    if (is_asked(c, &c->plugin->units[i])) AOT_TRY(conform_unit(c, &c->plugin->units[i]));
  if (!line->is_quiet) print_sum(c);
  return AOT_OK;
}

void aoth_conform_deinit(aoth_conform_t *c) {
  if (c->shared) munmap(c->shared, sizeof *c->shared);
  kit_arena_destroy(c->arena);
  json_decref(c->units);
}
