/* The families of kernels: one table in each kernels_*.c. Adding a family is a line here. */
#ifndef RK_FAMILIES_H
#define RK_FAMILIES_H

#include "rk_core.h"

#define RK_FAMILY_MAP(X)                                                                                               \
  X(arithmetic) /* add, mul, comparisons, bits, where, clamp */                                                        \
  X(scalar)     /* functions of floats by one formula, scalar.def */                                                   \
  X(math)       /* other functions of floats */                                                                        \
  X(activation) /* activations and their derivatives */                                                                \
  X(complex)    /* parts of complex numbers; what other operators do with them */                                      \
  X(fourier)                                                                                                           \
  X(view) /* geometry of all elements */                                                                               \
  X(reshape)                                                                                                           \
  X(slice)    /* geometry of a part */                                                                                 \
  X(creation) /* full, arange, eye */                                                                                  \
  X(random)   /* draws from seed and offset */                                                                         \
  X(movement) /* casts, repeat, flip, roll, triu */                                                                    \
  X(join)     /* cat, stack */                                                                                         \
  X(pad)                                                                                                               \
  X(view_scatter) /* written over a view; derivatives of views */                                                      \
  X(matmul)                                                                                                            \
  X(reduce)                                                                                                            \
  X(softmax)                                                                                                           \
  X(norm)                                                                                                              \
  X(batch_norm)                                                                                                        \
  X(ctc)                                                                                                               \
  X(loss)                                                                                                              \
  X(index)                                                                                                             \
  X(unique)                                                                                                            \
  X(scatter)                                                                                                           \
  X(attention)                                                                                                         \
  X(conv)                                                                                                              \
  X(pool)                                                                                                              \
  X(sort)                                                                                                              \
  X(resample)                                                                                                          \
  X(antialias) /* smooth resizing */                                                                                   \
  X(affine_grid)                                                                                                       \
  X(weight_norm)                                                                                                       \
  X(distance)                                                                                                          \
  X(groups)                                                                                                            \
  X(group_gradients) /* derivatives of ragged reductions */                                                            \
  X(histogram)                                                                                                         \
  X(special)                                                                                                           \
  X(linalg)   /* LU, Cholesky, solves */                                                                               \
  X(spectral) /* QR, singular values, eigenvalues */                                                                   \
  X(number)   /* Python's arithmetic on numbers */                                                                     \
  X(effect)   /* assertions, printing */

#define RK_FAMILY_DECLARE(name) extern const rk_family_t rk_family_##name;
RK_FAMILY_MAP(RK_FAMILY_DECLARE)
#undef RK_FAMILY_DECLARE

#define RK_FAMILY_ADDRESS(name) &rk_family_##name,
#define RK_FAMILIES RK_FAMILY_MAP(RK_FAMILY_ADDRESS)

#endif
