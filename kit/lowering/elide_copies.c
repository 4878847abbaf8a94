/* Copies made for readers that want elements side by side, where all that read them go by strides: the copy is the
 * tensor itself, and no step. A program's forward half hands its backward half dense copies of slices; in a step's one
 * graph attention's gradients then read the projection where its forward did. */
#include "lower.h"

#include <aot/assert.h>
#include <string.h>

static int is_clone(const lw_build_t *b, const aot_snap_node_t *node) {
  const aot_snap_op_t *op = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops) + node->op;
  return aot_str_eq(aot_snap_text(b->s, op->name), aot_str("aten.clone.default")) && node->n_operands == 1;
}

/* A plugin's kernel may write into a copy that nothing else reads: programs that have one keep theirs. */
aot_status_t lw_find_spared(lw_build_t *b) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  const aot_snap_port_t *outputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->output_begin;
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands);
  uint8_t *is_wanted = lw_pool_alloc(b->pool, (uint64_t)b->n_values + 1); /* as a tensor of its own */
  b->elided = lw_pool_alloc(b->pool, (uint64_t)b->graph->n_nodes + 1);
  if (!is_wanted || !b->elided) return lw_no_memory(b->error, "for the schedule");
  if (b->has_inplace_custom_kernels) return AOT_OK;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    for (uint32_t k = 0; k < nodes[i].n_operands && !b->ops[nodes[i].op].goes_by_strides; k++) {
      const uint32_t row = operands[nodes[i].operand_begin + k];
      if (row != AOT_NO_ID) is_wanted[row - b->value_begin] = 1;
    }
  for (uint32_t i = 0; i < b->graph->n_outputs; i++)
    if (outputs[i].value != AOT_NO_ID) is_wanted[outputs[i].value - b->value_begin] = 1;
  for (uint32_t i = 0; i < b->graph->n_nodes; i++)
    if (is_clone(b, &nodes[i]) && !is_wanted[nodes[i].result_begin - b->value_begin]) b->elided[i] = LW_SPARED_COPY;
  return AOT_OK;
}

int lw_is_spared(const lw_build_t *b, uint32_t node) { return b->elided && b->elided[node]; }

static aot_status_t lower_clone(lw_build_t *b) {
  const uint32_t at = (uint32_t)(b->node - AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes)) - b->graph->node_begin;
  const lw_tensor_t *source = lw_arg_tensor(b, 0);
  AOT_ASSERT(at < b->graph->n_nodes);
  if (!lw_is_spared(b, at) || !source || source->dtype != lw_type(b, 0)->dtype || !lw_same_sizes(source, lw_type(b, 0)))
    return LW_DECLINED;
  const lw_tensor_t itself = *source;
  lw_bind(b, 0, &itself);
  return AOT_OK;
}

static const lw_lowering_t rows[] = {{"aten.clone.default", lower_clone}};
const lw_lowering_table_t lw_lowerings_spared = LW_TABLE(rows);
