/* Which row of a snapshot is the graph of a kind. */
#ifndef SNAP_GRAPH_H
#define SNAP_GRAPH_H

#include <aot/snapshot.h>
#include <stdint.h>

/* The first graph of kind AOT_GRAPH_*; AOT_NO_ID: there is none. O(graphs). */
uint32_t sn_graph_of_kind(const aot_snapshot_t *s, int32_t kind);

#endif
