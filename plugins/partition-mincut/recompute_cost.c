#include "recompute_cost.h"

#include <aot/opset.h>
#include <math.h>

/* Of a product: m x k, k x n and m x n elements multiply to (m k n)^2. 4 bytes an element. */
static double flops_from_sizes(const jg_joint_t *j, uint32_t n) {
  double first = 0, second = 0, result = 0;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) {
    double size = (double)j->nbytes[j->operands[k]] / 4;
    if (size > first) second = first, first = size;
    else if (size > second) second = size;
  }
  for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++)
    if ((double)j->nbytes[v] / 4 > result) result = (double)j->nbytes[v] / 4;
  return 2 * sqrt(first * second * result);
}

static int is_view(const ms_graph_t *g, uint32_t n) {
  for (uint32_t v = g->result_begin[n]; v < g->result_begin[n + 1]; v++)
    if (g->base[v] == v) return 0;
  return g->result_begin[n] < g->result_begin[n + 1];
}

static double time_of(const jg_joint_t *j, const mc_work_t *work, uint32_t n) {
  double ps = MC_PS_PER_NODE;
  if (work && work->nanoseconds[n]) return 1000 * (double)work->nanoseconds[n];
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++)
    ps += MC_PS_PER_BYTE * (double)j->nbytes[j->operands[k]];
  for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) ps += MC_PS_PER_BYTE * (double)j->nbytes[v];
  if (work) ps += MC_PS_PER_FLOP * (double)work->flops[n];
  else if (j->op_flags[n] & AOT_OP_HEAVY) ps += MC_PS_PER_FLOP * flops_from_sizes(j, n);
  return ps;
}

void mc_recompute_cost(const jg_joint_t *j, const ms_graph_t *graph, const mc_work_t *work, int64_t *cost) {
  for (uint32_t n = 0; n < j->n_nodes; n++) {
    const double ps = is_view(graph, n) ? 0 : time_of(j, work, n);
    cost[n] = ps < (double)MC_MAX_COST ? (int64_t)ps : MC_MAX_COST;
  }
}
