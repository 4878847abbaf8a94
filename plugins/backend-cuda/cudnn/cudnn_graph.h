/* A graph of cuDNN's operations as data. Tensors are reported by their number; results of operations that nothing else
 * reads are virtual and never be in memory, single numbers come from the host. */
#ifndef GC_CUDNN_GRAPH_H
#define GC_CUDNN_GRAPH_H

#include "kit/loops/loop.h"

enum { GC_DNN_MAX_RANK = 5, GC_DNN_MAX_TENSORS = 48, GC_DNN_MAX_OPS = 32, GC_DNN_ALIGN = 16 /* bytes */ };

enum { GC_DNN_MEMORY = 1, GC_DNN_VIRTUAL, GC_DNN_NUMBER };
typedef struct gc_dnn_tensor {
  int32_t kind, dtype, rank; /* AOT_F64, F32, F16, BF16, I32, BOOL */
  int64_t sizes[GC_DNN_MAX_RANK], strides[GC_DNN_MAX_RANK];
  float number; /* of NUMBER: not a part of the plan, which takes any */
} gc_dnn_tensor_t;

enum {
  GC_DNN_MATMUL = 1, /* y = x b */
  GC_DNN_POINTWISE,  /* y = mode(x, b, t) */
  GC_DNN_REDUCTION,  /* y = sum or maximum of x, along the dimensions of size 1 in y */
  GC_DNN_RESHAPE,    /* y: x, seen in another way */
  /* of x [n, c, ..], weights [k, c / groups, ..], y [n, k, ..] */
  GC_DNN_CONV_FORWARD, /* y = conv(x, weights b) */
  GC_DNN_CONV_DATA,    /* y: the gradient of x; x: that of y */
  GC_DNN_CONV_WEIGHTS, /* y: the gradient of the weights; b: that of y */
};

/* cudnnPointwiseMode_t, cudnnReduceTensorOp_t */
enum {
  GC_DNN_ADD = 0,
  GC_DNN_MUL = 1,
  GC_DNN_DIV = 6,
  GC_DNN_SUB = 9,
  GC_DNN_EXP = 13,
  GC_DNN_LOG = 15,
  GC_DNN_IDENTITY = 21,
  GC_DNN_CMP_GE = 303,
  GC_DNN_CMP_LT = 304,
  GC_DNN_GEN_INDEX = 501, /* of the element along the axis */
  GC_DNN_SELECT = 601,    /* t ? x : b */
};
enum { GC_DNN_SUM = 0, GC_DNN_MAX = 3 };

#define GC_DNN_NONE UINT32_MAX
typedef struct gc_dnn_op {
  int32_t kind, mode, math, axis; /* math: what it computes in; axis: -1: none */
  uint32_t x, b, t, y;
} gc_dnn_op_t;

typedef struct gc_dnn_window { /* of convolutions, by spatial dimension */
  int32_t rank;
  int64_t pad[3], stride[3], dilation[3];
} gc_dnn_window_t;

/* cudnnBackendNumericalNote_t, as bits */
enum {
  GC_DNN_TENSOR_CORE = 1 << 0,
  GC_DNN_ROUNDED_INPUTS = 1 << 1,
  GC_DNN_ROUNDED_SUMS = 1 << 2,
  GC_DNN_NONDETERMINISTIC = 1 << 4,
  GC_DNN_WINOGRAD_6 = 1 << 7,
  GC_DNN_WINOGRAD_13 = 1 << 8,
};

typedef struct gc_dnn_graph {
  gc_dnn_tensor_t tensors[GC_DNN_MAX_TENSORS];
  gc_dnn_op_t ops[GC_DNN_MAX_OPS];
  uint32_t n_tensors, n_ops;
  gc_dnn_window_t window;
  uint32_t without; /* engines with any of these notes are passed over */
} gc_dnn_graph_t;

/* Graphs are written by hand, so their sizes are known to fit. */
uint32_t gc_dnn_tensor(gc_dnn_graph_t *g, int32_t kind, int32_t dtype, int32_t rank, const int64_t *sizes,
                       const int64_t *strides);
uint32_t gc_dnn_number(gc_dnn_graph_t *g, int32_t rank, float number);
void gc_dnn_op(gc_dnn_graph_t *g, gc_dnn_op_t op);
int gc_dnn_is_used(const gc_dnn_graph_t *g, uint32_t tensor);    /* by an operation */
int gc_dnn_is_written(const gc_dnn_graph_t *g, uint32_t tensor); /* it is an operation's result */
/* Multiplications and additions of its products and convolutions; of scores that a causal mask hides none. */
double gc_dnn_flops(const gc_dnn_graph_t *g);
/* What distinguishes graphs: all but numbers. */
void gc_dnn_print(const gc_dnn_graph_t *g, lp_text_t *out);

#endif
