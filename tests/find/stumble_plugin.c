/* A pass that stumbles over one operator: it refuses, crashes at, or leaves out the first node that has it, wherever
 * that is. */
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <stdlib.h>
#include <string.h>

typedef struct stumble_plugin_unit {
  aot_pass_t table;
  aot_host_t host;
  aot_str_t how, op;
} stumble_plugin_unit_t;

static void *volatile nowhere; /* the compiler must not know that it is NULL */

static aot_status_t refuse(const stumble_plugin_unit_t *u, aot_ctx_t *ctx, aot_node_t n) {
  aot_diag_t d = {.struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR};
  d.code = aot_str("stumble.refused");
  d.message = aot_str("an operator that it cannot do, at 7.5 of 9");
  d.node = n;
  u->host.diag(&u->host, ctx, &d);
  return AOT_E_UNIMPLEMENTED;
}

static aot_status_t stumble(const stumble_plugin_unit_t *u, aot_ctx_t *ctx, aot_prog_t *p, const aot_node_info_t *info,
                            aot_node_t n) {
  if (aot_str_eq(u->how, aot_str("refuse"))) return refuse(u, ctx, n);
  if (aot_str_eq(u->how, aot_str("crash"))) *((volatile int *)nowhere + 16) = 1;
  return u->host.edit->uses_replace(p, info->first_result, (aot_value_t){info->operands[0]});
}

static aot_status_t run(const aot_pass_t *t, aot_ctx_t *ctx, aot_prog_t *p) {
  const stumble_plugin_unit_t *u = t->head.self;
  const aot_graph_api_t *g = u->host.graph;
  const aot_op_t op = g->op_find(p, u->op);
  for (uint32_t graph = 1; graph < g->n_graphs(p); graph++)
    for (aot_node_t n = g->first(p, (aot_graph_t){graph}); n.id != AOT_NO_ID; n = g->next(p, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      if (g->node_info(p, n, &info) == AOT_OK && info.op.id == op.id) return stumble(u, ctx, p, &info, n);
    }
  return AOT_OK;
}

static void destroy(const aot_table_t *t) { free(t->self); }

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  stumble_plugin_unit_t *u = calloc(1, sizeof *u);
  (void)ctx;
  if (!u || aot_import(&u->host, sizeof u->host, host) != AOT_OK) return AOT_E_EXHAUSTED;
  u->how = opts->values[0].s;
  u->op = opts->values[1].s;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

static const aot_str_t ways[] = {AOT_STR_INIT("refuse"), AOT_STR_INIT("crash"), AOT_STR_INIT("skip")};
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t),
     .kind = AOT_OPT_ENUM,
     .name = AOT_STR_INIT("how"),
     .choices = ways,
     .n_choices = 3,
     .help = AOT_STR_INIT("how it stumbles"),
     .preset = {.s = AOT_STR_INIT("refuse")}},
    {.struct_size = sizeof(aot_option_t),
     .kind = AOT_OPT_STRING,
     .name = AOT_STR_INIT("op"),
     .help = AOT_STR_INIT("over which operator"),
     .preset = {.s = AOT_STR_INIT("")}},
};
static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_IMPORTED)};
AOT_PLUGIN_ONE("pass/1", "stumble", "1.0.0", "tests", "Apache-2.0", "stumbles over one operator", create,
               .contract = &contract, AOT_OPTIONS(options));
