/* Numbers of a step that every parameter shares (learning rate, bias corrections): computed once as 0-dim f64 tensors,
 * as PyTorch computes them in Python's doubles, and rounded once for each precision in which parameters are updated. */
#ifndef OPT_SCALAR_H
#define OPT_SCALAR_H

#include "kit/emit/emit.h"

typedef struct opt_scalar {
  em_x_t f64;
  em_x_t f32; /* made on demand; none: not yet */
} opt_scalar_t;

opt_scalar_t opt_scalar_make(em_x_t f64);
/* The scalar as PyTorch's kernels compute with a Python number next to a parameter of this dtype: in double for f64, in
 * float for others. */
em_x_t opt_scalar_for(em_t *e, opt_scalar_t *s, int32_t dtype);
/* Halves are computed in float where such a scalar is an operand, and rounded once: a 0-dim tensor next to them would
 * be rounded to a half (backends for CUDA), or win over a 0-dim parameter. Of other dtypes x itself. */
em_x_t opt_wide(em_t *e, em_x_t x, int32_t dtype);
em_x_t opt_narrow(em_t *e, em_x_t x, int32_t dtype);

#endif
