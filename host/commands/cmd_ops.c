/* aothost ops [NAME..]: every operator of the opsets, and what the units found make of it; with --cases, recorded calls.
 *
 * The host knows no operator: all of this is descriptors, and what units say of themselves (aot.coverage/1). A unit that gives
 * the property joint is one that differentiates. O(operators x units x log names). */
#include "cmd_ops.h"
#include "unit_coverage.h"
#include "unit_json.h"

#include <aot/inline.h>
#include <fnmatch.h>
#include <pipeline/load.h>
#include <stdlib.h>
#include <string.h>

#define MAX_UNITS 64u

typedef struct listing {
  aoth_ops_line_t *line;
  aoth_session_t *s;
  aoth_coverage_t gradients[MAX_UNITS], backends[MAX_UNITS];
  uint32_t n_gradients, n_backends;
  const aot_op_desc_t **ops; /* chosen, sorted */
  uint32_t n_ops;
} listing_t;

/* ---- which operators ---- */

int aoth_ops_chosen(const aoth_cli_t *cli, const char *op) {
  for (uint32_t i = 0; i < cli->n_positional; i++)
    if (fnmatch(cli->positional[i], op, 0) == 0) return 1;
  return cli->n_positional == 0;
}

static int compare_ops(const void *a, const void *b) {
  return strcmp((*(const aot_op_desc_t *const *)a)->name.data, (*(const aot_op_desc_t *const *)b)->name.data);
}

/* A name or pattern that fits nothing is a slip. */
static aot_status_t check_names(const listing_t *l) {
  const aoth_cli_t *cli = &l->line->cli;
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < cli->n_positional; i++) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < l->n_ops; k++) n += fnmatch(cli->positional[i], l->ops[k]->name.data, 0) == 0;
    if (n) continue;
    aot_str_t near = {NULL, 0};
    const int found = aoth_ops_nearest(l->s->ops, aot_str(cli->positional[i]), &near);
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "ops.unknown", "no operator '%s'%s%.*s%s", cli->positional[i],
                     found ? "; did you mean '" : "", found ? (int)near.size : 0, found ? near.data : "", found ? "'?" : "");
    status = AOT_E_NOT_FOUND;
  }
  return status;
}

static aot_status_t choose(listing_t *l) {
  const uint32_t n = aoth_ops_count(l->s->ops);
  l->ops = calloc(n + 1u, sizeof *l->ops);
  if (!l->ops) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++) {
    const aot_op_desc_t *d = aoth_ops_desc(l->s->ops, (aot_op_t){i});
    aot_op_desc_t *copy = aoth_arena_alloc(l->s->arena, sizeof(void *), sizeof *copy);
    if (!copy) return AOT_E_EXHAUSTED;
    *copy = *d;
    copy->name.data = aoth_arena_text(l->s->arena, d->name.data, (size_t)d->name.size); /* terminated, for fnmatch */
    if (copy->name.data && aoth_ops_chosen(&l->line->cli, copy->name.data)) l->ops[l->n_ops++] = copy;
  }
  qsort(l->ops, l->n_ops, sizeof *l->ops, compare_ops);
  return check_names(l);
}

/* ---- which units ---- */

static int has_required(const aoth_unit_t *u) {
  for (uint64_t i = 0; i < u->desc.n_options; i++)
    if (u->options[i].flags & AOT_OPT_REQUIRED) return 1;
  return 0;
}

static aot_status_t ask_unit(listing_t *l, aoth_unit_t *u) {
  const int is_backend = strcmp(u->kind, "backend/1") == 0;
  uint32_t *n = is_backend ? &l->n_backends : &l->n_gradients;
  if (u->shadowed_by || *n == MAX_UNITS || (!is_backend && strcmp(u->kind, "pass/1") != 0)) return AOT_OK;
  if (is_backend && l->line->backend && strcmp(u->id, l->line->backend) != 0) return AOT_OK;
  if (aoth_plugin_open(l->s->registry, u->plugin, l->s->arena, NULL, NULL) != AOT_OK) {
    aoth_sink_report(l->line->cli.sink, AOT_SEVERITY_WARNING, NULL, "load.refused", "%s is left out: cannot load %s: %s", u->id,
                     u->plugin->path, u->plugin->why ? u->plugin->why : "");
    return AOT_OK;
  }
  if (!is_backend && !(u->has_contract && (u->contract.gives & AOT_PROP_JOINT))) return AOT_OK;
  if (has_required(u)) {
    aoth_sink_report(l->line->cli.sink, AOT_SEVERITY_WARNING, NULL, "ops.options",
                     "%s is left out: it has options without a default and cannot be asked", u->id);
    return AOT_OK;
  }
  aoth_coverage_t *c = is_backend ? &l->backends[l->n_backends] : &l->gradients[l->n_gradients];
  AOT_TRY(aoth_unit_coverage(l->s, u, c));
  ++*n;
  return AOT_OK;
}

static aot_status_t ask_units(listing_t *l) {
  if (l->line->backend) {
    aoth_stage_t stage;
    AOT_TRY(aoth_stage_of_unit(l->s, l->line->backend, "backend/1", NULL, &stage));
  }
  for (uint32_t i = 0; i < aoth_registry_n_plugins(l->s->registry); i++) {
    aoth_plugin_t *p = aoth_registry_plugin(l->s->registry, i);
    for (uint32_t k = 0; k < p->n_units; k++) AOT_TRY(ask_unit(l, &p->units[k]));
  }
  return AOT_OK;
}

/* ---- what they make of an operator ---- */

static const char *otherwise(const aot_op_desc_t *d) {
  if (d->flags & AOT_OP_WRITES) return "functional";
  return d->flags & AOT_OP_COMPOSITE ? "decomposed" : "no";
}

static const char *gradient(const aoth_coverage_t *c, const aot_op_desc_t *d) {
  if (!c->told) return "unsaid";
  if (aoth_covers(c, d->name)) return "yes";
  return d->flags & AOT_OP_NO_GRAD ? "none" : otherwise(d);
}

static const char *support(const aoth_coverage_t *c, const aot_op_desc_t *d) {
  if (!c->told) return "unsaid";
  return aoth_covers(c, d->name) ? "native" : otherwise(d);
}

static const char *decomposition(const aot_op_desc_t *d) { return d->flags & AOT_OP_COMPOSITE ? "composite" : "-"; }

static const char *opset_of(const listing_t *l, aot_str_t op) {
  for (uint32_t i = 0; i < l->s->n_opsets; i++)
    for (uint64_t k = 0; k < l->s->opsets[i].table.opset.n_ops; k++)
      if (aot_str_eq(l->s->opsets[i].table.opset.ops[k]->name, op)) return l->s->opsets[i].unit->id;
  return "";
}

/* ---- text ---- */

static void print_table(const listing_t *l) {
  printf("%-46s %-12s %-11s", "operator", "group", "decomposes");
  for (uint32_t u = 0; u < l->n_gradients; u++) printf(" %-11s", l->gradients[u].unit->id);
  for (uint32_t u = 0; u < l->n_backends; u++) printf(" %-12s", l->backends[u].unit->id);
  printf(" schema\n");
  for (uint32_t i = 0; i < l->n_ops; i++) {
    const aot_op_desc_t *d = l->ops[i];
    printf("%-46s %-12.*s %-11s", d->name.data, (int)d->group.size, d->group.data, decomposition(d));
    for (uint32_t u = 0; u < l->n_gradients; u++) printf(" %-11s", gradient(&l->gradients[u], d));
    for (uint32_t u = 0; u < l->n_backends; u++) printf(" %-12s", support(&l->backends[u], d));
    printf(" %.*s\n", (int)d->schema.size, d->schema.data);
  }
}

static void print_totals(const listing_t *l) {
  printf("%u operators", l->n_ops);
  for (uint32_t u = 0; u < l->n_gradients; u++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->n_ops; i++) n += strcmp(gradient(&l->gradients[u], l->ops[i]), "yes") == 0;
    printf("; %s: %u rules", l->gradients[u].unit->id, n);
  }
  for (uint32_t u = 0; u < l->n_backends; u++) {
    uint32_t n = 0, refused = 0;
    for (uint32_t i = 0; i < l->n_ops; i++) {
      n += strcmp(support(&l->backends[u], l->ops[i]), "native") == 0;
      refused += strcmp(support(&l->backends[u], l->ops[i]), "no") == 0;
    }
    printf("; %s: %u native, %u no", l->backends[u].unit->id, n, refused);
  }
  printf("\n");
}

static const char *const stype_names[] = {"",     "Tensor", "Scalar", "int",           "float",     "bool",  "str", "dtype",
                                          "layout", "Device", "MemoryFormat", "Generator", "graph", "any", "operator"};
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
  if (a->alias_set > 0) printf(", alias set %c", 'a' + (a->alias_set - 1) % 26);
  if (a->alias_set < 0) printf(", may alias anything");
  if (a->flags & AOT_SARG_WRITE) printf(", written%s", a->write_if >= 0 ? " when" : "");
  if (a->flags & AOT_SARG_WRITE && a->write_if >= 0) printf(" argument %d is true", (int)a->write_if);
  printf("\n");
}

static const struct {
  uint32_t flag;
  const char *word;
} flag_words[] = {{AOT_OP_VIEW, "view"},           {AOT_OP_WRITES, "writes"},         {AOT_OP_RANDOM, "random"},
                  {AOT_OP_EFFECT, "effect"},       {AOT_OP_COLLECTIVE, "collective"}, {AOT_OP_POINTWISE, "pointwise"},
                  {AOT_OP_REDUCTION, "reduction"}, {AOT_OP_CREATION, "creation"},     {AOT_OP_COMPOSITE, "composite"},
                  {AOT_OP_HEAVY, "heavy"},         {AOT_OP_NO_GRAD, "no-grad"},       {AOT_OP_MOVEMENT, "movement"},
                  {AOT_OP_INPLACE_VIEW, "inplace-view"}, {AOT_OP_REGION, "region"},   {AOT_OP_MULTI_VIEW, "multi-view"}};
#define N_FLAG_WORDS (sizeof flag_words / sizeof *flag_words)

static void print_one(const listing_t *l, const aot_op_desc_t *d) {
  printf("%s%.*s\n  %.*s\n  group %.*s; result types by opset %s; decomposition: %s\n  marks", d->name.data,
         (int)d->schema.size, d->schema.data, (int)d->doc.size, d->doc.data ? d->doc.data : "", (int)d->group.size,
         d->group.data, opset_of(l, d->name), decomposition(d));
  for (size_t f = 0; f < N_FLAG_WORDS; f++)
    if (d->flags & flag_words[f].flag) printf(" %s", flag_words[f].word);
  printf("\n");
  for (uint32_t a = 0; a < d->n_args; a++) print_arg("takes", &d->args[a]);
  for (uint32_t a = 0; a < d->n_results; a++) print_arg("gives", &d->results[a]);
  for (uint32_t u = 0; u < l->n_gradients; u++)
    printf("  gradient by %s: %s\n", l->gradients[u].unit->id, gradient(&l->gradients[u], d));
  for (uint32_t u = 0; u < l->n_backends; u++)
    printf("  %s: %s\n", l->backends[u].unit->id, support(&l->backends[u], d));
}

/* ---- json ---- */

static json_t *op_json(const listing_t *l, const aot_op_desc_t *d) {
  json_t *marks = json_array(), *gradients = json_object(), *backends = json_object();
  for (size_t f = 0; f < N_FLAG_WORDS; f++)
    if (d->flags & flag_words[f].flag) json_array_append_new(marks, json_string(flag_words[f].word));
  for (uint32_t u = 0; u < l->n_gradients; u++)
    json_object_set_new(gradients, l->gradients[u].unit->id, json_string(gradient(&l->gradients[u], d)));
  for (uint32_t u = 0; u < l->n_backends; u++)
    json_object_set_new(backends, l->backends[u].unit->id, json_string(support(&l->backends[u], d)));
  return json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "name", aoth_str_json(d->name), "schema",
                   aoth_str_json(d->schema), "group", aoth_str_json(d->group), "opset", opset_of(l, d->name), "doc",
                   aoth_str_json(d->doc), "marks", marks, "decomposition",
                   d->flags & AOT_OP_COMPOSITE ? json_string("composite") : json_null(), "gradient", gradients, "backends",
                   backends);
}

static aot_status_t write_json(listing_t *l) {
  json_t *list = json_array();
  for (uint32_t i = 0; l->line->cli.common.json_path && i < l->n_ops; i++) json_array_append_new(list, op_json(l, l->ops[i]));
  json_t *json = json_pack("{s:o}", "operators", list);
  const aot_status_t status = aoth_cli_json(&l->line->cli, json);
  json_decref(json);
  return status;
}

/* ---- the command ---- */

static aot_status_t list(listing_t *l) {
  const aoth_common_t *common = &l->line->cli.common;
  AOT_TRY(aoth_session_open_opsets(l->s, NULL, NULL, 0));
  AOT_TRY(choose(l));
  AOT_TRY(ask_units(l));
  const int as_text = !common->json_path || strcmp(common->json_path, "-") != 0;
  if (as_text && common->verbose)
    for (uint32_t i = 0; i < l->n_ops; i++) print_one(l, l->ops[i]);
  else if (as_text) print_table(l);
  if (as_text && l->n_ops > 1) print_totals(l);
  return write_json(l);
}

static int ops_main(const aoth_command_t *self, int argc, char **argv) {
  aoth_ops_line_t line = {.cases = NULL};
  const aoth_flag_t flags[] = {
      {.name = "--backend", .value = "ID", .help = "only this backend; needed with --cases", .text = &line.backend},
      {.name = "--cases", .value = "F", .help = "run these recorded calls", .text = &line.cases},
      {.name = "--data", .value = "F", .help = "their tensors; data.safetensors beside the cases when left out", .text = &line.data},
      {.name = "--stages", .value = "IDS", .help = "of cases with gradients, before the backend; autograd,partition-default",
       .text = &line.stages},
  };
  int code = aoth_cli_init(&line.cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 0, 8);
  if (code == AOTH_CLI_GO && (line.data || line.stages) && !line.cases) {
    aoth_sink_report(line.cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.missing", "%s belongs to --cases, which is not there",
                     line.data ? "--data" : "--stages");
    code = AOTH_EXIT_INPUT;
  }
  if (code == AOTH_CLI_GO && !aoth_cli_session(&line.cli)) code = AOTH_EXIT_INPUT;
  if (code == AOTH_CLI_GO && line.cases) code = aoth_ops_cases_main(&line);
  if (code == AOTH_CLI_GO) {
    listing_t l = {.line = &line, .s = line.cli.session};
    code = aoth_exit_code(list(&l));
    free(l.ops);
  }
  return aoth_cli_deinit(&line.cli, code);
}

const aoth_command_t aoth_cmd_ops = {
    .name = "ops",
    .usage = "ops [NAME..] [--backend ID] [--cases F [--data F] [--stages IDS]] [options]",
    .summary = "every operator: schema, gradient, backends; runs recorded calls",
    .text = "Lists the operators of all opsets found, or those that fit a NAME or pattern ('*' is any text): group, whether\n"
            "it decomposes by definition, whether a unit differentiates it, what each backend makes of it. With -v\n"
            "an operator is told in full, with every argument.\n"
            "Gradient: yes; none (its results carry none); functional or decomposed (of what it becomes); no.\n"
            "Backend: native; functional (written arguments go first); decomposed; no; unsaid. 'no' promises nothing:\n"
            "a backend is asked node by node, and an opset may know a decomposition that it does not announce.\n"
            "\n"
            "With --cases every recorded call runs through a backend (docs/PIPELINE.md has the format): one row an\n"
            "operator with how many pass forward and backward, the worst error and the first failing case, then the\n"
            "failures by reason. A case that cannot run counts as failed. Status 1 when one fails.\n"
            "\n"
            "  aothost ops '*.add*'\n"
            "  aothost ops '*.linear.default' -v\n"
            "  aothost ops --cases cases.json --backend backend-ref --json report.json\n",
    .main = ops_main,
};
