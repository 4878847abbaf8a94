/* Step times as a picture: a lane an arm, a dot a round, the median and its interval over them. */
#include <cli/ab/ab.h>
#include <cli/base/svg.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 960
#define LEFT 240 /* names */
#define RIGHT 40
#define LANE 46
#define TOP 14
#define MOST_DOTS 2000 /* a lane; of more, every k-th */

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct scale {
  double low, high; /* milliseconds at both ends; later rounds are drawn at the right end */
} scale_t;

static uint32_t n_times(const aoth_ab_t *ab) { return ab->n_done * ab->n_steps; }

/* Tukey's outer fence: three times the middle half's width beyond it, or the last of the times that is before. */
static double fence(const double *sorted, uint32_t n) {
  const double low = aoth_quantile(sorted, n, 0.25), high = aoth_quantile(sorted, n, 0.75);
  return fmin(sorted[n - 1], high + 3 * (high - low));
}

/* From the fastest round to each arm's fence: a few disturbed rounds do not squeeze the rest. 0: nothing to draw. */
static int find_scale(const aoth_ab_t *ab, scale_t *s) {
  double *sorted = malloc((n_times(ab) + (size_t)1) * sizeof *sorted);
  *s = (scale_t){INFINITY, 0};
  for (uint32_t i = 0; sorted && i < ab->n_arms; i++) {
    if (!aoth_ab_has_times(ab, &ab->arms[i])) continue;
    memcpy(sorted, ab->arms[i].step_ms, n_times(ab) * sizeof *sorted);
    qsort(sorted, n_times(ab), sizeof *sorted, by_size);
    s->low = fmin(s->low, sorted[0]);
    s->high = fmax(s->high, fmax(fence(sorted, n_times(ab)), ab->arms[i].step.high));
  }
  free(sorted);
  const double room = fmax((s->high - s->low) * 0.05, s->high * 1e-3);
  s->low = fmax(0, s->low - room);
  s->high += room;
  return isfinite(s->low) && s->high > s->low;
}

static double x_of(const scale_t *s, double ms) {
  return LEFT + (fmin(ms, s->high) - s->low) / (s->high - s->low) * (WIDTH - LEFT - RIGHT);
}

/* The end of a long name reports more than its beginning. */
static void draw_name(kit_text_t *out, const char *name, double y) {
  char shown[160];
  const size_t n = strlen(name), most = 30;
  const char *at = n > most ? name + n - most : name;
  while (((unsigned char)*at & 0xC0) == 0x80) at++; /* whole characters */
  snprintf(shown, sizeof shown, "%s%s", at > name ? ".." : "", at);
  aoth_svg_text(out, "at-r", LEFT - 14, y, shown);
}

static void draw_arm(kit_text_t *out, const aoth_ab_t *ab, uint32_t arm, const scale_t *s, double y) {
  const aoth_ab_arm_run_t *a = &ab->arms[arm];
  const uint32_t every = (n_times(ab) + MOST_DOTS - 1) / MOST_DOTS;
  draw_name(out, a->arm.name, y + 4);
  aoth_svg_line(out, "at-grid", LEFT, y, WIDTH - RIGHT, y);
  /* rounds go down the lane in their order, so that drifts are seen */
  for (uint32_t i = 0; i < n_times(ab); i += every)
    aoth_svg_circle(out, a->step_ms[i] > s->high ? "at-late" : "at-dot", x_of(s, a->step_ms[i]),
                    y - 14 + 28.0 * (i + 0.5) / n_times(ab), 2.4);
  aoth_svg_line(out, "at-bar", x_of(s, a->step.low), y, x_of(s, a->step.high), y);
  aoth_svg_line(out, "at-median", x_of(s, a->step.value), y - 17, x_of(s, a->step.value), y + 17);
}

/* 1, 2 or 5 times a power of ten, for about eight marks. */
static double mark_distance(const scale_t *s) {
  const double raw = (s->high - s->low) / 8, power = pow(10, floor(log10(raw)));
  return power * (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1);
}

static void draw_axis(kit_text_t *out, const scale_t *s, double y) {
  const double distance = mark_distance(s);
  for (double k = ceil(s->low / distance); k * distance <= s->high; k++) {
    char number[32];
    const double x = x_of(s, k * distance);
    snprintf(number, sizeof number, "%.6g", k * distance);
    aoth_svg_line(out, "at-grid", x, TOP, x, y);
    aoth_svg_text(out, "at-m", x, y + 16, number);
  }
  aoth_svg_text(out, "at-r", LEFT - 14, y + 16, "ms a step");
  aoth_svg_text(
      out, "", LEFT, y + 34,
      "a dot: a round, first at the top, process after process; bar: median, 95 % interval; hollow: later than shown");
}

static const char style[] =
    ".at{background:#fff;font:12px system-ui,'Segoe UI',Helvetica,Arial,sans-serif}.at\n"
    "text{fill:#222}.at-r{text-anchor:end}.at-m{text-anchor:middle}\n"
    ".at-bg{fill:#fff}.at-grid{stroke:#e4e4e4;stroke-width:1}.at-dot{fill:#4477aa;fill-opacity:.55}.at-late{fill:none;"
    "stroke:#4477aa}\n"
    ".at-bar{stroke:#cc6611;stroke-width:5}.at-median{stroke:#cc6611;stroke-width:2.5} @media\n"
    "(prefers-color-scheme:dark){.at,.at-bg{background:#15181c;fill:#15181c}.at\n"
    "text{fill:#e8e8e8}.at-grid{stroke:#2d3238}} @media print{.at,.at-bg{background:#fff;fill:#fff}.at\n"
    "text{fill:#000}.at-grid{stroke:#ddd}}\n";

void aoth_ab_plot_times(const aoth_ab_t *ab, kit_text_t *out) {
  scale_t s;
  uint32_t n = 0;
  if (!find_scale(ab, &s)) return;
  for (uint32_t i = 0; i < ab->n_arms; i++) n += (uint32_t)aoth_ab_has_times(ab, &ab->arms[i]);
  const double bottom = TOP + (double)n * LANE;
  aoth_svg_begin(out, WIDTH, bottom + 44, "step times", style);
  kit_text_z(out, "<g class=\"at\">\n");
  aoth_svg_rect(out, "at-bg", 0, 0, WIDTH, bottom + 44);
  draw_axis(out, &s, bottom);
  double y = TOP + LANE / 2.0;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    if (!aoth_ab_has_times(ab, &ab->arms[i])) continue;
    draw_arm(out, ab, i, &s, y);
    y += LANE;
  }
  kit_text_z(out, "</g>\n");
  aoth_svg_end(out);
}
