/* aothost gradcheck: the gradient of each node of a model against finite differences. */
#include <cli/base/commands.h>
#include <cli/base/node_names.h>
#include <cli/ops/op_sources.h>
#include <cli/verify/gradcheck.h>

#include <aot/inline.h>
#include <fnmatch.h>
#include <ir/tables.h>
#include <sandbox/call.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trainer/trial/oracle.h>

typedef struct line {
  aoth_cli_t cli;
  const char *import_id, *inputs, *seed, *tolerance, *timeout, *autograd;
  aoth_texts_t nodes;
  uint32_t *n_met; /* by --nodes: how many nodes fit */
  aoth_gradcheck_t g;
  aoth_names_t names;
  aoth_op_sources_t conventions; /* operators whose gradient is no derivative, by definition */
  json_t *rows;
  uint32_t n_ok, n_wrong, n_skipped, n_failed;
} line_t;

static aot_status_t usage(line_t *l, const char *format, const char *text) {
  aoth_sink_report(l->cli.sink, AOT_SEVERITY_ERROR, NULL, "cli.usage", format, text);
  return AOT_E_INVALID;
}

static aot_status_t read_flags(line_t *l, aoth_run_spec_t *run) {
  char *end;
  l->g.tolerance = l->tolerance ? strtod(l->tolerance, &end) : 1e-5;
  if (l->tolerance && (end == l->tolerance || *end || !(l->g.tolerance > 0 && l->g.tolerance < 1)))
    return usage(l, "--tolerance is a number between 0 and 1, not '%s'", l->tolerance);
  l->g.timeout = l->timeout ? strtod(l->timeout, &end) : 600;
  if (l->timeout && (end == l->timeout || *end || !(l->g.timeout > 0 && l->g.timeout < 1e9)))
    return usage(l, "--node-timeout is a number of seconds above 0, not '%s'", l->timeout);
  run->seed = l->seed ? (int64_t)strtoll(l->seed, &end, 10) : 0;
  if (l->seed && (end == l->seed || *end)) return usage(l, "--seed is an integer, not '%s'", l->seed);
  l->g.seed = (uint64_t)run->seed;
  if (l->inputs && strcmp(l->inputs, "random") != 0)
    run->inputs = (aoth_data_spec_t){.kind = AOTH_DATA_SAFETENSORS, .path = l->inputs};
  if (l->cli.common.sets.n) return usage(l, "--set %s: there is no pipeline", l->cli.common.sets.items[0]);
  l->g.autograd = l->autograd ? l->autograd : "autograd";
  l->g.backend = AOTH_ORACLE_BACKEND;
  return AOT_OK;
}

/* ---- the model ---- */

static aot_status_t read_model(line_t *l) {
  aoth_session_t *s = l->g.s;
  aoth_stage_t stage;
  AOT_TRY(aoth_stage_of_unit(s, l->g.autograd, "pass/1", NULL, &stage));
  AOT_TRY(aoth_session_import(s, l->import_id, NULL, l->cli.positional[0], NULL));
  if (aoth_graph_graph_find(s->now.prog, AOT_GRAPH_FORWARD).id == AOT_NO_ID)
    return usage(l, "%s has no forward graph: gradcheck takes a model before autograd", l->cli.positional[0]);
  if (aoth_prog_properties(s->now.prog).known & (AOTH_PROP_JOINT | AOTH_PROP_PARTITIONED))
    return usage(l, "%s has its backward already: gradcheck takes a model before autograd", l->cli.positional[0]);
  if (aoth_prog_properties(s->now.prog).known & AOTH_PROP_FUNCTIONAL) return AOT_OK;
  AOT_TRY(aoth_stage_of_unit(s, "functionalize", "pass/1", NULL, &stage));
  return aoth_session_run_list(s, &stage, 1);
}

/* "model.py:12, module m.layer"; "": the model file does not say. */
static const char *origin_of(line_t *l, aot_node_t node) {
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_origin_info_t o = {.struct_size = sizeof o};
  const char *op, *module;
  if (aoth_graph_node_info(l->names.p, node, &info) != AOT_OK) return "";
  aot_origin_t at = info.origin;
  for (int depth = 0; depth < 64 && at.id != AOT_NO_ID; depth++, at = o.parent)
    if (aoth_graph_origin_info(l->names.p, at, &o) != AOT_OK || o.source_file.size) break;
  aoth_names_node(&l->names, node, &op, &module);
  l->names.text.size = 0;
  if (o.source_file.size) {
    kit_text_str(&l->names.text, o.source_file);
    kit_text_f(&l->names.text, ":%u", o.line);
  }
  if (module && *module) kit_text_f(&l->names.text, "%smodule %s", o.source_file.size ? ", " : "", module);
  const char *text = aoth_names_kept(&l->names);
  return text ? text : "";
}

/* ---- which nodes ---- */

static int is_chosen(line_t *l, const char *name, const char *op) {
  int chosen = l->nodes.n == 0;
  for (uint32_t i = 0; i < l->nodes.n; i++) {
    const char *pattern = l->nodes.items[i] + (*l->nodes.items[i] == '%');
    const int fits = fnmatch(pattern, name + (*name == '%'), 0) == 0 || fnmatch(pattern, op, 0) == 0;
    l->n_met[i] += (uint32_t)fits;
    chosen |= fits;
  }
  return chosen;
}

static aot_status_t check_patterns(line_t *l) {
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < l->nodes.n; i++)
    if (!l->n_met[i])
      status = usage(l, "--nodes %s: no node with a gradient has that name or operator", l->nodes.items[i]);
  return status;
}

/* ---- results ---- */

/* The name of the argument that a value of the node is. */
static const char *argument_of(line_t *l, aot_node_t node, uint32_t value) {
  aot_node_info_t info = {.struct_size = sizeof info};
  if (aoth_graph_node_info(l->names.p, node, &info) != AOT_OK) return "";
  const aot_op_desc_t *op = aoth_graph_op_desc(l->names.p, info.op);
  for (uint32_t a = 0; a < info.n_args && a < op->n_args; a++) {
    int is_it = info.args[a].kind == AOT_ARG_VALUE && info.args[a].u.i == (int64_t)value;
    for (uint32_t k = 0; info.args[a].kind == AOT_ARG_VALUES && k < info.args[a].n; k++)
      is_it |= info.args[a].u.ids[k] == value;
    if (!is_it) continue;
    l->names.text.size = 0;
    kit_text_str(&l->names.text, op->args[a].name);
    const char *name = aoth_names_kept(&l->names);
    return name ? name : "";
  }
  return "";
}

/* Names in place of value ids; the operand with the largest deviation. */
static const json_t *name_operands(line_t *l, aot_node_t node, json_t *row) {
  json_t *operand;
  const json_t *worst = NULL;
  size_t i;
  json_array_foreach(json_object_get(row, "operands"), i, operand) {
    const uint32_t id = (uint32_t)json_integer_value(json_object_get(operand, "value"));
    const char *name = aoth_names_value(&l->names, (aot_value_t){id});
    json_object_set_new(operand, "value", json_string(name ? name : ""));
    json_object_set_new(operand, "argument", json_string(argument_of(l, node, id)));
    const int is_wrong = strcmp(json_string_value(json_object_get(operand, "state")), "wrong") == 0;
    const int was_wrong = worst && strcmp(json_string_value(json_object_get(worst, "state")), "wrong") == 0;
    const double mine = json_number_value(json_object_get(operand, "deviation"));
    if (!worst || is_wrong > was_wrong ||
        (is_wrong == was_wrong && mine > json_number_value(json_object_get(worst, "deviation"))))
      worst = operand;
  }
  return worst;
}

static void print_row(const line_t *l, FILE *out, const json_t *row, const json_t *worst) {
  const char *state = json_string_value(json_object_get(row, "state")),
             *why = json_string_value(json_object_get(row, "why"));
  const char *from = json_string_value(json_object_get(row, "from"));
  const int is_wrong = strcmp(state, "wrong") == 0, is_ok = strcmp(state, "ok") == 0;
  if (l->cli.common.quiet && !is_wrong) return;
  fprintf(out, "%-7s %s  %s%s%s", is_wrong ? "WRONG" : state, json_string_value(json_object_get(row, "node")),
          json_string_value(json_object_get(row, "operator")), *from ? "  " : "", from);
  if (!is_wrong && !is_ok) fprintf(out, ": %s", why);
  else if (worst)
    fprintf(out, "  %s %s: deviation %.2g", json_string_value(json_object_get(worst, "argument")),
            json_string_value(json_object_get(worst, "value")), json_number_value(json_object_get(worst, "deviation")));
  fputc('\n', out);
  if (is_wrong && worst)
    fprintf(out, "        along a random direction the product is %.9g, central differences are %.9g\n",
            json_number_value(json_object_get(worst, "derivative")),
            json_number_value(json_object_get(worst, "difference")));
  fflush(out); /* long work: each row is progress */
}

/* What a file ID.conventions next to a plugin says of an operator; NULL: nothing. */
static const aoth_op_source_t *convention_of(const line_t *l, const char *op) {
  for (uint32_t i = 0; i < l->conventions.n; i++)
    if (fnmatch(l->conventions.rows[i].op, op, 0) == 0) return &l->conventions.rows[i];
  return NULL;
}

static json_t *row_of(line_t *l, aot_node_t node, const char *op) {
  const aoth_op_source_t *by = convention_of(l, op);
  if (!by) return aoth_gradcheck_node(&l->g, node);
  return json_pack("{s:s, s:s, s:[]}", "state", "skipped", "why", by->what, "operands");
}

static void check_node(line_t *l, FILE *out, aot_node_t node, const char *name, const char *op) {
  json_t *row = row_of(l, node, op);
  const char *state = json_string_value(json_object_get(row, "state"));
  json_object_set_new(row, "node", json_string(name));
  json_object_set_new(row, "operator", json_string(op));
  json_object_set_new(row, "from", json_string(origin_of(l, node)));
  const json_t *worst = name_operands(l, node, row);
  l->n_ok += strcmp(state, "ok") == 0;
  l->n_wrong += strcmp(state, "wrong") == 0;
  l->n_skipped += strcmp(state, "skipped") == 0;
  l->n_failed += strcmp(state, "failed") == 0;
  print_row(l, out, row, worst);
  json_array_append_new(l->rows, row);
}

static void check_nodes(line_t *l, FILE *out, int only_count) {
  aot_prog_t *p = l->names.p;
  for (aot_node_t k = aoth_graph_first(p, l->g.forward); k.id != AOT_NO_ID; k = aoth_graph_next(p, k)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    const char *op, *module;
    if (!aoth_gradcheck_has(&l->g, k) || aoth_graph_node_info(p, k, &info) != AOT_OK) continue;
    const char *name = aoth_names_value(&l->names, info.first_result);
    if (!name || !aoth_names_node(&l->names, k, &op, &module) || !op || !is_chosen(l, name, op) || only_count) continue;
    if (!aoth_interrupt_asked()) check_node(l, out, k, name, op);
  }
}

static aot_status_t run(line_t *l) {
  const int json_on_stdout = l->cli.common.json_path && strcmp(l->cli.common.json_path, "-") == 0;
  FILE *out = json_on_stdout ? stderr : stdout;
  aoth_run_spec_t spec = {0};
  AOT_TRY(read_flags(l, &spec));
  AOT_TRY(read_model(l));
  AOT_TRY(aoth_gradcheck_begin(&l->g, &spec));
  l->names = (aoth_names_t){.p = l->g.s->now.prog, .arena = l->g.s->arena};
  l->n_met = calloc(l->nodes.n + (size_t)1, sizeof *l->n_met);
  l->rows = json_array();
  if (!l->n_met || !l->rows) return usage(l, "no memory for the results of %s", l->cli.positional[0]);
  AOT_TRY(aoth_op_sources_read(l->g.s, "conventions", &l->conventions));
  check_nodes(l, out, 1);
  AOT_TRY(check_patterns(l));
  check_nodes(l, out, 0);
  fprintf(out, "%u nodes ok, %u wrong, %u skipped, %u failed\n", l->n_ok, l->n_wrong, l->n_skipped, l->n_failed);
  json_t *json =
      json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:f, s:O}", "command", "gradcheck", "model", l->cli.positional[0], "ok",
                (int)l->n_ok, "wrong", (int)l->n_wrong, "skipped", (int)l->n_skipped, "failed", (int)l->n_failed,
                "tolerance", l->g.tolerance, "nodes", l->rows);
  const aot_status_t status = aoth_cli_json(&l->cli, json);
  json_decref(json);
  return status;
}

static int gradcheck_main(const aoth_command_t *self, int argc, char **argv) {
  line_t l = {.n_ok = 0};
  /* clang-format off */
  const aoth_flag_t flags[] = {
      {.name = "--nodes", .value = "NAME", .list = &l.nodes,
       .help = "check only nodes of this name or operator ('*' is any text); repeatable"},
      {.name = "--inputs", .value = "F", .text = &l.inputs,
       .help = "inputs of the model (input.0, input.1, ..), or 'random' (default)"},
      {.name = "--seed", .value = "N", .text = &l.seed,
       .help = "seed of random inputs, cotangents and directions (default 0)"},
      {.name = "--tolerance", .value = "R", .text = &l.tolerance,
       .help = "largest relative deviation that is accepted (default 1e-5)"},
      {.name = "--autograd", .value = "ID", .text = &l.autograd,
       .help = "the stage that differentiates (default autograd)"},
      {.name = "--node-timeout", .value = "S", .text = &l.timeout,
       .help = "seconds that one node may take (default 600)"},
      {.name = "--import", .value = "ID", .text = &l.import_id,
       .help = "importer of the model file (default: detected)"},
  };
  /* clang-format on */
  int code = aoth_cli_init(&l.cli, self, argc, argv, flags, sizeof flags / sizeof *flags, 1, 1);
  if (code == AOTH_CLI_GO) l.g.s = aoth_cli_session(&l.cli);
  if (code == AOTH_CLI_GO) {
    const aot_status_t status = l.g.s ? run(&l) : AOT_E_EXHAUSTED;
    code = status != AOT_OK ? aoth_exit_code(status)
           : l.n_wrong      ? AOTH_EXIT_DIFFERS
           : l.n_failed     ? AOTH_EXIT_PLUGIN
                            : AOTH_EXIT_OK;
  }
  code = aoth_cli_deinit(&l.cli, code);
  aoth_gradcheck_deinit(&l.g);
  kit_text_deinit(&l.names.text);
  json_decref(l.rows);
  free(l.n_met);
  free(l.nodes.items);
  return code;
}

const aoth_command_t aoth_cmd_gradcheck = {
    .name = "gradcheck",
    .usage = "gradcheck MODEL [--nodes NAME].. [--inputs F] [--seed N] [--tolerance R] [options]",
    .summary = "compare the gradient of each node of a model with finite differences",
    .text =
        "Runs the model forward once on backend-ref, then checks every node that a gradient flows through, alone, in\n"
        "float64, at the values that its operands have there: the vector-Jacobian product that the autograd stage\n"
        "makes for random cotangents, against central differences along a random direction, operand by operand.\n"
        "If a parameter's gradient is wrong, this prints the node whose derivative is wrong: its name, operator,\n"
        "line of the model, and the operand with the largest relative deviation. Status 1 if a node is wrong.\n"
        "\n"
        "A node is skipped, with the reason, if it has sub-graphs or effects, if an operand is complex, if PyTorch's\n"
        "gradient is no derivative (straight-through), or if it is not differentiable at these values nor next to\n"
        "them. Integer operands are constants. If every node is ok and a gradient of the model is wrong, another\n"
        "stage is at fault: see bisect. docs/FIND.md has the method.\n"
        "\n"
        "  aothost gradcheck model.pt2\n"
        "  aothost gradcheck model.pt2 --nodes 'aten.gelu.*' --inputs batch.safetensors --json report.json\n"
        "  aothost gradcheck model.ir --plugin-dir ./build --nodes '%gate*' --seed 7\n",
    .main = gradcheck_main,
};
