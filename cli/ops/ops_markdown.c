/* aothost ops --markdown F: the operators as a page, a table a group, and the recorded cases that do not pass. The page
 * holds nothing that depends on the machine: no times, no paths, no sizes of errors. */
#include <cli/ops/ops_table.h>

#include <base/file.h>
#include <stdlib.h>
#include <string.h>

typedef struct page {
  const aoth_ops_table_t *table;
  const json_t *cases; /* NULL: not run */
  json_t *case_rows;   /* by operator */
  aoth_op_row_t *rows; /* the table's, by group, then name */
  FILE *out;
} page_t;

/* ---- words ---- */

/* Pipes escaped, line ends as spaces. */
static void escaped(FILE *out, const char *text, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '|') fputc('\\', out);
    fputc(text[i] == '\n' ? ' ' : text[i], out);
  }
}

static void cell(FILE *out, const char *text, size_t size) {
  fputs(" ", out);
  escaped(out, text, size);
  fputs(" |", out);
}

static void code_cell(FILE *out, const char *text, size_t size) {
  fputs(" `", out);
  escaped(out, text, size);
  fputs("` |", out);
}

static void answer_cell(FILE *out, aoth_op_answer_t a) {
  char text[400];
  const int told = a.why[0] && strcmp(a.word, "decomposed") != 0;
  snprintf(text, sizeof text, "%s%s%s", a.word, told ? ": " : "", told ? a.why : "");
  cell(out, text, strlen(text));
}

static long whole(const json_t *object, const char *key) {
  return (long)json_integer_value(json_object_get(object, key));
}

/* "7/8", or "-" without a case. */
static void tally_cell(FILE *out, const json_t *tally) {
  if (whole(tally, "cases")) fprintf(out, " %ld/%ld |", whole(tally, "passed"), whole(tally, "cases"));
  else fputs(" - |", out);
}

/* ---- groups ---- */

static int compare_groups(const aoth_op_row_t *x, const aoth_op_row_t *y) {
  const aot_str_t a = x->desc->group, b = y->desc->group;
  const size_t n = (size_t)(a.size < b.size ? a.size : b.size);
  const int order = n ? memcmp(a.data, b.data, n) : 0;
  return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_rows(const void *a, const void *b) {
  const aoth_op_row_t *x = a, *y = b;
  const int group = compare_groups(x, y);
  return group ? group : strcmp(x->name, y->name);
}

static void write_row(const page_t *p, const aoth_op_row_t *r) {
  const aoth_ops_table_t *t = p->table;
  const json_t *cases = json_object_get(p->case_rows, r->name);
  const char *rule = r->info.shape_rule.size ? r->info.shape_rule.data : "-", *decomposition = aoth_op_decomposition(r);
  fputs("|", p->out);
  code_cell(p->out, r->name, strlen(r->name));
  code_cell(p->out, r->desc->schema.data, (size_t)r->desc->schema.size);
  cell(p->out, rule, strlen(rule));
  cell(p->out, decomposition, strlen(decomposition));
  for (uint32_t u = 0; u < t->n_gradients; u++) answer_cell(p->out, aoth_op_gradient(&t->gradients[u], r));
  for (uint32_t u = 0; u < t->n_backends; u++) answer_cell(p->out, aoth_op_support(&t->backends[u], r));
  if (p->cases) {
    tally_cell(p->out, json_object_get(cases, "forward"));
    tally_cell(p->out, json_object_get(cases, "gradients"));
  }
  cell(p->out, r->desc->doc.data ? r->desc->doc.data : "", (size_t)r->desc->doc.size);
  fputs("\n", p->out);
}

static void write_group_head(const page_t *p, const aoth_op_row_t *first, uint32_t n) {
  const aoth_ops_table_t *t = p->table;
  fprintf(p->out, "\n## %.*s\n\n%u operator%s.\n\n| operator | schema | shape rule | decomposes |",
          (int)first->desc->group.size, first->desc->group.data, n, n == 1 ? "" : "s");
  uint32_t columns = 5 + t->n_gradients + t->n_backends + (p->cases ? 2 : 0);
  for (uint32_t u = 0; u < t->n_gradients; u++) fprintf(p->out, " gradient (%s) |", t->gradients[u].unit->id);
  for (uint32_t u = 0; u < t->n_backends; u++) fprintf(p->out, " %s |", t->backends[u].unit->id);
  if (p->cases) fputs(" forward | gradients |", p->out);
  fputs(" what it computes |\n|", p->out);
  while (columns--) fputs("---|", p->out);
  fputs("\n", p->out);
}

static void write_groups(const page_t *p) {
  for (uint32_t i = 0, end; i < p->table->n_rows; i = end) {
    for (end = i; end < p->table->n_rows && compare_groups(&p->rows[i], &p->rows[end]) == 0; end++) continue;
    write_group_head(p, &p->rows[i], end - i);
    for (uint32_t k = i; k < end; k++) write_row(p, &p->rows[k]);
  }
}

/* ---- totals ---- */

typedef aoth_op_answer_t answer_fn(const aoth_coverage_t *c, const aoth_op_row_t *row);

static void write_answers(const page_t *p, const char *what, const aoth_coverage_t *c, answer_fn *answer) {
  static const char *const words[] = {"yes", "native", "functional", "kernel", "decomposed", "none", "no", "unsaid"};
  int n_written = 0;
  fprintf(p->out, "| %s%s |", what, c->unit->id);
  for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->table->n_rows; i++) n += strcmp(answer(c, &p->rows[i]).word, words[w]) == 0;
    if (n) fprintf(p->out, "%s%u %s", n_written++ ? ", " : " ", n, words[w]);
  }
  fputs(" |\n", p->out);
}

static void write_cases_total(const page_t *p, const char *direction) {
  const json_t *t = json_object_get(p->cases, direction);
  fprintf(p->out, "| recorded %s, %s | %ld of %ld pass |\n", strcmp(direction, "forward") == 0 ? "calls" : "gradients",
          json_string_value(json_object_get(p->cases, "backend")), whole(t, "passed"), whole(t, "cases"));
}

static void write_totals(const page_t *p) {
  const aoth_ops_table_t *t = p->table;
  fprintf(p->out, "| | |\n|---|---|\n| operators | %u |\n", t->n_rows);
  for (uint32_t u = 0; u < t->n_gradients; u++) write_answers(p, "gradient by ", &t->gradients[u], aoth_op_gradient);
  for (uint32_t u = 0; u < t->n_backends; u++) write_answers(p, "", &t->backends[u], aoth_op_support);
  if (!p->cases) return;
  write_cases_total(p, "forward");
  write_cases_total(p, "gradients");
}

/* ---- cases that do not pass ---- */

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

/* How much of a failure's message the page shows: the first of its lines (they are joined by ";  "). Numbers of one
 *                                                                                                that differs
 * are the machine's, and "unknown operator" says all. */
static size_t message_size(const json_t *failure) {
  const char *reason = text_of(failure, "reason"), *message = text_of(failure, "message"),
             *end = strstr(message, ";  ");
  if (strcmp(reason, "differs") == 0 || strcmp(reason, "unknown operator") == 0) return 0;
  return end ? (size_t)(end - message) : strlen(message);
}

/* A failure's row up to its cases. */
static void failure_row(const json_t *f, kit_text_t *row) {
  const char *message = text_of(f, "message");
  const size_t size = message_size(f);
  kit_text_f(row, "| `%s` | %s | %s%s", text_of(f, "operator"), text_of(f, "direction"), text_of(f, "reason"),
             size ? ": " : "");
  for (size_t i = 0; i < size; i++) {
    if (message[i] == '|') kit_text_add(row, "\\", 1);
    kit_text_add(row, message[i] == '\n' ? " " : &message[i], 1);
  }
  kit_text_add(row, " |", 2);
}

/* A list of the report: those alike share a row, which names their cases. */
static void write_list(const page_t *p, const char *list, const char *title) {
  const json_t *all = json_object_get(p->cases, list);
  json_t *rows = json_object(), *ids; /* row -> ids; keys stay in the order of their first failure */
  const char *row;
  for (size_t i = 0; i < json_array_size(all); i++) {
    kit_text_t key = {0};
    failure_row(json_array_get(all, i), &key);
    ids = json_object_get(rows, key.data ? key.data : "");
    if (!ids && key.data) json_object_set_new(rows, key.data, ids = json_array());
    json_array_append(ids, json_object_get(json_array_get(all, i), "id"));
    kit_text_deinit(&key);
  }
  fprintf(p->out, "\n## %s\n\n", title);
  fputs(json_object_size(rows) ? "| operator | direction | reason | cases |\n|---|---|---|---|\n" : "None.\n", p->out);
  json_object_foreach(rows, row, ids) {
    fputs(row, p->out);
    for (size_t k = 0; k < json_array_size(ids); k++) fprintf(p->out, " %s", json_string_value(json_array_get(ids, k)));
    fputs(" |\n", p->out);
  }
  json_decref(rows);
}

/* ---- the page ---- */

static void write_head(const page_t *p) {
  fputs("# Operators\n\n"
        "Written by `cmake --build build --target operators_doc`; the test `operators_doc_is_current` fails when it\n"
        "is not what the code says. How to get the same of another backend: docs/PLUGINS.md, \"What does my backend\n"
        "support\".\n Gradient: yes: there is a rule; functional, decomposed: of what it becomes first; none: there\n"
        "is nothing to differentiate; no. Backend: native; functional: written arguments go first; kernel: an opset\n"
        "brings one; decomposed: refused nodes are taken apart; no. These are answers by name; a node with an\n"
        "unusual dtype or size may still be refused.\n\n",
        p->out);
  write_totals(p);
}

static aot_status_t index_cases(page_t *p) {
  const json_t *rows = json_object_get(p->cases, "operators");
  if (!(p->case_rows = json_object())) return AOT_E_EXHAUSTED;
  for (size_t i = 0; i < json_array_size(rows); i++)
    json_object_set(p->case_rows, text_of(json_array_get(rows, i), "operator"), json_array_get(rows, i));
  return AOT_OK;
}

static aot_status_t fill(page_t *p) {
  const aoth_ops_table_t *t = p->table;
  const char *path = t->line->markdown;
  p->rows = calloc(t->n_rows + 1u, sizeof *p->rows);
  if (!p->rows || index_cases(p) != AOT_OK) return AOT_E_EXHAUSTED;
  memcpy(p->rows, t->rows, t->n_rows * sizeof *p->rows);
  qsort(p->rows, t->n_rows, sizeof *p->rows, compare_rows);
  char *text = NULL;
  size_t size = 0;
  p->out = open_memstream(&text, &size);
  if (!p->out) return AOT_E_EXHAUSTED;
  write_head(p);
  write_groups(p);
  if (p->cases) write_list(p, "failures", "Recorded cases that do not pass");
  if (p->cases) write_list(p, "exceptions", "Recorded results that need not agree");
  const int bad = ferror(p->out);
  const int is_whole = fclose(p->out) == 0 && !bad;
  aoth_writer_t *w = is_whole ? aoth_writer_begin(path, t->line->cli.sink) : NULL;
  if (w) aoth_writer_write(w, text, size);
  const aot_status_t status = w ? aoth_writer_commit(w) : is_whole ? AOT_E_INVALID : AOT_E_EXHAUSTED;
  free(text);
  return status;
}

aot_status_t aoth_ops_markdown(const aoth_ops_table_t *t, const json_t *cases) {
  page_t p = {.table = t, .cases = cases};
  const aot_status_t status = fill(&p);
  free(p.rows);
  json_decref(p.case_rows);
  return status;
}
