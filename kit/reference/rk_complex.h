/* Complex numbers in kernels: what an operator does when an argument or a result is complex.
 *
 * Kernels are written for real numbers. A call with complex tensors looks its operator up in the table of
 * kernels_complex.c, which names one of a few ways to get complex results out of the same kernel: copy elements
 * whatever they are, run once for the real and once for the imaginary part (what is linear with real coefficients), run
 * four times (products), read magnitudes instead of elements (norms), or a function of complex numbers. What the table
 * does not name refuses complex numbers. */
#ifndef RK_COMPLEX_H
#define RK_COMPLEX_H

#include "rk_pointwise.h"
#include <complex.h>

typedef double complex rk_complex_t;

/* A scalar function: x[k] is the element of argument k, tensor or number. */
typedef rk_complex_t (*rk_complex_f_t)(const rk_complex_t *x, const pw_par_t *p);

enum {
  RK_COMPLEX_SAME = 1,  /* the kernel copies elements of any dtype, or makes real numbers */
  RK_COMPLEX_PARTS,     /* linear, with real coefficients, in the arguments of `slots`: part by part */
  RK_COMPLEX_PRODUCT,   /* the product of the two arguments of `slots`, and the argument `added`, if any */
  RK_COMPLEX_MAGNITUDE, /* of the absolute values of argument 0 */
  RK_COMPLEX_POINTWISE, /* f */
  RK_COMPLEX_OWN,       /* run */
  RK_COMPLEX_REFUSED    /* though it is a view of elements */
};

typedef struct rk_complex_row {
  const char *name; /* without "aten." */
  int way;
  uint32_t slots; /* bit k: argument k holds elements */
  uint32_t added; /* the same, for what a product is added to */
  int conjugate;  /* the first factor is conjugated */
  rk_complex_f_t f;
  rk_fn run;
} rk_complex_row_t;

/* NULL: complex numbers are refused. A linear search, as rk_find. */
const rk_complex_row_t *rk_complex_find(const rk_kernel_t *k);
aot_status_t rk_complex_run(rk_ctx_t *c, const rk_complex_row_t *row);

/* The real (0) or imaginary (1) parts of a complex tensor: a view of its memory. */
rk_tensor_t rk_part(const rk_tensor_t *t, int imaginary);
rk_complex_t rk_complex_of(double real, double imaginary); /* exact, also for infinities */

/* A dense work copy, row-major. */
typedef struct rk_complex_array {
  int32_t rank;
  int64_t numel;
  int64_t sizes[AOT_MAX_RANK];
  rk_complex_t *v;
} rk_complex_array_t;
aot_status_t rk_complex_new(rk_ctx_t *c, int32_t rank, const int64_t *sizes, rk_complex_array_t *out); /* zeroed */
aot_status_t rk_complex_need(rk_ctx_t *c, uint32_t arg, rk_complex_array_t *out); /* real numbers too */
/* into real numbers: the real part */
aot_status_t rk_complex_put(rk_ctx_t *c, uint32_t result, const rk_complex_array_t *a);
void rk_complex_around(const rk_complex_array_t *a, int32_t dim, int64_t *outer, int64_t *size, int64_t *inner);

#endif
