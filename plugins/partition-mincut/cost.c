/* What keeping a value costs: its bytes, more with the distance from the backward, doubled when keeping it would
 * force a write that fusion would otherwise avoid. */
#include "mincut.h"

#include <math.h>
#include <stdlib.h>

#define MAX_STEPS 100
#define MOST 4e18 /* all prices together: a sum of them is an int64 */

static uint32_t nearest_use(const jg_joint_t *j, uint32_t v, const uint32_t *of_node) {
  uint32_t best = MC_FAR;
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
    if (of_node[j->users[k]] + 1 < best) best = of_node[j->users[k]] + 1;
  return best;
}

/* One of several results that no forward node reads belongs to the backward. */
static int is_early(const jg_joint_t *j, uint32_t v, const uint8_t *is_output) {
  if (is_output[v]) return 1;
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
    if (j->early[j->users[k]]) return 1;
  return 0;
}

static void mark_outputs(const jg_joint_t *j, uint8_t *is_output) {
  for (uint32_t i = 0; i < j->n_forward_outputs; i++)
    if (j->forward_outputs[i] != JG_NONE) is_output[j->forward_outputs[i]] = 1;
}

int mc_measure(const jg_joint_t *j, uint32_t *of_value, uint32_t *of_node) {
  uint8_t *is_output = calloc((size_t)j->n_values + 1, 1);
  if (!is_output) return -2;
  mark_outputs(j, is_output);
  for (uint32_t n = j->n_nodes; n-- > 0;) {
    const int several = j->result_begin[n + 1] - j->result_begin[n] > 1;
    uint32_t best = MC_FAR;
    for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) {
      of_value[v] = j->early[n] && (!several || is_early(j, v, is_output)) ? nearest_use(j, v, of_node) : 0;
      if (of_value[v] < best) best = of_value[v];
    }
    of_node[n] = !j->early[n] ? 0 : several && best < MC_FAR ? best + 1 : best;
  }
  for (uint32_t v = 0; v < j->n_inputs; v++) of_value[v] = nearest_use(j, v, of_node);
  free(is_output);
  return 0;
}

/* Someone reads it from memory whatever is stored: an input, an output, or a user that it cannot fuse with. */
static int is_materialized(const mc_ruled_graph_t *m, uint32_t v, const uint8_t *is_output) {
  const jg_joint_t *j = m->j;
  if (j->def[v] == JG_NONE || is_output[v]) return 1;
  for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1]; k++)
    if (!mc_fuses_into(m, v, j->users[k])) return 1;
  return 0;
}

static double price_of(const mc_ruled_graph_t *m, uint32_t v, uint32_t steps, const double *factor,
                       const uint8_t *is_output) {
  const jg_joint_t *j = m->j;
  if (m->rules->free_static_inputs && j->input_kind[v] == JG_INPUT_STATIC) return 0;
  if (m->rules->recompute_views && j->def[v] != JG_NONE && (m->classes[j->def[v]] & MC_VIEW)) return -1;
  steps = steps > MAX_STEPS ? MAX_STEPS : steps < 1 ? 1 : steps;
  const double bytes = floor((double)j->nbytes[v] * factor[steps]);
  return m->rules->double_fused && !is_materialized(m, v, is_output) ? 2 * bytes : bytes;
}

/* Whole bytes; of programs so large that their sum would not fit, in larger units. */
static void round_prices(const double *exact, uint32_t n, int64_t *price) {
  double sum = 0, unit = 1;
  for (uint32_t v = 0; v < n; v++) sum += exact[v] > 0 ? exact[v] : 0;
  while (sum / unit > MOST) unit *= 2;
  for (uint32_t v = 0; v < n; v++) price[v] = exact[v] < 0 ? -1 : (int64_t)ceil(exact[v] / unit);
}

int mc_price(const mc_ruled_graph_t *m, const uint32_t *distance_of_value, int64_t *price) {
  const jg_joint_t *j = m->j;
  uint8_t *is_output = calloc((size_t)j->n_values + 1, 1);
  double *exact = calloc((size_t)j->n_values + 1, sizeof *exact), factor[MAX_STEPS + 1];
  const int status = is_output && exact ? 0 : -2;
  for (int i = 0; i <= MAX_STEPS; i++) factor[i] = pow(m->rules->distance_base, i);
  if (status == 0) {
    mark_outputs(j, is_output);
    for (uint32_t i = 0; i < j->n_gradients && m->rules->operators == MC_PYTORCH; i++)
      if (j->gradients[i] != JG_NONE) is_output[j->gradients[i]] = 1;
    for (uint32_t v = 0; v < j->n_values; v++) exact[v] = price_of(m, v, distance_of_value[v], factor, is_output);
    round_prices(exact, j->n_values, price);
  }
  free(is_output);
  free(exact);
  return status;
}
