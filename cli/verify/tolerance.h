/* Is a result about as near to the truth as another program's? For dtypes whose rounding is so coarse that two right
 * results differ, and kernels that round in other places: bfloat16 and float16 against PyTorch's, float64 the truth.
 *
 * e is what float64 says of an element, W the largest |theirs - e| of the tensor, ulp(e) the step of the result's dtype
 * at e. A result is near when
 *
 *     each element    |ours - e| <= ulp(e) + 1.5 W
 *     all n together  |ours - e| <= 1.5 |theirs - e| + half a step (1 + 1 / sqrt n) |e|, in Euclidean norms
 *
 * So what is rounded once passes always, the next number to that passes alone but not throughout (theirs may be right
 * by luck where elements are few), and what PyTorch itself has lost (terms that cancel, sums in steps) is allowed to
 * the same extent. The first line finds one element that is wrong, the second many that are a little worse. What is
 * not finite must be as the truth or as theirs. */
#ifndef AOTH_TOLERANCE_H
#define AOTH_TOLERANCE_H

#include <step/tensor.h>

#define AOTH_NEAR_FACTOR 1.5

typedef struct aoth_nearness {
  int ok;
  int64_t n_bad, first_bad;  /* elements; flat row-major index of the first, -1: none */
  double got, theirs, exact; /* the numbers there */
  double off, theirs_off;    /* Euclidean, relative to |e| */
} aoth_nearness_t;

/* The largest step of a float dtype relative to its numbers. */
double aoth_rounding(int32_t dtype);

/* Three tensors of the same sizes, `got` and `theirs` of the same float dtype. */
aoth_nearness_t aoth_nearness(const aoth_tensor_t *got, const aoth_tensor_t *theirs, const aoth_tensor_t *exact);

#endif
