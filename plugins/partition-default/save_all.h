/* The plain choice: save every forward value that the backward reads.
 *
 * Forward is what stands, in the joint graph's order, up to the last node that a forward output needs, tangents aside; what
 * stands later belongs to the backward even when no tangent reaches it. Nothing is computed twice except such constants.
 * Source: PyTorch's default_partition (torch/_functorch/partitioners.py, 2026): placement by order, not by data flow. */
#ifndef PD_SAVE_ALL_H
#define PD_SAVE_ALL_H

#include "common/partition/joint_arrays.h"

/* out_saved: room for n_values; returns how many were written, in value order. Inputs are never listed: the split hands them
 * on by itself. O(nodes + operands). */
uint32_t pd_save_all(const pt_joint_t *j, uint32_t *out_saved);

#endif
