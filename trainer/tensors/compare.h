/* Comparing a tensor with the one expected, as numpy.allclose does: |a - b| <= atol + rtol * |b| for every element, b
 * being the expected one. NaN equals NaN, an infinity equals itself; integers and bool must be exact. */
#ifndef AOTH_COMPARE_H
#define AOTH_COMPARE_H

#include <step/tensor.h>

typedef struct aoth_compare {
  int ok;             /* same dtype and sizes, every element close */
  int same_type;      /* dtype and sizes agree; else nothing below is filled in */
  double max_abs;     /* largest |a - b|; infinity where only one of the two is finite */
  double max_rel;     /* largest |a - b| / |b|, over elements with b != 0 */
  int64_t n_bad;      /* elements outside tolerance */
  int64_t first_bad;  /* flat row-major index of the first, -1: none */
  double got, wanted; /* the two numbers there */
  double rel_l2;      /* |a - b| / |b|, Euclidean norms */
} aoth_compare_t;

aoth_compare_t aoth_compare_tensors(const aoth_tensor_t *got, const aoth_tensor_t *wanted, double rtol, double atol);

/* Euclidean norm of a - b, and of b; same sizes, maybe of different dtypes. Elements that are not finite in both are
 * left out. */
void aoth_distance(const aoth_tensor_t *a, const aoth_tensor_t *b, double *out_distance, double *out_norm);

/* The largest finite |x|, 0: none; complex numbers by their real parts. */
double aoth_tensor_largest(const aoth_tensor_t *t);
/* By how much two right results of this dtype differ, relative to the largest of their terms. */
double aoth_usual_tolerance(int32_t dtype, int is_gradient);

#endif
