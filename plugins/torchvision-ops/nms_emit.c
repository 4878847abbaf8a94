/* nms has a size that the boxes decide. Here it becomes parts of sizes that are known, and masked_select, whose size
 * any backend that runs such programs can determine. */
#include "vision_rewrites.h"

#include "kit/emit/emit.h"

static int has_all(const aot_host_t *host, aot_prog_t *prog) {
  static const char *const made_of[] = {"aten.sort.stable", "torchvision._nms_keep.default",
                                        "aten.masked_select.default"};
  for (size_t i = 0; i < sizeof made_of / sizeof *made_of; i++)
    if (host->graph->op_find(prog, aot_str(made_of[i])).id == AOT_NO_ID) return 0;
  return 1;
}

aot_status_t tv_decompose_nms(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_node_t node,
                              aot_value_t *out_value) {
  em_t e = em_make(host, ctx, prog, (aot_graph_t){AOT_NO_ID});
  aot_node_info_t made;
  if (!has_all(host, prog)) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(em_rewrite(&e, node));
  const em_x_t boxes = e.info.args[0], scores = e.info.args[1], threshold = e.info.args[2];
  const aot_type_t type = em_result_type(&e, 0);
  const em_x_t falling = EM(&e, "sort.stable", scores, em_b(1), em_i(0), em_b(1)); /* stable, along dim 0, descending */
  const em_x_t order = em_nth(falling, 1), keep = EM(&e, "torchvision._nms_keep.default", boxes, order, threshold);
  em_put(&e, em_op(&e, "masked_select"), 2, (const em_x_t[]){order, keep}, 1, &type, &made);
  if (e.status == AOT_OK) *out_value = made.first_result;
  return e.status;
}
