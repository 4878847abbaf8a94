#include "schedule_items.h"

#include <aot/assert.h>

#include "group_loop.h"
#include "transaction.h"

void lw_find_unit(const lw_build_t *b, const lw_units_t *units, uint32_t last) {
  const uint32_t *previous = units->previous;
  lw_schedule_item_t *out = units->unit;
  const uint32_t begin = b->copies_begin ? b->copies_begin[last] : 0;
  uint32_t n_copies = b->copies_begin ? b->copies_begin[last + 1] - begin : 0;
  out->n = n_copies;
  for (uint32_t i = last; i != LW_NONE; i = previous[i]) out->n++;
  for (uint32_t k = out->n, i = last; k-- > 0;) {
    out->is_copy[k] = i == LW_NONE || (n_copies && b->copies[begin + n_copies - 1] > i);
    out->nodes[k] = out->is_copy[k] ? b->copies[begin + --n_copies] : i;
    AOT_ASSERT(k + 1 == out->n || out->nodes[k] < out->nodes[k + 1]); /* in the order of nodes */
    if (!out->is_copy[k]) i = previous[i];
  }
  AOT_ASSERT(n_copies == 0 && out->nodes[out->n - 1] == last); /* a copy is read by a later member */
}

/* Nothing to run: the values of symbolic integers are known from the shape environment. */
static int makes_numbers_only(const lw_build_t *b) {
  if (AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops)[b->node->op].flags & AOT_OP_REGION) return 0;
  for (uint32_t r = 0; r < b->node->n_results; r++)
    if (lw_type(b, r)->dtype) return 0;
  return b->node->n_results > 0;
}

/* Lowerings of their own take numbers that are known; the reference kernel's are read when it runs. */
static int takes_float(const lw_build_t *b) {
  const uint32_t *operands = AOT_SNAP_ROWS(b->s, uint32_t, operands) + b->node->operand_begin;
  for (uint32_t k = 0; k < b->node->n_operands; k++)
    if (operands[k] != AOT_NO_ID && lw_value(b, operands[k])->kind == AOT_TYPE_SYMFLOAT) return 1;
  return 0;
}

aot_status_t lw_lower_node(lw_build_t *b) {
  const lw_lower_fn lower = lw_op(b)->lower;
  aot_status_t status = LW_DECLINED;
  const custom_node_t *custom =
      custom_find(b->machine->custom, (uint32_t)(b->node - AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes)));
  if (custom) return lw_lower_custom(b, custom);
  if (makes_numbers_only(b)) return AOT_OK;
  const uint32_t at = (uint32_t)(b->node - AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes)) - b->graph->node_begin;
  if (lw_is_spared(b, at) && b->elided[at] == LW_SPARED_DRAW) return AOT_OK;
  if (lw_is_product_sum(b, at)) return lw_lower_product_sum(b);
  if (lw_is_residual(b, at)) return lw_lower_residual(b);
  if (lower && !takes_float(b)) status = lw_attempt(b, lower);
  return status == LW_DECLINED ? lw_lower_rest(b) : status;
}

/* Copies then go through memory, as a result of their own. */
static aot_status_t lower_apart(lw_build_t *b, const lw_schedule_item_t *m) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  for (uint32_t k = 0; k < m->n; k++) {
    b->node = &nodes[m->nodes[k]];
    AOT_ASSERT(!m->is_copy[k] || b->node->n_results == 1); /* only numbers of elements are copied */
    b->n_uses[b->node->result_begin - b->value_begin] += m->is_copy[k];
    const aot_status_t status = lw_lower_group(b, &m->nodes[k], NULL, 1);
    if (status != LW_DECLINED) AOT_TRY(status);
    else AOT_TRY(lw_lower_node(b));
  }
  return AOT_OK;
}

aot_status_t lw_lower_unit(lw_build_t *b, const lw_schedule_item_t *m) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(b->s, aot_snap_node_t, nodes) + b->graph->node_begin;
  aot_status_t status = LW_DECLINED;
  b->node = &nodes[m->nodes[m->n - 1]];
  if (b->group[m->nodes[m->n - 1]] != LW_NONE) status = lw_lower_group(b, m->nodes, m->is_copy, m->n);
  if (status == LW_SPLIT) return lower_apart(b, m);
  for (uint32_t k = 0; k < m->n && (status == LW_DECLINED || k > 0); k++) {
    b->node = &nodes[m->nodes[k]];
    status = lw_lower_node(b);
    if (status != AOT_OK) return status;
  }
  return status;
}
