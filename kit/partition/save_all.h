/* The plain choice: save every forward value that the backward reads, except what is tagged to be computed again.
 *
 * Forward is what is, in the joint graph's order, up to the last node that a forward output needs, tangents aside;
 * what stands later belongs to the backward even when no tangent reaches it. Nothing is computed twice except such
 * constants and tagged nodes; what a tagged node reads counts as read by the backward, so that it is saved, or tagged
 * itself. Source: PyTorch's default_partition (torch/_functorch/partitioners.py, 2026): placement by order, not by
 * data flow. */
#ifndef PT_SAVE_ALL_H
#define PT_SAVE_ALL_H

#include "kit/graph/joint_arrays.h"

/* out_saved: room for n_values, written in value order. Inputs are never listed: the split hands them on by itself. 0;
 * -2: no memory. O(nodes + operands). */
int pt_save_all(const jg_joint_t *j, uint32_t *out_saved, uint32_t *out_n_saved);

#endif
