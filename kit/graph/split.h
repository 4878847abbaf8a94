/* From a set of saved values to two node lists: which nodes run in the forward, which in the backward, in what order.
 *
 * Forward: what the forward outputs and the saved values need. Backward: what the gradients need, stopping at saved
 * values; nodes on both sides are recomputed. The backward's order follows the joint graph, but a recomputed node
 * is right before the first node that needs it, so that it lives briefly (PyTorch:
 * reordering_to_mimic_autograd_engine). */
#ifndef JG_SPLIT_H
#define JG_SPLIT_H

#include "joint_arrays.h"

typedef struct jg_split {
  uint32_t n_saved, n_forward, n_backward, n_recomputed;
  uint32_t *saved;       /* values, as given, those the backward does not read dropped */
  uint32_t *forward;     /* nodes in joint order */
  uint32_t *backward;    /* nodes in the order to run */
  uint32_t *recomputed;  /* nodes in both */
  uint64_t nbytes_saved; /* of saved values that are results of nodes */
} jg_split_t;

/* 0; -1: the backward needs a value that is neither saved nor computable from what it has (*out_value says which); -2:
 * no memory. O(nodes + operands). */
int jg_split_init(jg_split_t *s, const jg_joint_t *j, const uint32_t *saved, uint32_t n_saved, uint32_t *out_value);
void jg_split_deinit(jg_split_t *s);

#endif
