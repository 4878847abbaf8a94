#include "conv_graphs.h"

#include <aot/base.h>
#include <string.h>

void gc_conv_graph(const gc_conv_t *c, int32_t kind, gc_dnn_graph_t *out) {
  static const uint32_t x[] = {
      [GC_DNN_CONV_FORWARD] = GC_CONV_X, [GC_DNN_CONV_DATA] = GC_CONV_Y, [GC_DNN_CONV_WEIGHTS] = GC_CONV_X};
  static const uint32_t b[] = {
      [GC_DNN_CONV_FORWARD] = GC_CONV_W, [GC_DNN_CONV_DATA] = GC_CONV_W, [GC_DNN_CONV_WEIGHTS] = GC_CONV_Y};
  static const uint32_t y[] = {
      [GC_DNN_CONV_FORWARD] = GC_CONV_Y, [GC_DNN_CONV_DATA] = GC_CONV_X, [GC_DNN_CONV_WEIGHTS] = GC_CONV_W};
  memset(out, 0, sizeof *out);
  for (int t = 0; t < GC_CONV_N_TENSORS; t++)
    gc_dnn_tensor(out, GC_DNN_MEMORY, c->dtype, c->rank + 2, c->sizes[t], c->strides[t]);
  out->window = c->window;
  out->without = GC_DNN_NONDETERMINISTIC | GC_DNN_ROUNDED_SUMS;
  if (c->dtype == AOT_F32)
    out->without |= GC_DNN_TENSOR_CORE | GC_DNN_ROUNDED_INPUTS | GC_DNN_WINOGRAD_6 | GC_DNN_WINOGRAD_13;
  gc_dnn_op(out, (gc_dnn_op_t){kind, 0, AOT_F32, -1, x[kind], b[kind], GC_DNN_NONE, y[kind]});
}
