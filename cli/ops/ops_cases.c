/* aothost ops --cases: recorded calls through one backend, a row an operator. */
#include <cli/ops/ops_line.h>

#include <jansson.h>
#include <math.h>
#include <sandbox/call.h>
#include <compiler/devices.h>
#include <sandbox/session.h>
#include <stdlib.h>
#include <string.h>
#include <cli/ops/op_cases.h>

#define MAX_STAGES 16u

/* Forward or gradients, of one operator or of all. */
typedef struct tally {
  uint32_t n, passed, listed; /* listed: of exceptions.txt, neither passed nor failed */
  double error;
} tally_t;

typedef struct row {
  const char *op;
  tally_t forward, gradients;
  aoth_case_ways_t ways;
  const char *first_id; /* of the first case that fails, or is excepted where none fails; NULL: neither */
  int first_fails;
  char first_why[420];
} row_t;

typedef struct report {
  aoth_ops_line_t *line;
  aoth_op_cases_t *cases;
  uint32_t *order; /* chosen cases, those of an operator together */
  uint32_t n_cases;
  row_t *rows;
  uint32_t n_rows;
  tally_t forward, gradients;
  aoth_case_ways_t ways;
  uint32_t n_failed, reasons[2][AOTH_N_CASE_VERDICTS]; /* cases; forward, gradients */
  json_t *failures, *listed;
} report_t;

/* ---- stages ---- */

/* "a,b" -> resolved stages. */
static aot_status_t resolve_list(aoth_session_t *s, const char *ids, aoth_stage_t *out, uint32_t *out_n) {
  *out_n = 0;
  while (*ids && *out_n < MAX_STAGES) {
    const size_t n = strcspn(ids, ",");
    const char *id = kit_arena_text(s->arena, ids, n);
    if (!id) return AOT_E_EXHAUSTED;
    AOT_TRY(aoth_stage_of_unit(s, id, "pass/1 partition/1", NULL, &out[*out_n]));
    ++*out_n;
    ids += n + (ids[n] == ',');
  }
  return AOT_OK;
}

/* ---- running ---- */

typedef struct sort_key {
  const char *op;
  uint32_t i;
} sort_key_t;

static int compare_cases(const void *a, const void *b) {
  const sort_key_t *x = a, *y = b;
  const int op = strcmp(x->op, y->op);
  return op ? op : (x->i > y->i) - (x->i < y->i);
}

static aot_status_t choose_cases(report_t *r) {
  const uint32_t n = aoth_op_cases_count(r->cases);
  sort_key_t *chosen = calloc(n + 1u, sizeof *chosen);
  r->order = calloc(n + 1u, sizeof *r->order);
  r->rows = calloc(n + 1u, sizeof *r->rows);
  if (chosen && r->order && r->rows) {
    for (uint32_t i = 0; i < n; i++) {
      const char *op = aoth_op_cases_op(r->cases, i);
      if (aoth_ops_chosen(&r->line->cli, op)) chosen[r->n_cases++] = (sort_key_t){op, i};
    }
    qsort(chosen, r->n_cases, sizeof *chosen, compare_cases);
  }
  const uint32_t n_chosen = r->n_cases;
  r->n_cases = 0;
  for (uint64_t i = r->line->part_number - 1; chosen && r->order && i < n_chosen; i += r->line->n_parts)
    r->order[r->n_cases++] = chosen[i].i;
  free(chosen);
  if (!chosen || !r->order || !r->rows) return AOT_E_EXHAUSTED;
  if (n_chosen) return AOT_OK;
  aoth_sink_report(r->line->cli.sink, AOT_SEVERITY_ERROR, NULL, "ops.no-case", "%s has no case of such an operator",
                   r->line->cases);
  return AOT_E_NOT_FOUND;
}

static void count(tally_t *t, const aoth_case_part_t *p) {
  if (p->verdict == AOTH_CASE_ABSENT) return;
  t->n++;
  t->passed += p->verdict == AOTH_CASE_PASSED;
  t->listed += p->verdict == AOTH_CASE_LISTED;
  if (p->error > t->error) t->error = p->error;
}

static void add_ways(aoth_case_ways_t *to, const aoth_case_ways_t *from) {
  for (uint32_t k = 0; k < from->n; k++) aoth_case_ways_add(to, from->names[k], from->counts[k]);
}

static json_t *number_or_null(double d) { return isfinite(d) ? json_real(d) : json_null(); }

static int fails(const aoth_case_part_t *p) { return p->verdict > AOTH_CASE_LISTED; }

/* A failure, or an exception that is listed. */
static void note(report_t *r, row_t *row, const aoth_case_result_t *c, int is_gradient) {
  const aoth_case_part_t *p = is_gradient ? &c->gradients : &c->forward;
  if (p->verdict <= AOTH_CASE_ABSENT) return;
  r->reasons[is_gradient][p->verdict]++;
  json_array_append_new(fails(p) ? r->failures : r->listed,
                        json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", c->id, "operator", c->op, "direction",
                                  is_gradient ? "gradients" : "forward", "reason", aoth_case_verdict(p->verdict),
                                  "message", p->why));
  if (row->first_id && (row->first_fails || !fails(p))) return;
  row->first_id = c->id;
  row->first_fails = fails(p);
  snprintf(row->first_why, sizeof row->first_why, "%s%s: %s", is_gradient ? "gradients: " : "",
           aoth_case_verdict(p->verdict), p->why);
}

static void add(report_t *r, const aoth_case_result_t *c) {
  row_t *row =
      r->n_rows && strcmp(r->rows[r->n_rows - 1].op, c->op) == 0 ? &r->rows[r->n_rows - 1] : &r->rows[r->n_rows++];
  row->op = c->op;
  count(&row->forward, &c->forward);
  count(&row->gradients, &c->gradients);
  count(&r->forward, &c->forward);
  count(&r->gradients, &c->gradients);
  add_ways(&row->ways, &c->ways);
  add_ways(&r->ways, &c->ways);
  r->n_failed += fails(&c->forward) || fails(&c->gradients);
  note(r, row, c, 0);
  note(r, row, c, 1);
}

/* ---- telling ---- */

static double ways_count(const aoth_case_ways_t *w, const char *name) {
  for (uint32_t k = 0; k < w->n; k++)
    if (strcmp(w->names[k], name) == 0) return w->counts[k];
  return 0;
}

static int width(const report_t *r, uint32_t way) { return (int)strlen(r->ways.names[way]); }

static void print_rows(const report_t *r) {
  printf("%-48s %7s %9s %9s %9s", "operator", "forward", "gradients", "error", "grad err");
  for (uint32_t k = 0; k < r->ways.n; k++) printf(" %*s", width(r, k), r->ways.names[k]);
  printf("  first case that fails or is excepted\n");
  for (uint32_t i = 0; i < r->n_rows; i++) {
    const row_t *w = &r->rows[i];
    char forward[24], gradients[24], error[24] = "-";
    snprintf(forward, sizeof forward, "%u/%u", w->forward.passed, w->forward.n);
    snprintf(gradients, sizeof gradients, "%u/%u", w->gradients.passed, w->gradients.n);
    if (w->gradients.n) snprintf(error, sizeof error, "%.2g", w->gradients.error);
    printf("%-48s %7s %9s %9.2g %9s", w->op, forward, w->gradients.n ? gradients : "-", w->forward.error, error);
    for (uint32_t k = 0; k < r->ways.n; k++) printf(" %*.0f", width(r, k), ways_count(&w->ways, r->ways.names[k]));
    printf("  %s%s%s\n", w->first_id ? w->first_id : "", w->first_id ? " " : "", w->first_why);
  }
}

static void print_totals(const report_t *r) {
  printf(
      "%u cases of %u operators on %s: forward %u of %u, gradients %u of %u; %u cases fail, %u results are excepted\n",
      r->n_cases, r->n_rows, r->line->backend, r->forward.passed, r->forward.n, r->gradients.passed, r->gradients.n,
      r->n_failed, r->forward.listed + r->gradients.listed);
  for (uint32_t k = 0; k < r->ways.n; k++) printf("%s%s %.0f", k ? ", " : "  ", r->ways.names[k], r->ways.counts[k]);
  if (r->ways.n) printf("\n");
  for (int v = AOTH_CASE_ABSENT + 1; v < AOTH_N_CASE_VERDICTS; v++)
    if (r->reasons[0][v] || r->reasons[1][v])
      printf("  %-22s forward %u, gradients %u\n", aoth_case_verdict(v), r->reasons[0][v], r->reasons[1][v]);
}

static json_t *tally_json(const tally_t *t) {
  return json_pack("{s:i, s:i, s:i, s:o}", "cases", (int)t->n, "passed", (int)t->passed, "excepted", (int)t->listed,
                   "worst", number_or_null(t->error));
}

static json_t *ways_json(const aoth_case_ways_t *w) {
  json_t *json = json_object();
  for (uint32_t k = 0; k < w->n; k++) json_object_set_new(json, w->names[k], json_real(w->counts[k]));
  return json;
}

static json_t *report_json(const report_t *r) {
  json_t *rows = json_array();
  for (uint32_t i = 0; i < r->n_rows; i++)
    json_array_append_new(rows,
                          json_pack("{s:s, s:o, s:o, s:o, s:s?}", "operator", r->rows[i].op, "forward",
                                    tally_json(&r->rows[i].forward), "gradients", tally_json(&r->rows[i].gradients),
                                    "ran", ways_json(&r->rows[i].ways), "first_failing", r->rows[i].first_id));
  return json_pack("{s:s, s:s, s:s?, s:b, s:i, s:i, s:o, s:o, s:o, s:o, s:O, s:O}", "cases", r->line->cases, "backend",
                   r->line->backend, "device", r->line->device, "ok", r->n_failed == 0, "n_cases", (int)r->n_cases,
                   "n_failed", (int)r->n_failed, "forward", tally_json(&r->forward), "gradients",
                   tally_json(&r->gradients), "ran", ways_json(&r->ways), "operators", rows, "failures", r->failures,
                   "exceptions", r->listed);
}

typedef struct chain {
  aoth_stage_t functional, backend, gradient[MAX_STAGES];
  aoth_case_stages_t stages;
} chain_t;

static aot_status_t prepare(report_t *r, chain_t *c) {
  aoth_session_t *s = r->line->cli.session;
  c->stages = (aoth_case_stages_t){.functional = &c->functional, .gradient = c->gradient, .backend = &c->backend};
  AOT_TRY(aoth_stage_of_unit(s, r->line->backend, "backend/2", NULL, &c->backend));
  if (r->line->device) {
    aoth_stage_t device;
    AOT_TRY(aoth_stage_of_unit(s, r->line->device, "device/1", NULL, &device));
    AOT_TRY(aoth_session_take_device(s, &device));
  }
  AOT_TRY(aoth_stage_of_unit(s, "functionalize", "pass/1", NULL, &c->functional));
  AOT_TRY(resolve_list(s, r->line->stages ? r->line->stages : "autograd,partition-default", c->gradient,
                       &c->stages.n_gradient));
  AOT_TRY(aoth_op_cases_open(r->line->cases, r->line->data, r->line->cli.sink, &r->cases));
  AOT_TRY(choose_cases(r));
  return aoth_session_open_every_opset(s);
}

static aot_status_t run(report_t *r, int as_text) {
  chain_t chain;
  AOT_TRY(prepare(r, &chain));
  for (uint32_t i = 0; i < r->n_cases; i++) {
    aoth_case_result_t result;
    aoth_op_cases_run(r->cases, r->order[i], r->line->cli.session, &chain.stages, &result);
    add(r, &result);
  }
  if (as_text && !r->line->cli.common.quiet) print_rows(r);
  if (as_text) print_totals(r);
  return AOT_OK;
}

aot_status_t aoth_ops_cases_run(aoth_ops_line_t *line, int as_text, json_t **out_json, uint32_t *out_failed) {
  report_t r = {.line = line, .failures = json_array(), .listed = json_array()};
  const aot_status_t status = run(&r, as_text);
  *out_json = status == AOT_OK ? report_json(&r) : NULL;
  *out_failed = r.n_failed;
  aoth_op_cases_close(r.cases);
  json_decref(r.failures);
  json_decref(r.listed);
  free(r.order);
  free(r.rows);
  return status;
}

/* ---- with changed arguments ---- */

static aot_status_t run_mutants(report_t *r, uint32_t *out_bad) {
  static const char *const ends[AOTH_N_MUTANT_ENDS] = {"ran", "refused with a reason", "too large to run",
                                                       "went wrong"};
  uint64_t n[AOTH_N_MUTANT_ENDS] = {0};
  chain_t chain;
  aoth_mutant_t m;
  FILE *programs = r->line->cli.common.verbose ? stdout : NULL;
  AOT_TRY(prepare(r, &chain));
  for (uint32_t i = 0; i < r->n_cases; i++)
    for (uint32_t k = 0; k < r->line->n_mutants; k++) {
      aoth_op_cases_run_mutant(r->cases, r->order[i], r->line->mutant_seed, k, r->line->cli.session, &chain.stages,
                               programs, &m);
      n[m.end]++;
      if (programs) printf("; %s%s%s\n\n", ends[m.end], *m.why ? ": " : "", m.why);
      if (m.end == AOTH_MUTANT_BAD) printf("%s %s: %s\n", m.id, aoth_op_cases_op(r->cases, r->order[i]), m.why);
      if (programs) fflush(programs);
    }
  printf("%u cases changed in %llu ways each (seed %llu) on %s:", r->n_cases, (unsigned long long)r->line->n_mutants,
         (unsigned long long)r->line->mutant_seed, r->line->backend);
  for (int end = 0; end < AOTH_N_MUTANT_ENDS; end++)
    printf("%s %llu %s", end ? "," : "", (unsigned long long)n[end], ends[end]);
  printf("\n");
  *out_bad = n[AOTH_MUTANT_BAD] > 0;
  return AOT_OK;
}

aot_status_t aoth_ops_mutants_run(aoth_ops_line_t *line, uint32_t *out_bad) {
  report_t r = {.line = line};
  const aot_status_t status = run_mutants(&r, out_bad);
  aoth_op_cases_close(r.cases);
  free(r.order);
  free(r.rows);
  return status;
}
