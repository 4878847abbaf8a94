/* Plans of cuDNN that a program has requested (gc_cudnn_t.plans), by the text of their graphs: each is read from those
 * that are stored or made once, now or, while a lowering is under way, on threads (plan_cache_disk.h). */
#ifndef GC_PLAN_CACHE_H
#define GC_PLAN_CACHE_H

#include "cudnn/cudnn_plan.h"

/* The plan of this graph, from earlier, stored, or new; cuDNN is started. NULL: no memory. */
const gc_dnn_plan_t *gc_dnn_plan(gc_cudnn_t *c, const gc_dnn_graph_t *g);
/* Before cuDNN is closed. */
void gc_dnn_forget_plans(gc_cudnn_t *c);

#endif
