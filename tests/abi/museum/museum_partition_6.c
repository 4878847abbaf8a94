/* Museum, ABI 1.6: a partition. What is dear to compute, or may not run twice, is saved; it wants what the pass gives.
 * */
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/partition.h>

#define ID "museum.partition-6"
#define HELP "saves the results of matrix products, convolutions, attention and reductions"

#define DEAR (AOT_OP_HEAVY | AOT_OP_REDUCTION)
#define ONCE (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_REGION)

typedef struct unit {
  aot_partition_t table;
  aot_host_t host;
} unit_t;

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const unit_t *u = p->head.self;
  const aot_graph_api_t *g = u->host.graph;
  aot_value_t *saved =
      u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, sizeof *saved, (g->n_values(prog) + 1u) * sizeof *saved);
  aot_cut_t cut = {.struct_size = sizeof cut, .saved = saved};
  if (!saved || !g->has_property(prog, aot_str("museum.clean"))) return AOT_E_INTERNAL;
  for (aot_node_t n = g->first(prog, g->graph_find(prog, AOT_GRAPH_JOINT)); n.id != AOT_NO_ID; n = g->next(prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(g->node_info(prog, n, &info));
    if ((info.flags & AOT_NODE_BACKWARD) || !(g->op_desc(prog, info.op)->flags & (DEAR | ONCE))) continue;
    for (uint32_t i = 0; i < info.n_results; i++) saved[cut.n_saved++].id = info.first_result.id + i;
  }
  return sink->put(sink, &cut);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_partition_t){.head = {.struct_size = sizeof u->table, .self = u}, .choose = choose};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_contract_t contract = {
    .struct_size = sizeof contract,
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT, AOT_STR_INIT("museum.clean")),
    .gives = AOT_NAMES(AOT_PROP_PARTITIONED),
    .drops = AOT_NAMES(AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};

AOT_PLUGIN_ONE("partition/1", ID, "6.0", "museum", "Apache-2.0", HELP, create, .contract = &contract);
