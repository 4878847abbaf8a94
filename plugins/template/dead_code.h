/* Dead code elimination on plain arrays: one sweep against the order, with counted uses. O(nodes + operands). */
#ifndef DCE_DEAD_CODE_H
#define DCE_DEAD_CODE_H

#include <stdint.h>

typedef struct dce_graph {
  uint32_t n_nodes, n_values;
  const uint32_t *operand_begin; /* n_nodes + 1, into operands */
  const uint32_t *operands;      /* value numbers */
  const uint32_t *result_begin;  /* n_nodes + 1: results are the values result_begin[n] .. result_begin[n + 1] */
  const uint8_t *has_effect;     /* by node: it stays whatever reads it */
  uint32_t *n_uses;              /* by value, graph outputs included; counted down here */
} dce_graph_t;

/* out_dead: room for n_nodes; the dead nodes, last one first, so that they can be erased in this order. Returns how
 * many. */
uint32_t dce_find_dead(const dce_graph_t *g, uint32_t *out_dead);

#endif
