/* What keeping a value costs: its bytes, dearer with the distance from the backward, doubled when keeping it would force a
 * write that fusion would otherwise avoid. */
#include "mincut.h"

#include "common/partition/tags.h"
#include <aot/graph.h>
#include <stdlib.h>

#define FAR 1000000000u
#define MAX_STEPS 100

int mc_is_view(const pt_joint_t *j, uint32_t node) { return (j->op_flags[node] & AOT_OP_VIEW) != 0; }

int mc_is_recomputable(const pt_joint_t *j, uint32_t node) {
  uint32_t cheap = AOT_OP_POINTWISE | AOT_OP_VIEW | AOT_OP_CREATION | AOT_OP_MOVEMENT | AOT_OP_REDUCTION;
  uint32_t never = AOT_OP_HEAVY | AOT_OP_RANDOM | AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_REGION;
  return (j->op_flags[node] & cheap) && !(j->op_flags[node] & never);
}

/* Fusion takes cheap operators and random draws. */
static int fuses(const pt_joint_t *j, uint32_t node) {
  return mc_is_recomputable(j, node) || (j->op_flags[node] & AOT_OP_RANDOM) != 0;
}
int mc_is_fusible(const pt_joint_t *j, uint32_t a, uint32_t b) { return fuses(j, a) && fuses(j, b); }

int mc_must_recompute(const pt_joint_t *j, uint32_t node) {
  return pt_must_recompute(j, node);
}

/* Steps from each node's results to the nearest use outside the forward. */
static void measure_distance(const pt_joint_t *j, uint32_t *distance) {
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    uint32_t best = FAR;
    for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++)
      for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
        if (distance[j->users[k]] < best) best = distance[j->users[k]];
    distance[n] = !j->early[n] ? 0 : best == FAR ? FAR : best + 1;
  }
}

static uint32_t input_distance(const pt_joint_t *j, uint32_t v, const uint32_t *distance) {
  uint32_t best = FAR;
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
    if (distance[j->users[k]] + 1 < best) best = distance[j->users[k]] + 1;
  return best;
}

/* Someone reads it from memory whatever is kept: an input, a forward output, or a user that it cannot fuse with. */
static int is_materialized(const pt_joint_t *j, uint32_t v, const uint8_t *is_output) {
  if (j->def[v] == PT_NONE || is_output[v]) return 1;
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
    if (!mc_is_fusible(j, j->def[v], j->users[k])) return 1;
  return 0;
}

static int64_t price_of(const pt_joint_t *j, const mc_rules_t *rules, uint32_t v, uint32_t steps, const double *factor,
                        int materialized) {
  if (rules->free_static_inputs && j->input_kind[v] == PT_INPUT_STATIC) return 0;
  if (rules->recompute_views && j->def[v] != PT_NONE && mc_is_view(j, j->def[v])) return -1;
  steps = steps > MAX_STEPS ? MAX_STEPS : steps < 1 ? 1 : steps;
  int64_t bytes = (int64_t)((double)j->nbytes[v] * factor[steps]);
  return materialized ? bytes : 2 * bytes;
}

int mc_price(const pt_joint_t *j, const mc_rules_t *rules, int64_t *price) {
  uint32_t *distance = calloc((size_t)j->n_nodes + 1, sizeof *distance);
  uint8_t *is_output = calloc((size_t)j->n_values + 1, 1);
  double factor[MAX_STEPS + 1] = {1.0};
  int status = distance && is_output ? 0 : -2;
  for (int i = 1; i <= MAX_STEPS; i++) factor[i] = factor[i - 1] * rules->distance_base;
  if (status == 0) {
    for (uint32_t i = 0; i < j->n_forward_outputs; i++)
      if (j->forward_outputs[i] != PT_NONE) is_output[j->forward_outputs[i]] = 1;
    measure_distance(j, distance);
    for (uint32_t v = 0; v < j->n_values; v++) {
      uint32_t steps = j->def[v] == PT_NONE ? input_distance(j, v, distance) : distance[j->def[v]];
      price[v] = price_of(j, rules, v, steps, factor, is_materialized(j, v, is_output));
    }
  }
  free(distance);
  free(is_output);
  return status;
}
