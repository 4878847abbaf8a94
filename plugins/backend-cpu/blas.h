/* Matrix products on strided operands through CBLAS. */
#ifndef BC_BLAS_H
#define BC_BLAS_H

#include <aot/base.h>

/* rows x columns; element (i, j) at i * ld + j, or j * ld + i when transposed. */
typedef struct bc_matrix {
  int64_t rows, columns, ld;
  int32_t transposed, reserved;
} bc_matrix_t;

/* From strides. 0: neither of the two strides is 1, or the other is too small. */
int bc_matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride, bc_matrix_t *out);

/* c = alpha * a @ b + beta * c for every index of the batch dimensions. Strides in elements. c lies by rows. */
typedef struct bc_product {
  int32_t dtype;    /* AOT_F32, AOT_F64; for oneDNN AOT_BF16, too */
  int32_t rank;     /* batch dimensions */
  int32_t has_bias; /* for oneDNN: c = a @ b + bias, a number a column; alpha is 1, beta 0 */
  int32_t reserved;
  double alpha, beta;
  bc_matrix_t a, b, c;
  int64_t sizes[AOT_MAX_RANK], a_strides[AOT_MAX_RANK], b_strides[AOT_MAX_RANK], c_strides[AOT_MAX_RANK];
} bc_product_t;

void bc_product(const bc_product_t *p, const void *a, const void *b, void *c);

/* Readies the BLAS for n threads that call it, one a processor when n is 0. Returns how many. */
int32_t bc_blas_threads(int64_t n);

#endif
