/* How much a node multiplies and adds, estimated from the shapes of its operands and results. */
#ifndef NC_FLOPS_H
#define NC_FLOPS_H

#include <aot/snapshot.h>
#include <stdint.h>

/* 0: none to speak of (AOT_OP_HEAVY reports). node: row; dims: as for value_size.h. O(operands) */
uint64_t nc_flops(const aot_snapshot_t *s, uint32_t node, const int64_t *dims);

#endif
