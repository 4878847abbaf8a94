/* Numbers of a step that every parameter shares (learning rate, bias corrections): computed once as 0-dim f64 tensors,
 * as PyTorch computes them in Python's doubles, and rounded once for each precision in which parameters are updated. */
#ifndef OPT_SCALAR_H
#define OPT_SCALAR_H

#include "common/emit/emit.h"

#define OPT_SCALAR_FORMS 4
typedef struct opt_scalar {
  em_x_t f64;
  em_x_t cast[OPT_SCALAR_FORMS]; /* f32, f16, bf16, made on demand; none: not yet */
} opt_scalar_t;

opt_scalar_t opt_scalar_make(em_x_t f64);
/* The scalar in the form in which PyTorch's kernels use a Python number on a parameter of this dtype and rank: in float
 * for f32, f16 and bf16, in double for f64. A 0-dim parameter of 16 bits takes it in its own dtype: between two 0-dim
 * tensors the wider dtype would win. */
em_x_t opt_scalar_for(em_t *e, opt_scalar_t *s, int32_t dtype, int32_t rank);

#endif
