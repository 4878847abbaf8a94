#include <cli/inspect/memory_plot.h>

#include <cli/base/svg.h>
#include <aot/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 480, BANDS = 32 };

static const char style[] =
    ".am{background:#fff;font:12px system-ui,'Segoe UI',Helvetica,Arial,sans-serif}\n"
    ".am-bg{fill:#fff}.am-axis,.am-grid{stroke:#333;stroke-width:1}.am-grid{stroke:#e4e4e4} .am\n"
    "text{fill:#222}.am .am-h{font-weight:600;font-size:14px}.am\n"
    ".am-s{fill:#555}.am-r{text-anchor:end}.am-m{text-anchor:middle}\n"
    ".am-a{stroke:#fff;stroke-width:.5;stroke-linejoin:round}.am-a:hover{stroke:#000;stroke-width:1.5}\n"
    ".am-input{fill:#a3a8ae}.am-output{fill:#3a9a4d}.am-saved{fill:#4477aa}.am-gradient{fill:#aa4488}.am-temporary{"
    "fill:#d6b845}"
    ".am-scratch{fill:#66bbdd} .am-rest{fill-opacity:.72}\n"
    ".am-update{fill:#888}.am-lead{stroke:#333;stroke-width:1}.am-split{stroke:#333;stroke-width:1;stroke-dasharray:4\n"
    "3} .am-held{stroke:#222;stroke-width:1.2;stroke-dasharray:2 3}\n"
    ".am-budget{stroke:#cc2222;stroke-width:1.6}.am\n"
    ".am-over{fill:#cc2222}.am-peak{fill:#fff;stroke:#222;stroke-width:1.6} .am\n"
    ".am-halo{stroke:#fff;stroke-width:3;paint-order:stroke;stroke-linejoin:round}\n"
    "@media (prefers-color-scheme:dark){.am,.am-bg{background:#15181c;fill:#15181c}.am text{fill:#e8e8e8}.am "
    ".am-s{fill:#aab}"
    ".am-axis,.am-split,.am-lead,.am-held{stroke:#ccc}.am-grid{stroke:#2d3238}.am-a{stroke:#15181c}.am-a:hover{stroke:#"
    "fff}"
    ".am-budget{stroke:#ff6b6b}.am .am-over{fill:#ff6b6b}.am-peak{fill:#15181c;stroke:#eee}.am "
    ".am-halo{stroke:#15181c}}\n"
    "@media print{.am,.am-bg{background:#fff;fill:#fff}.am text{fill:#000}.am-a{stroke:#fff}.am "
    ".am-halo{stroke:#fff}.am-grid{stroke:#ddd}"
    ".am-axis,.am-split,.am-lead,.am-held{stroke:#222}}\n";

/* ---- a panel ---- */

typedef struct panel {
  const aoth_memory_view_t *v;
  double x, y, w, h; /* of the area that is drawn in */
  uint64_t top;      /* bytes at its upper edge */
  uint32_t n_columns;
  uint64_t at[COLUMNS];   /* the step that represents each */
  uint64_t base[COLUMNS]; /* bytes drawn so far */
  aoth_point_t points[2 * 2 * COLUMNS];
} panel_t;

static double y_of(const panel_t *p, double bytes) { return p->y + p->h - p->h * bytes / (double)p->top; }
static double x_of(const panel_t *p, double step) { return p->x + p->w * step / (double)p->v->plan.n_steps; }
static double left_of(const panel_t *p, uint32_t column) { return p->x + p->w * column / p->n_columns; }

/* One layer on what is below; gaps divide it. */
static void draw_layer(panel_t *p, const uint64_t *heights, const char *classes, const char *tip, kit_text_t *out) {
  for (uint32_t begin = 0; begin < p->n_columns;) {
    uint32_t end = begin;
    size_t n = 0;
    if (!heights[begin]) {
      begin++;
      continue;
    }
    for (; end < p->n_columns && heights[end]; end++) {
      const double y = y_of(p, (double)(p->base[end] + heights[end]));
      p->points[n++] = (aoth_point_t){left_of(p, end), y};
      p->points[n++] = (aoth_point_t){left_of(p, end + 1), y};
    }
    for (uint32_t c = end; c-- > begin;) {
      const double y = y_of(p, (double)p->base[c]);
      p->points[n++] = (aoth_point_t){left_of(p, c + 1), y};
      p->points[n++] = (aoth_point_t){left_of(p, c), y};
    }
    aoth_svg_area(out, classes, p->points, n, tip);
    begin = end;
  }
  for (uint32_t c = 0; c < p->n_columns; c++) p->base[c] += heights[c];
}

static int is_alive(const aoth_holder_t *h, uint64_t step) { return h->first <= step && step <= h->last; }

static void make_tip(const aoth_holder_t *h, kit_text_t *tip) {
  char text[AOTH_BYTES_SIZE];
  tip->size = 0;
  kit_text_f(tip, "%s  %s  %s\n%s", h->name, h->type, aoth_bytes_text(h->nbytes, text), aoth_memory_kind(h->kind));
  if (*h->op) kit_text_f(tip, " by %s", h->op);
  if (*h->module) kit_text_f(tip, "\nin %s", h->module);
  kit_text_f(tip, "\nsteps %llu to %llu", (unsigned long long)h->first + 1, (unsigned long long)h->last + 1);
}

static void draw_kind(panel_t *p, int32_t kind, const uint64_t *rest, const uint32_t *bands, uint32_t n_bands,
                      kit_text_t *tip, kit_text_t *out) {
  char classes[64];
  uint64_t heights[COLUMNS];
  snprintf(classes, sizeof classes, "am-a am-rest am-%s", aoth_memory_kind(kind));
  tip->size = 0;
  kit_text_f(tip, "%s: all smaller ones", aoth_memory_kind(kind));
  draw_layer(p, rest, classes, tip->data, out);
  snprintf(classes, sizeof classes, "am-a am-%s", aoth_memory_kind(kind));
  for (uint32_t b = 0; b < n_bands; b++) {
    const aoth_holder_t *h = &p->v->holders[bands[b]];
    if (h->kind != kind) continue;
    for (uint32_t c = 0; c < p->n_columns; c++) heights[c] = is_alive(h, p->at[c]) ? h->nbytes : 0;
    make_tip(h, tip);
    draw_layer(p, heights, classes, tip->data, out);
  }
}

/* ---- which buffers are bands ---- */

typedef struct size_row {
  uint64_t nbytes;
  uint32_t number;
} size_row_t;

static int by_size(const void *pa, const void *pb) {
  const size_row_t *a = pa, *b = pb;
  if (a->nbytes != b->nbytes) return a->nbytes > b->nbytes ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

static int by_number(const void *pa, const void *pb) {
  const uint32_t *a = pa, *b = pb;
  return (*a > *b) - (*a < *b);
}

static aot_status_t choose_bands(const aoth_memory_view_t *v, uint32_t out[BANDS], uint32_t *out_n) {
  size_row_t *rows = malloc(((size_t)v->plan.n_buffers + 1) * sizeof *rows);
  if (!rows) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < v->plan.n_buffers; i++) rows[i] = (size_row_t){v->holders[i].nbytes, i};
  qsort(rows, (size_t)v->plan.n_buffers, sizeof *rows, by_size);
  *out_n = v->plan.n_buffers < BANDS ? (uint32_t)v->plan.n_buffers : BANDS;
  for (uint32_t i = 0; i < *out_n; i++) out[i] = rows[i].number;
  qsort(out, *out_n, sizeof *out, by_number);
  free(rows);
  return AOT_OK;
}

static aot_status_t draw_areas(panel_t *p, kit_text_t *out) {
  uint32_t bands[BANDS], n_bands;
  uint64_t(*rest)[COLUMNS] = calloc(AOTH_MEMORY_KINDS, sizeof *rest);
  kit_text_t tip = {0};
  aot_status_t status = rest ? choose_bands(p->v, bands, &n_bands) : AOT_E_EXHAUSTED;
  for (uint32_t c = 0; status == AOT_OK && c < p->n_columns; c++) {
    uint64_t kinds[AOTH_MEMORY_KINDS];
    p->at[c] = aoth_memory_column(p->v, c, p->n_columns);
    p->base[c] = 0;
    aoth_memory_by_kind(p->v, p->at[c], kinds);
    for (uint32_t b = 0; b < n_bands; b++) {
      const aoth_holder_t *h = &p->v->holders[bands[b]];
      if (is_alive(h, p->at[c])) kinds[h->kind] -= h->nbytes;
    }
    for (uint32_t k = 0; k < AOTH_MEMORY_KINDS; k++) rest[k][c] = kinds[k];
  }
  for (uint32_t k = 0; status == AOT_OK && k < AOTH_MEMORY_KINDS - 1; k++)
    draw_kind(p, aoth_memory_order[k], rest[aoth_memory_order[k]], bands, n_bands, &tip, out);
  if (tip.failed) status = AOT_E_EXHAUSTED;
  kit_text_deinit(&tip);
  free(rest);
  return status;
}

/* ---- axes ---- */

/* "40 MiB", not "40.0 MiB": marks are whole numbers. */
static const char *mark_text(uint64_t bytes, char out[AOTH_BYTES_SIZE]) {
  char *zero = strstr(aoth_bytes_text(bytes, out), ".0 ");
  if (zero) memmove(zero, zero + 2, strlen(zero + 2) + 1);
  return out;
}

/* Marks at powers of two, three to six of them. */
static void draw_bytes_axis(const panel_t *p, kit_text_t *out) {
  char text[AOTH_BYTES_SIZE];
  uint64_t step = 1;
  while (p->top / step > 6) step *= 2;
  for (uint64_t b = 0; b <= p->top; b += step) {
    if (b) aoth_svg_line(out, "am-grid", p->x, y_of(p, (double)b), p->x + p->w, y_of(p, (double)b));
    aoth_svg_text(out, "am-s am-r", p->x - 6, y_of(p, (double)b) + 4, mark_text(b, text));
  }
}

/* Marks at 1, 2 or 5 times a power of ten. */
static void draw_steps_axis(const panel_t *p, kit_text_t *out) {
  const uint64_t n = p->v->plan.n_steps;
  static const uint64_t factors[] = {1, 2, 5};
  uint64_t step = 1, ten = 1;
  for (int k = 0; n / step > 8 && ten < UINT64_MAX / 100; k++) {
    step = factors[(k + 1) % 3] * (ten *= (k + 1) % 3 == 0 ? 10 : 1);
  }
  for (uint64_t t = 0; t <= n; t += step) {
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)t);
    aoth_svg_line(out, "am-axis", x_of(p, (double)t), p->y + p->h, x_of(p, (double)t), p->y + p->h + 4);
    aoth_svg_text(out, "am-s am-m", x_of(p, (double)t), p->y + p->h + 17, text);
  }
  aoth_svg_line(out, "am-axis", p->x, p->y + p->h, p->x + p->w, p->y + p->h);
  aoth_svg_text(out, "am-s am-m", p->x + p->w / 2, p->y + p->h + 33, "steps");
}

static void draw_split(const panel_t *p, kit_text_t *out) {
  const aot_memory_plan_t *plan = &p->v->plan;
  const double x = x_of(p, (double)plan->n_forward_steps);
  aoth_svg_text(out, "am-s am-m", (p->x + x) / 2, p->y - 6, "forward");
  if (plan->n_forward_steps == plan->n_steps) return;
  aoth_svg_line(out, "am-split", x, p->y - 16, x, p->y + p->h);
  aoth_svg_text(out, "am-s am-m", (x + p->x + p->w) / 2, p->y - 6,
                p->v->n_updates ? "backward; updates where marked" : "backward");
  for (uint32_t c = 0, n; c < p->n_columns; c += n ? n : 1) { /* columns that are together make one mark */
    for (n = 0; c + n < p->n_columns && aoth_memory_has_update(p->v, c + n, p->n_columns);) n++;
    if (n) aoth_svg_rect(out, "am-update", p->x + p->w * c / p->n_columns, p->y - 3, p->w * n / p->n_columns, 3);
  }
}

/* ---- what is marked ---- */

/* Labels are at the left, where a step has little alive; of two lines the upper one's above it, the lower one's
 * below. */
static void draw_level(const panel_t *p, const char *line, const char *classes, double y, int above, const char *text,
                       kit_text_t *out) {
  if (y >= p->y) aoth_svg_line(out, line, p->x, y, p->x + p->w, y);
  aoth_svg_text(out, classes, p->x + 5, above ? y - 5 : y + 14, text);
}

static void draw_lines(const panel_t *p, uint64_t budget, kit_text_t *out) {
  char bytes[AOTH_BYTES_SIZE], text[80];
  const uint64_t held = p->v->plan.peak_nbytes;
  const int over = held > budget, is_far = budget > p->top;
  snprintf(text, sizeof text, "held: %s", aoth_bytes_text(held, bytes));
  draw_level(p, "am-held", "am-halo", y_of(p, (double)held), !budget || over || is_far, text, out);
  if (!budget) return;
  snprintf(text, sizeof text, "budget: %s%s", aoth_bytes_text(budget, bytes),
           is_far ? ", far above"
           : over ? ", exceeded"
                  : "");
  if (is_far) aoth_svg_text(out, "am-s am-r", p->x + p->w, p->y - 26, text);
  else draw_level(p, "am-budget", over ? "am-over am-halo" : "am-halo", y_of(p, (double)budget), !over, text, out);
}

/* Above its mark; above the lines of what is held and of the budget where they would run through it. */
static void draw_peak(const panel_t *p, uint64_t budget, kit_text_t *out) {
  char bytes[AOTH_BYTES_SIZE], text[96];
  const aoth_memory_view_t *v = p->v;
  const double x = x_of(p, (double)v->plan.peak_step + 0.5), y = y_of(p, (double)v->peak_alive);
  const double held = y_of(p, (double)v->plan.peak_nbytes),
               limit = budget && budget <= p->top ? y_of(p, (double)budget) : 0;
  const int on_right = x > p->x + p->w / 2;
  double base = y - 2;
  if (held > base - 18) base = held;
  if (limit > base - 18 && limit < base) base = limit;
  if (base != y - 2) aoth_svg_line(out, "am-lead", x, y, x, base - 10);
  aoth_svg_circle(out, "am-peak", x, y, 3.5);
  snprintf(text, sizeof text, "%s alive at step %llu", aoth_bytes_text(v->peak_alive, bytes),
           (unsigned long long)v->plan.peak_step + 1);
  aoth_svg_text(out, on_right ? "am-r am-halo" : "am-halo", x + (on_right ? -6 : 6), base - 5, text);
}

static aot_status_t draw_panel(const aoth_memory_view_t *v, uint64_t top, uint64_t budget, double x, double y, double w,
                               double h, kit_text_t *out) {
  panel_t *p = calloc(1, sizeof *p);
  if (!p) return AOT_E_EXHAUSTED;
  *p = (panel_t){.v = v, .x = x + 70, .y = y + 44, .w = w - 84, .h = h - 84, .top = top};
  p->n_columns = v->plan.n_steps < COLUMNS ? (uint32_t)v->plan.n_steps : COLUMNS;
  aoth_svg_text(out, "am-h", p->x, y + 14, v->title);
  aot_status_t status = AOT_OK;
  if (p->n_columns) {
    draw_bytes_axis(p, out);
    status = draw_areas(p, out);
    draw_steps_axis(p, out);
    draw_split(p, out);
    draw_lines(p, budget, out);
    draw_peak(p, budget, out);
  }
  free(p);
  return status;
}

/* ---- the picture ---- */

static void draw_legend(const aoth_memory_report_t *r, double x, double y, kit_text_t *out) {
  uint64_t present[AOTH_MEMORY_KINDS] = {0};
  for (uint32_t i = 0; i < r->n_views; i++)
    for (uint64_t k = 0; k < r->views[i].plan.n_buffers; k++) present[r->views[i].holders[k].kind] = 1;
  for (uint32_t k = 0; k < AOTH_MEMORY_KINDS - 1; k++) {
    const int32_t kind = aoth_memory_order[k];
    char classes[32];
    if (!present[kind]) continue;
    snprintf(classes, sizeof classes, "am-%s", aoth_memory_kind(kind));
    aoth_svg_rect(out, classes, x, y - 10, 12, 12);
    aoth_svg_text(out, "", x + 17, y, aoth_memory_kind(kind));
    x += 30 + 7 * (double)strlen(aoth_memory_kind(kind));
  }
}

static uint64_t scale_of(const aoth_memory_report_t *r) {
  uint64_t top = 1;
  for (uint32_t i = 0; i < r->n_views; i++)
    if (r->views[i].plan.peak_nbytes > top) top = r->views[i].plan.peak_nbytes;
  if (r->budget > top && r->budget / 2 < top) top = r->budget;
  return top + top / 12 + 1;
}

aot_status_t aoth_memory_svg(const aoth_memory_report_t *r, kit_text_t *out) {
  const uint32_t across = r->n_views > 1 ? 2 : 1, down = (r->n_views + across - 1) / across;
  const double width = across > 1 ? 1180 : 960, head = 52, w = (width - 16) / across, h = across > 1 ? 300 : 360;
  const uint64_t top = scale_of(r);
  aoth_svg_begin(out, width, head + h * down + 8, "memory of a training step, bytes over steps", style);
  aoth_svg_rect(out, "am-bg", 0, 0, width, head + h * down + 8);
  aoth_svg_text(out, "am-h", 16, 22, r->file);
  draw_legend(r, 16, 42, out);
  for (uint32_t i = 0; i < r->n_views; i++)
    AOT_TRY(draw_panel(&r->views[i], top, r->budget, 8 + w * (i % across), head + 8 + h * (i / across), w, h, out));
  aoth_svg_end(out);
  return out->failed ? AOT_E_EXHAUSTED : AOT_OK;
}
