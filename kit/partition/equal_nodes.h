/* Common subexpressions of a joint graph: forward and backward often compute the same (a mask, a cast, a constant), and
 * a value that both compute need neither be saved nor made twice.
 *
 * Two nodes are equal when operator, arguments and result types are, operands up to equality. The first in graph order
 * represents all. Never merged: operators that draw random numbers by themselves, act, talk to other ranks or own
 * regions (a draw whose seed and offset are operands is pure); nodes with a checkpoint tag; and nodes whose memory a
 * graph output shares, since the caller may write to each output by itself.
 * Source: PyTorch's fx_graph_cse (torch/_functorch/compile_utils.py, 2.11). */
#ifndef PT_EQUAL_NODES_H
#define PT_EQUAL_NODES_H

#include "kit/graph/joint_arrays.h"

/* out_same, by value id of the program (room for n_ids): the id that represents it, itself where nothing else does. 0
 * or -2. O(nodes + arguments). */
int pt_find_equal(const aot_snapshot_t *s, uint32_t graph_row, uint32_t n_ids, uint32_t *out_same);

/* Reads every operand through `same`; nodes that nothing needs then lose their operands. */
int pt_joint_merge(jg_joint_t *j, uint32_t n_ids, const uint32_t *same);

#endif
