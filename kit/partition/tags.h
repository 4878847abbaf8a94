/* Activation-checkpoint tags: what they come to before a partitioner looks at them.
 *
 * A node that the user wants computed again (must or prefer) keeps that mark, except
 *   - one that draws random numbers, acts on the world or talks to other ranks: run twice it would not do the same, so
 *   its
 *     results are saved (PyTorch replays the generator's state instead; the numbers are the same either way);
 *   - one that hands over to a node of a later region that is computed again: the boundary between two checkpoints is
 *   saved, or
 *     the whole chain of regions would run again at once.
 * Both become must-save. Source: PyTorch's cleanup_recompute_tags (torch/_functorch/partitioners.py, 2.11). */
#ifndef PT_TAGS_H
#define PT_TAGS_H

#include "kit/graph/joint_arrays.h"

/* Rewrites j->node_flags. region: by node, 0: in none; NULL: all 0. *out_n_kept_random counts the nodes of the first
 * exception. O(nodes + operands). */
void pt_tags_resolve(jg_joint_t *j, const uint32_t *region, uint32_t *out_n_kept_random);

int pt_must_recompute(const jg_joint_t *j, uint32_t node);

#endif
