/* cuBLASLt, opened at run time: matrix products of strided matrices on a stream. Numbers and signatures are those of
 * cublasLt.h (12 and 13). */
#ifndef GC_CUBLASLT_H
#define GC_CUBLASLT_H

#include "driver.h"

typedef struct gc_algo { /* cublasLtMatmulAlgo_t */
  uint64_t words[8];
} gc_algo_t;

typedef struct gc_candidate { /* cublasLtMatmulHeuristicResult_t */
  gc_algo_t algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} gc_candidate_t;

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
                   gc_candidate_t *out, int *out_n);
  int (*check)(void *handle, void *desc, void *a, void *b, void *c, void *d, const gc_algo_t *algo,
               gc_candidate_t *out);
  int (*matmul)(void *handle, void *desc, const void *alpha, const void *a, void *a_layout, const void *b,
                void *b_layout, const void *beta, const void *c, void *c_layout, void *d, void *d_layout,
                const gc_algo_t *algo, void *workspace, size_t workspace_nbytes, gc_stream_t stream);
} gc_cublaslt_t;

/* Both: 0, or -1 with a sentence in `why`. To start it, the context must be current. */
int gc_cublaslt_open(gc_cublaslt_t *out, char *why, size_t size);
int gc_cublaslt_start(gc_cublaslt_t *l, char *why, size_t size);
void gc_cublaslt_close(gc_cublaslt_t *l);

/* A matrix in memory: rows of `leading` elements, or columns of them (transposed). */
typedef struct gc_matrix {
  int64_t leading, batch_stride; /* elements */
  int transposed;
} gc_matrix_t;

enum { GC_A, GC_B, GC_C, GC_D, GC_N_MATRICES, GC_BIAS = GC_N_MATRICES, GC_WORKSPACE, GC_N_OPERANDS };

/* d [m, n] = alpha * a [m, k] b [k, n] + beta * c + bias [n], `n_batch` times. */
typedef struct gc_product {
  int32_t dtype;  /* AOT_F32, AOT_F64, AOT_F16, AOT_BF16 */
  int32_t result; /* dtype of c and d: the same, or of f16 or bf16 AOT_F32 */
  int has_bias;   /* the same for each of the batch */
  int64_t m, n, k, n_batch;
  gc_matrix_t matrices[GC_N_MATRICES]; /* c and d: not transposed; c is not read where beta is 0 */
  uint32_t align[GC_N_MATRICES];       /* bytes that they are at a multiple of */
  double alpha, beta;
  uint64_t workspace_nbytes;
  const gc_algo_t *algo; /* borrowed; there when it is checked or run */
  void *desc, *layouts[GC_N_MATRICES];
} gc_product_t;

/* What is made of it for cuBLASLt, until gc_product_deinit. All of these: 0, or cuBLASLt's status. */
int gc_product_init(const gc_cublaslt_t *l, gc_product_t *p);
void gc_product_deinit(const gc_cublaslt_t *l, gc_product_t *p);
/* Up to `n` algorithms, the one that should be fastest first; *out_n is not 0. */
int gc_product_candidates(const gc_cublaslt_t *l, const gc_product_t *p, gc_candidate_t *out, int n, int *out_n);
/* Can the product be computed by its algorithm? */
int gc_product_check(const gc_cublaslt_t *l, const gc_product_t *p);
/* Addresses by operand; what the product does not have is not looked at. */
int gc_product_run(const gc_cublaslt_t *l, const gc_product_t *p, const gc_address_t *at, gc_stream_t stream);

#endif
