/* aothost plugins [ID]: what is there, from the notes alone; of one unit or plugin everything. */
#include <cli/base/commands.h>
#include <cli/base/html_page.h>
#include <cli/plugins/plugins_page.h>
#include <cli/ops/unit_coverage.h>
#include <cli/plugins/unit_json.h>

#include <aot/inline.h>
#include <config/pipeline.h>
#include <plugin/load.h>
#include <config/options.h>
#include <sandbox/session.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

static int compare_units(const void *a, const void *b) {
  const aoth_unit_t *x = *(const aoth_unit_t *const *)a, *y = *(const aoth_unit_t *const *)b;
  const int kind = strcmp(x->kind, y->kind), id = strcmp(x->id, y->id);
  return kind ? kind : id ? id : (x->shadowed_by != NULL) - (y->shadowed_by != NULL);
}

static const aoth_unit_t **all_units(aoth_registry_t *r, uint32_t *out_n) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++) n += aoth_registry_plugin(r, i)->n_units;
  const aoth_unit_t **units = calloc(n + 1u, sizeof *units);
  if (!units) return NULL;
  *out_n = n;
  n = 0;
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++)
    for (uint32_t k = 0; k < aoth_registry_plugin(r, i)->n_units; k++)
      units[n++] = &aoth_registry_plugin(r, i)->units[k];
  qsort(units, n, sizeof *units, compare_units);
  return units;
}

static void print_search(aoth_registry_t *r) {
  printf("\nsearched, in this order\n");
  for (uint32_t i = 0; i < aoth_registry_n_dirs(r); i++) {
    const char *from, *note, *path = aoth_registry_dir(r, i, &from, &note);
    printf("  %-16s %s%s%s%s\n", from, path, note ? " (" : "", note ? note : "", note ? ")" : "");
  }
  int n = 0;
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(r, i);
    if (p->state != AOTH_PLUGIN_REFUSED) continue;
    if (n++ == 0) printf("\nleft out\n");
    printf("  %s: %s\n", p->path, p->why ? p->why : "");
  }
}

static json_t *list_json(aoth_registry_t *r, const aoth_unit_t *const *units, uint32_t n) {
  json_t *list = json_array(), *refused = json_array(), *dirs = json_array();
  for (uint32_t i = 0; i < n; i++)
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "id", units[i]->id, "kind",
                                          units[i]->kind, "plugin", units[i]->plugin->note.id, "version",
                                          units[i]->plugin->note.version, "file", units[i]->plugin->path, "help",
                                          units[i]->help, "hidden", units[i]->shadowed_by != NULL));
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(r, i);
    if (p->state == AOTH_PLUGIN_REFUSED)
      json_array_append_new(refused, json_pack("{s:s, s:s}", "file", p->path, "why", p->why ? p->why : ""));
  }
  for (uint32_t i = 0; i < aoth_registry_n_dirs(r); i++) {
    const char *from, *note, *path = aoth_registry_dir(r, i, &from, &note);
    json_array_append_new(
        dirs, json_pack("{s:s, s:s, s:o}", "path", path, "from", from, "note", note ? json_string(note) : json_null()));
  }
  return json_pack("{s:o, s:o, s:o}", "units", list, "refused", refused, "dirs", dirs);
}

static int list(aoth_cli_t *cli, aoth_registry_t *r) {
  uint32_t n = 0;
  const aoth_unit_t **units = all_units(r, &n);
  if (!units) return AOTH_EXIT_INPUT;
  aot_status_t status = AOT_OK;
  if (cli->common.json_path) {
    json_t *json = list_json(r, units, n);
    status = aoth_cli_json(cli, json);
    json_decref(json);
  }
  if (!cli->common.json_path || strcmp(cli->common.json_path, "-") != 0) {
    printf("%-22s %-12s %-18s %-8s %s\n", "unit", "kind", "plugin", "version", "what it does");
    for (uint32_t i = 0; i < n; i++) {
      const aoth_unit_t *u = units[i];
      if (u->shadowed_by && !cli->common.verbose) continue;
      printf("%-22s %-12s %-18s %-8s %s%s%s%s\n", u->id, u->kind, u->plugin->note.id, u->plugin->note.version, u->help,
             u->shadowed_by ? " (hidden by " : "", u->shadowed_by ? u->shadowed_by->plugin->path : "",
             u->shadowed_by ? ")" : "");
    }
    if (n == 0) printf("no plugins were found\n");
    if (cli->common.verbose || n == 0) print_search(r);
  }
  free(units);
  return aoth_exit_code(status);
}

/* ---- one unit ---- */

static void print_patterns(const char *title, const aot_str_t *patterns, uint64_t n) {
  if (!n) return;
  printf("  %-8s", title);
  for (uint64_t i = 0; i < n; i++) printf("%s%.*s", i ? ", " : " ", (int)patterns[i].size, patterns[i].data);
  printf("\n");
}

static void print_contract(const aoth_unit_t *u, kit_arena_t *arena) {
  if (!u->has_contract) return;
  const aoth_contract_t *c = &u->contract;
  printf("\ncontract\n");
  if (!aoth_properties_are_none(c->needs)) printf("  needs    %s\n", aoth_property_names(c->needs, arena));
  if (!aoth_properties_are_none(c->refuses)) printf("  refuses  %s\n", aoth_property_names(c->refuses, arena));
  if (!aoth_properties_are_none(c->gives)) printf("  gives    %s\n", aoth_property_names(c->gives, arena));
  if (!aoth_properties_are_none(c->drops)) printf("  drops    %s\n", aoth_property_names(c->drops, arena));
  print_patterns("creates", c->creates, c->n_creates);
  print_patterns("removes", c->removes, c->n_removes);
}

static void print_option(const aot_option_t *o) {
  kit_text_t left = {0}, right = {0};
  kit_text_f(&left, "%.*s (%s)", (int)o->name.size, o->name.data, aoth_option_kind(o->kind));
  kit_text_str(&right, o->help);
  kit_text_z(&right, " [");
  if (o->flags & AOT_OPT_REQUIRED) {
    kit_text_z(&right, "required");
  } else {
    kit_text_z(&right, "default ");
    aoth_option_preset(o, &right);
  }
  if (o->kind == AOT_OPT_ENUM) kit_text_z(&right, "; one of");
  for (uint32_t i = 0; o->kind == AOT_OPT_ENUM && i < o->n_choices; i++)
    kit_text_f(&right, "%s %.*s", i ? "," : "", (int)o->choices[i].size, o->choices[i].data);
  const size_t before = right.size;
  kit_text_z(&right, "; ");
  const size_t range = right.size;
  aoth_option_range(o, &right);
  if (right.size == range && right.data) right.data[right.size = before] = 0;
  if (o->unit.size) kit_text_f(&right, "; %.*s", (int)o->unit.size, o->unit.data);
  if (o->flags & AOT_OPT_EXPERIMENTAL) kit_text_z(&right, "; experimental");
  printf("  %-28s %s]\n", left.data ? left.data : "", right.data ? right.data : "");
  kit_text_deinit(&left);
  kit_text_deinit(&right);
}

static void print_unit(const aoth_unit_t *u, kit_arena_t *arena) {
  printf("%s %s (%s)\n  %s\n  plugin %s %s, %s\n", u->id, u->version, u->kind, u->help, u->plugin->note.id,
         u->plugin->note.version, u->plugin->path);
  if (u->shadowed_by) printf("  hidden by %s\n", u->shadowed_by->plugin->path);
  if (u->desc.n_options) printf("\noptions\n");
  for (uint64_t i = 0; i < u->desc.n_options; i++) print_option(&u->options[i]);
  print_contract(u, arena);
}

static json_t *texts_json(const aot_str_t *texts, uint64_t n) {
  json_t *list_of = json_array();
  for (uint64_t i = 0; i < n; i++) json_array_append_new(list_of, aoth_str_json(texts[i]));
  return list_of;
}

static json_t *unit_json(const aoth_unit_t *u) {
  json_t *options = json_array(), *contract = json_null();
  for (uint64_t i = 0; i < u->desc.n_options; i++) json_array_append_new(options, aoth_option_json(&u->options[i]));
  if (u->has_contract)
    contract = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "needs", aoth_properties_json(u->contract.needs), "refuses",
                         aoth_properties_json(u->contract.refuses), "gives", aoth_properties_json(u->contract.gives),
                         "drops", aoth_properties_json(u->contract.drops), "creates",
                         texts_json(u->contract.creates, u->contract.n_creates), "removes",
                         texts_json(u->contract.removes, u->contract.n_removes));
  return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o}", "id", u->id, "kind", u->kind, "version",
                   u->version, "help", u->help, "plugin", u->plugin->note.id, "plugin_version", u->plugin->note.version,
                   "file", u->plugin->path, "hidden", u->shadowed_by != NULL, "options", options, "contract", contract);
}

static json_t *left_out_json(const aoth_coverage_t *c) {
  json_t *list_of = json_array();
  for (uint32_t i = 0; i < c->n_left_out; i++)
    json_array_append_new(list_of, json_pack("{s:o, s:o}", "operator", aoth_str_json(c->left_out[i].op), "reason",
                                             aoth_str_json(c->left_out[i].reason)));
  return list_of;
}

/* One unit, reported or added to out. Only -v creates it: that is where the operators are known. */
static aot_status_t show(aoth_cli_t *cli, aoth_unit_t *u, json_t *out, int as_text) {
  aoth_session_t *s = cli->session;
  aot_status_t status = aoth_plugin_open(s->registry, u->plugin, s->arena, NULL, cli->sink);
  if (status != AOT_OK) return status;
  json_t *json = unit_json(u);
  if (as_text) print_unit(u, s->arena);
  if (cli->common.verbose && !u->shadowed_by) {
    aoth_coverage_t c;
    status = aoth_unit_coverage(s, u, &c);
    if (as_text && c.n_ops) printf("\n%u operators\n", c.n_ops);
    for (uint32_t i = 0; as_text && i < c.n_ops; i++) printf("  %s\n", c.ops[i].data);
    json_object_set_new(json, "operators", texts_json(c.ops, c.n_ops));
    if (as_text && c.n_left_out) printf("\n%u left out\n", c.n_left_out);
    for (uint32_t i = 0; as_text && i < c.n_left_out; i++)
      printf("  %-46s %s\n", c.left_out[i].op.data, c.left_out[i].reason.data);
    json_object_set_new(json, "left_out", left_out_json(&c));
  }
  json_array_append_new(out, json);
  return status;
}

static int show_all(aoth_cli_t *cli, aoth_registry_t *r, const char *id) {
  json_t *units = json_array();
  aot_status_t status = AOT_OK;
  uint32_t n = 0;
  const int as_text = !cli->common.json_path || strcmp(cli->common.json_path, "-") != 0;
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++) {
    aoth_plugin_t *p = aoth_registry_plugin(r, i);
    const int whole = p->note.id && p->n_units && strcmp(p->note.id, id) == 0;
    for (uint32_t k = 0; k < p->n_units && status == AOT_OK; k++) {
      if (!whole && strcmp(p->units[k].id, id) != 0) continue;
      if (n++ && as_text) printf("\n");
      status = show(cli, &p->units[k], units, as_text);
    }
  }
  if (n == 0) {
    const char *near = aoth_registry_nearest(r, id, NULL);
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "plugins.unknown", "no unit and no plugin '%s'%s%s%s", id,
                     near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    status = AOT_E_NOT_FOUND;
  }
  json_t *json = json_pack("{s:o}", "units", units);
  if (status == AOT_OK) status = aoth_cli_json(cli, json);
  json_decref(json);
  return aoth_exit_code(status);
}

/* ---- the page ---- */

static int write_page(aoth_cli_t *cli, aoth_registry_t *r, const char *path) {
  uint32_t n = 0;
  kit_text_t page = {0};
  if (cli->n_positional || cli->common.json_path) {
    aoth_sink_report(cli->sink, AOT_SEVERITY_ERROR, NULL, "plugins.page",
                     "--html is of all units: neither ID nor --json");
    return AOTH_EXIT_INPUT;
  }
  const aoth_unit_t **units = all_units(r, &n);
  if (!units) return AOTH_EXIT_INPUT;
  const aot_status_t status = aoth_plugins_html(r, units, n, cli->session->arena, cli->sink, &page);
  const aot_status_t written = aoth_page_write(&page, path, cli->sink);
  kit_text_deinit(&page);
  free(units);
  return aoth_exit_code(written != AOT_OK ? written : status);
}

/* ---- the lock ---- */

/* Opset and importer are chosen when the model is read: whichever there are may be. */
static int may_be_opened(const aoth_plugin_t *p) {
  if (p->state != AOTH_PLUGIN_FOUND) return p->state == AOTH_PLUGIN_OPEN;
  for (uint32_t i = 0; i < p->n_units; i++)
    if (!p->units[i].shadowed_by && aoth_kind_in(p->units[i].kind, "opset/1 import/1")) return 1;
  return 0;
}

static int print_lock(aoth_cli_t *cli, aoth_registry_t *r, const char *path) {
  aoth_overrides_t overrides = {.n_sets = 0};
  aoth_pipeline_t *pipeline = NULL;
  const aot_status_t status = aoth_cli_pipeline(cli, path, &overrides, &pipeline);
  aoth_pipeline_destroy(pipeline);
  if (status != AOT_OK) return aoth_exit_code(status);
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(r, i);
    char hex[KIT_SHA256_HEX];
    if (!may_be_opened(p) || !aoth_file_sha256(p->path, hex)) continue;
    printf("# %s %s\n%s  %s\n", p->note.id, p->note.version, hex, p->path);
  }
  return AOTH_EXIT_OK;
}

static int plugins_main(const aoth_command_t *self, int argc, char **argv) {
  const char *html = NULL, *lock = NULL;
  aoth_cli_t cli;
  const aoth_flag_t flags[] = {{.name = "--html",
                                .value = "F",
                                .help = "all units with contracts and options, as a page",
                                .text = &html,
                                .writes = 1},
                               {.name = "--lock",
                                .value = "P",
                                .help = "the digests of the plugins that this pipeline may open",
                                .text = &lock}};
  int code = aoth_cli_init(&cli, self, argc, argv, flags, 2, 0, 1);
  if (code == AOTH_CLI_GO) {
    aoth_session_t *s = aoth_cli_session(&cli);
    aoth_registry_t *r = s ? aoth_session_registry(s) : NULL;
    code = !r                 ? AOTH_EXIT_INPUT
           : html             ? write_page(&cli, r, html)
           : lock             ? print_lock(&cli, r, lock)
           : cli.n_positional ? show_all(&cli, r, cli.positional[0])
                              : list(&cli, r);
  }
  return aoth_cli_deinit(&cli, code);
}

const aoth_command_t aoth_cmd_plugins = {
    .name = "plugins",
    .usage = "plugins [ID] [options]",
    .summary = "list plugins and units; with an ID, print its options and contract",
    .text = "Without ID: every unit on the search path, read from the files' notes; nothing is loaded. With -v also\n"
            "where was searched, what was left out and why, and units hidden by others of the same id.\n"
            "With the ID of a unit or plugin: options with types, defaults and ranges, and the contract; with -v\n"
            "also the operators it handles, and those it leaves out with the reason.\n"
            "With --html F all of them as a page: a catalogue of what is installed.\n"
            "Searched: --plugin-dir, AOT_PLUGIN_PATH, ~/.local/lib/aothost, ../lib/aothost beside the program, and\n"
            "the installed folder; never the current folder.\n"
            "\n"
            "  aothost plugins\n"
            "  aothost plugins partition-mincut\n"
            "  aothost plugins backend-ref -v\n"
            "  aothost plugins --html plugins.html\n"
            "  aothost plugins --lock p.yaml > p.lock; aothost run p.yaml --locked p.lock\n"
            "  aothost plugins --json - --plugin-dir ./build\n",
    .main = plugins_main,
};
