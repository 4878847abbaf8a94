/* A matrix product by oneDNN or the BLAS, divided among the team: a unit of work is a batch, or some rows or columns
 * of the result.
 * Both libraries compute in the thread that calls them. */
#ifndef BC_PARALLEL_GEMM_H
#define BC_PARALLEL_GEMM_H

#include "blas.h"
#include "target.h"

/* How it is divided, with a kernel for every shape that comes up; pool memory. */
typedef struct bc_division bc_division_t;

/* The result lies by rows. with_onednn: where it is there and is not the slower one; *out NULL: it is not, and the BLAS
 * has no such product (of f16 or bf16, or with a bias). */
aot_status_t bc_divide_product(lw_build_t *b, const bc_product_t *p, int with_onednn, const bc_division_t **out);
aot_status_t bc_add_divided_product(lw_build_t *b, const bc_division_t *d, const lw_tensor_t *x, const lw_tensor_t *y,
                                    const lw_tensor_t *c, const lw_tensor_t *bias); /* NULL: none */

#endif
