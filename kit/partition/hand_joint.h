/* Joint graphs made by hand, for tests: each node names its operands and has one result. */
#ifndef PT_HAND_JOINT_H
#define PT_HAND_JOINT_H

#include "kit/graph/joint_arrays.h"

#define PT_HAND_MAX_OPERANDS 4

typedef struct pt_hand_node {
  uint32_t op_flags, node_flags;
  uint64_t nbytes;
  uint32_t n_operands;
  uint32_t operands[PT_HAND_MAX_OPERANDS]; /* value numbers: inputs first, then nodes' results in order */
} pt_hand_node_t;

typedef struct pt_hand_graph {
  uint32_t n_inputs, n_nodes, n_forward_outputs, n_gradients;
  const uint8_t *input_kinds; /* JG_INPUT_* */
  const uint64_t *input_nbytes;
  const pt_hand_node_t *nodes;
  const uint32_t *forward_outputs, *gradients;
} pt_hand_graph_t;

/* 0 or -2. Value ids and node ids are the dense numbers. Deinit with jg_joint_deinit. */
int pt_joint_init_by_hand(jg_joint_t *j, const pt_hand_graph_t *g);

#endif
