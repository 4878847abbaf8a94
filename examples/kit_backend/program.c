#include "program.h"

#include "kit/lowering/ports.h"
#include "kit/lowering/dynamic_segments.h"
#include "loop_code.h"
#include "target.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A graph, with its schedule at the sizes that were needed last. */
typedef struct graph {
  int32_t kind;
  uint32_t row; /* of the snapshot */
  int64_t *symbols;
  int has_schedule;
  lw_schedule_t schedule;
  char **base; /* by storage, set for each run */
} graph_t;

struct kb_program {
  const aot_snapshot_t *s;
  custom_program_t custom; /* nodes that other plugins' kernels run */
  kb_code_t code;
  graph_t *graphs;
  uint32_t n_graphs;
  pthread_mutex_t lock; /* a device may run a call while the host plans another */
};

/* ---- schedules ---- */

static const lw_loop_fn *find_function(void *self, const char *name) { return kb_code_find(self, name); }

static aot_status_t add_function(void *self, const char *name, const char *text, uint64_t nbytes,
                                 const lw_loop_fn **out) {
  return kb_code_add(self, name, text, nbytes, out);
}

static void drop_schedule(graph_t *g) {
  if (g->has_schedule) lw_schedule_deinit(&g->schedule);
  free(g->base);
  g->base = NULL;
  g->has_schedule = 0;
}

static aot_status_t schedule(kb_program_t *p, graph_t *g, const int64_t *symbols, lw_error_t *error) {
  const uint64_t n = p->s->symbols.count;
  const lw_machine_t machine = {
      .target = &kb_target,
      .n_threads = 1,
      .custom = &p->custom,
      .self = &p->code,
      .find = find_function,
      .add = add_function,
  };
  if (g->has_schedule && (n == 0 || memcmp(g->symbols, symbols, n * sizeof *symbols) == 0)) return AOT_OK;
  drop_schedule(g);
  aot_status_t status = lw_schedule_init(&g->schedule, p->s, g->row, symbols, n, &machine, error);
  g->has_schedule = 1;
  if (status == AOT_OK) status = kb_code_compile(&p->code, error);
  if (status == AOT_OK) g->base = calloc((size_t)g->schedule.n_storages + 1, sizeof *g->base);
  if (status == AOT_OK && !g->base) status = lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for a schedule");
  if (status == AOT_OK && n) memcpy(g->symbols, symbols, n * sizeof *symbols);
  if (status != AOT_OK) drop_schedule(g);
  return status;
}

/* ---- the program ---- */

static aot_status_t list_graphs(kb_program_t *p, lw_error_t *error) {
  const aot_snap_graph_t *rows = AOT_SNAP_ROWS(p->s, aot_snap_graph_t, graphs);
  p->graphs = calloc((size_t)p->s->graphs.count + 1, sizeof *p->graphs);
  if (!p->graphs) return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for the program");
  for (uint32_t i = 1; i < p->s->graphs.count; i++) {
    if (!lw_is_run(rows[i].kind)) continue; /* a region is lowered with the node that owns it */
    graph_t *g = &p->graphs[p->n_graphs++];
    g->kind = rows[i].kind;
    g->row = i;
    g->symbols = calloc((size_t)p->s->symbols.count + 1, sizeof *g->symbols);
    if (!g->symbols) return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for the program");
  }
  return AOT_OK;
}

static aot_status_t prepare(kb_program_t *p, const custom_world_t *world, lw_error_t *error) {
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(p->s, aot_snap_symbol_t, symbols);
  custom_error_t why = {.node = AOT_NO_ID};
  aot_status_t status = custom_prepare(world, p->s, &p->custom, &why);
  error->node = why.node;
  if (status != AOT_OK)
    return lw_fail(error, status, "custom-op", "%s", status == AOT_E_EXHAUSTED ? "no memory" : why.text);
  AOT_TRY(list_graphs(p, error));
  int64_t *hints = calloc((size_t)p->s->symbols.count + 1, sizeof *hints);
  if (!hints) return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for the program");
  for (uint32_t i = 0; i < p->s->symbols.count; i++) hints[i] = symbols[i].hint;
  for (uint32_t i = 0; i < p->n_graphs && status == AOT_OK; i++) status = schedule(p, &p->graphs[i], hints, error);
  free(hints);
  return status;
}

aot_status_t kb_program_create(const aot_snapshot_t *s, const custom_world_t *world, const char *cache,
                               const char *compiler, kb_program_t **out, lw_error_t *error) {
  kb_program_t *p = calloc(1, sizeof *p);
  *out = NULL;
  if (!p) return lw_fail(error, AOT_E_EXHAUSTED, "no-memory", "no memory for the program");
  p->s = s;
  p->code.cache = cache;
  p->code.compiler = compiler;
  pthread_mutex_init(&p->lock, NULL);
  const aot_status_t status = prepare(p, world, error);
  if (status == AOT_OK) *out = p;
  else kb_program_destroy(p);
  return status;
}

void kb_program_destroy(kb_program_t *p) {
  if (!p) return;
  for (uint32_t i = 0; i < p->n_graphs; i++) {
    drop_schedule(&p->graphs[i]);
    free(p->graphs[i].symbols);
  }
  free(p->graphs);
  kb_code_deinit(&p->code);
  custom_program_deinit(&p->custom);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

/* ---- runs ---- */

static aot_status_t find_graph(kb_program_t *p, int32_t kind, uint32_t number, uint64_t n_symbols, graph_t **out,
                               lw_error_t *error) {
  *out = NULL;
  for (uint32_t i = 0; i < p->n_graphs && !*out; i++)
    if (p->graphs[i].kind == kind && number-- == 0) *out = &p->graphs[i];
  if (!*out) return lw_fail(error, AOT_E_NOT_FOUND, "no-graph", "the program has no graph %u of kind %d", number, kind);
  if (n_symbols < p->s->symbols.count)
    return lw_fail(error, AOT_E_INVALID, "bad-symbols", "%llu values for %u symbolic sizes",
                   (unsigned long long)n_symbols, p->s->symbols.count);
  return AOT_OK;
}

aot_status_t kb_program_arena(kb_program_t *p, const aot_graph_at_t *at, uint64_t *out_nbytes, lw_error_t *error) {
  graph_t *g;
  AOT_TRY(find_graph(p, at->kind, at->number, at->n_symbols, &g, error));
  pthread_mutex_lock(&p->lock);
  const aot_status_t status = schedule(p, g, at->symbols, error);
  *out_nbytes = status == AOT_OK ? g->schedule.arena_nbytes : 0;
  pthread_mutex_unlock(&p->lock);
  return status;
}

static aot_status_t run_steps(graph_t *g, const hc_run_t *run, lw_error_t *error) {
  lw_schedule_t *s = &g->schedule;
  uint32_t next = 0;
  const lw_frame_t frame = {.base = g->base, .error = error, .next = &next};
  if (run->n_inputs != s->n_inputs || run->n_outputs != s->n_outputs)
    return lw_fail(error, AOT_E_INVALID, "bad-call", "%llu inputs and %llu outputs for a graph with %u and %u",
                   (unsigned long long)run->n_inputs, (unsigned long long)run->n_outputs, s->n_inputs, s->n_outputs);
  if (run->arena_nbytes < s->arena_nbytes)
    return lw_fail(error, AOT_E_INVALID, "bad-call", "an arena of %llu bytes for a graph that needs %llu",
                   (unsigned long long)run->arena_nbytes, (unsigned long long)s->arena_nbytes);
  for (uint32_t i = 0; i < s->n_storages; i++) g->base[i] = run->arena ? run->arena + s->storages[i].at : NULL;
  AOT_TRY(lw_bind_ports(s->inputs, s->n_inputs, run->inputs, "input", g->base, error));
  AOT_TRY(lw_bind_ports(s->outputs, s->n_outputs, run->outputs, "output", g->base, error));
  while (next < s->n_steps) {
    lw_step_t *step = &s->steps[next++]; /* a jump sets next */
    const aot_status_t status = step->run(&frame, step->payload);
    if (status == AOT_OK) continue;
    if (error->node == AOT_NO_ID) error->node = step->node;
    return status;
  }
  lw_write_numbers(s, run->outputs);
  return AOT_OK;
}

aot_status_t kb_program_run(kb_program_t *p, const hc_run_t *run, lw_error_t *error) {
  graph_t *g;
  AOT_TRY(find_graph(p, run->kind, run->number, run->n_symbols, &g, error));
  pthread_mutex_lock(&p->lock);
  aot_status_t status = schedule(p, g, run->symbols, error);
  if (status == AOT_OK) status = run_steps(g, run, error);
  if (status != AOT_OK) custom_settle(&p->custom);
  pthread_mutex_unlock(&p->lock);
  return status;
}

kb_stats_t kb_program_stats(kb_program_t *p) {
  kb_stats_t out = {.n_functions = p->code.n_functions};
  for (uint32_t i = 0; i < p->n_graphs; i++) {
    const lw_schedule_t *s = &p->graphs[i].schedule;
    if (!p->graphs[i].has_schedule) continue;
    out.n_steps += s->n_steps;
    out.n_loops += s->n_groups;
    out.n_fallback += s->n_fallback;
    if (s->arena_nbytes > out.arena_nbytes) out.arena_nbytes = s->arena_nbytes;
  }
  return out;
}

/* ---- planning ---- */

static void no_loop(char *const *pointers, const int64_t *sizes, const int64_t *strides, int64_t begin, int64_t end) {
  (void)pointers, (void)sizes, (void)strides, (void)begin, (void)end;
}

static const lw_loop_fn *find_any(void *self, const char *name) {
  static const lw_loop_fn any = no_loop;
  (void)self, (void)name;
  return &any;
}

lw_machine_t kb_planning_machine(const custom_program_t *custom) {
  return (lw_machine_t){.target = &kb_target, .n_threads = 1, .custom = custom, .find = find_any, .add = add_function};
}
