#include <cli/inspect/memory_view.h>
#include <cli/base/node_names.h>

#include <aot/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int32_t aoth_memory_order[] = {AOT_MEMORY_INPUT,    AOT_MEMORY_OUTPUT,    AOT_MEMORY_SAVED,
                                     AOT_MEMORY_GRADIENT, AOT_MEMORY_TEMPORARY, AOT_MEMORY_SCRATCH};

const char *aoth_memory_kind(int32_t kind) {
  static const char *const names[] = {"?", "temporary", "scratch", "saved", "output", "gradient", "input"};
  return names[kind >= 1 && kind < (int32_t)AOTH_MEMORY_KINDS ? kind : 0];
}

const char *aoth_bytes_text(uint64_t nbytes, char out[AOTH_BYTES_SIZE]) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double x = (double)nbytes;
  int u = 0;
  for (; x >= 1024 && u < 5; u++) x /= 1024;
  snprintf(out, AOTH_BYTES_SIZE, u ? "%.1f %s" : "%.0f %s", x, units[u]);
  return out;
}

static int describe(aoth_names_t *m, const aot_memory_buffer_t *b, aoth_holder_t *h) {
  *h = (aoth_holder_t){
      .kind = b->kind,
      .first = b->first,
      .last = b->last,
      .nbytes = b->nbytes,
      .place = b->place,
      .name = "scratch",
      .type = "",
      .op = "",
      .module = "",
  };
  if (b->value.id == AOT_NO_ID || b->value.id >= aoth_graph_n_values(m->p)) return 1;
  h->name = aoth_names_value(m, b->value);
  h->type = aoth_names_type(m, b->value);
  aoth_names_node(m, aoth_graph_value_def(m->p, b->value), &h->op, &h->module);
  return h->name && h->type && h->op && h->module;
}

/* Scratch has no value; what it is for is the step in which it begins. */
static int describe_scratch(aoth_names_t *m, const aot_memory_plan_t *plan, aoth_holder_t *h) {
  if (h->kind == AOT_MEMORY_SCRATCH) aoth_names_node(m, plan->steps[h->first].node, &h->op, &h->module);
  return h->op && h->module;
}

/* ---- sums ---- */

static uint64_t *alive_by_step(const aot_memory_plan_t *plan, kit_arena_t *arena) {
  uint64_t *alive = kit_arena_alloc(arena, sizeof *alive, ((size_t)plan->n_steps + 2) * sizeof *alive);
  for (uint64_t i = 0; alive && i < plan->n_buffers; i++) { /* differences first */
    alive[plan->buffers[i].first] += plan->buffers[i].nbytes;
    alive[plan->buffers[i].last + 1] -= plan->buffers[i].nbytes;
  }
  for (uint64_t t = 1; alive && t < plan->n_steps; t++) alive[t] += alive[t - 1];
  return alive;
}

static int is_alive(const aoth_holder_t *h, uint64_t step) { return h->first <= step && step <= h->last; }

void aoth_memory_by_kind(const aoth_memory_view_t *v, uint64_t step, uint64_t out[AOTH_MEMORY_KINDS]) {
  memset(out, 0, AOTH_MEMORY_KINDS * sizeof *out);
  for (uint64_t i = 0; i < v->plan.n_buffers; i++)
    if (is_alive(&v->holders[i], step)) out[v->holders[i].kind] += v->holders[i].nbytes;
}

uint64_t aoth_memory_column(const aoth_memory_view_t *v, uint32_t column, uint32_t n_columns) {
  const uint64_t begin = v->plan.n_steps * column / n_columns, end = v->plan.n_steps * (column + 1) / n_columns;
  uint64_t best = begin;
  for (uint64_t t = begin; t < end; t++)
    if (v->alive[t] > v->alive[best]) best = t;
  return best;
}

int aoth_memory_has_update(const aoth_memory_view_t *v, uint32_t column, uint32_t n_columns) {
  const uint64_t begin = v->plan.n_steps * column / n_columns, end = v->plan.n_steps * (column + 1) / n_columns;
  int has = 0;
  for (uint64_t t = begin; t < end && v->n_updates; t++) has |= v->is_update[t];
  return has;
}

const char *aoth_memory_part(const aoth_memory_view_t *v, uint64_t step) {
  return step < v->plan.n_forward_steps ? "forward" : v->n_updates && v->is_update[step] ? "update" : "backward";
}

/* A step of the backend's own belongs to the one before it. */
static aot_status_t mark_updates(aoth_names_t *m, aoth_memory_view_t *v) {
  const aot_memory_plan_t *plan = &v->plan;
  uint8_t *marks = kit_arena_alloc(m->arena, 1, (size_t)plan->n_steps + 1);
  int32_t kind = 0;
  if (!marks) return AOT_E_EXHAUSTED;
  for (uint64_t t = 0; t < plan->n_steps; t++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    const uint32_t node = plan->steps[t].node.id;
    marks[t] = t && marks[t - 1];
    if (node != AOT_NO_ID && node < aoth_graph_n_nodes(m->p) &&
        aoth_graph_node_info(m->p, plan->steps[t].node, &info) == AOT_OK)
      marks[t] = (info.flags & AOT_NODE_UPDATE) != 0;
    v->n_updates += marks[t];
  }
  aot_str_t name;
  if (plan->n_steps && aoth_graph_graph_info(m->p, plan->steps[0].graph, &kind, &name) == AOT_OK)
    v->is_step_graph = kind == AOT_GRAPH_STEP;
  v->is_update = marks;
  return AOT_OK;
}

/* ---- the view ---- */

typedef struct order { /* largest first, then earliest */
  uint64_t nbytes;
  uint32_t first, number;
} order_t;

static int by_size(const void *pa, const void *pb) {
  const order_t *a = pa, *b = pb;
  if (a->nbytes != b->nbytes) return a->nbytes > b->nbytes ? -1 : 1;
  if (a->first != b->first) return a->first < b->first ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

static aot_status_t find_largest(aoth_memory_view_t *v, kit_arena_t *arena) {
  order_t *rows = malloc(((size_t)v->plan.n_buffers + 1) * sizeof *rows);
  uint32_t n = 0;
  if (!rows) return AOT_E_EXHAUSTED;
  for (uint64_t i = 0; i < v->plan.n_buffers; i++)
    if (is_alive(&v->holders[i], v->plan.peak_step))
      rows[n++] = (order_t){v->holders[i].nbytes, v->holders[i].first, (uint32_t)i};
  qsort(rows, n, sizeof *rows, by_size);
  uint32_t *largest = kit_arena_alloc(arena, sizeof *largest, ((size_t)n + 1) * sizeof *largest);
  for (uint32_t i = 0; largest && i < n; i++) largest[i] = rows[i].number;
  free(rows);
  v->largest = largest;
  v->n_largest = n;
  return largest ? AOT_OK : AOT_E_EXHAUSTED;
}

static aot_status_t fill(aoth_names_t *m, aoth_memory_view_t *v) {
  const aot_memory_plan_t *plan = &v->plan;
  const char *op, *module;
  aoth_holder_t *holders = kit_arena_alloc(m->arena, sizeof(void *), ((size_t)plan->n_buffers + 1) * sizeof *holders);
  v->alive = alive_by_step(plan, m->arena);
  v->holders = holders;
  if (!holders || !v->alive || !v->title) return AOT_E_EXHAUSTED;
  for (uint64_t i = 0; i < plan->n_buffers; i++)
    if (!describe(m, &plan->buffers[i], &holders[i]) || !describe_scratch(m, plan, &holders[i])) return AOT_E_EXHAUSTED;
  v->peak_alive = plan->n_steps ? v->alive[plan->peak_step] : 0;
  v->peak_at = "";
  if (plan->n_steps && aoth_names_node(m, plan->steps[plan->peak_step].node, &op, &module)) {
    kit_text_f(&m->text, "%s%s%s", op ? op : "", module && *module ? " in " : "", module ? module : "");
    v->peak_at = aoth_names_kept(m);
  }
  if (!v->peak_at) return AOT_E_EXHAUSTED;
  AOT_TRY(mark_updates(m, v));
  return find_largest(v, m->arena);
}

aot_status_t aoth_memory_view_make(aot_prog_t *p, const aot_memory_plan_t *plan, const char *title, kit_arena_t *arena,
                                   aoth_memory_view_t *out) {
  aoth_names_t m = {.p = p, .arena = arena};
  *out = (aoth_memory_view_t){.title = kit_arena_text(arena, title, strlen(title)), .plan = *plan};
  const aot_status_t status = fill(&m, out);
  kit_text_deinit(&m.text);
  return status;
}

/* ---- by module ---- */

/* Bytes of the first `parts` parts of a path. */
static size_t prefix(const char *path, uint32_t parts) {
  size_t n = 0;
  while (path[n] && parts) {
    n += strcspn(path + n, ".");
    if (--parts && path[n]) n++;
  }
  return n;
}

static int by_module(const void *pa, const void *pb) {
  const aoth_module_share_t *a = pa, *b = pb;
  return strcmp(a->module, b->module);
}

static int by_share(const void *pa, const void *pb) {
  const aoth_module_share_t *a = pa, *b = pb;
  if (a->nbytes != b->nbytes) return a->nbytes > b->nbytes ? -1 : 1;
  return strcmp(a->module, b->module);
}

/* Rows sorted by path, neighbours with the same first parts made one. Returns how many there are; out NULL: only
 * counts. */
static uint32_t group(const aoth_module_share_t *rows, uint32_t n, uint32_t parts, kit_arena_t *arena,
                      aoth_module_share_t *out) {
  uint32_t n_out = 0;
  for (uint32_t i = 0; i < n; i++) {
    const size_t size = prefix(rows[i].module, parts);
    const int same =
        i && prefix(rows[i - 1].module, parts) == size && memcmp(rows[i - 1].module, rows[i].module, size) == 0;
    if (!same && out) out[n_out] = (aoth_module_share_t){kit_arena_text(arena, rows[i].module, size), 0};
    n_out += !same;
    if (out) out[n_out - 1].nbytes += rows[i].nbytes;
  }
  return n_out;
}

aot_status_t aoth_memory_by_module(const aoth_memory_view_t *v, uint32_t most, kit_arena_t *arena,
                                   aoth_module_share_t **out, uint32_t *out_n) {
  enum { DEEPEST = 16 };
  aoth_module_share_t *rows = malloc(((size_t)v->n_largest + 1) * sizeof *rows);
  uint32_t parts = 1;
  *out = kit_arena_alloc(arena, sizeof(void *), ((size_t)v->n_largest + 1) * sizeof **out);
  if (!rows || !*out) {
    free(rows);
    return AOT_E_EXHAUSTED;
  }
  for (uint32_t i = 0; i < v->n_largest; i++)
    rows[i] = (aoth_module_share_t){v->holders[v->largest[i]].module, v->holders[v->largest[i]].nbytes};
  qsort(rows, v->n_largest, sizeof *rows, by_module);
  while (parts < DEEPEST && group(rows, v->n_largest, parts + 1, arena, NULL) <= most) parts++;
  *out_n = group(rows, v->n_largest, parts, arena, *out);
  free(rows);
  for (uint32_t i = 0; i < *out_n; i++)
    if (!(*out)[i].module) return AOT_E_EXHAUSTED;
  qsort(*out, *out_n, sizeof **out, by_share);
  return AOT_OK;
}
