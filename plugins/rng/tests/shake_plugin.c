/* What the tests do to programs between stages: tag-all asks that every node of the forward runs again in the backward;
 * shuffle puts nodes into another order that their operands allow; redraw makes the mistake that the tests are there
 * for, fresh numbers in the backward; operators that draw and that no rule knows: shake.noise, and shake.speckle, which
 * its operator set makes of dropout. */
#include <aot/describe.h>
#include <aot/host.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <aot/pass.h>
#include <stdlib.h>

typedef struct shake_plugin_unit {
  aot_pass_t table;
  aot_host_t host;
  uint64_t seed;
} shake_plugin_unit_t;

static aot_graph_t find_graph(const shake_plugin_unit_t *u, aot_prog_t *prog) {
  const aot_graph_t joint = u->host.graph->graph_find(prog, AOT_GRAPH_JOINT);
  return joint.id != AOT_NO_ID ? joint : u->host.graph->graph_find(prog, AOT_GRAPH_FORWARD);
}

static aot_status_t tag_all(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const shake_plugin_unit_t *u = p->head.self;
  const aot_graph_t graph = find_graph(u, prog);
  (void)ctx;
  for (aot_node_t n = u->host.graph->first(prog, graph); n.id != AOT_NO_ID; n = u->host.graph->next(prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(u->host.graph->node_info(prog, n, &info));
    if (!(info.flags & AOT_NODE_BACKWARD))
      AOT_TRY(u->host.edit->flags_set(prog, n, info.flags | AOT_NODE_MUST_RECOMPUTE));
  }
  return AOT_OK;
}

/* ---- shuffle ---- */

typedef struct order {
  uint32_t *ready, n_ready;
  uint32_t *n_waits; /* by node id: operands that are not there yet */
  uint64_t state;
} order_t;

static uint32_t pick(order_t *o) {
  o->state = o->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  const uint32_t at = (uint32_t)((o->state >> 33) % o->n_ready), node = o->ready[at];
  o->ready[at] = o->ready[--o->n_ready];
  return node;
}

/* The node again at the end; its users take the new results and wait for one operand less. */
static aot_status_t move_to_end(const shake_plugin_unit_t *u, aot_prog_t *prog, aot_graph_t graph, aot_node_t node,
                                order_t *o, aot_node_t *users) {
  aot_node_info_t info = {.struct_size = sizeof info}, made = {.struct_size = sizeof made};
  aot_type_t types[64];
  aot_node_t copy;
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  const uint32_t n = info.n_results < 64 ? info.n_results : 64;
  for (uint32_t i = 0; i < n; i++)
    AOT_TRY(u->host.graph->value_type(prog, (aot_value_t){info.first_result.id + i}, &types[i]));
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .flags = info.flags,
      .op = info.op,
      .n_args = info.n_args,
      .args = info.args,
      .n_types = n,
      .types = types,
      .region_tag = info.region_tag,
      .origin = info.origin,
  };
  AOT_TRY(u->host.edit->node_create(prog, graph, &spec, aot_no_node(), &copy));
  AOT_TRY(u->host.graph->node_info(prog, copy, &made));
  for (uint32_t i = 0; i < n; i++) {
    const aot_value_t from = {info.first_result.id + i}, to = {made.first_result.id + i};
    const uint32_t n_users = u->host.graph->users(prog, from, users, u->host.graph->n_nodes(prog));
    for (uint32_t k = 0; k < n_users; k++)
      if (--o->n_waits[users[k].id] == 0) o->ready[o->n_ready++] = users[k].id;
    AOT_TRY(u->host.edit->uses_replace(prog, from, to));
  }
  return u->host.edit->node_erase(prog, node);
}

static aot_status_t shuffle(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const shake_plugin_unit_t *u = p->head.self;
  const aot_graph_t graph = find_graph(u, prog);
  const uint64_t n = 2 * (uint64_t)u->host.graph->n_nodes(prog) + 1;
  order_t o = {.state = u->seed};
  o.ready = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, n * 4);
  o.n_waits = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, n * 4);
  aot_node_t *users = u->host.alloc(&u->host, ctx, AOT_ARENA_SCRATCH, 4, n * sizeof *users);
  if (!o.ready || !o.n_waits || !users) return AOT_E_EXHAUSTED;
  for (aot_node_t node = u->host.graph->first(prog, graph); node.id != AOT_NO_ID;
       node = u->host.graph->next(prog, node)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(u->host.graph->node_info(prog, node, &info));
    for (uint32_t k = 0; k < info.n_operands; k++)
      if (info.operands[k] != AOT_NO_ID &&
          u->host.graph->value_def(prog, (aot_value_t){info.operands[k]}).id != AOT_NO_ID)
        o.n_waits[node.id]++;
    if (o.n_waits[node.id] == 0) o.ready[o.n_ready++] = node.id;
  }
  while (o.n_ready) AOT_TRY(move_to_end(u, prog, graph, (aot_node_t){pick(&o)}, &o, users));
  return AOT_OK;
}

/* ---- redraw ---- */

static aot_status_t redraw(const aot_pass_t *p, aot_ctx_t *ctx, aot_prog_t *prog) {
  const shake_plugin_unit_t *u = p->head.self;
  const aot_graph_t graph = u->host.graph->graph_find(prog, AOT_GRAPH_BACKWARD);
  const aot_op_t uniform = u->host.graph->op_find(prog, aot_str("aot.philox_uniform.default"));
  (void)ctx;
  for (aot_node_t n = u->host.graph->first(prog, graph); n.id != AOT_NO_ID; n = u->host.graph->next(prog, n)) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(u->host.graph->node_info(prog, n, &info));
    const aot_arg_t fresh = aot_arg_int(info.n_args > 2 ? info.args[2].u.i + 1000 : 0);
    if (info.op.id == uniform.id) AOT_TRY(u->host.edit->arg_set(prog, n, 2, &fresh));
  }
  return AOT_OK;
}

/* ---- units ---- */

static void destroy(const aot_table_t *p) { free(p->self); }

static aot_status_t create(const aot_host_t *host, const aot_opts_t *opts, const aot_table_t **out,
                           aot_status_t (*run)(const aot_pass_t *, aot_ctx_t *, aot_prog_t *)) {
  shake_plugin_unit_t *u = calloc(1, sizeof *u);
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->seed = (uint64_t)opts->values[0].i;
  u->table = (aot_pass_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy}, .run = run};
  *out = &u->table.head;
  return AOT_OK;
}
static aot_status_t create_tag_all(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out) {
  (void)self, (void)ctx;
  return create(host, opts, out, tag_all);
}
static aot_status_t create_shuffle(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                   const aot_opts_t *opts, const aot_table_t **out) {
  (void)self, (void)ctx;
  return create(host, opts, out, shuffle);
}
static aot_status_t create_redraw(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host,
                                  const aot_opts_t *opts, const aot_table_t **out) {
  (void)self, (void)ctx;
  return create(host, opts, out, redraw);
}

static const aot_schema_arg_t args[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR}};
static const aot_schema_arg_t results[] = {{.type = AOT_STYPE_TENSOR}};
static const aot_op_desc_t noise = {
    .struct_size = sizeof noise,
    .flags = AOT_OP_RANDOM,
    .name = AOT_STR_INIT("shake.noise.default"),
    .schema = AOT_STR_INIT("(Tensor x) -> Tensor"),
    .args = args,
    .results = results,
    .n_args = 1,
    .n_results = 1,
};
static const aot_op_desc_t speckle = {
    .struct_size = sizeof speckle,
    .flags = AOT_OP_RANDOM,
    .name = AOT_STR_INIT("shake.speckle.default"),
    .schema = AOT_STR_INIT("(Tensor x) -> Tensor"),
    .args = args,
    .results = results,
    .n_args = 1,
    .n_results = 1,
};
static const aot_op_desc_t *const ops[] = {&noise, &speckle};

typedef struct opset {
  aot_opset_t table;
  aot_host_t host;
} opset_t;

static aot_status_t decompose(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, aot_node_t node,
                              aot_value_t *out) {
  const aot_host_t *host = &((const opset_t *)o->head.self)->host;
  aot_node_info_t info = {.struct_size = sizeof info}, made = {.struct_size = sizeof made};
  aot_node_t dropout;
  (void)ctx;
  if (local != 1) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(host->graph->node_info(prog, node, &info));
  const aot_arg_t with[] = {info.args[0], aot_arg_float(0.5), aot_arg_bool(1)};
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .op = host->graph->op_find(prog, aot_str("aten.dropout.default")),
      .n_args = 3,
      .args = with,
      .origin = info.origin,
  };
  AOT_TRY(host->edit->node_create(prog, info.graph, &spec, node, &dropout));
  AOT_TRY(host->graph->node_info(prog, dropout, &made));
  *out = made.first_result;
  return AOT_OK;
}

static void destroy_opset(const aot_table_t *o) { free(o->self); }

static aot_status_t create_opset(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                                 const aot_table_t **out) {
  opset_t *o = calloc(1, sizeof *o);
  (void)self, (void)ctx, (void)opts;
  if (!o) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&o->host, sizeof o->host, host));
  o->table = (aot_opset_t){
      .head = {.struct_size = sizeof o->table, .self = o, .destroy = destroy_opset},
      .ops = ops,
      .n_ops = 2,
      .decompose = decompose,
  };
  *out = &o->table.head;
  return AOT_OK;
}

/* clang-format off */
static const aot_option_t options[] = {{.struct_size = sizeof(aot_option_t), .kind = AOT_OPT_I64,
                                        .flags = AOT_OPT_AFFECTS_OUTPUT | AOT_OPT_HAS_RANGE,
                                        .name = AOT_STR_INIT("seed"), .help = AOT_STR_INIT("which order"), .min = 0,
                                        .max = 1e9}};
/* clang-format on */
static const aot_contract_t contract = {.struct_size = sizeof(aot_contract_t), .needs = AOT_NAMES(AOT_PROP_IMPORTED)};
#define PASS(id_, create_)                                                                                             \
  AOT_UNIT("pass/1", id_, "0.1.0", "shakes a program", .options = options, .n_options = 1,                             \
           .option_stride = sizeof(aot_option_t), .contract = &contract, .create = create_)
static const aot_unit_t tag_all_unit = PASS("tag-all", create_tag_all), shuffle_unit = PASS("shuffle", create_shuffle),
                        redraw_unit = PASS("redraw", create_redraw);
static const aot_unit_t opset_unit =
    AOT_UNIT("opset/1", "shake", "0.1.0", "an operator that draws", .create = create_opset);
static const aot_unit_t *const units[] = {&tag_all_unit, &shuffle_unit, &redraw_unit, &opset_unit};

AOT_PLUGIN("shake", "0.1.0", "example", "Apache-2.0", units,
           AOT_NOTE_UNIT("pass/1", "tag-all", "shakes a program") "," AOT_NOTE_UNIT(
               "pass/1", "shuffle",
               "shakes a program") "," AOT_NOTE_UNIT("pass/1", "redraw",
                                                     "shakes a program") "," AOT_NOTE_UNIT("opset/1", "shake",
                                                                                           "an operator that draws"));
