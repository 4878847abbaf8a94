/* Nodes of a graph, each with a colour, into parts of one colour that can run one after the other.
 *
 * The nodes that are ready are run: all of one colour, as long as there are any, then all of another. What runs in one
 * go is a part. Parts are intervals of a topological order, so no path leaves one and comes back (they are convex), and
 * with two colours no division has fewer: whatever another order has run after k changes of colour, this one has run by
 * then. Every colour is tried as the first.
 *
 * O(colours * (nodes + edges)). Kahn: Topological sorting of large networks (CACM 1962), with a queue a colour; ONNX
 * Runtime divides graphs among its providers in the same way (core/providers/partitioning_utils). */
#ifndef AS_CONVEX_H
#define AS_CONVEX_H

#include <stdint.h>

#define AS_NONE UINT32_MAX

typedef struct as_graph {
  uint32_t n_nodes;
  const uint32_t *edge_begin; /* n_nodes + 1, into edges */
  const uint32_t *edges;      /* nodes that come after this one; without cycles */
} as_graph_t;

/* out_part[n]: the number of node n's part; parts are numbered from 0 in the order in which they run. colour[n] <
 * n_colours. 0, or -2 without memory. */
int as_divide(const as_graph_t *g, const uint32_t *colour, uint32_t n_colours, uint32_t *out_part,
              uint32_t *out_n_parts);

#endif
