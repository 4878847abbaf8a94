/* Matrix products of float32 on blocks that are in a cache, for kernels that run on threads of their own: a BLAS would
 * start its threads, pack operands again for each block, and want those that it multiplies in one of two orders. */
#ifndef BC_TILE_PRODUCTS_H
#define BC_TILE_PRODUCTS_H

#include <stdint.h>

#define BC_TILE_LANES 16

/* c (+)= alpha a b, m x k times k x n. Rows of b and c are contiguous, n is a multiple of BC_TILE_LANES; a has any
 * strides. */
typedef struct bc_tile_product {
  int64_t m, n, k;
  const float *a;
  int64_t a_row, a_column;
  const float *b;
  int64_t b_row;
  float *c;
  int64_t c_row;
  float alpha;
  int adds; /* to what c holds */
} bc_tile_product_t;

/* Each element of c is one sum in the order of k: the same on any number of threads. */
void bc_tile_product(const bc_tile_product_t *p);

static inline int64_t bc_tile_round(int64_t n) { return (n + BC_TILE_LANES - 1) / BC_TILE_LANES * BC_TILE_LANES; }

#endif
