/* Comparisons of tensor types: equal layout, elements that can overlap, results that are their operand. */
#ifndef FZ_SAME_LAYOUT_H
#define FZ_SAME_LAYOUT_H

#include <aot/opset.h>

/* Same sizes, and the same strides where they matter. O(rank). */
int fz_same_layout(const aot_type_t *a, const aot_type_t *b);
/* Are two elements one in memory? Of t without dimensions of stride 0; what cannot be reported is treated as.
 * O(rank^2). */
int fz_may_repeat(const aot_type_t *t);
/* Of a result that shares memory with an operand: is it that tensor, rather than a view of it? What the one becomes,
 * the other is: its shape in place, and its history, whatever no_grad or detach stands around the node. */
int fz_is_operand_itself(const aot_op_desc_t *d, const aot_type_t *from, const aot_type_t *to);

#endif
