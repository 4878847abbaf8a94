/* Bags of embeddings: rows of a float32 table, added up bag by bag, and the gradient of the table. Bags are runs of
 * indices. */
#ifndef BC_BAG_KERNELS_H
#define BC_BAG_KERNELS_H

#include <stdint.h>

typedef struct bc_bags {
  const int64_t *index, *offsets; /* of n_index, of n_offsets; an offset after the last bag may be at the end */
  const float *scale;             /* by index; NULL: 1 */
  int64_t n_index, n_offsets, n_bags, n_table, width, padding;
  int32_t is_mean;
} bc_bags_t;

/* Offsets rise from 0 to at most n_index, indices are rows of the table. Returns -1, or where one is not: an index at
 * that position, or a bag at -2 - position. */
int64_t bc_bags_check(const bc_bags_t *b);
/* Bags [begin, end) of y[n_bags, width]. counts, by bag: indices that are no padding; may be NULL */
void bc_bags_sum(const bc_bags_t *b, const float *table, int64_t begin, int64_t end, float *y, int64_t *counts);
/* Columns [begin, end) of the table's gradient, which is zeroed there first. owner: the bag of each index; counts: of a
 * mean */
void bc_bags_backward(const bc_bags_t *b, const float *g, const int64_t *owner, const int64_t *counts, int64_t begin,
                      int64_t end, float *g_table);

#endif
