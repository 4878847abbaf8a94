#include "cudnn_graph.h"

#include "kit/loops/loop_print.h"
#include <aot/inline.h>
#include <assert.h>
#include <string.h>

uint32_t gc_dnn_tensor(gc_dnn_graph_t *g, int32_t kind, int32_t dtype, int32_t rank, const int64_t *sizes,
                       const int64_t *strides) {
  gc_dnn_tensor_t *t = &g->tensors[g->n_tensors];
  assert(g->n_tensors < GC_DNN_MAX_TENSORS && rank <= GC_DNN_MAX_RANK);
  *t = (gc_dnn_tensor_t){.kind = kind, .dtype = dtype, .rank = rank};
  memcpy(t->sizes, sizes, (size_t)rank * sizeof *sizes);
  memcpy(t->strides, strides, (size_t)rank * sizeof *strides);
  return g->n_tensors++;
}

uint32_t gc_dnn_number(gc_dnn_graph_t *g, int32_t rank, float number) {
  static const int64_t ones[GC_DNN_MAX_RANK] = {1, 1, 1, 1, 1};
  const uint32_t t = gc_dnn_tensor(g, GC_DNN_NUMBER, AOT_F32, rank, ones, ones);
  g->tensors[t].number = number;
  return t;
}

void gc_dnn_op(gc_dnn_graph_t *g, gc_dnn_op_t op) {
  assert(g->n_ops < GC_DNN_MAX_OPS);
  g->ops[g->n_ops++] = op;
}

int gc_dnn_is_written(const gc_dnn_graph_t *g, uint32_t tensor) {
  for (uint32_t i = 0; i < g->n_ops; i++)
    if (g->ops[i].y == tensor) return 1;
  return 0;
}

int gc_dnn_is_used(const gc_dnn_graph_t *g, uint32_t tensor) {
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const gc_dnn_op_t *op = &g->ops[i];
    if (op->x == tensor || op->b == tensor || op->t == tensor || op->y == tensor) return 1;
  }
  return 0;
}

static double elements(const gc_dnn_tensor_t *t) {
  double n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= (double)t->sizes[d];
  return n;
}

static double op_flops(const gc_dnn_graph_t *g, const gc_dnn_op_t *op) {
  const gc_dnn_tensor_t *x = &g->tensors[op->x], *y = &g->tensors[op->y];
  switch (op->kind) {
    case GC_DNN_MATMUL: return 2 * elements(y) * (double)x->sizes[x->rank - 1];
    case GC_DNN_CONV_FORWARD: return 2 * elements(y) * elements(&g->tensors[op->b]) / (double)y->sizes[1];
    case GC_DNN_CONV_DATA: return 2 * elements(x) * elements(&g->tensors[op->b]) / (double)x->sizes[1];
    case GC_DNN_CONV_WEIGHTS: return 2 * elements(&g->tensors[op->b]) * elements(y) / (double)y->sizes[0];
    default: return 0;
  }
}

double gc_dnn_flops(const gc_dnn_graph_t *g) {
  double flops = 0;
  int is_causal = 0;
  for (uint32_t i = 0; i < g->n_ops; i++) {
    flops += op_flops(g, &g->ops[i]);
    is_causal |= g->ops[i].kind == GC_DNN_POINTWISE && g->ops[i].mode == GC_DNN_CMP_GE;
  }
  return is_causal ? flops / 2 : flops;
}

static void print_list(lp_text_t *out, const int64_t *list, int32_t n) {
  for (int32_t i = 0; i < n; i++) lp_print(out, "%s%lld", i ? "," : " ", (long long)list[i]);
}

void gc_dnn_print(const gc_dnn_graph_t *g, lp_text_t *out) {
  static const char *const kinds[] = {
      [GC_DNN_MEMORY] = "memory", [GC_DNN_VIRTUAL] = "virtual", [GC_DNN_NUMBER] = "number"};
  static const char *const ops[] = {
      [GC_DNN_MATMUL] = "matmul",
      [GC_DNN_POINTWISE] = "pointwise",
      [GC_DNN_REDUCTION] = "reduction",
      [GC_DNN_RESHAPE] = "reshape",
      [GC_DNN_CONV_FORWARD] = "conv",
      [GC_DNN_CONV_DATA] = "conv-data",
      [GC_DNN_CONV_WEIGHTS] = "conv-weights",
  };
  for (uint32_t k = 0; k < g->n_tensors; k++) {
    const gc_dnn_tensor_t *t = &g->tensors[k];
    if (!gc_dnn_is_used(g, k)) continue;
    lp_print(out, "%u %s %s", k, kinds[t->kind], aot_dtype_name(t->dtype));
    print_list(out, t->sizes, t->rank);
    print_list(out, t->strides, t->rank);
    lp_print(out, "\n");
  }
  for (uint32_t i = 0; i < g->n_ops; i++) {
    const gc_dnn_op_t *op = &g->ops[i];
    lp_print(out, "%s %d %s %d: %d %d %d -> %d\n", ops[op->kind], op->mode, aot_dtype_name(op->math), op->axis,
             (int)op->x, (int)op->b, (int)op->t, (int)op->y);
  }
  print_list(out, g->window.pad, g->window.rank);
  print_list(out, g->window.stride, g->window.rank);
  print_list(out, g->window.dilation, g->window.rank);
  lp_print(out, " without %x\n", g->without);
}
