/* cuBLASLt, opened at run time: matrix products of strided matrices on a stream. Numbers and signatures are those of
 * cublasLt.h (12 and 13). */
#ifndef GC_CUBLASLT_H
#define GC_CUBLASLT_H

#include "driver.h"

typedef struct gc_cublaslt_algo { /* cublasLtMatmulHeuristicResult_t */
  uint64_t algo[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} gc_cublaslt_algo_t;

typedef struct gc_cublaslt {
  void *library, *handle;
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  size_t (*version)(void);
  int (*desc_create)(void **desc, int compute, int scale);
  int (*desc_destroy)(void *desc);
  int (*desc_set)(void *desc, int attribute, const void *value, size_t size);
  int (*layout_create)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
  int (*layout_destroy)(void *layout);
  int (*layout_set)(void *layout, int attribute, const void *value, size_t size);
  int (*preference_create)(void **preference);
  int (*preference_destroy)(void *preference);
  int (*preference_set)(void *preference, int attribute, const void *value, size_t size);
  int (*heuristic)(void *handle, void *desc, void *a, void *b, void *c, void *d, void *preference, int n,
                   gc_cublaslt_algo_t *out, int *out_n);
  int (*matmul)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,
                void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                const void *algo, void *workspace, size_t workspace_nbytes, gc_stream_t stream);
} gc_cublaslt_t;

/* 0, or -1 with a sentence in `why`. The context must be current. */
int gc_cublaslt_open(gc_cublaslt_t *out, char *why, size_t size);
void gc_cublaslt_close(gc_cublaslt_t *l);

/* A matrix in memory: rows of `leading` elements, or columns of them (transposed). */
typedef struct gc_matrix {
  int64_t leading, batch_stride; /* elements */
  int transposed;
} gc_matrix_t;

/* c [m, n] = alpha * a [m, k] b [k, n] + beta * c, `n_batch` times. Its descriptors are made when it is first run. */
typedef struct gc_product {
  int32_t dtype; /* AOT_F32, AOT_F64, AOT_F16, AOT_BF16 */
  int64_t m, n, k, n_batch;
  gc_matrix_t a, b, c; /* c: not transposed */
  double alpha, beta;
  uint64_t workspace_nbytes;
  void *desc, *layouts[3];
  gc_cublaslt_algo_t algo;
} gc_product_t;

/* 0, or cuBLASLt's status. Addresses and workspace stay as they were in the first run. */
int gc_product_run(const gc_cublaslt_t *l, gc_product_t *p, gc_address_t a, gc_address_t b, gc_address_t c,
                   gc_address_t workspace, gc_stream_t stream);
void gc_product_deinit(const gc_cublaslt_t *l, gc_product_t *p);

#endif
