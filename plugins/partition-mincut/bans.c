/* Which forward nodes must not run again in the backward, as far as one node reports. Each rule has its option; tags of
 * the user and side effects stand above the options. */
#include "mincut.h"

#include <aot/graph.h>
#include <stdlib.h>

/* By value: the backward would have it written to memory, since a use outside the forward cannot be fused with it.
 * Followed through views, against the order. In PyTorch's model the caller's use of an output is such a use, too. */
static void find_written(const mc_ruled_graph_t *m, uint8_t *written) {
  const jg_joint_t *j = m->j;
  if (m->rules->operators == MC_PYTORCH) {
    for (uint32_t i = 0; i < j->n_forward_outputs; i++)
      if (j->forward_outputs[i] != JG_NONE) written[j->forward_outputs[i]] = 1;
    for (uint32_t i = 0; i < j->n_gradients; i++)
      if (j->gradients[i] != JG_NONE) written[j->gradients[i]] = 1;
  }
  for (uint32_t v = j->n_values; v-- > j->n_inputs;)
    for (uint32_t k = j->user_begin[v]; k < j->user_begin[v + 1] && !written[v]; k++) {
      const uint32_t u = j->users[k];
      if (!j->early[u] && !mc_fuses_into(m, v, u)) written[v] = 1;
      if ((m->classes[u] & (MC_VIEW | MC_ALONE)) != MC_VIEW) continue;
      for (uint32_t r = j->result_begin[u]; r < j->result_begin[u + 1]; r++) written[v] |= written[r];
    }
}

/* The elements of a tuple are decomposed before anything is written. */
static int is_written(const mc_ruled_graph_t *m, uint32_t n, const uint8_t *written) {
  int any = 0;
  if ((m->classes[n] & MC_PARTS) && (m->classes[n] & MC_FUSES)) return 0;
  for (uint32_t v = m->j->result_begin[n]; v < m->j->result_begin[n + 1]; v++) any |= written[v];
  return any;
}

static int reads_much_more(const jg_joint_t *j, uint32_t n) {
  uint64_t in = 0, out = 0;
  for (uint32_t k = j->operand_begin[n]; k < j->operand_begin[n + 1]; k++) in += j->nbytes[j->operands[k]];
  for (uint32_t v = j->result_begin[n]; v < j->result_begin[n + 1]; v++) out += j->nbytes[v];
  return 4 * out < in;
}

static int is_banned(const mc_ruled_graph_t *m, uint32_t n, uint32_t distance, const uint8_t *written) {
  const jg_joint_t *j = m->j;
  const mc_rules_t *r = m->rules;
  if (j->op_flags[n] & (AOT_OP_EFFECT | AOT_OP_COLLECTIVE | AOT_OP_RANDOM)) return 1;
  if (j->node_flags[n] & AOT_NODE_MUST_SAVE) return 1;
  if (r->ban_expensive && !(m->classes[n] & MC_CHEAP)) return 1;
  if (r->ban_heavy && (m->classes[n] & MC_HEAVY)) return 1;
  if (r->ban_materialized && is_written(m, n, written)) return 1;
  if (distance < 1000 && distance > r->max_distance) return 1;
  return r->ban_reductions && reads_much_more(j, n);
}

int mc_ban(const mc_ruled_graph_t *m, const uint32_t *distance_of_node, uint8_t *banned) {
  const jg_joint_t *j = m->j;
  uint8_t *written = calloc((size_t)j->n_values + 1, 1);
  if (!written) return -2;
  find_written(m, written);
  for (uint32_t n = 0; n < j->n_nodes; n++)
    banned[n] = (uint8_t)(j->early[n] && mc_may_ban(m, n) && is_banned(m, n, distance_of_node[n], written));
  free(written);
  return 0;
}
