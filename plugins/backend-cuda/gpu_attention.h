/* Attention as one kernel of cuDNN's in each direction, without scores in memory. */
#ifndef GC_GPU_ATTENTION_H
#define GC_GPU_ATTENTION_H

#include "gpu_target.h"

extern const lw_lowering_table_t gc_lowerings_attention;

/* The widest head that cuDNN takes on this machine's first device; 0: there is no device, no cuDNN, or an old one. */
int64_t gc_attention_widest(const char *cudnn_folder);
/* The node is attention or its gradients as cuDNN takes it, as far as the program reports. */
int gc_attention_is_whole(const aot_snapshot_t *s, const aot_snap_node_t *node, int64_t widest);

#endif
