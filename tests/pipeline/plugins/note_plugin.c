/* A plugin with one unit, an operator set: operators that have an effect. example.note.default(x) -> x, printing;
 * example.stamp_, which writes its argument: effects and aliases do not go together. The backend need not know note: it
 * is made of a print and a copy. */
#include <aot/describe.h>
#include <aot/host.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdlib.h>

typedef struct note_plugin_unit {
  aot_opset_t table;
  aot_host_t host;
} note_plugin_unit_t;

static const aot_schema_arg_t note_args[] = {{.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR}};
static const aot_schema_arg_t note_results[] = {{.type = AOT_STYPE_TENSOR}};
static const aot_schema_arg_t stamp_args[] = {
    {.name = AOT_STR_INIT("x"), .type = AOT_STYPE_TENSOR, .flags = AOT_SARG_WRITE, .alias_set = 1}};
static const aot_schema_arg_t stamp_results[] = {{.type = AOT_STYPE_TENSOR, .flags = AOT_SARG_WRITE, .alias_set = 1}};
static const aot_op_desc_t note = {
    .struct_size = sizeof note,
    .flags = AOT_OP_EFFECT,
    .name = AOT_STR_INIT("example.note.default"),
    .schema = AOT_STR_INIT("(Tensor x) -> Tensor"),
    .args = note_args,
    .results = note_results,
    .n_args = 1,
    .n_results = 1,
};
static const aot_op_desc_t stamp = {
    .struct_size = sizeof stamp,
    .flags = AOT_OP_EFFECT | AOT_OP_WRITES,
    .name = AOT_STR_INIT("example.stamp_.default"),
    .schema = AOT_STR_INIT("(Tensor(a!) x) -> Tensor(a!)"),
    .args = stamp_args,
    .results = stamp_results,
    .n_args = 1,
    .n_results = 1,
};
static const aot_op_desc_t *const ops[] = {&note, &stamp};

static aot_status_t infer(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, const aot_arg_t *args,
                          uint32_t n, const aot_type_sink_t *sink) {
  const note_plugin_unit_t *u = o->head.self;
  aot_type_t t;
  (void)ctx, (void)local, (void)n;
  AOT_TRY(u->host.graph->value_type(prog, (aot_value_t){(uint32_t)args[0].u.i}, &t));
  return sink->put(sink, &t);
}

static aot_status_t emit(const note_plugin_unit_t *u, aot_prog_t *prog, const aot_node_info_t *at, aot_node_t before,
                         const char *op, aot_arg_t arg, aot_value_t *out) {
  aot_node_info_t made = {.struct_size = sizeof made};
  aot_node_t node;
  aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .flags = at->flags,
      .op = u->host.graph->op_find(prog, aot_str(op)),
      .n_args = 1,
      .args = &arg,
      .region_tag = at->region_tag,
      .origin = at->origin,
  };
  AOT_TRY(u->host.edit->node_create(prog, at->graph, &spec, before, &node));
  AOT_TRY(u->host.graph->node_info(prog, node, &made));
  *out = made.first_result;
  return AOT_OK;
}

static aot_status_t decompose(const aot_opset_t *o, aot_ctx_t *ctx, aot_prog_t *prog, uint32_t local, aot_node_t node,
                              aot_value_t *out_values) {
  const note_plugin_unit_t *u = o->head.self;
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_value_t nothing;
  (void)ctx;
  if (local != 0) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(u->host.graph->node_info(prog, node, &info));
  const aot_arg_t x = info.args[0];
  AOT_TRY(emit(u, prog, &info, node, "aten._print.default", aot_arg_str(aot_str(". noted")), &nothing));
  return emit(u, prog, &info, node, "aten.clone.default", x, out_values);
}

static void destroy(const aot_table_t *o) { free(o->self); }

static aot_status_t create(const aot_unit_t *self, aot_ctx_t *ctx, const aot_host_t *host, const aot_opts_t *opts,
                           const aot_table_t **out) {
  note_plugin_unit_t *u = calloc(1, sizeof *u);
  (void)self, (void)ctx, (void)opts;
  if (!u) return AOT_E_EXHAUSTED;
  AOT_TRY(aot_import(&u->host, sizeof u->host, host));
  u->table = (aot_opset_t){
      .head = {.struct_size = sizeof u->table, .self = u, .destroy = destroy},
      .ops = ops,
      .n_ops = sizeof ops / sizeof *ops,
      .infer = infer,
      .decompose = decompose,
  };
  *out = &u->table.head;
  return AOT_OK;
}

static const aot_unit_t unit = AOT_UNIT("opset/1", "note", "0.1.0", "operators that write notes", .create = create);
static const aot_unit_t *const units[] = {&unit};

AOT_PLUGIN("note", "0.1.0", "tests", "Apache-2.0", units,
           AOT_NOTE_UNIT("opset/1", "note", "operators that write notes"));
