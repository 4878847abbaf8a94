/* Plans of ranks as a picture: step time above, with what is exposed of communication, memory of a rank below; a column
 * a number of ranks, of one mode after the other. */
#include <cli/run/plan_ranks.h>
#include <cli/base/svg.h>

#include <stdio.h>

#define LEFT 90
#define COLUMN 56
#define BAR 34
#define PANEL 150
#define GAP 44
#define TOP 34

static const char style[] =
    ".ar{background:#fff;font:12px system-ui,'Segoe UI',Helvetica,Arial,sans-serif}.ar text{fill:#222}\n"
    ".ar-bg{fill:#fff}.ar-r{text-anchor:end}.ar-m{text-anchor:middle}.ar-grid{stroke:#e4e4e4}\n"
    ".ar-compute{fill:#4477aa}.ar-exposed{fill:#cc6611}.ar-leaves{fill:#228833}.ar-arena{fill:#aabb66}\n"
    "@media (prefers-color-scheme:dark){.ar,.ar-bg{background:#15181c;fill:#15181c}.ar text{fill:#e8e8e8}\n"
    ".ar-grid{stroke:#2d3238}}\n";

typedef struct panel {
  const char *title, *unit;
  double per_unit, most, y;
  const char *lower, *upper; /* classes */
} panel_t;

static void draw_axis(kit_text_t *out, const panel_t *p, double width) {
  char text[64];
  aoth_svg_text(out, "", LEFT, p->y - 10, p->title);
  for (int k = 0; k <= 4; k++) {
    const double y = p->y + PANEL - PANEL * k / 4.0;
    snprintf(text, sizeof text, "%.3g %s", p->most * k / 4 / p->per_unit, p->unit);
    aoth_svg_line(out, "ar-grid", LEFT, y, width, y);
    aoth_svg_text(out, "ar-r", LEFT - 8, y + 4, text);
  }
}

static void draw_bar(kit_text_t *out, const panel_t *p, uint32_t column, double lower, double upper) {
  const double x = LEFT + COLUMN * column + (COLUMN - BAR) / 2.0, scale = p->most > 0 ? PANEL / p->most : 0;
  aoth_svg_rect(out, p->lower, x, p->y + PANEL - lower * scale, BAR, lower * scale);
  aoth_svg_rect(out, p->upper, x, p->y + PANEL - (lower + upper) * scale, BAR, upper * scale);
}

static double larger(double a, double b) { return a > b ? a : b; }

void aoth_plan_svg(const aoth_rank_plans_t *p, kit_text_t *out) {
  const double width = LEFT + COLUMN * (double)p->n + 20, height = TOP + 2 * PANEL + GAP + 56;
  panel_t time = {
      "a step: computed, and communication that is exposed", "ms", 1e-3, 0, TOP, "ar-compute", "ar-exposed"};
  panel_t memory = {"a rank's memory: parameters and states, and what a step needs beside",
                    "MiB",
                    1048576,
                    0,
                    TOP + PANEL + GAP,
                    "ar-leaves",
                    "ar-arena"};
  for (uint32_t i = 0; i < p->n; i++) {
    time.most = larger(time.most, p->rows[i].step_s);
    memory.most = larger(memory.most, (double)(aoth_plan_leaf_nbytes(&p->rows[i]) + p->rows[i].arena_nbytes));
  }
  aoth_svg_begin(out, width < 480 ? 480 : width, height, "steps of several ranks, predicted", style);
  kit_text_z(out, "<g class=\"ar\">\n");
  aoth_svg_rect(out, "ar-bg", 0, 0, width < 480 ? 480 : width, height);
  draw_axis(out, &time, width);
  draw_axis(out, &memory, width);
  for (uint32_t i = 0; i < p->n; i++) {
    char text[32];
    const aoth_rank_plan_t *r = &p->rows[i];
    draw_bar(out, &time, i, r->step_s - r->exposed_s, r->exposed_s);
    draw_bar(out, &memory, i, (double)aoth_plan_leaf_nbytes(r), (double)r->arena_nbytes);
    snprintf(text, sizeof text, "%u", r->n_ranks);
    aoth_svg_text(out, "ar-m", LEFT + COLUMN * (i + 0.5), height - 34, text);
    if (r->mode && (!i || r->mode != r[-1].mode)) aoth_svg_text(out, "", LEFT + COLUMN * i + 4, height - 14, r->mode);
  }
  aoth_svg_text(out, "ar-r", LEFT - 8, height - 34, "ranks");
  kit_text_z(out, "</g>\n");
  aoth_svg_end(out);
}
