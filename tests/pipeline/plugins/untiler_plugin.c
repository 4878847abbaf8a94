/* Another plugin than the one that names the encoding: a pass that reads it off the types, reports it, and takes it
 * away. */
#include <aot/describe.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdlib.h>

#define ID "untile"
#define HELP "takes tiles away"
#define TILED_PROPERTY AOT_STR_INIT("vendor.is-tiled")

typedef struct untiler_plugin_unit {
  aot_pass_t table;
  aot_host_t host;
} untiler_plugin_unit_t;

static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const untiler_plugin_unit_t *u = p->head.self;
  const aot_graph_api_t *graph = u->host.graph;
  const aot_ext_report_t *report = aot_ext(&u->host.head, AOT_EXT_REPORT);
  uint32_t n_tiled = 0;
  AOT_TRY(
      report->number(report, ctx, aot_str("knows"), graph->has_property(prog, (aot_str_t)TILED_PROPERTY), aot_str("")));
  if (graph->has_property(prog, aot_str("vendor.other"))) return AOT_E_INTERNAL;
  for (aot_node_t n = graph->first(prog, graph->graph_find(prog, AOT_GRAPH_FORWARD)), next; n.id != AOT_NO_ID;
       n = next) {
    aot_node_info_t info = {.struct_size = sizeof info};
    aot_encoding_info_t e = {.struct_size = sizeof e};
    aot_type_t t;
    next = graph->next(prog, n);
    AOT_TRY(graph->node_info(prog, n, &info));
    if (info.n_results != 1) continue;
    const aot_value_t result = info.first_result;
    const aot_str_t op = graph->op_desc(prog, info.op)->name;
    AOT_TRY(graph->value_type(prog, result, &t));
    if (graph->encoding_info(prog, t.encoding, &e) == AOT_OK) {
      n_tiled++;
      AOT_TRY(report->text(report, ctx, e.name, e.value));
    }
    if (aot_str_eq(op, aot_str("tiles.pack")) || aot_str_eq(op, aot_str("tiles.unpack"))) {
      AOT_TRY(u->host.edit->uses_replace(prog, result, (aot_value_t){info.operands[0]}));
      AOT_TRY(u->host.edit->node_erase(prog, n));
      continue;
    }
    t.encoding.id = AOT_NO_ID;
    AOT_TRY(u->host.edit->type_set(prog, result, &t));
  }
  return report->number(report, ctx, aot_str("tiled"), n_tiled, aot_str("values"));
}

static void destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  untiler_plugin_unit_t *u = calloc(1, sizeof *u);
  (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {.struct_size = sizeof contract,
                                        .needs = AOT_NAMES(AOT_PROP_IMPORTED, TILED_PROPERTY),
                                        .drops = AOT_NAMES(TILED_PROPERTY)};

AOT_PLUGIN_ONE("pass/1", ID, "1", "tests", "Apache-2.0", HELP, create, .contract = &contract);
