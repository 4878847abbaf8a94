#include <cli/plugins/plugins_page.h>

#include <config/pipeline.h>
#include <plugin/load.h>
#include <config/options.h>
#include <string.h>
#include <cli/base/html_page.h>
#include <cli/base/svg.h>

static const char style[] = "body{max-width:75rem}td{white-space:normal;vertical-align:top}.wide{overflow-x:auto}\n"
                            "h2{margin-top:2.2em}h2 small,.hidden{font-weight:normal;opacity:.7}dl{margin:.5em 0}\n"
                            "dt{float:left;min-width:6em;opacity:.7}dd{margin-left:6em}\n";

static void str_cell(kit_text_t *out, const char *classes, aot_str_t text) {
  kit_text_t copy = {0};
  kit_text_str(&copy, text);
  aoth_html_cell(out, classes, copy.data ? copy.data : "");
  out->failed |= copy.failed;
  kit_text_deinit(&copy);
}

static void row_of_list(const char *term, const char *text, kit_text_t *out) {
  if (!text || !*text) return;
  aoth_html_element(out, "dt", term);
  aoth_html_element(out, "dd", text);
  kit_text_z(out, "\n");
}

/* ---- options ---- */

static void limits(const aot_option_t *o, kit_text_t *out) {
  for (uint32_t i = 0; o->kind == AOT_OPT_ENUM && i < o->n_choices; i++) {
    if (i) kit_text_z(out, ", ");
    kit_text_str(out, o->choices[i]);
  }
  aoth_option_range(o, out);
  if (o->unit.size) kit_text_f(out, "%s%.*s", out->size ? "; " : "", (int)o->unit.size, o->unit.data);
  if (o->flags & AOT_OPT_EXPERIMENTAL) kit_text_f(out, "%sexperimental", out->size ? "; " : "");
}

static void options(const aoth_unit_t *u, kit_text_t *out) {
  if (!u->desc.n_options) return;
  kit_text_z(out, "<div class=\"wide\"><table>\n<tr><th>option</th><th>type</th><th>default</th><th>values</th>"
                  "<th>what it does</th></tr>\n");
  for (uint64_t i = 0; i < u->desc.n_options; i++) {
    const aot_option_t *o = &u->options[i];
    kit_text_t preset = {0}, values = {0};
    aoth_option_preset(o, &preset);
    limits(o, &values);
    kit_text_z(out, "<tr>");
    str_cell(out, "t", o->name);
    aoth_html_cell(out, "", aoth_option_kind(o->kind));
    aoth_html_cell(out, "t", preset.data ? preset.data : "");
    aoth_html_cell(out, "", values.data ? values.data : "");
    str_cell(out, "", o->help);
    kit_text_z(out, "</tr>\n");
    out->failed |= preset.failed || values.failed;
    kit_text_deinit(&preset);
    kit_text_deinit(&values);
  }
  kit_text_z(out, "</table></div>\n");
}

/* ---- units ---- */

static void patterns(const char *term, const aot_str_t *names, uint64_t n, kit_text_t *out) {
  kit_text_t list = {0};
  for (uint64_t i = 0; i < n; i++) {
    if (i) kit_text_z(&list, ", ");
    kit_text_str(&list, names[i]);
  }
  row_of_list(term, list.data, out);
  kit_text_deinit(&list);
}

static void contract(const aoth_unit_t *u, kit_arena_t *arena, kit_text_t *out) {
  const aoth_contract_t *c = &u->contract;
  const struct {
    const char *term;
    aoth_properties_t properties;
  } rows[] = {{"needs", c->needs}, {"refuses", c->refuses}, {"gives", c->gives}, {"drops", c->drops}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (!aoth_properties_are_none(rows[i].properties))
      row_of_list(rows[i].term, aoth_property_names(rows[i].properties, arena), out);
  patterns("creates", c->creates, c->n_creates, out);
  patterns("removes", c->removes, c->n_removes, out);
}

static aot_status_t unit(aoth_registry_t *r, const aoth_unit_t *u, uint32_t number, kit_arena_t *arena,
                         aoth_sink_t *sink, kit_text_t *out) {
  const aot_status_t status = aoth_plugin_open(r, u->plugin, arena, NULL, sink);
  kit_text_t plugin = {0};
  kit_text_f(&plugin, "%s %s, %s", u->plugin->note.id, u->plugin->note.version, u->plugin->path);
  kit_text_f(out, "<h2 id=\"u%u\">", number);
  aoth_xml_escape(out, u->id);
  kit_text_z(out, " ");
  aoth_html_element(out, "small", u->kind);
  kit_text_z(out, "</h2>\n");
  aoth_html_element(out, "p", u->help);
  kit_text_z(out, "\n<dl>\n");
  row_of_list("plugin", plugin.data, out);
  if (u->shadowed_by) row_of_list("hidden by", u->shadowed_by->plugin->path, out);
  if (status == AOT_OK && u->has_contract) contract(u, arena, out);
  if (status != AOT_OK) row_of_list("options", "unknown: the plugin cannot be loaded", out);
  kit_text_z(out, "</dl>\n");
  if (status == AOT_OK) options(u, out);
  out->failed |= plugin.failed;
  kit_text_deinit(&plugin);
  return status;
}

static void index_of(const aoth_unit_t *const *units, uint32_t n, kit_text_t *out) {
  kit_text_z(out,
             "<div class=\"wide\"><table>\n<tr><th>unit</th><th>kind</th><th>version</th><th>what it does</th></tr>\n");
  for (uint32_t i = 0; i < n; i++) {
    kit_text_f(out, "<tr%s><td class=\"t\"><a href=\"#u%u\">", units[i]->shadowed_by ? " class=\"hidden\"" : "", i);
    aoth_xml_escape(out, units[i]->id);
    kit_text_z(out, "</a></td>");
    aoth_html_cell(out, "", units[i]->kind);
    aoth_html_cell(out, "", units[i]->plugin->note.version);
    aoth_html_cell(out, "", units[i]->help);
    kit_text_z(out, "</tr>\n");
  }
  kit_text_z(out, "</table></div>\n");
}

static void left_out(aoth_registry_t *r, kit_text_t *out) {
  int n = 0;
  for (uint32_t i = 0; i < aoth_registry_n_plugins(r); i++) {
    const aoth_plugin_t *p = aoth_registry_plugin(r, i);
    if (p->state != AOTH_PLUGIN_REFUSED) continue;
    if (n++ == 0)
      kit_text_z(out, "<h2>Left out</h2>\n<div class=\"wide\"><table>\n<tr><th>file</th><th>why</th></tr>\n");
    kit_text_z(out, "<tr>");
    aoth_html_cell(out, "t", p->path);
    aoth_html_cell(out, "", p->why ? p->why : "");
    kit_text_z(out, "</tr>\n");
  }
  if (n) kit_text_z(out, "</table></div>\n");
}

aot_status_t aoth_plugins_html(aoth_registry_t *r, const aoth_unit_t *const *units, uint32_t n, kit_arena_t *arena,
                               aoth_sink_t *sink, kit_text_t *out) {
  aot_status_t first = AOT_OK;
  aoth_html_begin(out, "Plugins of aothost", style);
  kit_text_f(out, "<h1>Plugins of aothost %s</h1>\n", AOT_VERSION);
  index_of(units, n, out);
  left_out(r, out);
  for (uint32_t i = 0; i < n; i++) {
    const aot_status_t status = unit(r, units[i], i, arena, sink, out);
    if (first == AOT_OK) first = status;
  }
  aoth_html_end(out);
  return first;
}
