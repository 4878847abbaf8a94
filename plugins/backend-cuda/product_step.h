/* Matrix products as steps: cuBLASLt on operands in its layout, batches as strides. An addend is the product's bias, or
 * the matrix that it adds, where it lies so; else the result begins as a copy of it. */
#ifndef GC_PRODUCT_STEP_H
#define GC_PRODUCT_STEP_H

#include "kit/lowering/lower.h"

/* lw_target_t.product */
aot_status_t gc_lower_product(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *addend,
                              const lw_tensor_t *c, double alpha, double beta);
/* lw_target_t.product_onto */
aot_status_t gc_lower_product_onto(lw_build_t *b, const lw_tensor_t *x, const lw_tensor_t *y, const lw_tensor_t *bias,
                                   const lw_tensor_t *addend, const lw_tensor_t *c);

#endif
