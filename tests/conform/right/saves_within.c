/* A partitioner with a budget: what is dear to compute, or may not run twice, is saved while the slots fit in `budget`
 * bytes; draws and what the user has tagged are saved in any case, and a warning says where that alone is more. */
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/partition.h>

#define ID "right.saves-within"
#define HELP "saves what is dear to compute within a budget of bytes"

#define ONCE (AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_REGION)

typedef struct saves_within_unit {
  aot_partition_t table;
  aot_host_t host;
  int64_t budget;
} saves_within_unit_t;

/* Bytes of the node's results; symbolic sizes at their hints. */
static aot_status_t nbytes_of(const saves_within_unit_t *u, aot_prog_t *prog, const aot_node_info_t *info,
                              int64_t *out) {
  *out = 0;
  for (uint32_t i = 0; i < info->n_results; i++) {
    aot_type_t t;
    int64_t n = 1;
    AOT_TRY(u->host.graph->value_type(prog, (aot_value_t){info->first_result.id + i}, &t));
    for (int32_t d = 0; d < t.rank; d++) n *= u->host.graph->dim_hint(prog, t.sizes[d]);
    n *= aot_dtype_size(t.dtype);
    *out += n;
  }
  return AOT_OK;
}

static aot_status_t warn(const saves_within_unit_t *u, aot_ctx_t *ctx) {
  const aot_diag_t d = {.struct_size = sizeof d,
                        .severity = AOT_SEVERITY_WARNING,
                        .code = aot_str(ID ".over-budget"),
                        .message = aot_str("values that must be saved take more than the budget")};
  return u->host.diag(&u->host, ctx, &d);
}

static aot_status_t choose(const aot_partition_t *p, aot_ctx_t *ctx, aot_prog_t *prog, const aot_cut_sink_t *sink) {
  const saves_within_unit_t *u = p->head.self;
  const aot_graph_api_t *g = u->host.graph;
  aot_value_t *saved =
      u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, sizeof *saved, (g->n_values(prog) + 1u) * sizeof *saved);
  aot_cut_t cut = {.struct_size = sizeof cut, .saved = saved};
  int64_t total = 0, nbytes;
  if (!saved) return AOT_E_EXHAUSTED;
  for (uint32_t pass = 0; pass < 2; pass++) /* what must be saved, then what may be */
    for (aot_node_t n = g->first(prog, g->graph_find(prog, AOT_GRAPH_JOINT)); n.id != AOT_NO_ID; n = g->next(prog, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      AOT_TRY(g->node_info(prog, n, &info));
      const int must = g->op_desc(prog, info.op)->flags & ONCE || info.flags & AOT_NODE_MUST_SAVE;
      if (info.flags & (AOT_NODE_BACKWARD | AOT_NODE_MUST_RECOMPUTE) || must != !pass) continue;
      AOT_TRY(nbytes_of(u, prog, &info, &nbytes));
      if (!(must || total + nbytes <= u->budget)) continue;
      total += nbytes;
      for (uint32_t i = 0; i < info.n_results; i++) saved[cut.n_saved++].id = info.first_result.id + i;
    }
  if (total > u->budget) AOT_TRY(warn(u, ctx));
  return sink->put(sink, &cut);
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  saves_within_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->budget = opts->values[0].i;
  u->table = (aot_partition_t){.head = {.struct_size = sizeof u->table, .self = u}, .choose = choose};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_BYTES, .flags = AOT_OPT_AFFECTS_OUTPUT,
     .name = AOT_STR_INIT("budget"), .help = AOT_STR_INIT("bytes that saved values may take"),
     .preset = {.i = INT64_C(1) << 40}},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof contract,
    .needs = AOT_NAMES(AOT_PROP_FUNCTIONAL, AOT_PROP_JOINT),
    .gives = AOT_NAMES(AOT_PROP_PARTITIONED),
    .drops = AOT_NAMES(AOT_PROP_JOINT),
    .refuses = AOT_NAMES(AOT_PROP_PARTITIONED),
};

AOT_PLUGIN_ONE("partition/1", ID, "1.0", "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
