#include <cli/find/bisect.h>

#include <aot/inline.h>
#include <sandbox/session.h>
#include <string.h>

static void note_found(aoth_bisect_t *b, const aoth_stage_t *stage, const char *wrong, const char *why) {
  b->found = json_pack("{s:s, s:s, s:s, s:s, s:s?, s:i}", "wrong", wrong, "why", why, "stage", stage->name, "unit",
                       stage->use, "file", stage->where.file, "line", (int)stage->where.line);
}

/* The program before the first stage that can be queried about is right by definition. */
static int find_good(aoth_bisect_t *b, const aoth_stage_t *stage) {
  aoth_oracle_ask(&b->oracle, aoth_oracle_as_it_was, NULL, &b->good);
  b->n_asked++;
  b->has_good = b->good.end == AOTH_ORACLE_RAN;
  if (!b->has_good)
    json_array_append_new(b->not_compared, json_pack("{s:s, s:s}", "stage", stage->name, "why", b->good.why));
  return b->has_good;
}

/* What comes after it is wrong, too; its failure is what was looked for. */
static aot_status_t stop(aoth_session_t *s) {
  s->outcome = AOTH_CALL_TOLD;
  s->config.sink = s->ctx.sink = NULL;
  return s->status = AOT_E_CANCELLED;
}

static aot_status_t edited(void *self, aoth_session_t *s, const aoth_stage_t *stage) {
  aoth_bisect_t *b = self;
  char why[512];
  int unfit;
  if (!b->has_good && find_good(b, stage) && aoth_bisect_bound(b, &b->good, why, sizeof why)) {
    b->found = json_pack("{s:s, s:s, s:s}", "wrong", aoth_bisect_bound(b, &b->good, why, sizeof why), "why", why,
                         "before", stage->name);
    return stop(s);
  }
  if (!b->has_good) return AOT_OK;
  b->tolerance = aoth_program_tolerance(s->now.prog);
  const char *wrong = aoth_bisect_ask(b, aoth_oracle_as_it_is, (void *)(uintptr_t)stage, &unfit, why, sizeof why);
  if (!wrong && !unfit) {
    aoth_oracle_answer_deinit(&b->good); /* with what this stage made to be compared, too */
    aoth_oracle_ask(&b->oracle, aoth_oracle_as_it_is, (void *)(uintptr_t)stage, &b->good);
    return AOT_OK;
  }
  if (!wrong) return AOT_OK; /* the checks to come say why */
  note_found(b, stage, wrong, why);
  if (b->by == AOTH_BY_EDIT || b->by == AOTH_BY_NODE) aoth_bisect_edits(b, s, stage);
  if (b->by == AOTH_BY_OPTION) aoth_bisect_options(b, s, stage);
  return stop(s);
}

void aoth_bisect_init(aoth_bisect_t *b) {
  *b = (aoth_bisect_t){.by = AOTH_BY_EDIT, .not_compared = json_array()};
  b->watch = (aoth_watch_t){.self = b, .edited = edited};
}

static int is_backend(const aoth_stage_t *stage) { return strcmp(stage->unit->kind, "backend/2") == 0; }

aot_status_t aoth_bisect_begin(aoth_bisect_t *b, aoth_session_t *s, const aoth_pipeline_t *p, const char *good) {
  AOT_TRY(aoth_oracle_init(&b->oracle, s, &p->run, good));
  if (b->max_ms <= 0 && !b->max_peak) return AOT_OK;
  if (p->n_stages && is_backend(&p->stages[p->n_stages - 1])) {
    b->oracle.stages = &p->stages[p->n_stages - 1];
    b->oracle.n_stages = 1;
    return AOT_OK;
  }
  aoth_sink_report(aoth_session_sink(s), AOT_SEVERITY_ERROR, NULL, "bisect.bound",
                   "a bound is one of the pipeline's backend, and %s has none", p->path);
  return AOT_E_INVALID;
}

aot_status_t aoth_bisect_backend(aoth_bisect_t *b, aoth_session_t *s, const aoth_pipeline_t *p) {
  const aoth_stage_t *last = p->n_stages ? &p->stages[p->n_stages - 1] : NULL;
  char why[512];
  int unfit;
  if (!last || !is_backend(last) || b->oracle.n_stages) return AOT_OK;
  if (!b->has_good) aoth_oracle_ask(&b->oracle, NULL, NULL, &b->good);
  b->has_good = b->good.end == AOTH_ORACLE_RAN;
  if (!b->has_good) return AOT_OK;
  b->tolerance = aoth_program_tolerance(aoth_session_prog(s));
  b->oracle.stages = last;
  b->oracle.n_stages = 1;
  const char *wrong = aoth_bisect_ask(b, NULL, NULL, &unfit, why, sizeof why);
  if (!wrong) return AOT_OK;
  note_found(b, last, wrong, why);
  if (b->by != AOTH_BY_STAGE) aoth_bisect_nodes(b, s, last);
  return AOT_OK;
}

/* ---- the report ---- */

static void print_lines(const json_t *list, const char *mark, FILE *out) {
  size_t i;
  json_t *line;
  json_array_foreach(list, i, line) fprintf(out, "  %s %s\n", mark, json_string_value(line));
}

static const char *text_of(const json_t *o, const char *key) {
  const char *text = json_string_value(json_object_get(o, key));
  return text ? text : "";
}

static long long number_of(const json_t *o, const char *key) {
  return (long long)json_integer_value(json_object_get(o, key));
}

void aoth_bisect_print(const aoth_bisect_t *b, FILE *out) {
  const json_t *f = b->found, *edits = json_object_get(f, "edits"), *options = json_object_get(f, "options");
  if (!f) {
    fprintf(out, "nothing goes wrong (%u programs ran)\n", b->n_asked);
    return;
  }
  if (*text_of(f, "before")) {
    fprintf(out, "before stage %s it is wrong already: %s: %s\n", text_of(f, "before"), text_of(f, "wrong"),
            text_of(f, "why"));
    return;
  }
  fprintf(out, "stage %s", text_of(f, "stage"));
  if (*text_of(f, "file")) fprintf(out, " (%s:%lld)", text_of(f, "file"), number_of(f, "line"));
  fprintf(out, " goes wrong: %s: %s\n", text_of(f, "wrong"), text_of(f, "why"));
  if (edits) {
    const long long first = number_of(f, "first"), last = number_of(f, "last"), n = number_of(f, "n_edits");
    if (first == last) fprintf(out, "edit %lld of %lld:\n", first, n);
    else fprintf(out, "edits %lld to %lld of %lld, between which no program is whole:\n", first, last, n);
    print_lines(edits, " ", out);
    print_lines(json_object_get(f, "removed"), "-", out);
    print_lines(json_object_get(f, "added"), "+", out);
  }
  print_lines(options, "with its default all is right:", out);
  if (json_object_get(f, "nth")) fprintf(out, "node %lld of %lld", number_of(f, "nth"), number_of(f, "n_nodes"));
  else if (json_object_get(f, "node")) fprintf(out, "node");
  if (json_object_get(f, "node")) fprintf(out, ": %s\n", text_of(f, "node"));
  if (*text_of(f, "from")) fprintf(out, "  from %s\n", text_of(f, "from"));
  fprintf(out, "%u programs ran\n", b->n_asked);
}

void aoth_bisect_deinit(aoth_bisect_t *b) {
  aoth_oracle_answer_deinit(&b->good);
  aoth_oracle_deinit(&b->oracle);
  json_decref(b->found);
  json_decref(b->not_compared);
}
