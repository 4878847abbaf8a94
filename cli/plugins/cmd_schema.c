/* aothost schema: one JSON Schema of pipeline files, merged from the plugins found. */
#include <cli/base/commands.h>
#include <cli/plugins/unit_json.h>

#include <aot/inline.h>
#include <config/default_units.h>
#include <config/run_section.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <sandbox/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *typed(const char *type, const char *about) {
  return json_pack("{s:s, s:s}", "type", type, "description", about);
}

/* A number or integer with its least value, or a variable. */
static json_t *number(const char *type, json_t *preset, double min, const char *about) {
  json_t *s = json_pack("{s:[{s:s, s:f}, {s:s, s:s}], s:s}", "anyOf", "type", type, "minimum", min, "type", "string",
                        "pattern", "\\$\\{", "description", about);
  if (preset) json_object_set_new(s, "default", preset);
  return s;
}

/* Options of one unit as the schema of its `with`. */
static json_t *with_schema(const aoth_unit_t *u) {
  json_t *properties = json_object(), *required = json_array();
  for (uint64_t i = 0; i < u->desc.n_options; i++) {
    json_t *name = aoth_str_json(u->options[i].name);
    json_object_set_new(properties, json_string_value(name), aoth_option_schema(&u->options[i]));
    if (u->options[i].flags & AOT_OPT_REQUIRED) json_array_append(required, name);
    json_decref(name);
  }
  return json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required", required,
                   "additionalProperties", 0);
}

typedef struct merge_state {
  json_t *stage_ids, *stage_rules, *import_ids, *import_rules, *opset_ids, *optimizer_ids, *optimizer_rules,
      *device_ids, *device_rules, *ranks_ids, *ranks_rules;
} merge_state_t;

static json_t *rule(const char *key, const char *id, const char *with, json_t *schema) {
  return json_pack("{s:{s:{s:{s:s}}, s:[s]}, s:{s:{s:o}}}", "if", "properties", key, "const", id, "required", key,
                   "then", "properties", with, schema);
}

/* One of the ids, or a variable: never an empty list, which no validator takes. */
static json_t *ids_schema(json_t *ids, const char *about) {
  json_array_append_new(ids, json_pack("{s:s, s:s}", "type", "string", "pattern", "\\$\\{"));
  return json_pack("{s:o, s:s}", "anyOf", ids, "description", about);
}

static json_t *named(const aoth_unit_t *u) { return json_pack("{s:s, s:s}", "const", u->id, "description", u->help); }

static void add_unit(merge_state_t *m, const aoth_unit_t *u) {
  if (strcmp(u->kind, "import/1") == 0) {
    json_array_append_new(m->import_ids, named(u));
    json_array_append_new(m->import_rules, rule("import", u->id, "with", with_schema(u)));
  }
  if (strcmp(u->kind, "device/1") == 0) {
    json_array_append_new(m->device_ids, named(u));
    json_array_append_new(m->device_rules, rule("device", u->id, "device-with", with_schema(u)));
  }
  if (strcmp(u->kind, "communicator/1") == 0) {
    json_array_append_new(m->ranks_ids, named(u));
    json_array_append_new(m->ranks_rules, rule("ranks", u->id, "ranks-with", with_schema(u)));
  }
  if (strcmp(u->kind, "opset/1") == 0) json_array_append_new(m->opset_ids, named(u));
  if (!aoth_kind_in(u->kind, AOTH_STAGE_KINDS)) return;
  json_array_append_new(m->stage_ids, named(u));
  json_array_append_new(m->stage_rules, rule("use", u->id, "with", with_schema(u)));
  if (strcmp(u->kind, "pass/1") != 0) return;
  json_array_append_new(m->optimizer_ids, named(u));
  json_array_append_new(m->optimizer_rules, rule("optimizer", u->id, "optimizer-with", with_schema(u)));
}

/* UNIT, or {unit: UNIT, sha256: ..}. */
static json_t *use_schema(merge_state_t *m) {
  json_t *pinned = json_pack("{s:s, s:{s:o, s:o}, s:[s, s], s:b}", "type", "object", "properties", "unit",
                             typed("string", "a unit"), "sha256", typed("string", "that its plugin's file must have"),
                             "required", "unit", "sha256", "additionalProperties", 0);
  return json_pack("{s:s, s:[o, o]}", "description", "the unit of this stage", "anyOf",
                   ids_schema(m->stage_ids, "a unit"), pinned);
}

/* device: what a backend's stage may say there. */
static json_t *stages_schema(merge_state_t *m, json_t *device) {
  json_t *use = use_schema(m);
  json_t *isolate = json_pack("{s:[s, s], s:s}", "enum", "none", "worker", "description",
                              "worker: the stage runs in a process of its own");
  json_t *stage = json_pack(
      "{s:s, s:{s:o, s:o, s:o, s:o, s:o, s:o, s:o}, s:[s], s:b, s:o}", "type", "object", "properties", "use", use, "as",
      typed("string", "a name for this stage, when its unit is used twice"), "with",
      typed("object", "options of the unit"), "isolate", isolate, "timeout",
      typed("number", "seconds that it may take, in a process of its own"), "device", device, "device-with",
      typed("object", "options of the device"), "required", "use", "additionalProperties", 0, "allOf", m->stage_rules);
  json_t *include = json_pack("{s:s, s:{s:o}, s:[s], s:b}", "type", "object", "properties", "include",
                              typed("string", "a pipeline file whose stages stand here"), "required", "include",
                              "additionalProperties", 0);
  return json_pack("{s:s, s:s, s:{s:[o, o]}}", "type", "array", "description", "units, in the order in which they run",
                   "items", "anyOf", stage, include);
}

static json_t *data_schema(void) {
  json_t *dtypes = json_array();
  for (int i = 0; i < 6; i++) json_array_append_new(dtypes, json_string(aot_dtype_name(aoth_token_dtypes[i])));
  json_t *tokens =
      json_pack("{s:o, s:{s:o, s:s}, s:o, s:o, s:{s:s, s:{s:s}, s:i, s:i}}", "tokens",
                typed("string", "a flat file of token numbers"), "dtype", "enum", dtypes, "default", "u8", "batch",
                number("integer", NULL, 1, "windows a batch"), "block", number("integer", NULL, 1, "tokens a window"),
                "inputs", "type", "array", "items", "type", "integer", "minItems", 2, "maxItems", 2);
  json_t *text = typed("string", "'random', or a .safetensors file with keys input.0, input.1, ..");
  json_t *file =
      json_pack("{s:s, s:{s:o}, s:[s], s:b}", "type", "object", "properties", "safetensors",
                typed("string", "keys input.0, input.1, .."), "required", "safetensors", "additionalProperties", 0);
  json_t *token_map = json_pack("{s:s, s:o, s:[s], s:b}", "type", "object", "properties", tokens, "required", "tokens",
                                "additionalProperties", 0);
  return json_pack("{s:[o, o, o]}", "anyOf", text, file, token_map);
}

static json_t *train_schema(merge_state_t *m) {
  json_t *schedules = json_array();
  for (int i = 0; i < 3; i++) json_array_append_new(schedules, json_string(aoth_schedules[i]));
  json_t *p = json_object();
  json_object_set_new(p, "steps", number("integer", NULL, 1, "how many steps"));
  json_object_set_new(p, "optimizer",
                      ids_schema(m->optimizer_ids, "the pass that adds the update graph; adamw when left out"));
  json_object_set_new(p, "optimizer-with", typed("object", "options of the optimizer"));
  json_object_set_new(p, "lr", number("number", json_real(1e-3), 0, "learning rate"));
  json_object_set_new(p, "min-lr", number("number", json_real(0), 0, "where the schedule ends"));
  json_object_set_new(p, "schedule", json_pack("{s:o, s:s}", "enum", schedules, "default", aoth_schedules[0]));
  json_object_set_new(p, "step",
                      json_pack("{s:[s, s], s:s}", "enum", aoth_steps[0], aoth_steps[1], "default", aoth_steps[0]));
  json_object_set_new(p, "accumulate",
                      number("integer", json_integer(1), 1, "micro steps whose gradients are added up for one update"));
  json_object_set_new(p, "clip-norm",
                      number("number", json_real(0), 0, "the most that the norm of all gradients may be; 0: any"));
  json_object_set_new(p, "precision",
                      json_pack("{s:[s, s, s], s:s}", "enum", aoth_precisions[0], aoth_precisions[1],
                                aoth_precisions[2], "default", aoth_precisions[0]));
  json_object_set_new(p, "loss-scale",
                      json_pack("{s:[{s:[s, s]}, o]}", "anyOf", "enum", aoth_loss_scales[0], aoth_loss_scales[1],
                                typed("number", "what the loss is multiplied by, and the gradients divided by")));
  json_t *scale = json_object();
  json_object_set_new(scale, "init", number("number", json_real(65536), 0, "the scale at first"));
  json_object_set_new(scale, "growth-factor", number("number", json_real(2), 1, "of the scale"));
  json_object_set_new(scale, "backoff-factor", number("number", json_real(0.5), 0, "of the scale"));
  json_object_set_new(scale, "growth-interval",
                      number("integer", json_integer(2000), 1, "finite steps in a row before the scale grows"));
  json_object_set_new(p, "loss-scale-with",
                      json_pack("{s:s, s:o, s:b}", "type", "object", "properties", scale, "additionalProperties", 0));
  json_object_set_new(p, "check-finite", typed("boolean", "a gradient that is not finite ends the run"));
  json_object_set_new(p, "warmup", number("integer", json_integer(0), 0, "steps of growth from 0 to lr"));
  json_object_set_new(p, "data", json_pack("{s:s}", "$ref", "#/$defs/data"));
  json_object_set_new(p, "seed",
                      typed("integer", "of data order, random inputs and the numbers that the program draws"));
  json_object_set_new(p, "log-every", number("integer", json_integer(10), 0, "steps between log lines; 0: none"));
  json_object_set_new(p, "loss", number("integer", json_integer(0), 0, "number of the user output that is minimised"));
  json_object_set_new(p, "checkpoint",
                      json_pack("{s:[o, {s:s, s:{s:o, s:o}, s:[s], s:b}]}", "anyOf",
                                typed("string", "where it goes, at the end"), "type", "object", "properties", "path",
                                typed("string", "where it goes"), "every",
                                number("integer", json_integer(0), 0, "steps between checkpoints; 0: at the end"),
                                "required", "path", "additionalProperties", 0));
  json_object_set_new(p, "resume", typed("string", "a checkpoint to go on from"));
  return json_pack("{s:s, s:o, s:[s], s:b, s:o}", "type", "object", "properties", p, "required", "steps",
                   "additionalProperties", 0, "allOf", m->optimizer_rules);
}

static json_t *default_units_schema(void) {
  json_t *units = json_object();
  for (uint32_t i = 0; i < AOTH_N_DEFAULT_UNITS; i++)
    json_object_set_new(units, aoth_default_unit_keys[i],
                        json_pack("{s:s, s:s}", "type", "string", "default", aoth_default_unit(i)));
  return json_pack("{s:s, s:s, s:o, s:b}", "type", "object", "description", "units that the host adds by itself",
                   "properties", units, "additionalProperties", 0);
}

static json_t *make_schema(merge_state_t *m) {
  json_t *ir = json_pack("{s:s, s:s}", "const", "ir", "description", "a program in text");
  json_array_append_new(m->import_ids, ir);
  json_t *vars = json_pack("{s:s, s:{s:[s, s, s]}, s:s}", "type", "object", "additionalProperties", "type", "string",
                           "number", "boolean", "description", "defaults of ${name}; --set vars.name=VALUE wins");
  json_t *include =
      json_pack("{s:[{s:s}, {s:s, s:{s:s}}], s:s}", "anyOf", "type", "string", "type", "array", "items", "type",
                "string", "description", "files below this one: maps merge, anything else is replaced");
  json_t *model = json_pack("{s:s, s:{s:o, s:o, s:o}, s:b, s:o}", "type", "object", "properties", "import",
                            ids_schema(m->import_ids, "who reads the model; found out when left out"), "path",
                            typed("string", "the model file"), "with", typed("object", "options of the importer"),
                            "additionalProperties", 0, "allOf", m->import_rules);
  json_t *opsets = json_pack("{s:s, s:o, s:s}", "type", "array", "items", ids_schema(m->opset_ids, "an operator set"),
                             "description", "operator sets to open; all that are found when left out");
  json_t *operators = json_pack("{s:s, s:o, s:s}", "type", "array", "items",
                                typed("string", "\"mylib::name(Tensor x, Tensor(a!) out) -> ()\""), "description",
                                "schemas of operators that the model uses and no operator set has");
  json_array_append_new(m->device_ids,
                        json_pack("{s:s, s:s}", "const", "host", "description", "the machine's own memory"));
  json_array_append_new(m->device_ids, json_pack("{s:s, s:s}", "type", "string", "pattern", ":"));
  json_t *device = ids_schema(json_deep_copy(m->device_ids), "of a backend: where it runs, if not where the run does");
  json_array_extend(m->stage_rules, m->device_rules);
  json_array_extend(m->device_rules, m->ranks_rules);
  json_array_append_new(m->ranks_ids, json_pack("{s:s, s:s}", "const", "none", "description", "one rank runs it"));
  json_t *run = json_pack(
      "{s:s, s:{s:{s:s}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}, s:b, s:o}", "type", "object", "properties", "inputs",
      "$ref", "#/$defs/data", "outputs", typed("string", "where the results of one call go"), "seed",
      typed("integer", "of random inputs"), "alias-patterns",
      number("integer", json_integer(8), 0, "programs for inputs that share memory, at most"), "train", train_schema(m),
      "device", ids_schema(m->device_ids, "where the program runs: a device, or device:ordinal"), "device-with",
      typed("object", "options of the device"), "ranks", ids_schema(m->ranks_ids, "how the ranks that run it talk"),
      "ranks-with", typed("object", "options of the communicator"), "additionalProperties", 0, "allOf",
      m->device_rules);
  json_t *properties = json_pack("{s:{s:i}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "aot", "const", 1, "vars", vars,
                                 "include", include, "model", model, "opsets", opsets, "operators", operators, "stages",
                                 stages_schema(m, device), "run", run, "default-units", default_units_schema());
  return json_pack("{s:s, s:s, s:s, s:o, s:[s], s:b, s:{s:o}}", "$schema",
                   "https://json-schema.org/draft/2020-12/schema", "title", "aothost pipeline", "type", "object",
                   "properties", properties, "required", "aot", "additionalProperties", 0, "$defs", "data",
                   data_schema());
}

static int schema(aoth_cli_t *cli) {
  aoth_session_t *s = aoth_cli_session(cli);
  if (!s) return AOTH_EXIT_INPUT;
  aoth_registry_t *r = aoth_session_registry(s);
  merge_state_t m = {json_array(), json_array(), json_array(), json_array(), json_array(), json_array(),
                     json_array(), json_array(), json_array(), json_array(), json_array()};
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++) {
    aoth_plugin_t *p = aoth_registry_plugin(r, i);
    if (p->n_units == 0) continue;
    if (aoth_plugin_open(r, p, s->arena, NULL, NULL) != AOT_OK) {
      aoth_sink_report(cli->sink, AOT_SEVERITY_WARNING, NULL, "load.refused",
                       "left out of the schema: cannot load %s: %s", p->path, p->why ? p->why : "");
      continue;
    }
    for (uint32_t k = 0; k < p->n_units; k++)
      if (!p->units[k].shadowed_by) add_unit(&m, &p->units[k]);
  }
  json_t *json = make_schema(&m);
  if (!cli->common.json_path) cli->common.json_path = "-";
  const aot_status_t status = json ? aoth_cli_json(cli, json) : AOT_E_EXHAUSTED;
  json_decref(json);
  return aoth_exit_code(status);
}

static int schema_main(const aoth_command_t *self, int argc, char **argv) {
  aoth_cli_t cli;
  int code = aoth_cli_init(&cli, self, argc, argv, NULL, 0, 0, 0);
  if (code == AOTH_CLI_GO) code = schema(&cli);
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_schema = {
    .name = "schema",
    .usage = "schema [options]",
    .summary = "print the JSON Schema of pipeline files",
    .text = "Prints one JSON Schema (draft 2020-12) of pipeline files, merged from the options of all plugins found.\n"
            "Editors with a YAML language server complete and check with it.\n"
            "\n"
            "  aothost schema > aothost.schema.json\n"
            "  # yaml-language-server: $schema=aothost.schema.json      (first line of train.yaml)\n",
    .main = schema_main,
};
