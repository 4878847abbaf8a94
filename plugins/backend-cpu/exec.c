#include "exec.h"

#include "blas.h"
#include "kit/lowering/ports.h"
#include "kit/lowering/run_segments.h"
#include "kit/lowering/step_times.h"
#include "kit/lowering/observed_values.h"
#include "functions.h"
#include "target.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_FORMS = 8 };

/* A graph at certain values of the symbols. */
typedef struct form {
  lw_schedule_t schedule;
  int64_t *symbols; /* n_symbols of the program; NULL: the slot is free */
  uint64_t last_used;
  char **base; /* by storage, filled for every run */
} form_t;

typedef struct runnable {
  int32_t kind;   /* of a segment: AOT_GRAPH_REGION */
  uint32_t graph; /* snapshot row */
  /* of a graph that is cut: its parts are runnables that are together; LW_NONE: it is whole */
  uint32_t first_segment;
  form_t forms[MAX_FORMS];
} runnable_t;

struct bc_program {
  const aot_snapshot_t *s; /* with the segments of what is cut */
  lw_cut_t cut;
  bc_cache_t *cache;
  runnable_t *graphs;
  uint32_t n_graphs;
  bc_functions_t functions;
  int32_t n_threads;
  bc_workers_t *workers;
  custom_program_t custom;
  char *arena; /* our own, of own_nbytes: where a call brings none that is large enough */
  uint64_t own_nbytes;
  uint64_t arena_nbytes; /* planned, the largest */
  uint64_t clock, n_runs, live_nbytes;
  bc_code_stats_t code;
  int is_profiled, is_watched;
  aot_profile_row_t *profile; /* as it was read last */
};

/* ---- generated functions ---- */

static const lw_loop_fn *find_function(void *self, const char *name) {
  const bc_program_t *p = self;
  return bc_functions_find(&p->functions, name);
}

static aot_status_t add_function(void *self, const char *name, const char *text, uint64_t nbytes,
                                 const lw_loop_fn **out) {
  bc_program_t *p = self;
  return bc_functions_add(&p->functions, name, text, nbytes, out);
}

static aot_status_t compile_missing(bc_program_t *p, lw_error_t *out_warning, lw_error_t *error) {
  return bc_functions_compile(&p->functions, p->cache, p->workers, &p->code, out_warning, error);
}

/* ---- forms ---- */

static void form_deinit(form_t *f) {
  lw_schedule_deinit(&f->schedule);
  free(f->symbols);
  free(f->base);
  memset(f, 0, sizeof *f);
}

static aot_status_t schedule(bc_program_t *p, runnable_t *g, form_t *f, const int64_t *symbols, lw_error_t *error) {
  lw_machine_t machine = {.target = &bc_cpu,
                          .n_threads = p->n_threads,
                          .custom = &p->custom,
                          .is_watched = p->is_watched,
                          .self = p,
                          .find = find_function,
                          .add = add_function};
  return lw_schedule_init(&f->schedule, p->s, g->graph, symbols, p->s->symbols.count, &machine, error);
}

static aot_status_t form_finish(bc_program_t *p, form_t *f, const int64_t *symbols, lw_error_t *error) {
  size_t n = (size_t)p->s->symbols.count + 1;
  f->symbols = malloc(n * sizeof *f->symbols);
  f->base = malloc(((size_t)f->schedule.n_storages + 1) * sizeof *f->base);
  if (!f->symbols || !f->base) return lw_no_memory(error, "for the schedule");
  if (p->s->symbols.count) memcpy(f->symbols, symbols, p->s->symbols.count * sizeof *symbols);
  f->last_used = p->clock++;
  if (f->schedule.live_nbytes > p->live_nbytes) p->live_nbytes = f->schedule.live_nbytes;
  if (f->schedule.arena_nbytes > p->arena_nbytes) p->arena_nbytes = f->schedule.arena_nbytes;
  return AOT_OK;
}

/* A schedule whose functions cannot be compiled is made again without them. */
static aot_status_t form_init(bc_program_t *p, runnable_t *g, form_t *f, const int64_t *symbols, lw_error_t *error) {
  lw_error_t ignored = {0};
  const int could_compile = !p->functions.cannot_compile;
  aot_status_t status = schedule(p, g, f, symbols, error);
  if (status == AOT_OK) status = compile_missing(p, &ignored, error);
  if (status == AOT_OK && could_compile && p->functions.cannot_compile) {
    lw_schedule_deinit(&f->schedule);
    status = schedule(p, g, f, symbols, error);
  }
  if (status == AOT_OK) status = form_finish(p, f, symbols, error);
  if (status != AOT_OK) form_deinit(f);
  return status;
}

static form_t *form_find(bc_program_t *p, runnable_t *g, const int64_t *symbols) {
  for (int k = 0; k < MAX_FORMS; k++) {
    form_t *f = &g->forms[k];
    if (f->symbols &&
        (p->s->symbols.count == 0 || memcmp(f->symbols, symbols, p->s->symbols.count * sizeof *symbols) == 0)) {
      f->last_used = p->clock++;
      return f;
    }
  }
  return NULL;
}

/* A free slot, or the one that was not used for longest. */
static form_t *form_slot(runnable_t *g) {
  form_t *oldest = &g->forms[0];
  for (int k = 0; k < MAX_FORMS; k++) {
    if (!g->forms[k].symbols) return &g->forms[k];
    if (g->forms[k].last_used < oldest->last_used) oldest = &g->forms[k];
  }
  form_deinit(oldest);
  return oldest;
}

/* ---- the program ---- */

static runnable_t *add_runnable(bc_program_t *p, int32_t kind, uint32_t graph) {
  runnable_t *g = &p->graphs[p->n_graphs++];
  g->kind = kind;
  g->graph = graph;
  g->first_segment = LW_NONE;
  return g;
}

static aot_status_t list_graphs(bc_program_t *p, lw_error_t *error) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(p->s, aot_snap_graph_t, graphs);
  const uint32_t n_given = p->s->graphs.count - p->cut.n_parts;
  p->graphs = calloc((size_t)p->s->graphs.count + 1, sizeof *p->graphs);
  if (!p->graphs) return lw_no_memory(error, "for the program");
  for (uint32_t i = 1; i < n_given; i++) {
    if (!lw_is_run(g[i].kind)) continue;
    runnable_t *whole = add_runnable(p, g[i].kind, i);
    if (p->cut.n_parts_of[i]) whole->first_segment = p->n_graphs;
    for (uint32_t k = 0; k < p->cut.n_parts_of[i]; k++)
      add_runnable(p, AOT_GRAPH_REGION, p->cut.parts[p->cut.first_part[i] + k].graph);
  }
  return AOT_OK;
}

static aot_status_t prepare_custom(bc_program_t *p, const aot_snapshot_t *s, const custom_world_t *world,
                                   lw_error_t *error) {
  custom_error_t why;
  const aot_status_t status = custom_prepare(world, s, &p->custom, &why);
  if (status == AOT_OK) return AOT_OK;
  error->node = why.node;
  return lw_fail(error, status, "no-kernel", "%s", why.text);
}

static int is_whole(const runnable_t *g) { return lw_is_run(g->kind) && g->first_segment == LW_NONE; }

/* The functions of all graphs make one set of units, compiled together. Graphs that are cut are scheduled when they
 * run, at the sizes that they report; here only to learn what their segments request, at hints that may contradict each
 * other. */
static aot_status_t prepare(bc_program_t *p, const int64_t *hints, lw_error_t *out_warning, lw_error_t *error) {
  AOT_TRY(list_graphs(p, error));
  for (uint32_t i = 0; i < p->n_graphs; i++) {
    runnable_t *g = &p->graphs[i];
    form_t probe = {0};
    if (is_whole(g)) AOT_TRY(schedule(p, g, &g->forms[0], hints, error));
    else if (g->kind == AOT_GRAPH_REGION) schedule(p, g, &probe, hints, error);
    lw_schedule_deinit(&probe.schedule);
  }
  AOT_TRY(compile_missing(p, out_warning, error));
  for (uint32_t i = 0; i < p->n_graphs; i++) {
    form_t *f = &p->graphs[i].forms[0];
    if (!is_whole(&p->graphs[i])) continue;
    if (!p->functions.cannot_compile) {
      AOT_TRY(form_finish(p, f, hints, error));
      continue;
    }
    lw_schedule_deinit(&f->schedule);
    AOT_TRY(form_init(p, &p->graphs[i], f, hints, error));
  }
  return AOT_OK;
}

aot_status_t bc_program_create(const aot_snapshot_t *s, const custom_world_t *world, bc_cache_t *cache, int64_t threads,
                               bc_program_t **out, lw_error_t *out_warning, lw_error_t *error) {
  const aot_snap_symbol_t *symbols = AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols);
  bc_program_t *p = calloc(1, sizeof *p);
  int64_t *hints = malloc(((size_t)s->symbols.count + 1) * sizeof *hints);
  aot_status_t status = AOT_OK;
  *out = NULL;
  out_warning->text[0] = 0;
  if (!p || !hints) status = lw_no_memory(error, "for the program");
  for (uint32_t i = 0; i < s->symbols.count && status == AOT_OK; i++) hints[i] = symbols[i].hint;
  if (status == AOT_OK && lw_cut_init(&p->cut, s) != AOT_OK) status = lw_no_memory(error, "for the program");
  if (status == AOT_OK) {
    p->s = p->cut.s;
    p->cache = cache;
    p->n_threads = bc_blas_threads(threads);
    p->workers = bc_workers_create(p->n_threads);
    status = prepare_custom(p, s, world, error);
    if (status == AOT_OK) status = prepare(p, hints, out_warning, error);
  }
  free(hints);
  if (status == AOT_OK) *out = p;
  else bc_program_destroy(p);
  return status;
}

void bc_program_destroy(bc_program_t *p) {
  if (!p) return;
  for (uint32_t i = 0; i < p->n_graphs; i++)
    for (int k = 0; k < MAX_FORMS; k++) form_deinit(&p->graphs[i].forms[k]);
  bc_workers_destroy(p->workers);
  custom_program_deinit(&p->custom);
  lw_cut_deinit(&p->cut);
  bc_functions_deinit(&p->functions);
  free(p->graphs);
  free(p->arena);
  free(p->profile);
  free(p);
}

/* ---- a run ---- */

/* Segments of a graph that is cut are planned while it runs: their arena is our own. */
static aot_status_t find_arena(bc_program_t *p, uint64_t nbytes, const hc_run_t *run, char **out, lw_error_t *error) {
  *out = run && run->arena_nbytes >= nbytes ? run->arena : p->arena;
  if (*out == p->arena && p->own_nbytes < nbytes) {
    const uint64_t rounded = (nbytes + LW_ALIGN - 1) / LW_ALIGN * LW_ALIGN;
    free(p->arena);
    p->arena = *out = aligned_alloc(LW_ALIGN, (size_t)rounded);
    p->own_nbytes = *out ? rounded : 0;
    if (!*out) return lw_no_memory(error, "for %llu bytes of intermediates", (unsigned long long)rounded);
  }
  return AOT_OK;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static aot_status_t run_step(const bc_program_t *p, lw_step_t *step, const lw_frame_t *frame) {
  if (!p->is_profiled) return step->run(frame, step->payload);
  const uint64_t began = now_ns();
  const aot_status_t status = step->run(frame, step->payload);
  lw_times_add(step, began, now_ns() - began);
  return status;
}

static aot_status_t read_storage(void *self, uint32_t storage, int64_t begin, int64_t end, const char **out,
                                 lw_error_t *error) {
  const form_t *f = self;
  (void)end, (void)error;
  *out = f->base[storage] + begin;
  return AOT_OK;
}

static aot_status_t run_form(bc_program_t *p, form_t *f, const aot_tensor_t *inputs, const aot_tensor_t *outputs,
                             const hc_run_t *run, lw_error_t *error) {
  lw_schedule_t *s = &f->schedule;
  uint32_t next = 0;
  char *arena;
  lw_frame_t frame = {.base = f->base, .error = error, .workers = p->workers, .next = &next};
  AOT_TRY(find_arena(p, s->arena_nbytes, run, &arena, error));
  for (uint32_t i = 0; i < s->n_storages; i++) f->base[i] = arena ? arena + s->storages[i].at : NULL;
  AOT_TRY(lw_bind_ports(s->inputs, s->n_inputs, inputs, "input", f->base, error));
  AOT_TRY(lw_bind_ports(s->outputs, s->n_outputs, outputs, "output", f->base, error));
  if (p->is_profiled) lw_times_begin(s);
  const lw_watcher_t watcher = {f, read_storage};
  while (next < s->n_steps) {
    lw_step_t *step = &s->steps[next++];
    aot_status_t status = lw_look_before(s, next - 1, &watcher, error);
    if (status == AOT_OK) status = run_step(p, step, &frame);
    if (status == AOT_OK) status = lw_look_after(s, p->s, (uint32_t)(step - s->steps), &watcher, error);
    if (status != AOT_OK) {
      if (error->node == AOT_NO_ID) error->node = step->node; /* a step of several nodes may know better */
      return status;
    }
  }
  lw_write_numbers(s, outputs);
  p->n_runs++;
  return AOT_OK;
}

static aot_status_t find_form(bc_program_t *p, runnable_t *g, const int64_t *symbols, form_t **out, lw_error_t *error) {
  *out = form_find(p, g, symbols);
  if (*out) return AOT_OK;
  *out = form_slot(g);
  return form_init(p, g, *out, symbols, error);
}

/* ---- a run of a graph that is cut ---- */

typedef struct cut_run {
  bc_program_t *p;
  runnable_t *segments; /* of the graph */
  form_t *form;         /* planned last */
} cut_run_t;

static aot_status_t plan_part(void *self, uint32_t number, const int64_t *symbols, const lw_port_t **out,
                              lw_error_t *error) {
  cut_run_t *c = self;
  AOT_TRY(find_form(c->p, &c->segments[number], symbols, &c->form, error));
  *out = c->form->schedule.outputs;
  return AOT_OK;
}

static aot_status_t run_part(void *self, uint32_t number, const aot_tensor_t *inputs, const aot_tensor_t *outputs,
                             lw_error_t *error) {
  const cut_run_t *c = self;
  (void)number;
  return run_form(c->p, c->form, inputs, outputs, NULL, error);
}

static aot_status_t run_cut(bc_program_t *p, const runnable_t *g, const hc_run_t *run, lw_error_t *error) {
  cut_run_t c = {.p = p, .segments = &p->graphs[g->first_segment]};
  const lw_parts_run_t r = {
      .cut = &p->cut,
      .graph = g->graph,
      .symbols = run->symbols,
      .n_symbols = run->n_symbols,
      .inputs = run->inputs,
      .outputs = run->outputs,
      .open = run->open,
      .memory = &lw_host_memory,
      .self = &c,
      .plan = plan_part,
      .run = run_part,
  };
  return lw_run_parts(&r, error);
}

/* The graph, and that there is a number for each of its symbols. */
static aot_status_t find_graph(bc_program_t *p, int32_t kind, uint32_t number, uint64_t n_symbols, runnable_t **out,
                               lw_error_t *error) {
  *out = NULL;
  error->node = AOT_NO_ID;
  for (uint32_t i = 0; i < p->n_graphs && !*out; i++)
    if (lw_is_run(kind) && p->graphs[i].kind == kind && number-- == 0) *out = &p->graphs[i];
  if (!*out) return lw_fail(error, AOT_E_NOT_FOUND, "no-graph", "the program has no graph of kind %d", kind);
  if (n_symbols < p->s->symbols.count)
    return lw_fail(error, AOT_E_INVALID, "bad-symbols", "%llu symbol values for %u symbols",
                   (unsigned long long)n_symbols, p->s->symbols.count);
  return AOT_OK;
}

aot_status_t bc_program_arena(bc_program_t *p, const aot_graph_at_t *graph, uint64_t *out_nbytes, lw_error_t *error) {
  runnable_t *g;
  form_t *f;
  *out_nbytes = 0;
  AOT_TRY(find_graph(p, graph->kind, graph->number, graph->n_symbols, &g, error));
  if (g->first_segment != LW_NONE) return AOT_OK;
  AOT_TRY(find_form(p, g, graph->symbols, &f, error));
  *out_nbytes = f->schedule.arena_nbytes;
  return AOT_OK;
}

aot_status_t bc_program_run(bc_program_t *p, const hc_run_t *run, lw_error_t *error) {
  runnable_t *g;
  form_t *f;
  AOT_TRY(find_graph(p, run->kind, run->number, run->n_symbols, &g, error));
  const aot_snap_graph_t *row = AOT_SNAP_ROWS(p->s, aot_snap_graph_t, graphs) + g->graph;
  if (run->n_inputs != row->n_inputs || run->n_outputs != row->n_outputs)
    return lw_fail(error, AOT_E_INVALID, "bad-call", "%llu inputs and %llu outputs for a graph with %u and %u",
                   (unsigned long long)run->n_inputs, (unsigned long long)run->n_outputs, row->n_inputs,
                   row->n_outputs);
  if (g->first_segment != LW_NONE) return run_cut(p, g, run, error);
  AOT_TRY(find_form(p, g, run->symbols, &f, error));
  const aot_status_t status = run_form(p, f, run->inputs, run->outputs, run, error);
  if (status != AOT_OK) custom_settle(&p->custom);
  return status;
}

/* ---- aot.check-nan/1 ---- */

void bc_program_watch(bc_program_t *p) {
  p->is_watched = 1;
  for (uint32_t i = 0; i < p->n_graphs; i++)
    for (int k = 0; k < MAX_FORMS; k++) form_deinit(&p->graphs[i].forms[k]);
}

/* ---- aot.profile/1 ---- */

void bc_program_profile_start(bc_program_t *p) {
  p->is_profiled = 1;
  for (uint32_t i = 0; i < p->n_graphs; i++)
    for (int k = 0; k < MAX_FORMS; k++) lw_times_clear(&p->graphs[i].forms[k].schedule);
}

aot_status_t bc_program_profile(bc_program_t *p, const aot_profile_row_t **out, uint64_t *out_n) {
  uint64_t n = 0;
  for (uint32_t i = 0; i < p->n_graphs; i++)
    for (int k = 0; k < MAX_FORMS; k++) n += p->graphs[i].forms[k].schedule.n_steps;
  free(p->profile);
  p->profile = malloc(((size_t)n + 1) * sizeof *p->profile);
  *out = p->profile;
  *out_n = 0;
  if (!p->profile) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < p->n_graphs; i++)
    for (int k = 0; k < MAX_FORMS; k++) {
      const lw_schedule_t *s = &p->graphs[i].forms[k].schedule;
      for (uint32_t j = 0; j < s->n_steps; j++) p->profile[(*out_n)++] = lw_times_row(s, &s->steps[j], NULL);
    }
  return AOT_OK;
}

const custom_program_t *bc_program_custom(const bc_program_t *p) { return &p->custom; }

bc_program_stats_t bc_program_stats(const bc_program_t *p) {
  bc_program_stats_t out;
  memset(&out, 0, sizeof out);
  for (uint32_t i = 0; i < p->n_graphs; i++) {
    const form_t *newest = NULL;
    for (int k = 0; k < MAX_FORMS; k++)
      if (p->graphs[i].forms[k].symbols && (!newest || p->graphs[i].forms[k].last_used > newest->last_used))
        newest = &p->graphs[i].forms[k];
    if (!newest) continue;
    out.n_steps += newest->schedule.n_steps;
    out.n_groups += newest->schedule.n_groups;
    out.loop_nbytes += newest->schedule.loop_nbytes;
    out.n_fallback += newest->schedule.n_fallback;
    out.copied_nbytes += newest->schedule.copied_nbytes;
  }
  out.n_functions = p->functions.n;
  out.arena_nbytes = p->arena_nbytes;
  out.live_nbytes = p->live_nbytes;
  out.n_runs = p->n_runs;
  out.code = p->code;
  return out;
}
