#include <cli/inspect/inspect_memory.h>

#include <cli/base/html_page.h>
#include <cli/inspect/memory_plot.h>
#include <jansson.h>
#include <trainer/trial/memory_plan.h>
#include "kit/base/byte_size.h"
#include <config/options.h>
#include <trainer/writable.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ASKED = 3, TOP = 16, TOP_MOST = 1000000 };

typedef struct query {
  aoth_cli_t *cli;
  const aoth_memory_flags_t *flags;
  kit_arena_t *arena;
  aoth_pipeline_t *pipeline; /* NULL: a program */
  aoth_stage_t *stages;      /* the pipeline's, or those of the command line */
  uint32_t n_stages, n_asked;
  aoth_stage_t asked[MAX_ASKED]; /* units that are queried, in the order in which they are shown */
  aoth_memory_view_t views[MAX_ASKED];
  double fraction; /* of a budget given as one; 0: none */
  uint64_t budget; /* bytes; 0: none yet */
  uint32_t top;
} query_t;

static int ends_with(const char *text, const char *tail) {
  const size_t n = strlen(text), k = strlen(tail);
  return n >= k && strcmp(text + n - k, tail) == 0;
}

/* ---- flags ---- */

int aoth_inspect_flags_fit(const aoth_cli_t *cli, const aoth_memory_flags_t *f) {
  const char *given = f->uses.n      ? "--use"
                      : f->model     ? "--model"
                      : f->unit      ? "--unit"
                      : f->top       ? "--top"
                      : f->budget    ? "--budget"
                      : f->plot      ? "--plot"
                      : f->simulated ? "--simulated"
                                     : NULL;
  if (f->on || !given) return 1;
  aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "inspect.flag", "%s belongs to --memory", given);
  return 0;
}

static aot_status_t read_top(query_t *a) {
  char *end;
  a->top = TOP;
  if (!a->flags->top) return AOT_OK;
  const long n = strtol(a->flags->top, &end, 10);
  if (*a->flags->top && !*end && n >= 0 && n <= TOP_MOST) {
    a->top = (uint32_t)n;
    return AOT_OK;
  }
  aoth_sink_report(a->cli->sink, AOT_SEVERITY_ERROR, NULL, "memory.top", "--top %s: expected a number from 0 to %d",
                   a->flags->top, TOP_MOST);
  return AOT_E_INVALID;
}

/* "64MiB": bytes. "0.5": of the peak with everything saved. */
static aot_status_t read_budget(query_t *a) {
  const char *text = a->flags->budget;
  char *end;
  int64_t bytes;
  if (!text) return AOT_OK;
  const double x = strtod(text, &end);
  if (*text && !*end && x > 0 && x <= 1) {
    a->fraction = x;
    return AOT_OK;
  }
  if (kit_byte_size(text, &bytes) && bytes > 0) {
    a->budget = (uint64_t)bytes;
    return AOT_OK;
  }
  aoth_sink_report(a->cli->sink, AOT_SEVERITY_ERROR, NULL, "memory.budget",
                   "--budget %s: expected bytes (64MiB) or a fraction from above 0 to 1 (0.5)", text);
  return AOT_E_INVALID;
}

static aot_status_t check_plot(const query_t *a) {
  const char *path = a->flags->plot;
  if (!path) return AOT_OK;
  if (ends_with(path, ".svg") || ends_with(path, ".html"))
    return aoth_check_writable(path, "the picture", NULL, a->cli->sink);
  aoth_sink_report(a->cli->sink, AOT_SEVERITY_ERROR, NULL, "memory.plot",
                   "--plot %s: the name must end in .svg or .html", path);
  return AOT_E_INVALID;
}

/* ---- the program ---- */

static aot_status_t misfit(const query_t *a, const char *flag, const char *why) {
  aoth_sink_report(a->cli->sink, AOT_SEVERITY_ERROR, NULL, "inspect.flag", "%s: %s", flag, why);
  return AOT_E_INVALID;
}

static aot_status_t run_pipeline(query_t *a) {
  aoth_overrides_t overrides = {.model = a->flags->model};
  if (a->flags->uses.n) return misfit(a, "--use", "a pipeline has its stages; --set changes them");
  if (a->flags->import_id)
    return misfit(a, "--import", "a pipeline names its importer; --set model.import=ID changes it");
  AOT_TRY(aoth_cli_pipeline(a->cli, a->cli->positional[0], &overrides, &a->pipeline));
  a->stages = a->pipeline->stages;
  a->n_stages = a->pipeline->n_stages;
  AOT_TRY(aoth_pipeline_import(a->cli->session, a->pipeline));
  return aoth_pipeline_run_stages(a->cli->session, a->pipeline,
                                  a->pipeline->run.train.present ? AOTH_STAGES_OPTIMIZER | AOTH_STAGES_STITCH : 0);
}

static aot_status_t run_program(query_t *a) {
  aoth_session_t *s = a->cli->session;
  if (a->flags->model) return misfit(a, "--model", "only a pipeline takes it");
  if (a->cli->common.sets.n)
    return misfit(a, "--set", "only a pipeline takes it; --with sets an option of the --use before it");
  AOT_TRY(aoth_cli_stages(a->cli, &a->flags->uses, a->arena, &a->stages, &a->n_stages));
  AOT_TRY(aoth_session_import(s, a->flags->import_id, NULL, a->cli->positional[0], NULL));
  return aoth_session_run_list(s, a->stages, a->n_stages);
}

/* ---- who is queried ---- */

/* The last stage of this kind. NULL: none. */
static const aoth_stage_t *stage_of(const query_t *a, const char *kind) {
  for (uint32_t i = a->n_stages; i-- > 0;)
    if (a->stages[i].unit && strcmp(a->stages[i].unit->kind, kind) == 0) return &a->stages[i];
  return NULL;
}

static aot_status_t no_unit_answers(const query_t *a, const char *what, const char *hint) {
  aoth_sink_report(a->cli->sink, AOT_SEVERITY_ERROR, NULL, "memory.unit", "%s has no %s that could be asked",
                   a->cli->positional[0], what);
  aoth_sink_line(a->cli->sink, "hint: %s", hint);
  return AOT_E_INVALID;
}

static aot_status_t choose_asked(query_t *a) {
  const aoth_stage_t *backend = stage_of(a, "backend/2"), *partition = stage_of(a, "partition/1");
  if (!backend && !a->flags->unit)
    return no_unit_answers(a, "backend",
                           a->pipeline ? "add a backend stage, or name a partitioner: --unit ID"
                                       : "name one: --use backend-cpu");
  if (backend) a->asked[a->n_asked++] = *backend;
  if (a->flags->simulated && !partition) return no_unit_answers(a, "partition stage", "name a partitioner: --unit ID");
  if (a->flags->simulated) a->asked[a->n_asked++] = *partition;
  if (!a->flags->unit) return AOT_OK;
  aoth_stage_t *named = &a->asked[a->n_asked++];
  *named = (aoth_stage_t){.use = a->flags->unit, .name = a->flags->unit};
  return aoth_stage_resolve(a->cli->session, named, "backend/2 partition/1", a->arena);
}

static aot_status_t ask(query_t *a) {
  const aoth_stage_t *backend = stage_of(a, "backend/2");
  for (uint32_t i = 0; i < a->n_asked; i++) {
    aot_memory_plan_t plan;
    AOT_TRY(aoth_session_memory(a->cli->session, &a->asked[i], backend, a->arena, &plan));
    AOT_TRY(aoth_memory_view_make(aoth_session_prog(a->cli->session), &plan, a->asked[i].name, a->arena, &a->views[i]));
  }
  return AOT_OK;
}

/* ---- the budget ---- */

/* What the stages reported last under this name. 0: nothing. */
static double reported(const query_t *a, const char *name) {
  const aoth_record_t *r;
  double value = 0;
  const uint32_t n = aoth_session_records(a->cli->session, &r);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < r[i].n_numbers; k++)
      if (strcmp(r[i].numbers[k].name, name) == 0) value = r[i].numbers[k].value;
  return value;
}

/* A stage that keeps a budget reports it; a fraction is of the peak that it reports for saving everything. */
static aot_status_t resolve_budget(query_t *a) {
  if (!a->flags->budget) a->budget = (uint64_t)reported(a, "budget-bytes");
  if (!a->fraction) return AOT_OK;
  const double all = reported(a, "all-saved-peak-bytes");
  if (all > 0) {
    a->budget = (uint64_t)(all * a->fraction);
    return AOT_OK;
  }
  aoth_sink_report(
      a->cli->sink, AOT_SEVERITY_ERROR, NULL, "memory.budget",
      "--budget %s: a fraction is of the peak with everything saved, and no stage of this run reports that "
      "(all-saved-peak-bytes)",
      a->flags->budget);
  aoth_sink_line(a->cli->sink, "hint: give bytes, as in --budget 64MiB");
  return AOT_E_INVALID;
}

/* ---- telling ---- */

static aot_status_t write_plot(const query_t *a, const aoth_memory_report_t *r) {
  kit_text_t text = {0};
  aot_status_t status = ends_with(a->flags->plot, ".svg") ? aoth_memory_svg(r, &text) : aoth_memory_html(r, &text);
  if (status == AOT_OK) status = aoth_page_write(&text, a->flags->plot, a->cli->sink);
  kit_text_deinit(&text);
  return status;
}

static aot_status_t tell(query_t *a) {
  const aoth_memory_report_t r = {
      .file = a->cli->positional[0], .views = a->views, .n_views = a->n_asked, .budget = a->budget, .top = a->top};
  const char *json_path = a->cli->common.json_path;
  kit_text_t text = {0};
  if (a->flags->plot) AOT_TRY(write_plot(a, &r));
  if (json_path) {
    json_t *json = aoth_memory_json(&r, a->arena);
    const aot_status_t status = aoth_cli_json(a->cli, json);
    json_decref(json);
    AOT_TRY(status);
  }
  if (json_path && strcmp(json_path, "-") == 0) return AOT_OK;
  const aot_status_t status = aoth_memory_print(&r, a->arena, &text);
  if (status == AOT_OK && !a->cli->common.quiet) fwrite(text.data, 1, text.size, stdout);
  kit_text_deinit(&text);
  return status;
}

static aot_status_t inspect(query_t *a) {
  const char *file = a->cli->positional[0];
  AOT_TRY(read_top(a));
  AOT_TRY(read_budget(a));
  AOT_TRY(check_plot(a));
  AOT_TRY(ends_with(file, ".yaml") || ends_with(file, ".yml") ? run_pipeline(a) : run_program(a));
  AOT_TRY(choose_asked(a));
  AOT_TRY(ask(a));
  AOT_TRY(resolve_budget(a));
  return tell(a);
}

int aoth_inspect_memory(aoth_cli_t *cli, const aoth_memory_flags_t *flags) {
  query_t a = {.cli = cli, .flags = flags, .arena = kit_arena_create()};
  const aot_status_t status = a.arena ? inspect(&a) : AOT_E_EXHAUSTED;
  const int exceeded = status == AOT_OK && flags->budget && a.views[0].plan.peak_nbytes > a.budget;
  aoth_pipeline_destroy(a.pipeline);
  kit_arena_destroy(a.arena);
  return exceeded ? AOTH_EXIT_DIFFERS : aoth_exit_code(status);
}
