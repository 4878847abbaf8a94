/* dead-code: the only file here that sees the plugin boundary. Read it from the bottom: what it is, create, run. */
#include "dead_code.h"

#include <aot/describe.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>

#define ID "dead-code"
#define HELP "removes nodes whose results are unused (DCE)"
#define VERSION "1.0.0"

typedef struct template_unit { /* what create() makes: the table, and what run() needs */
  aot_pass_t table;
  aot_host_t host;
  int report;
} template_unit_t;

static aot_status_t fail(const template_unit_t *u, aot_ctx_t *ctx, const char *message) {
  aot_diag_t d = {.struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR};
  d.code = aot_str(ID ".no-memory");
  d.message = aot_str(message);
  d.node = aot_no_node();
  d.value = aot_no_value();
  u->host.diag(&u->host, ctx, &d);
  return AOT_E_EXHAUSTED;
}

/* The nodes of one graph, as plain arrays in the host's scratch memory: they vanish after run(). */
static aot_status_t read_graph(const template_unit_t *u, aot_ctx_t *ctx, const aot_snapshot_t *s,
                               const aot_snap_graph_t *graph, dce_graph_t *out, uint32_t **out_dead) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + graph->node_begin;
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(s, aot_snap_op_t, ops);
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports);
  const uint32_t *rows = AOT_SNAP_ROWS(s, uint32_t, operands);
  uint64_t n = graph->n_nodes, n_operands = 0, at = 0;
  for (uint64_t i = 0; i < n; i++) n_operands += nodes[i].n_operands;
  uint32_t *begin = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, (n + 1) * 4);
  uint32_t *results = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, (n + 1) * 4);
  uint32_t *operands = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, (n_operands + 1) * 4);
  uint32_t *uses = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)s->values.count + 1) * 4);
  uint8_t *effect = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 1, n + 1);
  *out_dead = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, (n + 1) * 4);
  if (!begin || !results || !operands || !uses || !effect || !*out_dead) return fail(u, ctx, "no memory for the graph");
  for (uint64_t i = 0; i < n; i++) {
    begin[i] = (uint32_t)at;
    results[i] = nodes[i].result_begin;
    results[i + 1] = nodes[i].result_begin + nodes[i].n_results;
    effect[i] = (ops[nodes[i].op].flags & (AOT_OP_EFFECT | AOT_OP_WRITES)) != 0;
    for (uint32_t k = 0; k < nodes[i].n_operands; k++) {
      uint32_t row = rows[nodes[i].operand_begin + k];
      if (row == AOT_NO_ID) continue;
      operands[at++] = row;
      uses[row]++;
    }
  }
  begin[n] = (uint32_t)at;
  for (uint32_t i = 0; i < graph->n_outputs; i++)
    if (ports[graph->output_begin + i].value != AOT_NO_ID) uses[ports[graph->output_begin + i].value]++;
  *out = (dce_graph_t){graph->n_nodes, s->values.count, begin, operands, results, effect, uses};
  return AOT_OK;
}

static aot_status_t report(const template_unit_t *u, aot_ctx_t *ctx, uint32_t n_dead) {
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  return r && u->report ? r->number(r, ctx, aot_str("erased"), n_dead, aot_str("nodes")) : AOT_OK;
}

/* options -> plain arrays (from the snapshot) -> algorithm -> edits. Edits move the snapshot, so node ids are taken
 * first. */
static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const template_unit_t *u = p->head.self;
  const aot_snapshot_t *s = NULL;
  uint32_t n_erased = 0;
  AOT_TRY(u->host.graph->snapshot(prog, &s));
  uint32_t *ids = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)s->nodes.count + 1) * 4);
  if (!ids) return fail(u, ctx, "no memory for the list of dead nodes");
  for (uint32_t g = 1; g < s->graphs.count; g++) {
    const aot_snap_graph_t *graph = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + g;
    const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + graph->node_begin;
    dce_graph_t plain;
    uint32_t *dead;
    AOT_TRY(read_graph(u, ctx, s, graph, &plain, &dead));
    uint32_t n_dead = dce_find_dead(&plain, dead);
    for (uint32_t i = 0; i < n_dead; i++) ids[n_erased++] = nodes[dead[i]].id;
  }
  for (uint32_t i = 0; i < n_erased; i++) {
    aot_node_t node = {ids[i]};
    AOT_TRY(u->host.edit->node_erase(prog, node));
  }
  return report(u, ctx, n_erased);
}

/* The host's table may be longer or shorter than ours: aot_import copies what both know. */
static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  template_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->report = opts->values[0].i != 0;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BOOL, .name = AOT_STR_INIT("report"),
     .help = AOT_STR_INIT("tell how many nodes went"), .preset = {.i = 1}},
};
/* clang-format on */
static const aot_contract_t contract = {.struct_size = sizeof(aot_contract_t), .needs = AOT_NAMES(AOT_PROP_IMPORTED)};

AOT_PLUGIN_ONE("pass/1", ID, VERSION, "example", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
