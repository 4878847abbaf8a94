/* The gradient of an embedding: of f16 or bf16 as floats (lower_half.c), which a loop adds, or where it cannot a
 * kernel. */
#include "kit/lowering/group_loop.h"
#include "target.h"

/* embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq) */
static aot_status_t lower_embedding_backward(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const uint32_t node = (uint32_t)(b->node - nodes);
  if (lw_type(b, 0)->dtype != AOT_F32) return LW_DECLINED;
  const aot_status_t status = lw_lower_group(b, &node, NULL, 1);
  return status == LW_DECLINED || status == LW_SPLIT ? bc_lower_rows_added(b) : status;
}

static const lw_lowering_t rows[] = {{"aten.embedding_dense_backward.default", lower_embedding_backward}};
const lw_lowering_table_t bc_lowerings_embedding = LW_TABLE(rows);
