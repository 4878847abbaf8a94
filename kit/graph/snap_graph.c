#include "snap_graph.h"

#include <aot/inline.h>

uint32_t sn_graph_of_kind(const aot_snapshot_t *s, int32_t kind) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  for (uint32_t i = 1; i < s->graphs.count; i++)
    if (g[i].kind == kind) return i;
  return AOT_NO_ID;
}
