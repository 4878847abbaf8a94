/* Scaled dot product attention and its gradients as graphs of cuDNN's operations: those that its fused engines match,
 * so neither scores nor probabilities are in memory. */
#ifndef GC_ATTENTION_GRAPHS_H
#define GC_ATTENTION_GRAPHS_H

#include "cudnn_graph.h"

/* Tensors of both graphs by their number. BIAS: what is added to scores, [batch, head, query, key], of size 1 along
 * what it does not depend on. KEEP: 1 for a probability that is stored, 0 for one that is dropped, of that shape.
 * STATS: float32 [batch, head, query, 1], log of the sum of exponentials of a row's scores. SUMS: scratch of that
 * size. GQ_SUMS: float32 [batch, head, query, width], contiguous: scratch of sums in any order. */
enum {
  GC_ATT_Q,
  GC_ATT_K,
  GC_ATT_V,
  GC_ATT_BIAS,
  GC_ATT_KEEP,
  GC_ATT_O,
  GC_ATT_STATS,
  GC_ATT_GO,
  GC_ATT_GQ,
  GC_ATT_GK,
  GC_ATT_GV,
  GC_ATT_SUMS,
  GC_ATT_GQ_SUMS,
  GC_ATT_N_IN_MEMORY
};

typedef struct gc_attention {
  int32_t dtype; /* AOT_F16, AOT_BF16 */
  int64_t n_batch, n_head, n_query, n_key, width, width_v;
  int64_t share; /* heads of queries for one of keys and values */
  double scale;
  int is_causal;      /* row i sees the columns up to i */
  int32_t bias_dtype; /* 0: there is none */
  int64_t bias_sizes[3];
  int32_t keep_dtype; /* 0: nothing is dropped */
  double keep_scale;  /* what a kept probability is multiplied by */
  struct {
    int64_t batch, head, position; /* elements; those of a position are contiguous */
  } strides[GC_ATT_N_IN_MEMORY];   /* of all but STATS, SUMS and GQ_SUMS */
} gc_attention_t;

void gc_attention_forward(const gc_attention_t *a, gc_dnn_graph_t *out);
/* Sums over the keys, which blocks make side by side, for the gradient of the queries. ORDERED: equal in every run, as
 * the gradient of all scores is stored, in f16 or bf16, in the engine's workspace. IN_ANY_ORDER: each block adds what
 * it has to GQ_SUMS when it has it, so last bits differ from run to run; cuDNN sets these to zeros by itself from 9.6
 * on. */
enum { GC_ATT_ORDERED, GC_ATT_IN_ANY_ORDER };
void gc_attention_backward(const gc_attention_t *a, int order, gc_dnn_graph_t *out);

#endif
