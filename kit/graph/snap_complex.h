/* Which nodes of a snapshot compute with complex numbers. */
#ifndef SNAP_COMPLEX_H
#define SNAP_COMPLEX_H

#include <aot/snapshot.h>

/* Is an operand or a result of the node a complex tensor? O(operands + results). */
int sn_node_is_complex(const aot_snapshot_t *s, const aot_snap_node_t *n);

#endif
