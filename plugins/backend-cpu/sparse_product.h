/* Products whose left operand turns out to be nearly all zeros when they run: rows of one_hot, masks that send tokens
 * to experts. Each element of it that is none takes its row of the right operand; the rest is not computed. */
#ifndef BC_SPARSE_PRODUCT_H
#define BC_SPARSE_PRODUCT_H

#include "blas.h"

/* Bytes that the elements need, aligned to 8; 0: it is not worth looking (small, batches, other dtypes than float32 and
 * bfloat16, a right operand or a result that lies by columns). */
uint64_t bc_sparse_work(const bc_product_t *p);

/* 1: the elements that are not zero are in `work`. 0: they are too many, or b is not finite (0 * inf is no zero). What
 * is dense is reported from a few of its elements. */
int bc_sparse_find(const bc_product_t *p, const void *a, const void *b, void *work);

/* Rows [begin, end) of c = alpha * a @ b + beta * c, summed in float and rounded once, each in the order of its
 * columns. */
void bc_sparse_rows(const bc_product_t *p, void *work, const void *b, void *c, int64_t begin, int64_t end);

#endif
