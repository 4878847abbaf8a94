/* Step times as a picture: a lane an arm, a dot a round, the median and its interval over them. */
#include "ab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 960
#define LEFT 240   /* names */
#define RIGHT 40
#define LANE 46
#define TOP 14
#define MOST_DOTS 2000 /* a lane; of more, every k-th */

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int is_drawn(const aoth_ab_t *ab, const aoth_ab_arm_run_t *a) { return aoth_ab_alive(a) && ab->n_done && isfinite(a->step.value); }

typedef struct scale {
  double low, high; /* milliseconds at both ends; later rounds are drawn at the right end */
} scale_t;

static uint32_t n_times(const aoth_ab_t *ab) { return ab->n_done * ab->n_steps; }

/* From the fastest round to what 97 % of each arm's rounds keep to: a few disturbed rounds do not squeeze the rest. 0: nothing to draw. */
static int find_scale(const aoth_ab_t *ab, scale_t *s) {
  double *sorted = malloc((n_times(ab) + (size_t)1) * sizeof *sorted);
  *s = (scale_t){INFINITY, 0};
  for (uint32_t i = 0; sorted && i < ab->n_arms; i++) {
    if (!is_drawn(ab, &ab->arms[i])) continue;
    memcpy(sorted, ab->arms[i].step_ms, n_times(ab) * sizeof *sorted);
    qsort(sorted, n_times(ab), sizeof *sorted, by_size);
    s->low = fmin(s->low, sorted[0]);
    s->high = fmax(s->high, aoth_quantile(sorted, n_times(ab), 0.97));
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

void aoth_ab_escape(aoth_text_t *out, const char *text) {
  for (; *text; text++) {
    const char *entity = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : *text == '"' ? "&quot;" : NULL;
    if (entity) aoth_text_z(out, entity);
    else aoth_text_add(out, (unsigned char)*text < ' ' ? " " : text, 1);
  }
}

/* The end of a long name tells more than its beginning. */
static void draw_name(aoth_text_t *out, const char *name, double y) {
  const size_t n = strlen(name), shown = 30;
  aoth_text_f(out, "<text class=\"ink\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s", LEFT - 14, y, n > shown ? ".." : "");
  const char *at = n > shown ? name + n - shown : name;
  while (((unsigned char)*at & 0xC0) == 0x80) at++; /* whole characters */
  aoth_ab_escape(out, at);
  aoth_text_z(out, "</text>\n");
}

static void draw_arm(aoth_text_t *out, const aoth_ab_t *ab, uint32_t arm, const scale_t *s, double y) {
  const aoth_ab_arm_run_t *a = &ab->arms[arm];
  const uint32_t every = (n_times(ab) + MOST_DOTS - 1) / MOST_DOTS;
  draw_name(out, a->arm.name, y + 4);
  aoth_text_f(out, "<line class=\"grid\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\"/>\n", LEFT, y, WIDTH - RIGHT, y);
  for (uint32_t i = 0; i < n_times(ab); i += every) /* rounds go down the lane in their order, so that drifts are seen */
    aoth_text_f(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.4\"/>\n", a->step_ms[i] > s->high ? "late" : "dot",
                x_of(s, a->step_ms[i]), y - 14 + 28.0 * (i + 0.5) / n_times(ab));
  aoth_text_f(out, "<line class=\"bar\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x_of(s, a->step.low), y, x_of(s, a->step.high), y);
  aoth_text_f(out, "<line class=\"median\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x_of(s, a->step.value), y - 17,
              x_of(s, a->step.value), y + 17);
}

/* 1, 2 or 5 times a power of ten, for about eight marks. */
static double mark_distance(const scale_t *s) {
  const double raw = (s->high - s->low) / 8, power = pow(10, floor(log10(raw)));
  return power * (raw / power > 5 ? 10 : raw / power > 2 ? 5 : raw / power > 1 ? 2 : 1);
}

static void draw_axis(aoth_text_t *out, const scale_t *s, double y) {
  const double distance = mark_distance(s);
  for (double k = ceil(s->low / distance); k * distance <= s->high; k++) {
    const double x = x_of(s, k * distance);
    aoth_text_f(out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, TOP, x, y);
    aoth_text_f(out, "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.6g</text>\n", x, y + 16, k * distance);
  }
  aoth_text_f(out, "<text class=\"ink\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">ms a step</text>\n", WIDTH - RIGHT, y + 34);
  aoth_text_f(out, "<text class=\"ink\" x=\"%d\" y=\"%.1f\">a dot: a round, first at the top, process after process; bar: median and its 95 %% interval; hollow: later than shown</text>\n",
              LEFT, y + 34);
}

void aoth_ab_plot_times(const aoth_ab_t *ab, aoth_text_t *out) {
  scale_t s;
  uint32_t n = 0;
  if (!find_scale(ab, &s)) return;
  for (uint32_t i = 0; i < ab->n_arms; i++) n += (uint32_t)is_drawn(ab, &ab->arms[i]);
  const double bottom = TOP + (double)n * LANE;
  aoth_text_f(out,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"step times\" "
              "font-family=\"sans-serif\" font-size=\"13\">\n"
              "<style>.ink{fill:#555}.grid{stroke:#8886;stroke-width:1}.dot{fill:#3b82c4;fill-opacity:.55}"
              ".late{fill:none;stroke:#3b82c4}.bar{stroke:#d9730d;stroke-width:5}.median{stroke:#d9730d;stroke-width:2.5}"
              "@media(prefers-color-scheme:dark){.ink{fill:#bbb}}</style>\n",
              WIDTH, bottom + 44);
  draw_axis(out, &s, bottom);
  double y = TOP + LANE / 2.0;
  for (uint32_t i = 0; i < ab->n_arms; i++) {
    if (!is_drawn(ab, &ab->arms[i])) continue;
    draw_arm(out, ab, i, &s, y);
    y += LANE;
  }
  aoth_text_z(out, "</svg>\n");
}
