#include "dead_code.h"

static int is_read(const dce_graph_t *g, uint32_t n) {
  for (uint32_t v = g->result_begin[n]; v < g->result_begin[n + 1]; v++)
    if (g->n_uses[v] > 0) return 1;
  return 0;
}

uint32_t dce_find_dead(const dce_graph_t *g, uint32_t *out_dead) {
  uint32_t n_dead = 0;
  for (uint32_t n = g->n_nodes; n-- > 0;) {
    if (g->has_effect[n] || is_read(g, n)) continue;
    for (uint32_t k = g->operand_begin[n]; k < g->operand_begin[n + 1]; k++) g->n_uses[g->operands[k]]--;
    out_dead[n_dead++] = n;
  }
  return n_dead;
}
