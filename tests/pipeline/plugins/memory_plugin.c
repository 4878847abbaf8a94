/* Both ends of aot.memory/1, aot.cost/1 and aot.trial/1: a pass that queries the host, and a backend that answers as
 * its option says. */
#include "kit/base/host_call.h"
#include <aot/backend.h>
#include <aot/describe.h>
#include <aot/ext/cost.h>
#include <aot/ext/memory.h>
#include <aot/ext/report.h>
#include <aot/ext/trial.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdlib.h>

typedef struct memory_plugin_unit {
  union {
    aot_pass_t pass;
    aot_backend_t backend;
  } table;
  aot_host_t host;
  aot_str_t how;
  aot_ext_memory_t memory;
  aot_ext_cost_t cost;
  aot_memory_plan_t plan;
  aot_memory_step_t steps[2];
  aot_memory_buffer_t buffer;
} memory_plugin_unit_t;

static memory_plugin_unit_t *make(const aot_host_t *host, const aot_opts_t *opts) {
  memory_plugin_unit_t *u = calloc(1, sizeof *u);
  if (u && aot_import(&u->host, sizeof u->host, host) == AOT_OK) u->how = opts->values[0].s;
  return u;
}

static int is(const memory_plugin_unit_t *u, const char *how) { return aot_str_eq(u->how, aot_str(how)); }

/* ---- pass/1 "asker" ---- */

static aot_status_t number(const memory_plugin_unit_t *u, aot_ctx_t *ctx, const char *name, double value) {
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  return r->number(r, ctx, aot_str(name), value, aot_str(""));
}

static uint32_t count_outputs(const memory_plugin_unit_t *u, aot_prog_t *prog) {
  return u->host.graph->n_outputs(prog, u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD));
}

static aot_status_t add_flops(const aot_cost_sink_t *sink, const aot_node_cost_t *cost) {
  *(double *)sink->head.self += (double)cost->flops;
  return AOT_OK;
}

static aot_status_t ask_costs(const memory_plugin_unit_t *u, aot_ctx_t *ctx, aot_prog_t *prog) {
  const aot_ext_cost_t *c = aot_ext(&u->host.head, AOT_EXT_COST);
  double flops = 0;
  const aot_cost_sink_t sink = {.head = {.struct_size = sizeof sink, .self = &flops}, .put = add_flops};
  aot_cost_machine_t machine = {.struct_size = sizeof machine};
  AOT_TRY(number(u, ctx, "cost-status", c->nodes(c, ctx, prog, (aot_graph_t){AOT_NO_ID}, NULL, 0, &sink)));
  AOT_TRY(number(u, ctx, "machine-status", c->machine(c, ctx, &machine)));
  AOT_TRY(number(u, ctx, "launch", (double)machine.launch_nanoseconds));
  return number(u, ctx, "flops", flops);
}

/* "ask": once, as it is. "trial": with one more output, which is undone. "forget": which is not. */
static aot_status_t ask(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const memory_plugin_unit_t *u = p->head.self;
  const aot_ext_memory_t *m = aot_ext(&u->host.head, AOT_EXT_MEMORY);
  const aot_ext_trial_t *t = aot_ext(&u->host.head, AOT_EXT_TRIAL);
  const aot_memory_plan_t *plan = NULL;
  const aot_graph_t g = u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD);
  if (!is(u, "ask")) {
    AOT_TRY(t->begin(t, ctx, prog));
    AOT_TRY(u->host.edit->output_add(prog, g, AOT_ROLE_USER_OUTPUT, 1, u->host.graph->outputs(prog, g)[0].value,
                                     aot_str("more")));
  }
  const aot_status_t status = m->plan(m, ctx, prog, NULL, 0, &plan);
  if (is(u, "trial")) AOT_TRY(t->undo(t, ctx, prog));
  if (t->undo(t, ctx, prog) != AOT_E_PRECONDITION && !is(u, "forget")) return AOT_E_INTERNAL;
  if (is(u, "forget")) AOT_TRY(t->begin(t, ctx, prog));
  AOT_TRY(number(u, ctx, "status", status));
  AOT_TRY(ask_costs(u, ctx, prog));
  AOT_TRY(number(u, ctx, "peak", status == AOT_OK ? (double)plan->peak_nbytes : -1));
  return number(u, ctx, "outputs", count_outputs(u, prog));
}

static void pass_destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t pass_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                const aot_table_t **out) {
  memory_plugin_unit_t *u = make(host, opts);
  (void)self, (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  u->table.pass = (aot_pass_t){
      .head = {.struct_size = sizeof(aot_pass_t), .self = u, .destroy = pass_destroy},
      .run = ask,
  };
  *out = &u->table.pass.head;
  return AOT_OK;
}

/* ---- backend/2 "teller" ---- */

static aot_status_t query(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_verdict_sink_t *sink) {
  const aot_graph_api_t *g = ((const memory_plugin_unit_t *)b->head.self)->host.graph;
  (void)ctx;
  for (uint32_t i = 1; i < g->n_graphs(prog); i++)
    for (aot_node_t k = g->first(prog, (aot_graph_t){i}); k.id != AOT_NO_ID; k = g->next(prog, k)) {
      const aot_verdict_t v = {.struct_size = sizeof v, .accepted = 1, .node = k};
      AOT_TRY(sink->put(sink, &v));
    }
  return AOT_OK;
}

static aot_status_t compile(const aot_backend_t *b, aot_ctx_t *ctx, aot_prog_t *prog, const aot_bytes_sink_t *sink) {
  (void)b, (void)ctx, (void)prog;
  return sink->write(sink, "t", 1);
}

static aot_status_t run(void *self, const hc_run_t *run) {
  (void)self, (void)run;
  return AOT_OK;
}

static void exe_destroy(const aot_table_t *e) { free(e->self); }

static aot_status_t load(const aot_backend_t *b, aot_ctx_t *ctx, const void *bytes, uint64_t nbytes,
                         const aot_device_t *device, const aot_exe_t **out) {
  hc_exe_t *e = calloc(1, sizeof *e);
  (void)b, (void)ctx, (void)bytes, (void)nbytes;
  if (!e || !hc_exe_init(e, device, run, e)) return AOT_E_EXHAUSTED;
  e->table.head.destroy = exe_destroy;
  *out = &e->table;
  return AOT_OK;
}

/* 1000 bytes for each output of the forward. */
static aot_status_t plan(const aot_ext_memory_t *m, aot_ctx_t *ctx, aot_prog_t *prog, const int64_t *symbols,
                         uint64_t n_symbols, const aot_memory_plan_t **out) {
  memory_plugin_unit_t *u = m->head.self;
  (void)symbols, (void)n_symbols;
  const uint64_t nbytes = 1000 * count_outputs(u, prog);
  if (is(u, "crash")) abort();
  if (is(u, "refuse")) {
    const aot_diag_t d = {
        .struct_size = sizeof d,
        .severity = AOT_SEVERITY_ERROR,
        .code = AOT_STR_INIT("teller.no"),
        .message = AOT_STR_INIT("this program is not for telling"),
        .node = aot_no_node(),
        .value = aot_no_value(),
    };
    u->host.diag(&u->host, ctx, &d);
    return AOT_E_UNIMPLEMENTED;
  }
  u->steps[0] = u->steps[1] = (aot_memory_step_t){u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD), aot_no_node()};
  u->buffer = (aot_memory_buffer_t){
      .kind = AOT_MEMORY_OUTPUT,
      .first = 1,
      .last = is(u, "nonsense") ? 2 : 1,
      .value = aot_no_value(),
      .nbytes = nbytes,
      .place = UINT64_MAX,
  };
  u->plan = (aot_memory_plan_t){
      .struct_size = sizeof u->plan,
      .n_steps = 2,
      .n_buffers = 1,
      .n_forward_steps = 2,
      .steps = u->steps,
      .buffers = &u->buffer,
      .step_stride = sizeof *u->steps,
      .buffer_stride = sizeof u->buffer,
      .peak_nbytes = nbytes,
      .peak_step = 1,
  };
  *out = &u->plan;
  return AOT_OK;
}

static aot_status_t cost_machine(const aot_ext_cost_t *c, aot_ctx_t *ctx, aot_cost_machine_t *out) {
  (void)c, (void)ctx;
  out->launch_nanoseconds = 7000;
  return AOT_OK;
}

/* Of a node, as `how` says: "fuses", all of them in one loop; "works", a megabyte that each takes next to its results;
 * "slow", a millisecond; "lost", rows of nodes that are not there. */
static void describe(const memory_plugin_unit_t *u, aot_node_cost_t *row) {
  if (is(u, "fuses")) row->fusion = 1;
  if (is(u, "works")) row->workspace_nbytes = 1 << 20;
  if (is(u, "slow")) row->nanoseconds = 1000000;
}

static int tells_costs_only(const memory_plugin_unit_t *u) {
  return is(u, "fuses") || is(u, "works") || is(u, "slow") || is(u, "lost");
}

/* 10 for each node; of the forward where no graph is named and there is one. */
static aot_status_t cost_nodes(const aot_ext_cost_t *c, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                               const int64_t *symbols, uint64_t n_symbols, const aot_cost_sink_t *sink) {
  const memory_plugin_unit_t *u = c->head.self;
  const aot_graph_api_t *g = u->host.graph;
  (void)ctx, (void)symbols, (void)n_symbols;
  if (graph.id == AOT_NO_ID) graph = g->graph_find(prog, AOT_GRAPH_FORWARD);
  if (graph.id == AOT_NO_ID) graph = g->graph_find(prog, AOT_GRAPH_JOINT);
  for (aot_node_t n = g->first(prog, graph); n.id != AOT_NO_ID; n = g->next(prog, n)) {
    aot_node_cost_t row = {.struct_size = sizeof row, .node = n, .flops = 10};
    describe(u, &row);
    if (is(u, "lost")) row.node.id += 1000;
    AOT_TRY(sink->put(sink, &row));
  }
  return AOT_OK;
}

static const void *get_ext(const aot_table_t *b, const char *id) {
  const memory_plugin_unit_t *u = b->self;
  if (is(u, "silent")) return NULL;
  if (strcmp(id, AOT_EXT_COST) == 0) return &u->cost;
  return strcmp(id, AOT_EXT_MEMORY) == 0 && !tells_costs_only(u) ? &u->memory : NULL;
}

static void backend_destroy(const aot_table_t *b) { free(b->self); }

static aot_status_t backend_create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out) {
  memory_plugin_unit_t *u = make(host, opts);
  (void)self, (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  u->memory = (aot_ext_memory_t){.head = {.struct_size = sizeof u->memory, .self = u}, .plan = plan};
  u->cost = (aot_ext_cost_t){
      .head = {.struct_size = sizeof u->cost, .self = u}, .machine = cost_machine, .nodes = cost_nodes};
  u->table.backend = (aot_backend_t){
      .head = {.struct_size = sizeof(aot_backend_t), .self = u, .destroy = backend_destroy, .get_ext = get_ext},
      .query = query,
      .compile = compile,
      .load = load,
  };
  *out = &u->table.backend.head;
  return AOT_OK;
}

/* ---- descriptor ---- */

/* clang-format off */
static const aot_option_t options[] = {{.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_STRING,
                                        .name = AOT_STR_INIT("how"),
                                        .help = AOT_STR_INIT("what to do"), .preset = {.s = AOT_STR_INIT("ask")}}};
/* clang-format on */
static const aot_contract_t pass_contract = {.struct_size = sizeof(aot_contract_t)},
                            backend_contract = {.struct_size = sizeof(aot_contract_t),
                                                .gives = AOT_NAMES(AOT_PROP_LOWERED)};
static const aot_unit_t asker =
    AOT_UNIT("pass/1", "asker", "0.1.0", "of the tests", .options = options, .n_options = 1,
             .option_stride = sizeof *options, .contract = &pass_contract, .create = pass_create);
static const aot_unit_t teller =
    AOT_UNIT("backend/2", "teller", "0.1.0", "of the tests", .options = options, .n_options = 1,
             .option_stride = sizeof *options, .contract = &backend_contract, .create = backend_create);
static const aot_unit_t *const units[] = {&asker, &teller};

AOT_PLUGIN("memory", "0.1.0", "tests", "Apache-2.0", units,
           AOT_NOTE_UNIT("pass/1", "asker", "of the tests") "," AOT_NOTE_UNIT("backend/2", "teller", "of the tests"));
