/* The profile as one HTML file: tables, and the last run as a picture. Names come from models, so all text is
 * escaped. */
#include <cli/run/run_profile.h>

#include <cli/base/html_page.h>
#include <cli/base/svg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 200, WIDTH = 1400, MARGIN = 90, LANE = 26, MOST_LANES = 12 };

static const char style[] = "td.b{background:linear-gradient(#4477aa,#4477aa) no-repeat left/var(--w) 60%}\n"
                            ".wide{overflow-x:auto}.am{max-width:none}\n";

static const char picture_style[] =
    ".am{font:12px system-ui,sans-serif}.am text{fill:#555}.am-m{text-anchor:middle}.am-r{text-anchor:end}\n"
    ".am-grid{stroke:#8883}.am-a:hover{stroke:#000}\n"
    ".p0{fill:#4477aa}.p1{fill:#d6b845}.p2{fill:#3a9a4d}.p3{fill:#aa4488}.p4{fill:#66bbdd}.p5{fill:#cc6633}.p6{fill:#"
    "888}\n"
    "@media (prefers-color-scheme:dark){.am text{fill:#bbb}}\n";

static void number_cell(kit_text_t *out, const char *format, double number, double of) {
  char text[32] = "";
  if (number > 0 && of > 0) snprintf(text, sizeof text, format, number / of);
  aoth_html_cell(out, "n", text);
}

/* ---- tables ---- */

static void numbers(const aoth_profile_view_t *v, const aoth_profile_line_t *l, kit_text_t *out) {
  number_cell(out, "%.3f", l->ms, (double)v->n_runs);
  kit_text_f(out, "<td class=\"n b\" style=\"--w:%.1f%%\">%.1f%%</td>", 100 * l->ms / v->ms, 100 * l->ms / v->ms);
  number_cell(out, "%.1f", l->nbytes * 1e-6, l->ms);
  number_cell(out, "%.1f", l->flops * 1e-6, l->ms);
  number_cell(out, "%.0f%%", 100 * l->limit_ms, l->ms);
}

static void table(const aoth_profile_view_t *v, const char *title, const aoth_profile_line_t *lines, uint64_t n,
                  kit_text_t *out) {
  const int is_single = lines == v->steps, is_by_module = lines == v->modules;
  kit_text_f(out, "<h2>%s</h2>\n<div class=\"wide\"><table>\n<tr><th class=\"n\">ms</th><th class=\"n\">share</th>",
             title);
  kit_text_z(out, "<th class=\"n\">GB/s</th><th class=\"n\">GFLOP/s</th><th class=\"n\">of the limit</th>");
  if (!is_single) kit_text_z(out, "<th class=\"n\">steps</th>");
  if (!is_by_module) kit_text_z(out, "<th>kernel</th><th>operator</th>");
  if (is_single) kit_text_z(out, "<th>result</th>");
  kit_text_f(out, "%s</tr>\n", is_single || is_by_module ? "<th>module</th>" : "");
  for (uint64_t i = 0; i < n && i < MOST_ROWS; i++) {
    const aoth_profile_line_t *l = &lines[i];
    kit_text_z(out, "<tr>");
    numbers(v, l, out);
    if (!is_single) number_cell(out, "%.0f", (double)l->n_steps, 1);
    if (!is_by_module) aoth_html_cell(out, "t", l->kernel);
    if (!is_by_module) aoth_html_cell(out, "t", l->op);
    if (is_single) aoth_html_cell(out, "t", l->type);
    if (is_single || is_by_module) aoth_html_cell(out, "t", *l->module ? l->module : "-");
    kit_text_z(out, "</tr>\n");
  }
  if (n > MOST_ROWS)
    kit_text_f(out, "<tr><td></td><td colspan=\"8\">and %llu more</td></tr>\n", (unsigned long long)(n - MOST_ROWS));
  kit_text_z(out, "</table></div>\n");
}

/* ---- the last run ---- */

typedef struct picture {
  const aoth_profile_view_t *v;
  const char *lanes[MOST_LANES]; /* kernels, those that take longest first; all others share the last */
  uint32_t n_lanes;
  uint64_t begin, end;
} picture_t;

static uint32_t lane_of(const picture_t *p, const char *kernel) {
  uint32_t k = 0;
  while (k + 1 < p->n_lanes && strcmp(p->lanes[k], kernel) != 0) k++;
  return k;
}

static void find_lanes(picture_t *p) {
  for (uint64_t i = 0; i < p->v->n_sums; i++) {
    const char *kernel = p->v->sums[i].kernel;
    uint32_t k = 0;
    while (k < p->n_lanes && strcmp(p->lanes[k], kernel) != 0) k++;
    if (k == MOST_LANES) p->lanes[MOST_LANES - 1] = "others";
    else if (k == p->n_lanes) p->lanes[p->n_lanes++] = kernel;
  }
}

/* Of the graphs that run most often: the last run of another may be far back. */
static int is_shown(const picture_t *p, const aoth_profile_line_t *l) {
  return l->last_at && l->n_runs >= p->v->n_runs;
}

static void find_times(picture_t *p) {
  p->begin = UINT64_MAX;
  for (uint64_t i = 0; i < p->v->n_steps; i++) {
    const aoth_profile_line_t *l = &p->v->steps[i];
    if (!is_shown(p, l)) continue;
    if (l->last_at < p->begin) p->begin = l->last_at;
    if (l->last_at + l->last_ns > p->end) p->end = l->last_at + l->last_ns;
  }
}

static void draw_step(const picture_t *p, const aoth_profile_line_t *l, kit_text_t *tip, kit_text_t *out) {
  const double scale = (double)(WIDTH - MARGIN) / (double)(p->end - p->begin);
  const uint32_t lane = lane_of(p, l->kernel);
  const double x = MARGIN + (double)(l->last_at - p->begin) * scale, y = 20.0 + LANE * lane;
  double width = (double)l->last_ns * scale;
  char classes[16];
  if (width < 0.3) width = 0.3;
  const aoth_point_t corners[] = {{x, y}, {x + width, y}, {x + width, y + LANE - 6}, {x, y + LANE - 6}};
  tip->size = 0;
  kit_text_f(tip, "%.3f ms  %s  %s\n%s  %s", (double)l->last_ns * 1e-6, l->kernel, l->op, l->type, l->module);
  snprintf(classes, sizeof classes, "am-a p%u", lane < 6 ? lane : 6);
  aoth_svg_area(out, classes, corners, 4, tip->data);
}

static void draw(picture_t *p, kit_text_t *out) {
  const double height = 20.0 + LANE * p->n_lanes + 24, total_ms = (double)(p->end - p->begin) * 1e-6;
  kit_text_t tip = {0};
  aoth_svg_begin(out, WIDTH + 20, height, "the last run, by kernel", picture_style);
  for (uint32_t k = 0; k < p->n_lanes; k++) aoth_svg_text(out, "am-r", MARGIN - 8, 20 + LANE * (k + 0.6), p->lanes[k]);
  for (int k = 0; k <= 10; k++) {
    const double x = MARGIN + (WIDTH - MARGIN) * k / 10.0;
    char label[32];
    snprintf(label, sizeof label, "%.3g ms", total_ms * k / 10);
    aoth_svg_line(out, "am-grid", x, 14, x, height - 20);
    aoth_svg_text(out, "am-m", x, height - 6, label);
  }
  for (uint64_t i = 0; i < p->v->n_steps; i++)
    if (is_shown(p, &p->v->steps[i])) draw_step(p, &p->v->steps[i], &tip, out);
  aoth_svg_end(out);
  out->failed |= tip.failed;
  kit_text_deinit(&tip);
}

static void timeline(const aoth_profile_view_t *v, kit_text_t *out) {
  picture_t p = {.v = v};
  find_lanes(&p);
  find_times(&p);
  if (p.end <= p.begin) return;
  kit_text_z(out, "<h2>The last run</h2>\n<div class=\"wide\">");
  draw(&p, out);
  kit_text_z(out, "</div>\n");
}

/* ---- the page ---- */

aot_status_t aoth_profile_html(const aoth_profile_view_t *v, const char *what, kit_text_t *out) {
  kit_text_t title = {0};
  kit_text_f(&title, "Profile of %s", what);
  aoth_html_begin(out, title.data ? title.data : "", style);
  aoth_html_element(out, "h1", title.data ? title.data : "");
  kit_text_deinit(&title);
  if (v->n_runs && v->ms > 0) {
    kit_text_f(out, "<p>%.3f ms in %llu steps, mean of %llu runs%s.", v->ms / (double)v->n_runs,
               (unsigned long long)v->n_steps, (unsigned long long)v->n_runs,
               v->n_left_out ? " after a first one" : "");
    if (v->limit_ms > 0) kit_text_f(out, " At the machine's limits: %.3f ms.", v->limit_ms / (double)v->n_runs);
    kit_text_z(out, "</p>\n");
    timeline(v, out);
    table(v, "By kernel and operator", v->sums, v->n_sums, out);
    table(v, "By module", v->modules, v->n_modules, out);
    table(v, "Slowest steps", v->steps, v->n_steps, out);
  } else {
    kit_text_z(out, "<p>Nothing ran.</p>\n");
  }
  aoth_html_end(out);
  return out->failed ? AOT_E_EXHAUSTED : AOT_OK;
}
