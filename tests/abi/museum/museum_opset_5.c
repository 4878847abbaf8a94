/* Museum, ABI 1.5: an opset. One operator, museum5::twice, with its shape, its derivative and what it decomposes into. */
#include <aot/describe.h>
#include <aot/ext/derivative.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdlib.h>

#define HELP "museum5::twice(Tensor x) -> Tensor"

typedef struct unit {
  aot_opset_t table;
  aot_host_t host;
  aot_derivative_t derivative;
  const aot_derivative_t *derivatives[1];
  aot_ext_derivatives_t ext;
} unit_t;

static const aot_schema_arg_t tensor[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR}};
static const aot_op_desc_t twice = {
    .struct_size = sizeof twice,
    .flags = AOT_OP_POINTWISE,
    .name = AOT_STR_INIT("museum5.twice.default"),
    .schema = AOT_STR_INIT("(Tensor x) -> Tensor"),
    .group = AOT_STR_INIT("pointwise"),
    .doc = AOT_STR_INIT("x + x"),
    .args = tensor,
    .results = tensor,
    .n_args = 1,
    .n_results = 1,
};
static const aot_op_desc_t *const ops[] = {&twice};

static aot_status_t infer(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, const aot_arg_t *args,
                          uint32_t n_args, const aot_type_sink_t *sink) {
  const unit_t *u = o->head.self;
  aot_type_t t;
  (void)ctx, (void)local, (void)n_args;
  AOT_TRY(u->host.graph->value_type(prog, (aot_value_t){(uint32_t)args[0].u.i}, &t));
  t.strides = NULL;
  t.offset = 0;
  return sink->put(sink, &t);
}

static aot_status_t put(const unit_t *u, aot_prog_t *prog, aot_graph_t g, const char *op, const aot_arg_t *args,
                        uint32_t n, aot_node_t before, aot_value_t *out) {
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec, .op = u->host.graph->op_find(prog, aot_str(op)), .n_args = n, .args = args};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t node;
  AOT_TRY(u->host.edit->node_create(prog, g, &spec, before, &node));
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  *out = info.first_result;
  return AOT_OK;
}

static aot_status_t decompose(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, aot_node_t node,
                              aot_value_t *out_values) {
  const unit_t *u = o->head.self;
  aot_node_info_t info = {.struct_size = sizeof info};
  (void)ctx, (void)local;
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  const aot_arg_t args[] = {info.args[0], info.args[0]};
  return put(u, prog, info.graph, "aten.add.Tensor", args, 2, node, out_values);
}

static aot_status_t put_derivative(const aot_derivative_t *d, aot_ctx_t *ctx, const aot_derivative_call_t *call) {
  const aot_arg_t arg = aot_arg_value(call->cotangents[0]);
  (void)ctx;
  if (!call->wanted[0]) return AOT_OK;
  return put(d->head.self, call->prog, call->graph, "museum5.twice.default", &arg, 1, aot_no_node(), &call->out[0]);
}

static const void *get_ext(const aot_table_t *o, const char *id) {
  const unit_t *u = o->self;
  return strcmp(id, AOT_EXT_DERIVATIVE) == 0 ? &u->ext : NULL;
}

static void destroy(const aot_table_t *o) { free(o->self); }

static aot_status_t create(aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out_table) {
  unit_t *u = calloc(1, sizeof *u);
  (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->derivative = (aot_derivative_t){
      .head = {.struct_size = sizeof u->derivative, .self = u}, .op = twice.name, .covers = 1, .put = put_derivative};
  u->derivatives[0] = &u->derivative;
  u->ext = (aot_ext_derivatives_t){.struct_size = sizeof u->ext, .derivatives = u->derivatives, .n_derivatives = 1};
  u->table = (aot_opset_t){.head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy, .get_ext = get_ext},
                           .ops = ops,
                           .n_ops = 1,
                           .infer = infer,
                           .decompose = decompose};
  *out_table = &u->table.head;
  return AOT_OK;
}

AOT_PLUGIN_OPSET("museum.opset-5", "5.0", "museum", "Apache-2.0", HELP, "museum5", create);
