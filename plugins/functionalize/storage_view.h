/* Views that address the storage of their operand (as_strided), not its elements.
 *
 *     %y = mul(%x, 3)                       [3, 4]
 *     %row = select(%y, 0, 1)               [4]
 *     %v = as_strided(%row, [2, 4], [4, 1]) rows 1 and 2 of %y
 *
 * The view is a view of the base. Its gradient is that of its operand: as in PyTorch, it reaches the elements of %row
 * and not row 2. After a write to the storage it is a view of the base for autograd too. */
#ifndef FZ_STORAGE_VIEW_H
#define FZ_STORAGE_VIEW_H

#include "rewriting.h"

/* The place whose view it is: the base, or the nearest step from which no gradient gets there. O(depth). */
uint32_t fz_addressed(const fz_rewrite_t *w, uint32_t place);
/* What such a node reads in the place of an operand that is at `place`; the argument offset_arg of the node is set if
 * it has none. *out_narrowed: it is not the value of the base, but has the gradient of the operand alone. O(depth +
 * steps replayed). */
aot_status_t fz_read_storage(fz_rewrite_t *w, aot_node_t node, const aot_node_info_t *info, uint32_t offset_arg,
                             uint32_t place, int *out_narrowed, aot_value_t *out);
/* `place` is about to be written, and so what was narrowed on the way to it is to be seen as a whole. O(depth). */
void fz_widen(fz_rewrite_t *w, uint32_t place);

#endif
