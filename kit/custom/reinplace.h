/* Which copies of written operands can be left out.
 *
 *     y = clone(x); z = aot.auto_functionalized(@op, .., y)     y's memory becomes z's, if y is not read again by any
 *                                                               name
 *
 * Values that may share memory form a class: results of views with all tensors that they are made from, results of
 * regions with all operands, in-place results with their operand. Going through a graph in order, a written operand
 * keeps its memory if
 *
 *   - no member of its class is an input of the graph (its memory is the caller's),
 *   - no member is read by a later node, by another argument of this node, or is an output of the graph,
 *   - no other written operand of the node has taken the class.
 *
 * After can_inplace of PyTorch's reinplacing pass. O((nodes + operands) log* n). */
#ifndef PLUGINS_COMMON_REINPLACE_H
#define PLUGINS_COMMON_REINPLACE_H

#include "custom.h"

/* Sets in_place in p's nodes and counts copies. AOT_E_EXHAUSTED. */
aot_status_t custom_reinplace(const aot_snapshot_t *s, custom_program_t *p);

#endif
