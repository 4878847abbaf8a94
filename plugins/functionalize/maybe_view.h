/* Does a result that may be a view of an operand share its memory? Most views do always. reshape, contiguous, to and their kin
 * copy where they must, and only sizes and strides tell. O(rank). */
#ifndef FZ_MAYBE_VIEW_H
#define FZ_MAYBE_VIEW_H

#include <aot/host.h>

/* from: geometry of the operand as the model was traced; to: of the result. */
int fz_shares_memory(const aot_host_t *host, aot_prog_t *prog, const aot_op_desc_t *d, const aot_node_info_t *n,
                     const aot_type_t *from, const aot_type_t *to);
/* Of a result that shares memory with an operand: is it that tensor, rather than a view of it? What the one becomes, the other is:
 * its shape in place, and its history, whatever no_grad or detach stands around the node. */
int fz_is_operand_itself(const aot_op_desc_t *d, const aot_type_t *from, const aot_type_t *to);
/* Same sizes, and the same strides where they matter. */
int fz_same_layout(const aot_type_t *a, const aot_type_t *b);

#endif
