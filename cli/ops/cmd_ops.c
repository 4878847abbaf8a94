/* aothost ops [NAME..]: every operator of the opsets, and what the units found make of it; with --cases, recorded
 * calls; with
 * --markdown, both as a page. */
#include <cli/ops/ops_table.h>
#include <cli/plugins/unit_json.h>

#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static void print_table(const aoth_ops_table_t *t) {
  printf("%-46s %-12s %-22s %-11s", "operator", "group", "shape rule", "decomposes");
  for (uint32_t u = 0; u < t->n_gradients; u++) printf(" %-11s", t->gradients[u].unit->id);
  for (uint32_t u = 0; u < t->n_backends; u++) printf(" %-12s", t->backends[u].unit->id);
  printf(" schema\n");
  for (uint32_t i = 0; i < t->n_rows; i++) {
    const aoth_op_row_t *r = &t->rows[i];
    const aot_op_desc_t *d = r->desc;
    printf("%-46s %-12.*s %-22s %-11s", r->name, (int)d->group.size, d->group.data,
           r->info.shape_rule.size ? r->info.shape_rule.data : "-", aoth_op_decomposition(r));
    for (uint32_t u = 0; u < t->n_gradients; u++) printf(" %-11s", aoth_op_gradient(&t->gradients[u], r).word);
    for (uint32_t u = 0; u < t->n_backends; u++) printf(" %-12s", aoth_op_support(&t->backends[u], r).word);
    printf(" %.*s\n", (int)d->schema.size, d->schema.data);
  }
}

static void print_totals(const aoth_ops_table_t *t) {
  printf("%u operators", t->n_rows);
  for (uint32_t u = 0; u < t->n_gradients; u++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n_rows; i++)
      n += strcmp(aoth_op_gradient(&t->gradients[u], &t->rows[i]).word, "yes") == 0;
    printf("; %s: %u rules", t->gradients[u].unit->id, n);
  }
  for (uint32_t u = 0; u < t->n_backends; u++) {
    uint32_t n = 0, refused = 0;
    for (uint32_t i = 0; i < t->n_rows; i++) {
      const char *word = aoth_op_support(&t->backends[u], &t->rows[i]).word;
      n += strcmp(word, "native") == 0;
      refused += strcmp(word, "no") == 0;
    }
    printf("; %s: %u native, %u no", t->backends[u].unit->id, n, refused);
  }
  printf("\n");
}

static const char *const stype_names[] = {"",      "Tensor", "Scalar",  "int",    "float",        "bool",
                                          "str",   "dtype",  "layout",  "Device", "MemoryFormat", "Generator",
                                          "graph", "any",    "operator"};
static const char *stype(int32_t type) {
  return type > 0 && type < (int32_t)(sizeof stype_names / sizeof *stype_names) ? stype_names[type] : "?";
}

static void print_arg(const char *what, const aot_schema_arg_t *a) {
  printf("  %-7s %-20.*s %s%s%s%s", what, (int)a->name.size, a->name.size ? a->name.data : "", stype(a->type),
         a->flags & AOT_SARG_OPTIONAL_ELEM ? "?" : "", a->flags & AOT_SARG_LIST ? "[]" : "",
         a->flags & AOT_SARG_OPTIONAL ? "?" : "");
  if (a->flags & AOT_SARG_KWONLY) printf(", by keyword");
  if (a->flags & AOT_SARG_HAS_DEFAULT) printf(", has a default");
  if (a->flags & AOT_SARG_VARIADIC) printf(", takes all that follow");
  if (a->alias_set == AOT_ALIAS_ANY) printf(", may alias anything");
  else if (a->alias_set) printf(", alias set %c", 'a' + (a->alias_set - 1) % 26);
  if (a->flags & AOT_SARG_WRITE) printf(", written%s", a->write_if ? " when" : "");
  if (a->flags & AOT_SARG_WRITE && a->write_if) printf(" argument %d is true", (int)a->write_if - 1);
  printf("\n");
}

static void print_answer(const char *what, const char *unit, aoth_op_answer_t a) {
  printf("  %s%s: %s%s%s\n", what, unit, a.word, a.why[0] ? ": " : "", a.why);
}

/* Calls `each` for what is known of an operator's sources, its shape rule's among them. */
static void walk_sources(const aoth_ops_table_t *t, const aoth_op_row_t *r,
                         void (*each)(void *self, const aoth_op_source_t *source), void *self) {
  uint32_t n;
  char rule[128];
  const aoth_op_source_t *found = aoth_op_sources_find(&t->sources, r->name, &n);
  for (uint32_t i = 0; i < n; i++) each(self, &found[i]);
  snprintf(rule, sizeof rule, "shape:%.*s", (int)r->info.shape_rule.size, r->info.shape_rule.data);
  found = aoth_op_sources_find(&t->sources, rule, &n);
  for (uint32_t i = 0; i < n; i++) each(self, &found[i]);
}

static void print_source(void *self, const aoth_op_source_t *source) {
  (void)self;
  printf("  %s of %s: %s\n", source->what, source->plugin, source->place);
}

static void source_json(void *self, const aoth_op_source_t *source) {
  json_array_append_new(
      self, json_pack("{s:s, s:s, s:s}", "what", source->what, "plugin", source->plugin, "place", source->place));
}

static void print_one(const aoth_ops_table_t *t, const aoth_op_row_t *r) {
  const aot_op_desc_t *d = r->desc;
  const char *marks[32];
  const uint32_t n_marks = aoth_op_marks(r, marks);
  printf("%s%.*s\n  %.*s\n  group %.*s of opset %s; shape rule %s; decomposes: %s\n", r->name, (int)d->schema.size,
         d->schema.data, (int)d->doc.size, d->doc.data ? d->doc.data : "", (int)d->group.size, d->group.data, r->opset,
         r->info.shape_rule.size ? r->info.shape_rule.data : "unsaid", aoth_op_decomposition(r));
  if (r->info.functional.size) printf("  without the write: %s\n", r->info.functional.data);
  printf("  marks");
  for (uint32_t i = 0; i < n_marks; i++) printf(" %s", marks[i]);
  printf("\n");
  for (uint32_t a = 0; a < d->n_args; a++) print_arg("takes", &d->args[a]);
  for (uint32_t a = 0; a < d->n_results; a++) print_arg("gives", &d->results[a]);
  for (uint32_t u = 0; u < t->n_gradients; u++)
    print_answer("gradient by ", t->gradients[u].unit->id, aoth_op_gradient(&t->gradients[u], r));
  for (uint32_t u = 0; u < t->n_backends; u++)
    print_answer("", t->backends[u].unit->id, aoth_op_support(&t->backends[u], r));
  walk_sources(t, r, print_source, NULL);
}

/* ---- json ---- */

static json_t *op_json(const aoth_ops_table_t *t, const aoth_op_row_t *r) {
  json_t *sources = json_array(), *words = json_array(), *gradients = json_object(), *backends = json_object(),
         *whys = json_object();
  const aot_op_desc_t *d = r->desc;
  const char *marks[32];
  const char *decomposition = aoth_op_decomposition(r);
  const uint32_t n_marks = aoth_op_marks(r, marks);
  for (uint32_t i = 0; i < n_marks; i++) json_array_append_new(words, json_string(marks[i]));
  for (uint32_t u = 0; u < t->n_gradients; u++) {
    const aoth_op_answer_t a = aoth_op_gradient(&t->gradients[u], r);
    json_object_set_new(gradients, t->gradients[u].unit->id, json_string(a.word));
    json_object_set_new(whys, t->gradients[u].unit->id, json_string(a.why));
  }
  walk_sources(t, r, source_json, sources);
  for (uint32_t u = 0; u < t->n_backends; u++)
    json_object_set_new(backends, t->backends[u].unit->id, json_string(aoth_op_support(&t->backends[u], r).word));
  return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", r->name, "schema",
                   aoth_str_json(d->schema), "group", aoth_str_json(d->group), "opset", r->opset, "doc",
                   aoth_str_json(d->doc), "marks", words, "shape_rule", aoth_str_json(r->info.shape_rule),
                   "decomposition", decomposition[0] == '-' ? json_null() : json_string(decomposition), "functional",
                   aoth_str_json(r->info.functional), "gradient", gradients, "gradient_why", whys, "backends", backends,
                   "sources", sources);
}

static aot_status_t write_json(const aoth_ops_table_t *t) {
  json_t *list = json_array();
  for (uint32_t i = 0; t->line->cli.common.json_path && i < t->n_rows; i++)
    json_array_append_new(list, op_json(t, &t->rows[i]));
  json_t *json = json_pack("{s:o}", "operators", list);
  const aot_status_t status = aoth_cli_json(&t->line->cli, json);
  json_decref(json);
  return status;
}

/* ---- the command ---- */

static int as_text(const aoth_cli_t *cli) { return !cli->common.json_path || strcmp(cli->common.json_path, "-") != 0; }

static int list(aoth_ops_line_t *line) {
  const int text = as_text(&line->cli);
  aoth_ops_table_t t = {.line = line, .s = line->cli.session};
  aot_status_t status = aoth_ops_table_make(&t);
  if (status == AOT_OK) {
    if (text && line->cli.common.verbose)
      for (uint32_t i = 0; i < t.n_rows; i++) print_one(&t, &t.rows[i]);
    else if (text) print_table(&t);
    if (text && t.n_rows > 1) print_totals(&t);
    status = write_json(&t);
  }
  aoth_ops_table_deinit(&t);
  return aoth_exit_code(status);
}

static int run_mutants(aoth_ops_line_t *line) {
  uint32_t n_bad = 0;
  const aot_status_t status = aoth_ops_mutants_run(line, &n_bad);
  if (status != AOT_OK) return aoth_exit_code(status);
  return n_bad ? AOTH_EXIT_DIFFERS : AOTH_EXIT_OK;
}

static int run_cases(aoth_ops_line_t *line) {
  json_t *json = NULL;
  uint32_t n_failed = 0;
  aot_status_t status = aoth_ops_cases_run(line, as_text(&line->cli), &json, &n_failed);
  if (status == AOT_OK) status = aoth_cli_json(&line->cli, json);
  json_decref(json);
  if (status != AOT_OK) return aoth_exit_code(status);
  return n_failed ? AOTH_EXIT_DIFFERS : AOTH_EXIT_OK;
}

/* The page reports failures; they do not make its writing fail. */
static int write_page(aoth_ops_line_t *line) {
  json_t *cases = NULL;
  uint32_t n_failed = 0;
  aoth_ops_table_t t = {.line = line, .s = line->cli.session};
  aot_status_t status = aoth_ops_table_make(&t);
  if (status == AOT_OK && line->cases) status = aoth_ops_cases_run(line, 0, &cases, &n_failed);
  if (status == AOT_OK) status = aoth_ops_markdown(&t, cases);
  json_decref(cases);
  aoth_ops_table_deinit(&t);
  return aoth_exit_code(status);
}

static int missing(aoth_ops_line_t *line, const char *message) {
  aoth_sink_report(line->cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.missing", "%s", message);
  return AOTH_EXIT_INPUT;
}

/* NULL: 0. */
static int read_count(aoth_ops_line_t *line, const char *flag, const char *text, uint64_t most, uint64_t *out) {
  char *end;
  *out = text ? strtoull(text, &end, 10) : 0;
  if (!text || (*text >= '0' && *text <= '9' && !*end && *out <= most)) return 1;
  aoth_sink_report(line->cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.number", "%s takes a number up to %llu, not '%s'",
                   flag, (unsigned long long)most, text);
  return 0;
}

/* "3/12"; NULL: everything. */
static int read_part(aoth_ops_line_t *line) {
  unsigned long long number = 1, n = 1;
  char rest;
  const int is_part =
      !line->part || (sscanf(line->part, "%9llu/%9llu%c", &number, &n, &rest) == 2 && number && number <= n);
  line->part_number = number;
  line->n_parts = n;
  if (is_part) return 1;
  aoth_sink_report(line->cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.part",
                   "--part takes one of so many, as 3/12, not '%s'", line->part);
  return 0;
}

static int check_line(aoth_ops_line_t *line) {
  if (line->data && !line->cases) return missing(line, "--data belongs to --cases, which is not there");
  if (line->device && !line->cases) return missing(line, "--device belongs to --cases, which is not there");
  if (line->stages && !line->cases) return missing(line, "--stages belongs to --cases, which is not there");
  if (line->mutate && (!line->cases || line->markdown))
    return missing(line, "--mutate belongs to --cases, which is not there, or to no page");
  if (line->part && !line->cases) return missing(line, "--part belongs to --cases, which is not there");
  if (line->seed && !line->mutate) return missing(line, "--seed belongs to --mutate, which is not there");
  if (!read_count(line, "--mutate", line->mutate, 1000000, &line->n_mutants) ||
      !read_count(line, "--seed", line->seed, UINT32_MAX, &line->mutant_seed) || !read_part(line))
    return AOTH_EXIT_INPUT;
  if (line->cases && !line->backends.n) return missing(line, "--cases needs a backend: --backend ID");
  if (line->cases && line->backends.n > 1 && !line->markdown)
    return missing(line, "--cases runs through one backend: give --backend once");
  if (line->backends.n) line->backend = line->backends.items[0];
  return AOTH_CLI_GO;
}

static int ops_main(const aoth_command_t *self, int argc, char **argv) {
  aoth_ops_line_t line = {.cases = NULL};
  /* clang-format off */
  const aoth_flag_t flags[] = {
      {.name = "--backend", .value = "ID", .help = "only this backend; may be repeated; needed with --cases",
       .list = &line.backends},
      {.name = "--cases", .value = "F", .help = "run these recorded calls", .text = &line.cases},
      {.name = "--data", .value = "F", .help = "their tensors; data.safetensors beside the cases when left out",
       .text = &line.data},
      {.name = "--device", .value = "ID", .help = "run them on this device; the host when left out",
       .text = &line.device},
      {.name = "--stages", .value = "IDS",
       .help = "of cases with gradients, before the backend; autograd,partition-default",
       .text = &line.stages},
      {.name = "--part", .value = "K/N", .help = "run every N-th case, starting with the K-th (sharding)", .text = &line.part},
      {.name = "--mutate", .value = "N",
       .help = "fuzz each case with N argument mutations; each must run or be rejected with a reason",
       .text = &line.mutate},
      {.name = "--seed", .value = "S", .help = "of these changes; 0", .text = &line.seed},
      {.name = "--markdown", .value = "F", .help = "write the list, and the cases' results, as a page",
       .text = &line.markdown, .writes = 1},
  };
  /* clang-format on */
  int code = aoth_cli_init(&line.cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 0, AOTH_CLI_ANY);
  if (code == AOTH_CLI_GO) code = check_line(&line);
  if (code == AOTH_CLI_GO && !aoth_cli_session(&line.cli)) code = AOTH_EXIT_INPUT;
  if (code == AOTH_CLI_GO)
    code = line.markdown ? write_page(&line)
           : line.mutate ? run_mutants(&line)
           : line.cases  ? run_cases(&line)
                         : list(&line);
  free(line.backends.items);
  return aoth_cli_deinit(&line.cli, code);
}

const aoth_command_t aoth_cmd_ops = {
    .name = "ops",
    .usage = "ops [NAME..] [--backend ID] [--cases F [--data F] [--device ID] [--stages IDS] [--part K/N] [--mutate N "
             "[--seed S]]] "
             "[--markdown F] "
             "[options]",
    .summary = "list operators with schema, shape rule, gradient and backend support; run recorded cases",
    .text = "Lists the operators of all opsets found, or those that fit a NAME or pattern ('*' is any text): group,\n"
            "shape rule, whether it decomposes (composite: by definition; on-request), whether a unit differentiates\n"
            "it, what each backend makes of it. With -v an operator is printed in full: every argument, reasons, and\n"
            "file:line of its schema, shape rule, decomposition, derivative rule, kernel and loop row, as far as a\n"
            "file ID.sources beside a plugin ID.so gives them. Gradient: yes; functional or decomposed (of what it "
            "becomes); none (nothing to differentiate);\n"
            "no; unsaid. Backend: native; functional (written arguments go first); kernel (an opset brings one);\n"
            "decomposed (refused nodes are taken apart by the opset); no; unsaid. These are answers by name. A\n"
            "backend is asked node by node and may still refuse one dtype or size, and what a node decomposes into\n"
            "is known when the node is there: only --cases shows it.\n"
            "\n"
            "With --cases every recorded call runs through a backend (docs/PIPELINE.md has the format): one row an\n"
            "operator with how many pass forward and backward, the worst error and the first failing case, then the\n"
            "failures by reason. A case that cannot run counts as failed. Status 1 when one fails. Results that a\n"
            "file exceptions.txt beside the cases names, each with its reason, may differ; they are counted apart.\n"
            "What the backend reports in nodes or calls (what ran in which way) is added up by operator.\n"
            "\n"
            "With --markdown the list becomes a page, a table a group, with the cases that do not pass; cases run\n"
            "through the first --backend. docs/OPERATORS.md says the command that wrote it.\n"
            "\n"
            "  aothost ops '*.add*'\n"
            "  aothost ops '*.linear.default' -v\n"
            "  aothost ops --cases cases.json --backend backend-ref --json report.json\n"
            "  aothost ops --cases cases.json --backend backend-cuda --device cuda\n",
    .main = ops_main,
};
