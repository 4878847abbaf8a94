/* Plans of cuDNN for graphs of operations: made with an engine, written down and read as text, run with memory and
 * numbers. */
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
  int64_t engine;        /* cuDNN's number for it; 0 of one that was kept */
  gc_dnn_graph_t *graph; /* while it waits to be made */
} gc_dnn_plan_t;

/* Makes the plan; p->desc is NULL, or the caller's. */
void gc_dnn_build(const gc_cudnn_t *c, const gc_dnn_graph_t *g, gc_dnn_plan_t *p);
/* As cuDNN writes it down, terminated; the caller frees it. NULL: cuDNN does not, or no memory. */
char *gc_dnn_plan_words(const gc_cudnn_t *c, const gc_dnn_plan_t *p, size_t *out_nbytes);
/* 1: p->desc and its workspace are there. Only the same version of cuDNN takes it. */
int gc_dnn_plan_from_words(const gc_cudnn_t *c, const char *words, size_t nbytes, gc_dnn_plan_t *p);
/* What engines requested so far: of attention's gradients the scores' in f16 or bf16, where sums are ordered, of
 * convolutions in f16 or bf16 whose channels do not lie last copies that do. */
uint64_t gc_dnn_usual_workspace(const gc_dnn_graph_t *g);
/* addresses: by tensor; of those in memory they count. 0, or cuDNN's status. */
int gc_dnn_run(const gc_cudnn_t *c, const gc_dnn_plan_t *p, const gc_dnn_graph_t *g, const gc_address_t *addresses,
               gc_address_t workspace, gc_stream_t stream);

#endif
