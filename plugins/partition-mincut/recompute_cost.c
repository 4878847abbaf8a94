#include "recompute_cost.h"

#include <aot/opset.h>
#include <math.h>

/* Of a product: m x k, k x n and m x n elements multiply to (m k n)^2. 4 bytes an element. */
static double flops_from_sizes(const pt_joint_t *j, uint32_t n) {
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

static int64_t cost_of(const pt_joint_t *j, const uint64_t *flops, uint32_t n) {
  double ps = MC_PS_PER_NODE;
  if (j->op_flags[n] & AOT_OP_VIEW) return 0;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++)
    ps += MC_PS_PER_BYTE * (double)j->nbytes[j->operands[k]];
  for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) ps += MC_PS_PER_BYTE * (double)j->nbytes[v];
  if (flops) ps += MC_PS_PER_FLOP * (double)flops[n];
  else if (j->op_flags[n] & AOT_OP_HEAVY) ps += MC_PS_PER_FLOP * flops_from_sizes(j, n);
  return ps < (double)MC_MAX_COST ? (int64_t)ps : MC_MAX_COST;
}

void mc_recompute_cost(const pt_joint_t *j, const uint64_t *flops, int64_t *cost) {
  for (uint32_t n = 0; n < j->n_nodes; n++) cost[n] = cost_of(j, flops, n);
}
