/* A graph of a snapshot as the arrays that the simulation of memory runs on (simulate.h), for the machine that
 * backend-cpu is: loops of the operators that common/loops knows, buffers of 64 bytes, views for nothing, and work
 * space for matrix products, convolutions and attention of up to MS_THREADS threads. Values and nodes are numbered
 * as in joint/joint_arrays.h. */
#ifndef MS_SIM_GRAPH_H
#define MS_SIM_GRAPH_H

#include "common/memory/simulate.h"
#include <aot/snapshot.h>

#define MS_THREADS 4u /* for work space that every thread has */
#define MS_ALIGN 64u
#define MS_MAX_LOOP 64u

typedef struct ms_sim {
  ms_graph_t graph;    /* its arrays are owned */
  uint32_t *base;      /* graph.base, to be changed */
  uint32_t *value_row; /* by value: of the snapshot */
  uint64_t *extent;    /* by value: bytes from the begin of its storage, as its type lies in it, to its last element */
  uint64_t *flops;     /* by node: multiplications and additions, estimated from the sizes (0: none to speak of) */
} ms_sim_t;

/* dims: values of the snapshot's expressions (sn_exprs_eval). inside: of sim_regions.h, or NULL: calls of regions count
 * as if there were nothing in them. 0, or -2 without memory. O(nodes + operands). Deinit in any case. */
int ms_sim_init(ms_sim_t *m, const aot_snapshot_t *s, uint32_t graph_row, const int64_t *dims, const uint64_t *inside);
void ms_sim_deinit(ms_sim_t *m);

#endif
