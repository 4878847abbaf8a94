#include "hand_joint.h"

#include <string.h>

static void fill_inputs(jg_joint_t *j, const pt_hand_graph_t *g) {
  for (uint32_t v = 0; v < g->n_inputs; v++) {
    j->def[v] = JG_NONE;
    j->value_id[v] = v;
    j->nbytes[v] = g->input_nbytes[v];
    j->input_kind[v] = g->input_kinds[v];
  }
}

static void fill_nodes(jg_joint_t *j, const pt_hand_graph_t *g) {
  uint32_t at = 0;
  for (uint32_t n = 0; n < g->n_nodes; n++) {
    const pt_hand_node_t *node = &g->nodes[n];
    const uint32_t v = g->n_inputs + n;
    j->operand_begin[n] = at;
    j->result_begin[n] = v;
    j->op_flags[n] = node->op_flags;
    j->node_flags[n] = node->node_flags;
    j->node_id[n] = n;
    j->def[v] = n;
    j->value_id[v] = v;
    j->nbytes[v] = node->nbytes;
    for (uint32_t k = 0; k < node->n_operands; k++) j->operands[at++] = node->operands[k];
  }
  j->operand_begin[g->n_nodes] = at;
  j->result_begin[g->n_nodes] = j->n_values;
}

int pt_joint_init_by_hand(jg_joint_t *j, const pt_hand_graph_t *g) {
  size_t n_operands = 0;
  memset(j, 0, sizeof *j);
  j->n_nodes = g->n_nodes;
  j->n_inputs = g->n_inputs;
  j->n_values = g->n_inputs + g->n_nodes;
  for (uint32_t n = 0; n < g->n_nodes; n++) n_operands += g->nodes[n].n_operands;
  if (jg_joint_alloc(j, n_operands, g->n_forward_outputs + g->n_gradients) != 0) {
    jg_joint_deinit(j);
    return -2;
  }
  fill_inputs(j, g);
  fill_nodes(j, g);
  j->n_forward_outputs = g->n_forward_outputs;
  j->n_gradients = g->n_gradients;
  memcpy(j->forward_outputs, g->forward_outputs, (size_t)g->n_forward_outputs * 4);
  memcpy(j->gradients, g->gradients, (size_t)g->n_gradients * 4);
  jg_joint_link(j);
  return 0;
}
