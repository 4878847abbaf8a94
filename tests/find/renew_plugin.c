/* A pass that makes every node again, which changes nothing, and does one thing wrong on the way: what finds wrong
 * stages, edits and nodes is tried on it. `how` says what is wrong, `at` at which node of its kind, counted from 0. */
#include <aot/describe.h>
#include <aot/inline.h>
#include <aot/pass.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct renew_plugin_unit {
  aot_pass_t table;
  aot_host_t host;
  aot_str_t how;
  int64_t at;
} renew_plugin_unit_t;

typedef struct node {
  aot_node_t id;
  aot_node_info_t info;
  aot_type_t type; /* of the only result */
} node_t;

static int is(const renew_plugin_unit_t *u, const char *what) { return aot_str_eq(u->how, aot_str(what)); }

static int same_type(const aot_type_t *a, const aot_type_t *b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return 0;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != b->sizes[d]) return 0;
  return 1;
}

/* The first operand of the result's type; AOT_NO_ID: none. */
static uint32_t like_result(const renew_plugin_unit_t *u, aot_prog_t *p, const node_t *n) {
  for (uint32_t i = 0; i < n->info.n_operands; i++) {
    aot_type_t t;
    if (n->info.operands[i] == AOT_NO_ID) continue;
    if (u->host.graph->value_type(p, (aot_value_t){n->info.operands[i]}, &t) == AOT_OK && same_type(&t, &n->type))
      return n->info.operands[i];
  }
  return AOT_NO_ID;
}

static int reads_two_alike(const renew_plugin_unit_t *u, aot_prog_t *p, const node_t *n) {
  const uint32_t *v = n->info.operands;
  aot_type_t a, b;
  return n->info.n_operands == 2 && v[0] != v[1] && v[0] != AOT_NO_ID && v[1] != AOT_NO_ID &&
         u->host.graph->value_type(p, (aot_value_t){v[0]}, &a) == AOT_OK &&
         u->host.graph->value_type(p, (aot_value_t){v[1]}, &b) == AOT_OK && same_type(&a, &b);
}

static uint32_t float_argument(const node_t *n) {
  for (uint32_t i = 0; i < n->info.n_args; i++)
    if (n->info.args[i].kind == AOT_ARG_FLOAT) return i;
  return AOT_NO_INDEX;
}

static int is_of_kind(const renew_plugin_unit_t *u, aot_prog_t *p, const node_t *n) {
  if (is(u, "skip")) return like_result(u, p, n) != AOT_NO_ID;
  if (is(u, "argument")) return float_argument(n) != AOT_NO_INDEX;
  if (is(u, "twice")) return reads_two_alike(u, p, n);
  return is(u, "crash") || is(u, "refuse");
}

static aot_status_t refuse(const renew_plugin_unit_t *u, aot_ctx_t *ctx, aot_node_t n) {
  aot_diag_t d = {.struct_size = sizeof d, .severity = AOT_SEVERITY_ERROR};
  d.code = aot_str("renew.refused");
  d.message = aot_str("this node is not to be renewed");
  d.node = n;
  d.value = aot_no_value();
  u->host.diag(&u->host, ctx, &d);
  return AOT_E_UNIMPLEMENTED;
}

static aot_status_t renew(const renew_plugin_unit_t *u, aot_prog_t *p, aot_graph_t g, const node_t *n,
                          aot_node_t *out) {
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .flags = n->info.flags,
      .op = n->info.op,
      .n_args = n->info.n_args,
      .args = n->info.args,
      .region_tag = n->info.region_tag,
      .origin = n->info.origin,
  };
  AOT_TRY(u->host.edit->node_create(p, g, &spec, n->id, out));
  aot_node_info_t made = {.struct_size = sizeof made};
  AOT_TRY(u->host.graph->node_info(p, *out, &made));
  return u->host.edit->uses_replace(p, n->info.first_result, made.first_result);
}

static aot_status_t do_wrong(const renew_plugin_unit_t *u, aot_ctx_t *ctx, aot_prog_t *p, node_t *n, aot_node_t made) {
  const uint32_t argument = float_argument(n);
  if (is(u, "crash")) raise(SIGSEGV);
  if (is(u, "refuse")) return refuse(u, ctx, n->id);
  if (is(u, "argument")) {
    aot_arg_t a = n->info.args[argument];
    a.u.f = 2 * a.u.f + 1;
    return u->host.edit->arg_set(p, made, argument, &a);
  }
  if (is(u, "twice")) return u->host.edit->operand_set(p, made, 1, (aot_value_t){n->info.operands[0]});
  aot_node_info_t info = {.struct_size = sizeof info};
  AOT_TRY(u->host.graph->node_info(p, made, &info));
  return u->host.edit->uses_replace(p, info.first_result, (aot_value_t){like_result(u, p, n)});
}

static aot_status_t run_graph(const renew_plugin_unit_t *u, aot_ctx_t *ctx, aot_prog_t *p, aot_graph_t g) {
  const aot_graph_api_t *graph = u->host.graph;
  int64_t seen = 0;
  for (aot_node_t id = graph->first(p, g), next; id.id != AOT_NO_ID; id = next) {
    node_t n = {.id = id, .info = {.struct_size = sizeof n.info}};
    next = graph->next(p, id);
    AOT_TRY(graph->node_info(p, id, &n.info));
    if (n.info.n_results != 1 || graph->op_desc(p, n.info.op)->flags & (AOT_OP_EFFECT | AOT_OP_WRITES)) continue;
    AOT_TRY(graph->value_type(p, n.info.first_result, &n.type));
    if (n.type.kind != AOT_TYPE_TENSOR) continue;
    aot_node_t made;
    AOT_TRY(renew(u, p, g, &n, &made));
    if (is_of_kind(u, p, &n) && seen++ == u->at) AOT_TRY(do_wrong(u, ctx, p, &n, made));
    AOT_TRY(u->host.edit->node_erase(p, id));
  }
  return AOT_OK;
}

static aot_status_t run(const aot_pass_t *t, aot_ctx_t *ctx, aot_prog_t *p) {
  const renew_plugin_unit_t *u = t->head.self;
  for (int32_t kind = AOT_GRAPH_FORWARD; kind <= AOT_GRAPH_JOINT; kind++) {
    const aot_graph_t g = u->host.graph->graph_find(p, kind);
    if (g.id != AOT_NO_ID) AOT_TRY(run_graph(u, ctx, p, g));
  }
  return AOT_OK;
}

static void destroy(const aot_table_t *t) { free(t->self); }

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  renew_plugin_unit_t *u = calloc(1, sizeof *u);
  (void)ctx;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->how = opts->values[0].s;
  u->at = opts->values[1].i;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  *out_table = &u->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_str_t ways[] = {AOT_STR_INIT("well"), AOT_STR_INIT("skip"), AOT_STR_INIT("argument"),
                                 AOT_STR_INIT("twice"), AOT_STR_INIT("crash"), AOT_STR_INIT("refuse")};
static const aot_option_t options[] = {
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_ENUM, .name = AOT_STR_INIT("how"), .n_choices = 6,
     .choices = ways, .help = AOT_STR_INIT("what is done wrong"), .preset = {.s = AOT_STR_INIT("well")}},
    {.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64, .name = AOT_STR_INIT("at"),
     .help = AOT_STR_INIT("at which node of its kind"), .preset = {.i = 0}},
};
/* clang-format on */
static const aot_contract_t contract = {.struct_size = sizeof contract, .needs = AOT_NAMES(AOT_PROP_IMPORTED)};

AOT_PLUGIN_ONE("pass/1", "renew", "1.0.0", "tests", "Apache-2.0", "makes every node anew, one of them wrong", create,
               .contract = &contract, AOT_OPTIONS(options));
