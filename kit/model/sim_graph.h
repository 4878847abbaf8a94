/* A graph of a snapshot as the arrays that the simulation of memory runs on (simulate.h), for the machine that a table
 * of costs describes. Values and nodes are numbered as in kit/graph/joint_arrays.h. */
#ifndef MS_SIM_GRAPH_H
#define MS_SIM_GRAPH_H

#include "node_costs.h"
#include "simulate.h"
#include <aot/snapshot.h>

typedef struct ms_sim {
  ms_graph_t graph;    /* its arrays are owned */
  uint32_t *base;      /* graph.base */
  uint32_t *value_row; /* by value: of the snapshot */
  uint64_t *extent;    /* by value: bytes from the begin of its storage, as its type is in it, to its last element */
  uint64_t *flops, *nanoseconds; /* by node */
  uint32_t *view_of;             /* by value: of the operands of its node that are there, counted from 1; 0: none */
} ms_sim_t;

/* dims: values of the snapshot's expressions (sn_exprs_eval). inside: of sim_regions.h, or NULL: calls of regions count
 * as if there were nothing in them; a backend that runs them reports it as work space, and the larger one counts. 0,
 * or -2 without memory. O(nodes + operands). Deinit in any case. */
int ms_sim_init(ms_sim_t *m, const aot_snapshot_t *s, uint32_t graph_row, const int64_t *dims, const nc_costs_t *costs,
                const uint64_t *inside);
void ms_sim_deinit(ms_sim_t *m);

/* The graph when its nodes read other values, in the same places (a node may also read none): views are of what is
 * read now. operands: borrowed; the rest is m's, whose own views change with it. */
ms_graph_t ms_sim_reading(ms_sim_t *m, const uint32_t *operand_begin, const uint32_t *operands);

#endif
