/* Museum, ABI 1.6: a pass. Erases nodes whose results nobody reads, by the function table and by the snapshot; makes an
 * encoding and reads it; takes an edit back; asks for the ranks, and the device of their queues; gives a property of
 * its own; reports. */
#include <aot/describe.h>
#include <aot/ext/ranks.h>
#include <aot/ext/report.h>
#include <aot/ext/trial.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdlib.h>

#define ID "museum.pass-6"
#define HELP "erases what nobody reads"

typedef struct unit {
  aot_pass_t table;
  aot_host_t host;
  int64_t most;
} unit_t;

static aot_status_t complain(const unit_t *u, aot_ctx_t *ctx, const char *text) {
  const aot_diag_t d = {
      .struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR, .code = aot_str(ID ".wrong"), .message = aot_str(text)};
  u->host.diag(&u->host, ctx, &d);
  return AOT_E_INTERNAL;
}

/* The program as the snapshot has it is the program as the table has it. */
static int counts_agree(const unit_t *u, aot_prog_t *prog, const aot_snapshot_t *s) {
  const aot_graph_api_t *g = u->host.graph;
  const aot_graph_t joint = g->graph_find(prog, AOT_GRAPH_JOINT);
  uint32_t n = 0;
  for (aot_node_t k = g->first(prog, joint); k.id != AOT_NO_ID; k = g->next(prog, k)) n++;
  for (uint32_t i = 1; i < s->graphs.count; i++) {
    const aot_snap_graph_t *row = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + i;
    if (row->id == joint.id) return row->n_nodes == n && row->n_inputs == g->n_inputs(prog, joint);
  }
  return 0;
}

static aot_status_t try_encoding(const unit_t *u, aot_ctx_t *ctx, aot_prog_t *prog) {
  const aot_encoding_info_t made = {
      .struct_size = sizeof made, .name = AOT_STR_INIT("museum.tiled"), .value = AOT_STR_INIT("4")};
  aot_encoding_info_t read = {.struct_size = sizeof read};
  aot_encoding_t e;
  AOT_TRY(u->host.edit->encoding_create(prog, &made, &e));
  AOT_TRY(u->host.graph->encoding_info(prog, e, &read));
  return aot_str_eq(read.name, made.name) && aot_str_eq(read.value, made.value)
             ? AOT_OK
             : complain(u, ctx, "an encoding is another");
}

static aot_status_t try_trial(const unit_t *u, aot_ctx_t *ctx, aot_prog_t *prog) {
  const aot_ext_trial_t *trial = aot_ext(&u->host.head, AOT_EXT_TRIAL);
  const uint32_t n = u->host.graph->n_graphs(prog);
  aot_graph_t g;
  if (!trial) return complain(u, ctx, "the host has no " AOT_EXT_TRIAL);
  AOT_TRY(trial->begin(trial, ctx, prog));
  AOT_TRY(u->host.edit->graph_create(prog, AOT_GRAPH_REGION, aot_str("tried"), &g));
  AOT_TRY(trial->undo(trial, ctx, prog));
  return u->host.graph->n_graphs(prog) == n ? AOT_OK : complain(u, ctx, "what was tried is still there");
}

/* One rank has no communicator, several have a device as well. */
static aot_status_t try_ranks(const unit_t *u, aot_ctx_t *ctx) {
  const aot_ext_ranks_t *ranks = aot_ext(&u->host.head, AOT_EXT_RANKS);
  aot_run_ranks_t r = {.struct_size = sizeof r};
  if (!ranks) return complain(u, ctx, "the host has no " AOT_EXT_RANKS);
  AOT_TRY(ranks->get(ranks, ctx, &r));
  if (r.rank >= r.n_ranks || (r.n_ranks == 1) != !r.communicator)
    return complain(u, ctx, "ranks and communicator do not go together");
  return r.communicator && !r.device ? complain(u, ctx, "ranks have no device") : AOT_OK;
}

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const unit_t *u = p->head.self;
  const aot_graph_api_t *g = u->host.graph;
  const aot_ext_report_t *report = aot_ext(&u->host.head, AOT_EXT_REPORT);
  const aot_snapshot_t *s = NULL;
  int64_t n = 0;
  AOT_TRY(g->snapshot(prog, &s));
  if (!counts_agree(u, prog, s)) return complain(u, ctx, "the snapshot is of another program");
  AOT_TRY(try_encoding(u, ctx, prog));
  AOT_TRY(try_trial(u, ctx, prog));
  AOT_TRY(try_ranks(u, ctx));
  for (aot_node_t k = g->last(prog, g->graph_find(prog, AOT_GRAPH_JOINT)), prev; k.id != AOT_NO_ID && n < u->most;
       k = prev) {
    aot_node_info_t info = {.struct_size = sizeof info};
    uint32_t n_uses = 0;
    prev = g->prev(prog, k);
    AOT_TRY(g->node_info(prog, k, &info));
    for (uint32_t i = 0; i < info.n_results; i++) n_uses += g->n_uses(prog, (aot_value_t){info.first_result.id + i});
    if (n_uses || g->op_desc(prog, info.op)->flags & AOT_OP_EFFECT) continue;
    AOT_TRY(u->host.edit->note(prog, k, aot_str("nobody reads it")));
    AOT_TRY(u->host.edit->node_erase(prog, k));
    n++;
  }
  return report ? report->number(report, ctx, aot_str("erased"), (double)n, aot_str("nodes")) : AOT_OK;
}

static void destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = calloc(1, sizeof *u);
  (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->most = opts->values[0].i;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_option_t options[] = {{
    .struct_size = sizeof(aot_option_t),
    .kind = AOT_OPT_I64,
    .flags = AOT_OPT_HAS_RANGE | AOT_OPT_AFFECTS_OUTPUT,
    .name = AOT_STR_INIT("most"),
    .help = AOT_STR_INIT("no more nodes than these"),
    .preset = {.i = 1000},
    .min = 0,
    .max = 1e6,
}};
static const aot_contract_t contract = {
    .struct_size = sizeof contract,
    .needs = AOT_NAMES(AOT_PROP_JOINT),
    .gives = AOT_NAMES(AOT_STR_INIT("museum.clean")),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};

AOT_PLUGIN_ONE("pass/1", ID, "6.0", "museum", "Apache-2.0", HELP, create, .contract = &contract, AOT_OPTIONS(options));
