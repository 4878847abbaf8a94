/* A memory plan on a terminal: what is held and alive, a chart by kind over steps, the largest holders. */
#include <cli/inspect/memory_view.h>

#include <stdio.h>
#include <string.h>

enum { WIDTH = 66, HEIGHT = 12, MODULES = 12 };

static const char marks[AOTH_MEMORY_KINDS] = {'?', 't', 'x', 'S', 'o', 'g', 'i'}; /* by kind */

/* ---- the head ---- */

static void line_bytes(kit_text_t *out, const char *label, uint64_t nbytes) {
  char text[AOTH_BYTES_SIZE];
  kit_text_f(out, "  %-14s %10s", label, aoth_bytes_text(nbytes, text));
}

/* Bytes of each kind that are not in the arena, at the last step of a backend that gives nothing back. */
static void print_held(const aoth_memory_view_t *v, kit_text_t *out) {
  char text[AOTH_BYTES_SIZE];
  line_bytes(out, "held at most", v->plan.peak_nbytes);
  if (v->plan.arena_nbytes)
    kit_text_f(out, "  an arena of %s, and what lies outside of it", aoth_bytes_text(v->plan.arena_nbytes, text));
  kit_text_z(out, "\n");
}

static void print_alive(const aoth_memory_view_t *v, kit_text_t *out) {
  line_bytes(out, "alive at most", v->peak_alive);
  kit_text_f(out, "  at step %llu of %llu, in the %s%s%s\n", (unsigned long long)v->plan.peak_step + 1,
             (unsigned long long)v->plan.n_steps, aoth_memory_part(v, v->plan.peak_step), *v->peak_at ? ": " : "",
             v->peak_at);
}

static void print_budget(const aoth_memory_view_t *v, uint64_t budget, kit_text_t *out) {
  char text[AOTH_BYTES_SIZE];
  if (!budget) return;
  line_bytes(out, "budget", budget);
  if (v->plan.peak_nbytes <= budget)
    kit_text_f(out, "  holds, %s to spare\n", aoth_bytes_text(budget - v->plan.peak_nbytes, text));
  else kit_text_f(out, "  exceeded by %s\n", aoth_bytes_text(v->plan.peak_nbytes - budget, text));
}

/* ---- the chart ---- */

typedef struct chart {
  const aoth_memory_view_t *v;
  uint64_t top, budget; /* bytes at the upper edge */
  uint32_t width;
  uint64_t sums[WIDTH][AOTH_MEMORY_KINDS]; /* by column: bytes up to and with each kind of the order */
} chart_t;

static void stack(chart_t *c) {
  for (uint32_t x = 0; x < c->width; x++) {
    uint64_t kinds[AOTH_MEMORY_KINDS], sum = 0;
    aoth_memory_by_kind(c->v, aoth_memory_column(c->v, x, c->width), kinds);
    for (uint32_t k = 0; k < AOTH_MEMORY_KINDS - 1; k++) c->sums[x][k] = sum += kinds[aoth_memory_order[k]];
  }
}

/* The middle of row y, from the top. */
static double level(const chart_t *c, int y) { return (double)c->top * (2 * (HEIGHT - y) - 1) / (2.0 * HEIGHT); }

static int is_budget_row(const chart_t *c, int y) {
  const double half = (double)c->top / (2 * HEIGHT), b = (double)c->budget;
  return c->budget && b > level(c, y) - half && b <= level(c, y) + half;
}

static char cell(const chart_t *c, uint32_t x, int y) {
  for (uint32_t k = 0; k < AOTH_MEMORY_KINDS - 1; k++)
    if (level(c, y) < (double)c->sums[x][k]) return marks[aoth_memory_order[k]];
  return is_budget_row(c, y) ? '-' : ' ';
}

static void print_rows(const chart_t *c, kit_text_t *out) {
  for (int y = 0; y < HEIGHT; y++) {
    char text[AOTH_BYTES_SIZE], row[WIDTH + 1];
    uint32_t n = c->width;
    for (uint32_t x = 0; x < n; x++) row[x] = cell(c, x, y);
    while (n && row[n - 1] == ' ') n--;
    row[n] = 0;
    const char *label = is_budget_row(c, y) ? "budget"
                        : y == 0            ? aoth_bytes_text(c->top, text)
                        : y == HEIGHT / 2   ? aoth_bytes_text(c->top / 2, text)
                                            : "";
    kit_text_f(out, "%12s |%s\n", label, row);
  }
}

/* "+-----|--u--uu" with the boundary between the graphs, and their names below; u: updates of a step graph stand
 * there. */
static void print_axis(const chart_t *c, kit_text_t *out) {
  const aot_memory_plan_t *p = &c->v->plan;
  const uint32_t split = (uint32_t)(p->n_forward_steps * c->width / p->n_steps);
  const int has_backward = p->n_forward_steps < p->n_steps;
  char under[64];
  kit_text_f(out, "%12s +", "0 B");
  for (uint32_t x = 0; x < c->width; x++)
    kit_text_z(out, has_backward && x == split ? "|" : aoth_memory_has_update(c->v, x, c->width) ? "u" : "-");
  kit_text_f(out, "\n%14s", "");
  const int n = snprintf(under, sizeof under, "forward, %llu steps", (unsigned long long)p->n_forward_steps);
  kit_text_f(out, "%-*s", has_backward ? (int)(split > (uint32_t)n + 1 ? split : (uint32_t)n + 1) : 0, under);
  if (has_backward)
    kit_text_f(out, "| backward, %llu steps", (unsigned long long)(p->n_steps - p->n_forward_steps - c->v->n_updates));
  if (c->v->n_updates) kit_text_f(out, "; update, %llu (u)", (unsigned long long)c->v->n_updates);
  kit_text_z(out, "\n");
}

static void print_chart(const aoth_memory_view_t *v, uint64_t top, uint64_t budget, kit_text_t *out) {
  chart_t c = {
      .v = v, .top = top, .budget = budget, .width = v->plan.n_steps < WIDTH ? (uint32_t)v->plan.n_steps : WIDTH};
  if (!c.width || !top) return;
  const uint32_t wide = WIDTH / c.width; /* few steps: several columns each */
  stack(&c);
  for (uint32_t x = c.width * wide; wide > 1 && x-- > 0;) memcpy(c.sums[x], c.sums[x / wide], sizeof c.sums[x]);
  c.width *= wide;
  kit_text_z(out, "\n");
  print_rows(&c, out);
  print_axis(&c, out);
}

/* ---- tables ---- */

static void print_kinds(const aoth_memory_view_t *v, kit_text_t *out) {
  uint64_t at_peak[AOTH_MEMORY_KINDS], most[AOTH_MEMORY_KINDS] = {0};
  char a[AOTH_BYTES_SIZE], b[AOTH_BYTES_SIZE];
  aoth_memory_by_kind(v, v->plan.peak_step, at_peak);
  for (uint64_t i = 0; i < v->plan.n_buffers; i++) most[v->holders[i].kind] += v->holders[i].nbytes;
  kit_text_f(out, "\n%14s %10s %10s\n", "kind", "at peak", "in all");
  for (int k = (int)AOTH_MEMORY_KINDS - 2; k >= 0; k--) {
    const int32_t kind = aoth_memory_order[k];
    if (!most[kind]) continue;
    kit_text_f(out, "  %c %-10s %10s %10s\n", marks[kind], aoth_memory_kind(kind), aoth_bytes_text(at_peak[kind], a),
               aoth_bytes_text(most[kind], b));
  }
}

static aot_status_t print_modules(const aoth_memory_view_t *v, kit_arena_t *arena, kit_text_t *out) {
  aoth_module_share_t *rows;
  char text[AOTH_BYTES_SIZE];
  uint32_t n;
  AOT_TRY(aoth_memory_by_module(v, MODULES, arena, &rows, &n));
  if (n) kit_text_f(out, "\n%14s  module\n", "at peak");
  for (uint32_t i = 0; i < n && i < MODULES; i++)
    kit_text_f(out, "%14s  %s\n", aoth_bytes_text(rows[i].nbytes, text), *rows[i].module ? rows[i].module : "(none)");
  if (n > MODULES) kit_text_f(out, "%14s  and %u more\n", "", n - MODULES);
  return AOT_OK;
}

static void print_holders(const aoth_memory_view_t *v, uint32_t top, kit_text_t *out) {
  char text[AOTH_BYTES_SIZE], steps[48];
  const uint32_t n = v->n_largest < top ? v->n_largest : top;
  if (n)
    kit_text_f(out, "\n%14s  %-9s %-12s %-18s %-12s %-34s %s\n", "largest", "kind", "steps", "type", "value",
               "operator", "module");
  for (uint32_t i = 0; i < n; i++) {
    const aoth_holder_t *h = &v->holders[v->largest[i]];
    snprintf(steps, sizeof steps, "%llu-%llu", (unsigned long long)h->first + 1, (unsigned long long)h->last + 1);
    kit_text_f(out, "%14s  %-9s %-12s %-18s %-12s %-34s %s", aoth_bytes_text(h->nbytes, text),
               aoth_memory_kind(h->kind), steps, h->type, h->name, h->op, h->module);
    while (out->size && out->data[out->size - 1] == ' ') out->size--;
    kit_text_z(out, "\n");
  }
  if (v->n_largest > n) kit_text_f(out, "%14s  and %u more (--top N)\n", "", v->n_largest - n);
}

/* ---- all ---- */

aot_status_t aoth_memory_print(const aoth_memory_report_t *r, kit_arena_t *arena, kit_text_t *out) {
  uint64_t top = 0;
  for (uint32_t i = 0; i < r->n_views; i++)
    if (r->views[i].plan.peak_nbytes > top) top = r->views[i].plan.peak_nbytes;
  if (r->budget > top && r->budget / 2 < top) top = r->budget; /* a budget far above is reported, not drawn */
  for (uint32_t i = 0; i < r->n_views; i++) {
    const aoth_memory_view_t *v = &r->views[i];
    kit_text_f(out, "%s%s: memory of a step%s, as %s tells it\n", i ? "\n" : "", r->file,
               v->is_step_graph ? " in one graph" : "", v->title);
    print_held(v, out);
    print_alive(v, out);
    print_budget(v, r->budget, out);
    print_chart(v, top, r->budget, out);
    print_kinds(v, out);
    AOT_TRY(print_modules(v, arena, out));
    print_holders(v, r->top, out);
  }
  return out->failed ? AOT_E_EXHAUSTED : AOT_OK;
}
