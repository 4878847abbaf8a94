/* Snapshot blocks (aot/snapshot.h) from outside: checking that one is whole. kit/graph/snap_expr.h evaluates its
 * dimensions.
 *
 * A block that passes can be read by its offsets without further checks: every range is inside, every row number
 * exists, operands are defined before they are used, in the graph that uses them. One pass over the block, O(rows). */
#ifndef SNAP_CHECK_H
#define SNAP_CHECK_H

#include "snap_expr.h"

/* AOT_E_DATA_LOSS: damaged, AOT_E_TOO_NEW: another version; the error says what and where. `bytes` is 8-byte
 * aligned. */
aot_status_t sn_check(const void *bytes, uint64_t nbytes, const aot_snapshot_t **out, sn_error_t *error);

#endif
