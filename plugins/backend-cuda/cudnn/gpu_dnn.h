/* Steps that cuDNN runs: a graph of its operations on tensors of a schedule. */
#ifndef GC_GPU_DNN_H
#define GC_GPU_DNN_H

#include "cudnn_plan.h"
#include "gpu_target.h"

/* NULL: cuDNN is not there or refuses the graph. */
const gc_dnn_plan_t *gc_dnn_plan_of(lw_build_t *b, const gc_dnn_graph_t *g);
/* tensors: by number, the first n of the graph; of others than those in memory they do not count. */
aot_status_t gc_add_dnn(lw_build_t *b, const gc_dnn_plan_t *plan, const gc_dnn_graph_t *g, const lw_tensor_t *tensors,
                        uint32_t n);
/* Wherever the ports lie, its first element is at a multiple of what cuDNN is reported. */
int gc_is_aligned_for_dnn(const lw_build_t *b, const lw_tensor_t *t);

#endif
