#include <compiler/backend_route.h>

#include <aot/inline.h>
#include <compiler/backend_query.h>
#include <sandbox/call.h>
#include <sandbox/extension.h>
#include <string.h>

typedef struct station {
  const aoth_stage_t *stage;
  aoth_instance_t unit; /* unit NULL: not created yet */
  int is_dead;          /* it could not be created */
} station_t;

typedef struct aoth_backend_route {
  aoth_session_t *s;
  station_t *stations; /* by stage */
  uint32_t n_stations;
  uint32_t at;          /* the stage that asks */
  station_t *asked;     /* the backend that is being asked */
  kit_arena_t *scratch; /* of calls into them: the asking unit's own must last */
} aoth_backend_route_t;

static int is_kind(const station_t *t, const char *kind) {
  return t->stage->unit && strcmp(t->stage->unit->kind, kind) == 0;
}

aot_status_t aoth_backend_route_begin(aoth_session_t *s, const aoth_stage_t *const *stages, uint32_t n_stages) {
  aoth_backend_route_t *r = kit_arena_alloc(s->arena, sizeof(void *), sizeof *r);
  station_t *stations = kit_arena_alloc(s->arena, sizeof(void *), ((size_t)n_stages + 1) * sizeof *stations);
  if (!r || !stations) return AOT_E_EXHAUSTED;
  *r = (aoth_backend_route_t){.s = s, .stations = stations, .n_stations = n_stages};
  for (uint32_t i = 0; i < n_stages; i++) stations[i].stage = stages[i];
  s->ctx.backends = r;
  return AOT_OK;
}

void aoth_backend_route_at(aoth_session_t *s, uint32_t i) {
  aoth_backend_route_t *r = s->ctx.backends;
  if (r) r->at = i;
}

void aoth_backend_route_end(aoth_session_t *s) {
  aoth_backend_route_t *r = s->ctx.backends;
  s->ctx.backends = NULL;
  for (uint32_t i = 0; r && i < r->n_stations; i++)
    if (!r->stations[i].is_dead) aoth_instance_destroy(s, r->stations[i].stage, &r->stations[i].unit);
  if (r) kit_arena_destroy(r->scratch);
}

/* ---- a call inside of a call ---- */

/* What a call changes of the session; a call inside of another puts it back. */
typedef struct outer_call {
  aot_ctx_t ctx;
  aoth_report_t report;
  kit_arena_t *scratch;
  aoth_sink_t *sink;
  int32_t outcome;
  aot_status_t status;
  uint32_t last_node, has_journal;
} outer_call_t;

static outer_call_t step_aside(aoth_session_t *s, const aoth_backend_route_t *r) {
  const outer_call_t outer = {s->ctx,     s->report, s->scratch,   s->config.sink,
                              s->outcome, s->status, s->last_node, s->has_journal};
  s->scratch = s->ctx.scratch = r->scratch;
  s->config.sink = s->ctx.sink = NULL; /* no answer is no failure: nothing is reported */
  s->ctx.backends = NULL;
  s->has_journal += s->ctx.n_trials; /* of the asking unit: undone with the rest, should this call be the last */
  s->ctx.n_trials = 0;
  s->report = (aoth_report_t){.arena = s->arena};
  return outer;
}

static void step_back(aoth_session_t *s, const outer_call_t *outer) {
  s->ctx = outer->ctx;
  s->report = outer->report;
  s->scratch = outer->scratch;
  s->config.sink = outer->sink;
  s->outcome = outer->outcome;
  s->status = outer->status;
  s->last_node = outer->last_node;
  s->has_journal = outer->has_journal;
}

/* A question to one backend, and room for the answer. */
typedef struct question {
  aoth_session_t *s;
  const aoth_stage_t *stage;
  const aoth_instance_t *backend;
  aot_prog_t *prog;
  aot_graph_t graph;
  const int64_t *symbols;
  uint64_t n_symbols;
  const aot_verdict_sink_t *verdicts;
  const aot_cost_sink_t *costs;
  const aot_memory_plan_t *plan;
  aot_cost_machine_t *machine;
  int plans;       /* it is about the program that the backend will get */
  int is_answered; /* 0: the unit does not offer the extension */
} question_t;

/* Like aoth_instance_create, without a bundle or an undo of the journals when it fails: they belong to the stage that
 * queries. */
static aot_status_t create(aoth_backend_route_t *r, station_t *t) {
  if (t->unit.unit) return AOT_OK;
  t->is_dead = t->is_dead || aoth_instance_try(r->s, t->stage, &t->unit) != AOT_OK;
  return t->is_dead ? AOT_E_UNIMPLEMENTED : AOT_OK;
}

static aot_status_t create_and_ask(aoth_backend_route_t *r, const char *doing, aoth_call_fn fn, question_t *q) {
  AOT_TRY(create(r, r->asked));
  q->s = r->s;
  q->stage = r->asked->stage;
  q->backend = &r->asked->unit;
  return aoth_call(r->s, r->asked->stage, doing, fn, q);
}

/* ---- the passes between ---- */

/* Passes between the querying stage and the first backend. 0: none; also if another partition is among them, for which
 * the program is not ready. */
static uint32_t count_passes(const aoth_backend_route_t *r) {
  uint32_t n = 0;
  while (r->at + 1 + n < r->n_stations && is_kind(&r->stations[r->at + 1 + n], "pass/1")) n++;
  return r->at + 1 + n < r->n_stations && is_kind(&r->stations[r->at + 1 + n], "backend/2") ? n : 0;
}

typedef struct run_state {
  aoth_session_t *s;
  const aoth_instance_t *pass;
  aot_prog_t *prog;
} run_state_t;

static aot_status_t do_pass(void *arg) {
  const run_state_t *r = arg;
  return r->pass->table.pass.run(r->pass->self, &r->s->ctx, r->prog);
}

static aot_status_t run_passes(aoth_backend_route_t *r, aot_prog_t *prog, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    station_t *t = &r->stations[r->at + 1 + i];
    AOT_TRY(create(r, t));
    run_state_t running = {r->s, &t->unit, prog};
    AOT_TRY(aoth_call(r->s, t->stage, "run", do_pass, &running));
  }
  return AOT_OK;
}

/* What a pass refuses here it will refuse when its turn comes, and then reports. */
static aot_status_t ask_behind_passes(aoth_backend_route_t *r, const char *doing, aoth_call_fn fn, question_t *q) {
  const uint32_t n = count_passes(r);
  if (!n || !q->plans) return create_and_ask(r, doing, fn, q);
  AOT_TRY(aoth_session_journal_begin(r->s));
  aot_status_t status = run_passes(r, q->prog, n) == AOT_OK ? AOT_OK : AOT_E_UNIMPLEMENTED;
  if (status == AOT_OK) status = create_and_ask(r, doing, fn, q);
  aoth_journal_undo(q->prog);
  return status;
}

/* Backends are counted from 1 in their order; AOTH_LAST_BACKEND: the last. NULL: there is no such. */
static station_t *find_backend(const aoth_backend_route_t *r, uint32_t backend) {
  station_t *last = NULL;
  for (uint32_t i = 0; r && i < r->n_stations; i++) {
    if (!is_kind(&r->stations[i], "backend/2")) continue;
    last = &r->stations[i];
    if (backend != AOTH_LAST_BACKEND && --backend == 0) return last;
  }
  return backend == AOTH_LAST_BACKEND ? last : NULL;
}

static aot_status_t ask(aot_ctx_t *ctx, uint32_t backend, const char *doing, aoth_call_fn fn, question_t *q) {
  aoth_backend_route_t *r = ctx->backends;
  station_t *asked = find_backend(r, backend);
  if (!asked || ctx != &r->s->ctx) return AOT_E_UNIMPLEMENTED;
  r->asked = asked;
  if (!r->scratch) r->scratch = kit_arena_create();
  if (!r->scratch) return AOT_E_EXHAUSTED;
  const outer_call_t outer = step_aside(r->s, r);
  const aot_status_t status = ask_behind_passes(r, doing, fn, q);
  step_back(r->s, &outer);
  return status == AOT_OK && !q->is_answered ? AOT_E_UNIMPLEMENTED : status;
}

/* ---- aot.backends/1 ---- */

uint32_t aoth_backend_route_count(const aot_ctx_t *ctx) {
  const aoth_backend_route_t *r = ctx->backends;
  uint32_t n = 0;
  for (uint32_t i = 0; r && i < r->n_stations; i++) n += is_kind(&r->stations[i], "backend/2") != 0;
  return n;
}

const char *aoth_backend_route_name(const aot_ctx_t *ctx, uint32_t backend) {
  const station_t *t = backend == AOTH_LAST_BACKEND ? NULL : find_backend(ctx->backends, backend);
  return t ? t->stage->name : NULL;
}

static aot_status_t do_query(void *arg) {
  question_t *q = arg;
  q->is_answered = 1;
  return aoth_backend_query(q->s, q->stage, q->backend, q->prog, q->verdicts);
}

aot_status_t aoth_backend_route_query(aot_ctx_t *ctx, uint32_t backend, aot_prog_t *prog,
                                      const aot_verdict_sink_t *sink) {
  question_t q = {.prog = prog, .verdicts = sink};
  return ask(ctx, backend, "query", do_query, &q);
}

/* ---- aot.memory/1 ---- */

static aot_status_t do_plan(void *arg) {
  question_t *q = arg;
  aot_ext_memory_t x;
  if (aoth_instance_extension(q->backend, AOT_EXT_MEMORY, &x, sizeof x) != AOT_OK || !x.plan) return AOT_OK;
  const aot_status_t status = x.plan(&x, &q->s->ctx, q->prog, q->symbols, q->n_symbols, &q->plan);
  q->is_answered = q->plan != NULL;
  return status;
}

aot_status_t aoth_backend_route_plan(aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols, uint64_t n_symbols,
                                     const aot_memory_plan_t **out) {
  question_t q = {.prog = prog, .symbols = symbols, .n_symbols = n_symbols, .plans = 1};
  AOT_TRY(ask(ctx, AOTH_LAST_BACKEND, "memory", do_plan, &q));
  *out = q.plan;
  return AOT_OK;
}

/* ---- aot.cost/1 ---- */

static aot_status_t do_machine(void *arg) {
  question_t *q = arg;
  aot_ext_cost_t x;
  if (aoth_instance_extension(q->backend, AOT_EXT_COST, &x, sizeof x) != AOT_OK || !x.machine) return AOT_OK;
  q->is_answered = 1;
  return x.machine(&x, &q->s->ctx, q->machine);
}

aot_status_t aoth_backend_route_machine(aot_ctx_t *ctx, uint32_t backend, aot_cost_machine_t *out) {
  question_t q = {.machine = out};
  return ask(ctx, backend, "machine", do_machine, &q);
}

static aot_status_t do_costs(void *arg) {
  question_t *q = arg;
  aot_ext_cost_t x;
  if (aoth_instance_extension(q->backend, AOT_EXT_COST, &x, sizeof x) != AOT_OK || !x.nodes) return AOT_OK;
  q->is_answered = 1;
  return x.nodes(&x, &q->s->ctx, q->prog, q->graph, q->symbols, q->n_symbols, q->costs);
}

aot_status_t aoth_backend_route_costs(aot_ctx_t *ctx, uint32_t backend, aot_prog_t *prog, aot_graph_t graph,
                                      const int64_t *symbols, uint64_t n_symbols, const aot_cost_sink_t *sink) {
  question_t q = {.prog = prog, .graph = graph, .symbols = symbols, .n_symbols = n_symbols, .costs = sink};
  return ask(ctx, backend, "costs", do_costs, &q);
}
