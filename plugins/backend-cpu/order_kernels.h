/* Order along one dimension: the positions of a line's elements from the least to the greatest, or the other way. Equal
 * elements keep their order; NaN is the greatest. */
#ifndef BC_ORDER_KERNELS_H
#define BC_ORDER_KERNELS_H

#include <stdint.h>

typedef struct bc_ranked { /* an element as a number that compares as it does */
  int64_t key, position;
} bc_ranked_t;

/* n elements, `stride` elements apart. 0: the dtype has no order. */
int bc_rank_line(int32_t dtype, const void *x, int64_t stride, int64_t n, int descending, bc_ranked_t *out);
void bc_sort_line(bc_ranked_t *x, int64_t n, bc_ranked_t *spare); /* merges, O(n log n) */
/* The first k of them come first, in order; what follows is in none. O(n k), quick where k is small. */
void bc_first_of_line(bc_ranked_t *x, int64_t n, int64_t k);

#endif
