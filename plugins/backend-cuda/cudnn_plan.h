/* Plans of cuDNN for graphs of operations: made once for each text of a graph, then run with memory and numbers. */
#ifndef GC_CUDNN_PLAN_H
#define GC_CUDNN_PLAN_H

#include "cudnn.h"
#include "cudnn_graph.h"

typedef struct gc_dnn_plan {
  struct gc_dnn_plan *next;
  char *text;    /* of its graph */
  void *desc;    /* NULL: cuDNN refuses the graph */
  char why[400]; /* then */
  uint64_t workspace_nbytes;
  int64_t engine; /* cuDNN's number for it */
} gc_dnn_plan_t;

/* The plan of this graph, from earlier or new; cuDNN is started. NULL: no memory. */
const gc_dnn_plan_t *gc_dnn_plan(gc_cudnn_t *c, const gc_dnn_graph_t *g);
/* What engines asked for so far: of attention's gradients the scores' in halves, of convolutions in halves whose channels
 * do not lie last copies that do. */
uint64_t gc_dnn_usual_workspace(const gc_dnn_graph_t *g);
/* addresses: by tensor; of those in memory they count. 0, or cuDNN's status. */
int gc_dnn_run(const gc_cudnn_t *c, const gc_dnn_plan_t *p, const gc_dnn_graph_t *g, const gc_address_t *addresses,
               gc_address_t workspace, gc_stream_t stream);
void gc_dnn_forget_plans(gc_cudnn_t *c);

#endif
