/* Reverse-mode differentiation on plain arrays: which values have a relevant derivative, and the order of work.
 *
 * Nodes are in execution order, numbered 0..n_nodes-1. Node n reads operand[operand_begin[n] .. operand_begin[n + 1])
 * and defines the values first_result[n] .. first_result[n] + n_results[n] - 1. Values are numbered from 1, below
 * n_values; those without a defining node are inputs. */
#ifndef AG_REVERSE_H
#define AG_REVERSE_H

#include <stdint.h>

#define AG_NONE 0u         /* no value, no cotangent: nothing that has a tangent depends on the value */
#define AG_ZERO UINT32_MAX /* something depends on it, and the derivative is zero everywhere: nothing is emitted */

typedef struct ag_graph {
  uint32_t n_nodes, n_values;
  const uint32_t *operand_begin; /* n_nodes + 1 */
  const uint32_t *operand;       /* AG_NONE: an absent one */
  const uint32_t *first_result;
  const uint32_t *n_results;
  const uint8_t *stops; /* by node: no derivative goes through it */
  const uint8_t *able;  /* by value: it can have a derivative: a floating-point tensor, a differentiable result */
} ag_graph_t;

/* needs[v] = 1 for every able value that depends on a marked one through nodes that do not stop. In: the marked values.
 * O(nodes + operands). */
void ag_reach(const ag_graph_t *g, uint8_t *needs);

/* What the walk requests; a non-zero answer ends the walk and is returned. */
typedef struct ag_reverse_ops {
  void *self;
  /* Cotangents of node n's results, never all absent (AG_NONE where absent), to those of its operands: out[k] for each
   * operand slot, preset to AG_NONE; only slots with needs[operand] count, and AG_NONE or AG_ZERO there say zero. */
  int32_t (*rule)(void *self, uint32_t n, const uint32_t *cotangents, uint32_t *out);
  /* n: the node that contributed b */
  int32_t (*add)(void *self, uint32_t n, uint32_t a, uint32_t b, uint32_t *out_sum);
} ag_reverse_ops_t;

/* One backward pass. cot[v], by value: in, the seeds, else AG_NONE; out, the cotangent of every value reached: of
 * inputs the gradients requested. work: room for twice the largest number of operands or results of a node. O(nodes +
 * operands) plus the calls. */
int32_t ag_reverse(const ag_graph_t *g, const uint8_t *needs, uint32_t *cot, uint32_t *work,
                   const ag_reverse_ops_t *ops);
uint32_t ag_widest(const ag_graph_t *g); /* the largest number of operands or results of a node */

#endif
