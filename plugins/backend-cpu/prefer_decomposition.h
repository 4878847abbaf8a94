/* Operators that run faster decomposed than whole. */
#ifndef BC_PREFER_DECOMPOSITION_H
#define BC_PREFER_DECOMPOSITION_H

#include <aot/snapshot.h>

/* Neither a lowering nor a loop has the node in its form, but all that it is made of is in loops and products: the
 * backend says no, and the host queries the opset to write it out. */
int bc_is_written_out(const aot_snapshot_t *s, const aot_snap_node_t *node);

#endif
