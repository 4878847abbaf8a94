/* A pass of one rewrite: whoever reads -(-x) reads x instead. The nodes that nobody reads any more are left to others
 * (`dead-code`).
 *
 * It asks the program through host->graph, which shows its own edits at once, and edits through host->edit. Read it
 * from the bottom: what it is, create, run. */
#include <aot/describe.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>

#define ID "example.double-negation"
#define HELP "reads x where -(-x) was read"

typedef struct unit { /* what create makes: the table, and what run needs */
  aot_pass_t table;
  aot_host_t host;
  int64_t most;
} unit_t;

/* Its operand, when a node is a negation. */
static int is_negation(const aot_graph_api_t *g, aot_prog_t *prog, aot_node_t n, aot_value_t *out_operand) {
  aot_node_info_t info = {.struct_size = sizeof info};
  if (n.id == AOT_NO_ID || g->node_info(prog, n, &info) != AOT_OK) return 0;
  if (!aot_str_eq(g->op_desc(prog, info.op)->name, aot_str("aten.neg.default"))) return 0;
  out_operand->id = info.operands[0];
  return 1;
}

static aot_status_t run_on(const unit_t *u, aot_prog_t *prog, aot_graph_t graph, int64_t *n_done) {
  const aot_graph_api_t *g = u->host.graph;
  for (aot_node_t n = g->first(prog, graph); n.id != AOT_NO_ID; n = g->next(prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    aot_value_t negated, x;
    if (*n_done == u->most) return AOT_OK;
    if (!is_negation(g, prog, n, &negated) || !is_negation(g, prog, g->value_def(prog, negated), &x)) continue;
    AOT_TRY(g->node_info(prog, n, &info));
    AOT_TRY(u->host.edit->note(prog, n, aot_str("a negation of a negation")));
    AOT_TRY(u->host.edit->uses_replace(prog, info.first_result, x));
    ++*n_done;
  }
  return AOT_OK;
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const unit_t *u = p->head.self;
  const aot_ext_report_t *report = aot_ext(&u->host.head, AOT_EXT_REPORT);
  int64_t n_done = 0;
  for (aot_graph_t g = {1}; g.id < u->host.graph->n_graphs(prog); g.id++) AOT_TRY(run_on(u, prog, g, &n_done));
  return report ? report->number(report, ctx, aot_str("replaced"), (double)n_done, aot_str("values")) : AOT_OK;
}

/* The host's table may be longer or shorter than ours: aot_import copies what both know. Memory of the session needs no
 * destroy. */
static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->most = opts->values[0].i;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
     .name = AOT_STR_INIT("most"), .help = AOT_STR_INIT("how many values are replaced at most"),
     .preset = {.i = 1000000}, .min = 0, .max = 1000000},
};
/* clang-format on */
static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL)};

AOT_PLUGIN_ONE("pass/1", ID, "1.0.0", "example", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
