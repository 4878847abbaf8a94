/* Joins: tensors that are the parts of one, one after the other along a dimension. */
#ifndef LW_CONCAT_H
#define LW_CONCAT_H

#include "lower.h"

enum { LW_MOST_JOINED = 256 };
typedef struct lw_join {
  const lw_tensor_t *parts[LW_MOST_JOINED]; /* in its layout; borrowed from the build */
  uint32_t rows[LW_MOST_JOINED];            /* their values */
  uint32_t n;
  int64_t dim;
  int is_stack; /* every part is one index of a new dimension */
} lw_join_t;

/* ---- cat, stack (concat.c) ---- */
int lw_is_join(const lw_build_t *b);                   /* is the node at hand one? */
int lw_read_join(const lw_build_t *b, lw_join_t *out); /* of such a node; 0: parts do not fit their result */
/* Of part k in the result, `at` indices along the dimension; moves *at on. */
lw_tensor_t lw_place_in(const lw_tensor_t *whole, const lw_join_t *j, uint32_t k, int64_t *at);
/* The node at hand, whose result is that join: what was not made in its place is copied there. */
aot_status_t lw_lower_join(lw_build_t *b, const lw_join_t *j);

/* ---- sums that are joins (accumulate_slice_grads.c) ---- */
/* Of the node at hand. 0: it is no sum of selections' gradients that have each index of a dimension once. */
int lw_region_stack(lw_build_t *b, lw_join_t *out);

#endif
