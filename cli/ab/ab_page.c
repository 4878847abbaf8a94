/* The comparison as one HTML file: everything it shows is in it. Names come from users and models, so all text is
 * escaped. */
#include <cli/ab/ab.h>
#include <cli/inspect/memory_plot.h>
#include <cli/base/html_page.h>
#include <cli/base/svg.h>

#include <string.h>

#define MOST_ROWS 500 /* of choices that differ; --json has all */

static const char style[] =
    ":root{color-scheme:light dark}body{font-size:15px;line-height:1.45;margin:2rem auto;max-width:70rem;padding:0 "
    "1rem}\n"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}table{margin:0;font-size:15px}\n"
    "th,td{padding:.25rem .7rem;vertical-align:top;white-space:normal}\n"
    ".wide{overflow-x:auto}.lost{color:#c0392b;font-weight:600}.good{color:#1e8449}code{font-size:.92em}svg{max-width:"
    "100%;height:auto}\n"
    "@media(prefers-color-scheme:dark){.lost{color:#ff8a7a}.good{color:#6fcf97}} details{margin:.3rem\n"
    "0}summary{cursor:pointer}\n";

static void text(kit_text_t *t, const char *s) { aoth_xml_escape(t, s ? s : ""); }

static const char *string(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }

/* ---- the table ---- */

static void cell_row(const aoth_ab_t *ab, uint32_t row, kit_text_t *t) {
  char cell[128];
  int says = 0;
  for (uint32_t i = 0; i < ab->n_arms; i++) says |= aoth_ab_row(ab, row, i, cell, sizeof cell);
  if (!says) return;
  kit_text_z(t, "<tr><th>");
  text(t, row == 0 ? "outcome" : aoth_ab_row_label(row));
  kit_text_z(t, "</th>");
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    aoth_ab_row(ab, row, i, cell, sizeof cell);
    const int is_bad = row == 0 && strcmp(aoth_ab_outcome(&ab->arms[i]), "ok") != 0;
    kit_text_f(t, "<td class=\"n%s\">", is_bad ? " lost" : row == 0 ? " good" : "");
    text(t, cell);
    kit_text_z(t, "</td>");
  }
  kit_text_z(t, "</tr>\n");
}

static void table(const aoth_ab_t *ab, kit_text_t *t) {
  kit_text_z(t, "<div class=\"wide\"><table>\n<tr><th></th>");
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    kit_text_z(t, "<th class=\"n\">");
    text(t, ab->arms[i].arm.name);
    kit_text_z(t, "</th>");
  }
  kit_text_z(t, "</tr>\n");
  for (uint32_t r = 0; r < aoth_ab_n_rows(); r++) cell_row(ab, r, t);
  kit_text_z(t, "</table></div>\n");
}

static void lost(const aoth_ab_t *ab, kit_text_t *t) {
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    const aoth_ab_arm_run_t *a = &ab->arms[i];
    if (a->worker.fate == AOTH_CHILD_FINE && !a->differs) continue;
    kit_text_z(t, "<p class=\"lost\">");
    text(t, a->arm.name);
    kit_text_f(t, " %s", aoth_ab_outcome(a));
    if (a->worker.doing) kit_text_f(t, " during %s: ", a->worker.doing);
    else
      kit_text_f(t, " from the reference: largest difference %.3g in ",
                 a->gradients.max_abs >= a->outputs.max_abs ? a->gradients.max_abs : a->outputs.max_abs);
    text(t, a->worker.doing                              ? a->worker.why
            : a->gradients.max_abs >= a->outputs.max_abs ? a->gradients.worst
                                                         : a->outputs.worst);
    kit_text_z(t, "</p>\n");
  }
}

/* ---- choices ---- */

static void names(const json_t *list, kit_text_t *t) {
  size_t i;
  json_t *name;
  kit_text_z(t, "<td>");
  json_array_foreach(list, i, name) {
    if (i) kit_text_z(t, ", ");
    text(t, json_string_value(name));
  }
  kit_text_z(t, "</td>");
}

static void choice_row(const json_t *d, kit_text_t *t) {
  char bytes[AOTH_BYTES_SIZE];
  kit_text_f(t, "<tr><td class=\"n\">%s</td><td><code>",
             aoth_bytes_text((uint64_t)json_integer_value(json_object_get(d, "bytes")), bytes));
  text(t, string(d, "value"));
  kit_text_z(t, "</code></td><td>");
  text(t, string(d, "type"));
  kit_text_z(t, "</td><td>");
  text(t, string(d, "op") ? string(d, "op") : "(input)");
  kit_text_z(t, "</td><td>");
  text(t, string(d, "module"));
  kit_text_z(t, string(d, "module") && string(d, "source") ? "<br/>" : "");
  text(t, string(d, "source"));
  kit_text_z(t, "</td>");
  names(json_object_get(d, "saved_by"), t);
  names(json_object_get(d, "recomputed_by"), t);
  kit_text_z(t, "</tr>\n");
}

static void choices(const json_t *differences, kit_text_t *t) {
  const size_t n = json_array_size(differences);
  if (!n) return;
  kit_text_f(t, "<h2>Chosen differently</h2>\n<p>%zu value%s%s; an arm that is in neither column does without.</p>\n",
             n, n == 1 ? "" : "s", n > MOST_ROWS ? ", the 500 largest of them" : "");
  kit_text_z(t, "<div class=\"wide\"><table>\n<tr><th "
                "class=\"n\">bytes</th><th>value</th><th>type</th><th>operator</th><th>module, source</th>"
                "<th>saved by</th><th>recomputed by</th></tr>\n");
  for (size_t i = 0; i < n && i < MOST_ROWS; i++) choice_row(json_array_get(differences, i), t);
  kit_text_z(t, "</table></div>\n");
}

/* ---- the page ---- */

static void conditions(const aoth_ab_t *ab, kit_text_t *t) {
  kit_text_z(t, "<p>Pipeline <code>");
  text(t, ab->cli->positional[0]);
  kit_text_z(t, "</code>, stage <code>");
  text(t, ab->pipeline->stages[ab->stage].name);
  if (ab->pipeline->model_path) {
    kit_text_z(t, "</code>, model <code>");
    text(t, ab->pipeline->model_path);
  }
  const char *inputs = json_string_value(aoth_ab_common(ab, "inputs")),
             *tangents = json_string_value(aoth_ab_common(ab, "tangents"));
  if (inputs) {
    kit_text_z(t, "</code>, inputs <code>");
    text(t, inputs);
    kit_text_f(t, "</code>%s, seed %lld, tangents <code>",
               json_is_true(aoth_ab_common(ab, "made_up")) ? " (made up)" : "",
               (long long)json_integer_value(aoth_ab_common(ab, "seed")));
    text(t, tangents ? tangents : "none");
  }
  kit_text_f(t, "</code>; %u process%s an arm, in each %u rounds in turn after %u to warm up.</p>\n", ab->n_done,
             ab->n_done == 1 ? "" : "es", ab->n_steps, ab->n_warmup);
}

#define HOLDERS 10 /* listed of each arm */

/* All arms on one scale, and which owns the most at each peak. */
static aot_status_t memory(const aoth_ab_t *ab, kit_text_t *t) {
  aoth_memory_view_t views[AOTH_AB_MOST_ARMS];
  aoth_memory_report_t r = {.file = ab->cli->positional[0], .views = views, .top = HOLDERS};
  kit_arena_t *arena = kit_arena_create();
  aot_status_t status = arena ? aoth_ab_views(ab, arena, views, &r.n_views) : AOT_E_EXHAUSTED;
  if (status == AOT_OK && r.n_views) {
    kit_text_z(t, "<h2>Memory of a step</h2>\n");
    status = aoth_memory_svg(&r, t);
  }
  for (uint32_t i = 0; status == AOT_OK && i < r.n_views; i++) {
    kit_text_z(t, "<details><summary>the largest at the peak of ");
    text(t, views[i].title);
    kit_text_z(t, "</summary>\n");
    aoth_memory_table(&r, &views[i], t);
    kit_text_z(t, "</details>\n");
  }
  kit_arena_destroy(arena);
  return status;
}

static void times(const aoth_ab_t *ab, kit_text_t *t) {
  kit_text_t plot = {0};
  aoth_ab_plot_times(ab, &plot);
  if (plot.size) kit_text_z(t, "<h2>Step times</h2>\n");
  kit_text_add(t, plot.data ? plot.data : "", plot.size);
  kit_text_deinit(&plot);
}

aot_status_t aoth_ab_write_page(const aoth_ab_t *ab, const json_t *differences, const char *path) {
  kit_text_t t = {0}, styles = {0};
  kit_text_f(&styles, "%s%s", style, aoth_memory_style());
  aoth_html_begin(&t, "aothost ab", styles.data ? styles.data : "");
  kit_text_deinit(&styles);
  kit_text_z(&t, "<h1>");
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    if (i) kit_text_z(&t, " &#183; ");
    text(&t, ab->arms[i].arm.name);
  }
  kit_text_z(&t, "</h1>\n");
  conditions(ab, &t);
  lost(ab, &t);
  table(ab, &t);
  if (memory(ab, &t) != AOT_OK) t.failed = 1;
  times(ab, &t);
  choices(differences, &t);
  kit_text_z(&t, aoth_memory_script());
  aoth_html_end(&t);
  const aot_status_t status = aoth_page_write(&t, path, ab->cli->sink);
  kit_text_deinit(&t);
  return status;
}
