#include <pipeline/backend_route.h>

#include <aot/inline.h>
#include <pipeline/call.h>
#include <pipeline/extension.h>
#include <string.h>

typedef struct backend {
  aoth_stage_t stage;
  aoth_instance_t unit; /* unit NULL: not created yet */
  int is_dead;          /* it could not be created */
} backend_t;

typedef struct aoth_backend_route {
  aoth_session_t *s;
  backend_t *backends;
  uint32_t n_backends;
  aoth_arena_t *scratch; /* of calls into them: the asking unit's own must last */
} aoth_backend_route_t;

aot_status_t aoth_backend_route_begin(aoth_session_t *s, const aoth_stage_t *stages, uint32_t n_stages) {
  aoth_backend_route_t *r = aoth_arena_alloc(s->arena, sizeof(void *), sizeof *r);
  backend_t *backends = aoth_arena_alloc(s->arena, sizeof(void *), ((size_t)n_stages + 1) * sizeof *backends);
  if (!r || !backends) return AOT_E_EXHAUSTED;
  *r = (aoth_backend_route_t){.s = s, .backends = backends};
  for (uint32_t i = 0; i < n_stages; i++)
    if (stages[i].unit && strcmp(stages[i].unit->kind, "backend/2") == 0) backends[r->n_backends++].stage = stages[i];
  s->ctx.backends = r;
  return AOT_OK;
}

void aoth_backend_route_end(aoth_session_t *s) {
  aoth_backend_route_t *r = s->ctx.backends;
  s->ctx.backends = NULL;
  for (uint32_t i = 0; r && i < r->n_backends; i++)
    if (!r->backends[i].is_dead) aoth_instance_destroy(s, &r->backends[i].stage, &r->backends[i].unit);
  if (r) aoth_arena_destroy(r->scratch);
}

/* ---- a call inside of a call ---- */

/* What a call changes of the session; a call inside of another puts it back. */
typedef struct outer_call {
  aot_ctx_t ctx;
  aoth_report_t report;
  aoth_arena_t *scratch;
  aoth_sink_t *sink;
  int32_t outcome;
  aot_status_t status;
  uint32_t last_node, has_journal;
} outer_call_t;

static outer_call_t step_aside(aoth_session_t *s, const aoth_backend_route_t *r) {
  const outer_call_t outer = {s->ctx,     s->report, s->scratch,   s->config.sink,
                              s->outcome, s->status, s->last_node, s->has_journal};
  s->scratch = s->ctx.scratch = r->scratch;
  s->config.sink = s->ctx.sink = NULL; /* no answer is no failure: nothing is told */
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
  const aoth_instance_t *backend;
  aot_prog_t *prog;
  aot_graph_t graph;
  const int64_t *symbols;
  uint64_t n_symbols;
  const aot_cost_sink_t *costs;
  const aot_memory_plan_t *plan;
  aot_cost_machine_t *machine;
  int is_answered; /* 0: the unit does not offer the extension */
} question_t;

/* Like aoth_instance_create, without a bundle or an undo of the journals when it fails: they are the asking stage's. */
static aot_status_t create_and_ask(aoth_backend_route_t *r, backend_t *b, const char *doing, aoth_call_fn fn,
                                   question_t *q) {
  if (!b->unit.unit && aoth_instance_try(r->s, &b->stage, &b->unit) != AOT_OK) {
    b->is_dead = 1;
    return AOT_E_UNIMPLEMENTED;
  }
  q->s = r->s;
  q->backend = &b->unit;
  return aoth_call(r->s, &b->stage, doing, fn, q);
}

static aot_status_t ask(aot_ctx_t *ctx, const char *doing, aoth_call_fn fn, question_t *q) {
  aoth_backend_route_t *r = ctx->backends;
  if (!r || !r->n_backends || ctx != &r->s->ctx || r->backends[r->n_backends - 1].is_dead) return AOT_E_UNIMPLEMENTED;
  if (!r->scratch) r->scratch = aoth_arena_create();
  if (!r->scratch) return AOT_E_EXHAUSTED;
  const outer_call_t outer = step_aside(r->s, r);
  const aot_status_t status = create_and_ask(r, &r->backends[r->n_backends - 1], doing, fn, q);
  step_back(r->s, &outer);
  return status == AOT_OK && !q->is_answered ? AOT_E_UNIMPLEMENTED : status;
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
  question_t q = {.prog = prog, .symbols = symbols, .n_symbols = n_symbols};
  AOT_TRY(ask(ctx, "memory", do_plan, &q));
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

aot_status_t aoth_backend_route_machine(aot_ctx_t *ctx, aot_cost_machine_t *out) {
  question_t q = {.machine = out};
  return ask(ctx, "machine", do_machine, &q);
}

static aot_status_t do_costs(void *arg) {
  question_t *q = arg;
  aot_ext_cost_t x;
  if (aoth_instance_extension(q->backend, AOT_EXT_COST, &x, sizeof x) != AOT_OK || !x.nodes) return AOT_OK;
  q->is_answered = 1;
  return x.nodes(&x, &q->s->ctx, q->prog, q->graph, q->symbols, q->n_symbols, q->costs);
}

aot_status_t aoth_backend_route_costs(aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, const int64_t *symbols,
                                      uint64_t n_symbols, const aot_cost_sink_t *sink) {
  question_t q = {.prog = prog, .graph = graph, .symbols = symbols, .n_symbols = n_symbols, .costs = sink};
  return ask(ctx, "costs", do_costs, &q);
}
