/* nms has a size that the boxes decide. Here it becomes parts of sizes that are known, and masked_select, whose size any backend
 * that runs such programs can tell. */
#include "vision_rewrites.h"

#include <aot/inline.h>

typedef struct maker {
  const aot_host_t *host;
  aot_prog_t *prog;
  aot_node_t before;
  aot_graph_t graph;
} maker_t;

/* One node; result number k of it. type NULL: inferred. */
static aot_status_t make(const maker_t *m, const char *op, uint32_t n_args, const aot_arg_t *args, const aot_type_t *type, uint32_t k,
                         aot_value_t *out) {
  aot_node_info_t made = {.struct_size = sizeof made};
  aot_node_t node;
  const aot_node_spec_t spec = {.struct_size = sizeof spec, .op = m->host->graph->op_find(m->prog, aot_str(op)), .n_args = n_args,
                                .args = args, .n_types = type != NULL, .types = type, .origin = aot_no_origin()};
  if (spec.op.id == AOT_NO_ID) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(m->host->edit->node_create(m->prog, m->graph, &spec, m->before, &node));
  AOT_TRY(m->host->graph->node_info(m->prog, node, &made));
  out->id = made.first_result.id + k;
  return AOT_OK;
}

aot_status_t tv_decompose_nms(const aot_host_t *host, aot_prog_t *prog, aot_node_t node, aot_value_t *out_value) {
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_value_t order, keep;
  aot_type_t type;
  AOT_TRY(host->graph->node_info(prog, node, &info));
  AOT_TRY(host->graph->value_type(prog, info.first_result, &type));
  const maker_t m = {host, prog, node, info.graph};
  const aot_arg_t boxes = info.args[0], scores = info.args[1], threshold = info.args[2];
  const aot_arg_t falling[] = {scores, aot_arg_bool(1), aot_arg_int(0), aot_arg_bool(1)}; /* stable, along dim 0, descending */
  AOT_TRY(make(&m, "aten.sort.stable", 4, falling, NULL, 1, &order));
  AOT_TRY(make(&m, "torchvision._nms_keep.default", 3, (const aot_arg_t[]){boxes, aot_arg_value(order), threshold}, NULL, 0, &keep));
  const aot_arg_t chosen[] = {aot_arg_value(order), aot_arg_value(keep)};
  return make(&m, "aten.masked_select.default", 2, chosen, &type, 0, out_value);
}
