/* The host knows no operator: all of this is descriptors, and what units say of themselves. What a unit does not name
 * is derived from the operator's marks, schema and opset; the words promise no more than that. */
#include <cli/ops/ops_table.h>

#include <aot/ext/derivative.h>
#include <aot/inline.h>
#include <fnmatch.h>
#include <sandbox/call.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <stdlib.h>
#include <string.h>

/* ---- which operators ---- */

int aoth_ops_chosen(const aoth_cli_t *cli, const char *op) {
  for (uint32_t i = 0; i < cli->n_positional; i++)
    if (fnmatch(cli->positional[i], op, 0) == 0) return 1;
  return cli->n_positional == 0;
}

static int compare_rows(const void *a, const void *b) {
  return strcmp(((const aoth_op_row_t *)a)->name, ((const aoth_op_row_t *)b)->name);
}

/* A name or pattern that fits nothing is a slip. */
static aot_status_t check_names(const aoth_ops_table_t *t) {
  const aoth_cli_t *cli = &t->line->cli;
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < cli->n_positional; i++) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->n_rows; k++) n += fnmatch(cli->positional[i], t->rows[k].name, 0) == 0;
    if (n) continue;
    aot_str_t near = {NULL, 0};
    const int found = aoth_ops_nearest(t->s->ops, aot_str(cli->positional[i]), &near);
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "ops.unknown", "no operator '%s'%s%.*s%s", cli->positional[i],
                     found ? "; did you mean '" : "", found ? (int)near.size : 0, found ? near.data : "",
                     found ? "'?" : "");
    status = AOT_E_NOT_FOUND;
  }
  return status;
}

static const char *name_of(aoth_session_t *s, const aot_op_desc_t *d) {
  return kit_arena_text(s->arena, d->name.data, (size_t)d->name.size);
}

/* The operator without the write, which writes nothing itself. *out NULL: there is none. */
static aot_status_t find_twin(aoth_ops_table_t *t, const aot_op_info_t *infos, const aoth_op_row_t *row,
                              const aoth_op_row_t **out) {
  *out = NULL;
  if (!row->info.functional.size) return AOT_OK;
  const aot_op_t op = aoth_ops_find(t->s->ops, row->info.functional);
  const aot_op_desc_t *d = aoth_ops_desc(t->s->ops, op);
  if (!d || (d->flags & AOT_OP_WRITES)) return AOT_OK;
  aoth_op_row_t *twin = kit_arena_alloc(t->s->arena, sizeof(void *), sizeof *twin);
  if (!twin) return AOT_E_EXHAUSTED;
  *twin = (aoth_op_row_t){.desc = d, .name = name_of(t->s, d), .opset = row->opset, .info = infos[op.id]};
  *out = twin;
  return twin->name ? AOT_OK : AOT_E_EXHAUSTED;
}

/* out[operator id] = 1: an opset brings its derivative. */
static aot_status_t mark_derivatives(aoth_session_t *s, uint32_t n_ops, uint8_t *out) {
  const aot_derivative_t *const *all;
  uint64_t n;
  memset(out, 0, n_ops);
  AOT_TRY(aoth_ops_derivatives(s->ops, s->arena, &all, &n));
  for (uint64_t i = 0; i < n; i++) {
    const aot_op_t op = aoth_ops_find(s->ops, all[i]->op);
    if (op.id != AOT_NO_ID) out[op.id] = 1;
  }
  return AOT_OK;
}

static aot_status_t choose(aoth_ops_table_t *t) {
  const uint32_t n = aoth_ops_count(t->s->ops);
  aot_op_info_t *infos;
  AOT_TRY(aoth_opset_infos(t->s, &infos));
  t->rows = calloc(n + 1u, sizeof *t->rows);
  uint8_t *derived = kit_arena_alloc(t->s->arena, 1, n + 1u);
  if (!t->rows || !derived) return AOT_E_EXHAUSTED;
  AOT_TRY(mark_derivatives(t->s, n, derived));
  for (uint32_t i = 1, opset = 0, end = 1; i < n; i++) {
    while (opset < t->s->n_opsets && i >= end) end += (uint32_t)t->s->opsets[opset++].table.opset.n_ops;
    const aot_op_desc_t *d = aoth_ops_desc(t->s->ops, (aot_op_t){i});
    aoth_op_row_t row = {d,
                         name_of(t->s, d),
                         opset ? t->s->opsets[opset - 1].unit->id : "",
                         infos[i],
                         NULL,
                         aoth_ops_kernel(t->s->ops, d->name, NULL) != NULL,
                         derived[i]};
    if (!row.name) return AOT_E_EXHAUSTED;
    if (!aoth_ops_chosen(&t->line->cli, row.name)) continue;
    AOT_TRY(find_twin(t, infos, &row, &row.twin));
    t->rows[t->n_rows++] = row;
  }
  qsort(t->rows, t->n_rows, sizeof *t->rows, compare_rows);
  return check_names(t);
}

/* ---- which units ---- */

static int backend_chosen(const aoth_ops_line_t *line, const char *id) {
  for (uint32_t i = 0; i < line->backends.n; i++)
    if (strcmp(line->backends.items[i], id) == 0) return 1;
  return line->backends.n == 0;
}

static aot_status_t ask_unit(aoth_ops_table_t *t, aoth_unit_t *u) {
  const int is_backend = strcmp(u->kind, "backend/2") == 0;
  uint32_t *n = is_backend ? &t->n_backends : &t->n_gradients;
  if (u->shadowed_by || *n == AOTH_MAX_UNITS || (!is_backend && strcmp(u->kind, "pass/1") != 0)) return AOT_OK;
  if (is_backend && !backend_chosen(t->line, u->id)) return AOT_OK;
  if (aoth_plugin_open(t->s->registry, u->plugin, t->s->arena, NULL, NULL) != AOT_OK) {
    aoth_sink_report(t->line->cli.sink, AOT_SEVERITY_WARNING, NULL, "load.refused",
                     "%s is left out: cannot load %s: %s", u->id, u->plugin->path,
                     u->plugin->why ? u->plugin->why : "");
    return AOT_OK;
  }
  if (!is_backend && !(u->has_contract && (u->contract.gives.known & AOTH_PROP_JOINT))) return AOT_OK;
  if (aoth_unit_needs_options(u)) {
    aoth_sink_report(t->line->cli.sink, AOT_SEVERITY_WARNING, NULL, "ops.options",
                     "%s is left out: it has options without a default and cannot be asked", u->id);
    return AOT_OK;
  }
  AOT_TRY(aoth_unit_coverage(t->s, u, is_backend ? &t->backends[*n] : &t->gradients[*n]));
  ++*n;
  return AOT_OK;
}

static int compare_units(const void *a, const void *b) {
  return strcmp(((const aoth_coverage_t *)a)->unit->id, ((const aoth_coverage_t *)b)->unit->id);
}

/* Units are in the order of their ids, wherever their files were found. */
static aot_status_t ask_units(aoth_ops_table_t *t) {
  for (uint32_t i = 0; i < t->line->backends.n; i++) {
    aoth_stage_t stage;
    AOT_TRY(aoth_stage_of_unit(t->s, t->line->backends.items[i], "backend/2", NULL, &stage));
  }
  for (uint32_t i = 0; i < aoth_registry_n_plugins(t->s->registry); i++) {
    aoth_plugin_t *p = aoth_registry_plugin(t->s->registry, i);
    for (uint32_t k = 0; k < p->n_units; k++) AOT_TRY(ask_unit(t, &p->units[k]));
  }
  qsort(t->gradients, t->n_gradients, sizeof *t->gradients, compare_units);
  qsort(t->backends, t->n_backends, sizeof *t->backends, compare_units);
  return AOT_OK;
}

aot_status_t aoth_ops_table_make(aoth_ops_table_t *t) {
  AOT_TRY(aoth_session_open_every_opset(t->s));
  AOT_TRY(choose(t));
  if (t->line->cli.common.verbose || t->line->cli.common.json_path)
    AOT_TRY(aoth_op_sources_read(t->s, "sources", &t->sources));
  return ask_units(t);
}

void aoth_ops_table_deinit(aoth_ops_table_t *t) { free(t->rows); }

/* ---- what they make of an operator ---- */

static int decomposes(const aoth_op_row_t *row) {
  return (row->desc->flags & AOT_OP_COMPOSITE) || (row->info.flags & AOT_OP_INFO_DECOMPOSES);
}

const char *aoth_op_decomposition(const aoth_op_row_t *row) {
  if (row->desc->flags & AOT_OP_COMPOSITE) return "composite";
  return decomposes(row) ? "on-request" : "-";
}

/* A tensor, or what may hold one. */
static int any_tensor(const aot_schema_arg_t *args, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (args[i].type == AOT_STYPE_TENSOR || args[i].type == AOT_STYPE_ANY || args[i].type == AOT_STYPE_GRAPH) return 1;
  return 0;
}

static const char *nothing_to_differentiate(const aot_op_desc_t *d) {
  if (!any_tensor(d->results, d->n_results)) return "gives no tensor";
  if (!any_tensor(d->args, d->n_args)) return "takes no tensor";
  if (!(d->flags & AOT_OP_NO_GRAD)) return NULL;
  return d->flags & AOT_OP_RANDOM ? "random numbers" : "its result carries no gradient";
}

/* A writing operator: what its functional form gets, by name where that is one operator. */
static aoth_op_answer_t of_twin(const aoth_coverage_t *c, const aoth_op_row_t *row,
                                aoth_op_answer_t (*answer)(const aoth_coverage_t *, const aoth_op_row_t *)) {
  const char *name = row->info.functional.size ? row->info.functional.data : "its functional form";
  const int refused = row->twin && strcmp(answer(c, row->twin).word, "no") == 0;
  return (aoth_op_answer_t){refused ? "no" : "functional", name};
}

aoth_op_answer_t aoth_op_gradient(const aoth_coverage_t *c, const aoth_op_row_t *row) {
  if (!c->told) return (aoth_op_answer_t){"unsaid", ""};
  if (aoth_covers(c, row->desc->name)) return (aoth_op_answer_t){"yes", ""};
  if (row->has_derivative) return (aoth_op_answer_t){"yes", "its opset brings the derivative"};
  const char *none = nothing_to_differentiate(row->desc), *because = aoth_left_out_because(c, row->desc->name);
  if (none) return (aoth_op_answer_t){"none", none};
  if (because) return (aoth_op_answer_t){"no", because};
  if (row->desc->flags & AOT_OP_WRITES) return of_twin(c, row, aoth_op_gradient);
  if (decomposes(row)) return (aoth_op_answer_t){"decomposed", "of what it decomposes into"};
  return (aoth_op_answer_t){"no", "no rule"};
}

/* Of an operator that a backend does not name and that nothing decomposes. */
static const char *not_native(const aot_op_desc_t *d) {
  if (d->flags & AOT_OP_COLLECTIVE) return "a collective";
  if (d->flags & AOT_OP_RANDOM) return "draws random numbers";
  if (d->flags & AOT_OP_REGION) return "owns graphs";
  return any_tensor(d->results, d->n_results) ? "" : "gives no tensor";
}

aoth_op_answer_t aoth_op_support(const aoth_coverage_t *c, const aoth_op_row_t *row) {
  if (!c->told) return (aoth_op_answer_t){"unsaid", ""};
  if (aoth_covers(c, row->desc->name)) return (aoth_op_answer_t){"native", ""};
  const char *because = aoth_left_out_because(c, row->desc->name);
  if (row->desc->flags & AOT_OP_WRITES) return of_twin(c, row, aoth_op_support);
  if (row->has_kernel) return (aoth_op_answer_t){"kernel", "an opset's kernel, for backends that run those"};
  if (decomposes(row)) return (aoth_op_answer_t){"decomposed", ""};
  return (aoth_op_answer_t){"no", because ? because : not_native(row->desc)};
}

static const struct {
  uint32_t flag;
  const char *word;
  /* clang-format off */
} flag_words[] = {{AOT_OP_VIEW, "view"},           {AOT_OP_WRITES, "writes"},         {AOT_OP_RANDOM, "random"},
                  {AOT_OP_EFFECT, "effect"},       {AOT_OP_COLLECTIVE, "collective"}, {AOT_OP_POINTWISE, "pointwise"},
                  {AOT_OP_REDUCTION, "reduction"}, {AOT_OP_CREATION, "creation"},     {AOT_OP_COMPOSITE, "composite"},
                  {AOT_OP_HEAVY, "heavy"},         {AOT_OP_NO_GRAD, "no-grad"},       {AOT_OP_MOVEMENT, "movement"},
                  {AOT_OP_INPLACE_VIEW, "inplace-view"}, {AOT_OP_REGION, "region"},   {AOT_OP_MULTI_VIEW, "multi-view"},
                  {AOT_OP_MAYBE_SELF, "maybe-self"},   {AOT_OP_STORAGE, "storage"},       {AOT_OP_LOOP, "loop"},
                  {AOT_OP_COMPUTED, "computed"},   {AOT_OP_COPY, "copy"},             {AOT_OP_SELF_AT_RANK_0,
                      "self-at-rank-0"},
                  {AOT_OP_CONVOLUTION, "convolution"}, {AOT_OP_AS_IT_LIES, "as-it-lies"}};
/* clang-format on */

uint32_t aoth_op_marks(const aoth_op_row_t *row, const char *out[32]) {
  uint32_t n = 0;
  for (size_t f = 0; f < sizeof flag_words / sizeof *flag_words; f++)
    if (row->desc->flags & flag_words[f].flag) out[n++] = flag_words[f].word;
  return n;
}
