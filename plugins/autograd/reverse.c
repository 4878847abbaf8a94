/* Reverse accumulation (Linnainmaa 1970; Griewank and Walther, Evaluating Derivatives, ch. 3). Forward: mark what
 * depends on a differentiable input. Backward: pass each node the cotangents of its results once all uses have
 * contributed, which reverse execution order guarantees, and add what it returns to the cotangents of its operands.
 *
 * AG_NONE means that there is no path. AG_ZERO means a path with a vanishing derivative (floor, sign, the other branch
 * of a scatter): it propagates without emitting nodes, so that the input gets a gradient of zeros, as in PyTorch, and
 * not None. */
#include "reverse.h"

void ag_reach(const ag_graph_t *g, uint8_t *needs) {
  uint32_t n, k;
  for (n = 0; n < g->n_nodes; n++) {
    uint32_t any = 0;
    if (g->stops[n]) continue;
    for (k = g->operand_begin[n]; k < g->operand_begin[n + 1] && !any; k++)
      any = g->operand[k] < g->n_values && needs[g->operand[k]];
    for (k = 0; any && k < g->n_results[n]; k++)
      if (g->able[g->first_result[n] + k]) needs[g->first_result[n] + k] = 1;
  }
}

uint32_t ag_widest(const ag_graph_t *g) {
  uint32_t n, widest = 0;
  for (n = 0; n < g->n_nodes; n++) {
    uint32_t n_operands = g->operand_begin[n + 1] - g->operand_begin[n];
    if (n_operands > widest) widest = n_operands;
    if (g->n_results[n] > widest) widest = g->n_results[n];
  }
  return widest;
}

/* cot[v] += c. */
static int32_t accumulate(const ag_reverse_ops_t *ops, uint32_t n, uint32_t c, uint32_t *cot) {
  if (*cot == AG_NONE || *cot == AG_ZERO) {
    *cot = c;
    return 0;
  }
  return c == AG_ZERO ? 0 : ops->add(ops->self, n, *cot, c, cot);
}

int32_t ag_reverse(const ag_graph_t *g, const uint8_t *needs, uint32_t *cot, uint32_t *work,
                   const ag_reverse_ops_t *ops) {
  uint32_t *in = work, *out = work + ag_widest(g), n, k;
  for (n = g->n_nodes; n-- > 0;) {
    uint32_t begin = g->operand_begin[n], n_operands = g->operand_begin[n + 1] - begin;
    uint32_t reached = 0, any = 0, wanted = 0;
    int32_t status;
    if (g->stops[n]) continue;
    for (k = 0; k < g->n_results[n]; k++) {
      uint32_t v = g->first_result[n] + k, c = needs[v] ? cot[v] : AG_NONE;
      reached |= c != AG_NONE;
      in[k] = c == AG_ZERO ? AG_NONE : c;
      any |= in[k] != AG_NONE;
    }
    for (k = 0; k < n_operands; k++) {
      out[k] = AG_NONE;
      wanted |= g->operand[begin + k] < g->n_values && needs[g->operand[begin + k]];
    }
    if (!reached || !wanted) continue;
    if (any && (status = ops->rule(ops->self, n, in, out)) != 0) return status;
    for (k = 0; k < n_operands; k++) {
      uint32_t v = g->operand[begin + k];
      if (v >= g->n_values || !needs[v]) continue;
      if ((status = accumulate(ops, n, out[k] == AG_NONE ? AG_ZERO : out[k], &cot[v])) != 0) return status;
    }
  }
  return 0;
}
