/* Convolutions as graphs of one operation of cuDNN's. */
#ifndef GC_CONV_GRAPHS_H
#define GC_CONV_GRAPHS_H

#include "cudnn_graph.h"

enum { GC_CONV_X, GC_CONV_W, GC_CONV_Y, GC_CONV_N_TENSORS };
typedef struct gc_conv {
  int32_t dtype; /* AOT_F32, F16, BF16 */
  int32_t rank;  /* spatial dimensions: 2 or 3 */
  /* [n, c, ..], [k, c / groups, ..], [n, k, ..] */
  int64_t sizes[GC_CONV_N_TENSORS][GC_DNN_MAX_RANK], strides[GC_CONV_N_TENSORS][GC_DNN_MAX_RANK];
  gc_dnn_window_t window;
} gc_conv_t;

/* kind: GC_DNN_CONV_FORWARD, .. Engines are deterministic and sum in float; of float32 they keep all bits. */
void gc_conv_graph(const gc_conv_t *c, int32_t kind, gc_dnn_graph_t *out);

#endif
