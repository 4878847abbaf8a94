/* functionalize: plugin descriptor, options and order of steps. The only file here at the plugin boundary. */
#include "boundary_rules.h"
#include "entry.h"
#include "hidden_alias.h"
#include "order_effects.h"
#include "regions.h"
#include "rewrite.h"
#include "storage_windows.h"

#include <aot/describe.h>
#include <aot/ext/report.h>
#include <aot/inline.h>
#include <aot/pass.h>

#define ID "functionalize"
#define HELP "replaces mutation, views and buffer updates by pure values and boundary rules"

typedef struct functionalize_unit {
  aot_pass_t table;
  aot_host_t host;
  int keep_regions;
} functionalize_unit_t;

/* Numbers for the report that the rewriting does not keep. */
typedef struct counts {
  uint32_t rules, effects, exposed, windows, region_writes, region_replays;
  fz_regions_t regions;
} counts_t;

static aot_status_t report(const functionalize_unit_t *u, aot_ctx_t *ctx, const fz_rewrite_t *w, const counts_t *n) {
  const aot_ext_report_t *r = aot_ext(&u->host.head, AOT_EXT_REPORT);
  if (!r) return AOT_OK;
  AOT_TRY(r->number(r, ctx, aot_str("writes"), w->n_writes, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("views-replayed"), w->n_replays, aot_str("nodes")));
  AOT_TRY(r->number(r, ctx, aot_str("hidden-aliases"), n->exposed, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("boundary-rules"), n->rules, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("aliased-inputs"), w->entries->n_rules, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("regions-kept"), n->regions.n_kept, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("regions-inlined"), n->regions.n_inlined, aot_str("")));
  AOT_TRY(r->number(r, ctx, aot_str("storage-windows"), n->windows, aot_str("")));
  return r->number(r, ctx, aot_str("ordered-effects"), n->effects, aot_str(""));
}

/* The outputs as the model names them: the walk puts up-to-date values in their place. */
static aot_status_t copy_outputs(const functionalize_unit_t *u, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph,
                                 uint32_t **out) {
  uint32_t n = u->host.graph->n_outputs(prog, graph);
  *out = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, ((uint64_t)n + 1) * 4);
  if (!*out) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < n; i++) (*out)[i] = u->host.graph->outputs(prog, graph)[i].value.id;
  return AOT_OK;
}

/* aliases that no schema shows -> regions -> storages that are given away -> inputs that share memory -> writes and
 * stale views
 * -> boundary -> what nothing reads -> effects in order */
static aot_status_t run(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const functionalize_unit_t *u = p->head.self;
  aot_graph_t graph = u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD);
  uint32_t *outputs;
  counts_t n = {0};
  fz_entries_t entries;
  fz_rewrite_t w;
  if (graph.id == AOT_NO_ID)
    return fz_fail(&u->host, ctx, AOT_E_PRECONDITION, ID ".no-forward", "the program has no forward graph",
                   aot_no_node());
  AOT_TRY(fz_check_effects(&u->host, ctx, prog));
  AOT_TRY(fz_expose_aliases(&u->host, ctx, prog, &n.exposed));
  AOT_TRY(fz_resolve_regions(&u->host, ctx, prog, graph, u->keep_regions, &n.regions));
  AOT_TRY(fz_close_windows(&u->host, ctx, prog, graph, &n.windows));
  AOT_TRY(fz_rewrite_regions(&u->host, ctx, prog, &n.region_writes, &n.region_replays));
  AOT_TRY(fz_enter(&u->host, ctx, prog, graph, &entries));
  AOT_TRY(copy_outputs(u, ctx, prog, graph, &outputs));
  AOT_TRY(fz_rewrite_init(&w, &u->host, ctx, prog, graph));
  w.entries = &entries;
  aot_status_t status = fz_rewrite_graph(&w);
  w.n_writes += n.region_writes;
  w.n_replays += n.region_replays;
  if (status == AOT_OK) status = fz_add_boundary(&w, outputs, &n.rules);
  if (status == AOT_OK) status = fz_erase_dead(&w);
  if (status == AOT_OK) status = fz_thread_effects(&u->host, ctx, prog, graph, &n.effects);
  if (status == AOT_OK) status = report(u, ctx, &w, &n);
  fz_rewrite_deinit(&w);
  return status;
}

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  functionalize_unit_t *u = host->alloc(host, ctx, AOT_ARENA_SESSION, sizeof(void *), sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->keep_regions = aot_str_eq(opts->values[0].s, aot_str("keep"));
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_str_t keep_or_inline[] = {AOT_STR_INIT("inline"), AOT_STR_INIT("keep")};
/* clang-format off */
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .flags = AOT_OPT_AFFECTS_OUTPUT,
     .name = AOT_STR_INIT("regions"),
     .help = AOT_STR_INIT("repeated bodies (invoke_subgraph): put in place of each call, or kept whole where they are functions"),
     .n_choices = 2, .choices = keep_or_inline, .preset = {.s = AOT_STR_INIT("inline")}},
};
/* clang-format on */
static const aot_contract_t contract = {
    .struct_size = sizeof(aot_contract_t),
    .needs = AOT_NAMES(AOT_PROP_IMPORTED),
    .gives = AOT_NAMES(AOT_PROP_FUNCTIONAL),
    .refuses = AOT_NAMES(AOT_PROP_JOINT, AOT_PROP_PARTITIONED),
};

AOT_PLUGIN_ONE("pass/1", ID, AOT_VERSION, "aothost", "Apache-2.0", HELP, create, .contract = &contract,
               AOT_OPTIONS(options));
