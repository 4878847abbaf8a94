/* Maximum flow and minimum cut on plain arrays: Dinic's algorithm.
 *
 * Edges come in pairs e, e ^ 1: an arc and its residual twin. Breadth-first levels, then a blocking flow by depth-first
 * search with current-arc pointers, iterative. Deterministic: vertices and edges are visited in the order given.
 * O(V^2 E) in the worst case; on partition networks a handful of phases. All capacities are finite: the caller stands
 * for infinity with a number above the sum of the finite ones.
 * Source: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation",
 * 1970. */
#ifndef MC_MAXFLOW_H
#define MC_MAXFLOW_H

#include <stdint.h>

typedef struct mc_flow {
  uint32_t n_vertices, n_edges; /* n_edges counts both twins */
  uint32_t vertex_capacity, edge_capacity;
  uint32_t *head; /* by vertex: first edge, UINT32_MAX: none */
  uint32_t *next; /* by edge */
  uint32_t *to;   /* by edge */
  int64_t *cap;   /* by edge: what is left */
} mc_flow_t;

/* 0, or -2 without memory. */
int mc_flow_init(mc_flow_t *f, uint32_t n_vertices, uint32_t n_edges_hint);
void mc_flow_deinit(mc_flow_t *f);
/* An arc u -> v of capacity c >= 0. Self-loops and zero capacities are left out. */
int mc_flow_edge(mc_flow_t *f, uint32_t u, uint32_t v, int64_t c);
/* Pushes the maximum flow; *out_value gets its amount, which is the capacity of every minimum cut. Stops early, with
 * *out_value >= limit, once the flow has reached limit: then an arc that represents infinity would be cut. */
int mc_flow_solve(mc_flow_t *f, uint32_t source, uint32_t sink, int64_t limit, int64_t *out_value);
/* After solve: out_side[v] = 1 where the source still reaches v. Of all minimum cuts this is the one nearest the
 * source. */
int mc_flow_source_side(const mc_flow_t *f, uint32_t source, uint8_t *out_side);
/* out_side[v] = 1 where v still reaches the sink: the rest is the source's side of the minimum cut nearest the sink. */
int mc_flow_sink_side(const mc_flow_t *f, uint32_t sink, uint8_t *out_side);

#endif
