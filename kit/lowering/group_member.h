/* A node as a member of a group. */
#ifndef LW_GROUP_MEMBER_H
#define LW_GROUP_MEMBER_H

#include "kit/loops/loop.h"
#include "lower.h"

typedef struct lw_member {
  const char *text; /* pointwise: its template, and the dtype that it computes in */
  int32_t compute;
  int32_t reads;           /* it is pointwise, and its operand is what lw_read says; */
  int32_t writes;          /* and its result is where lw_write says */
  const lp_row_op_t *rows; /* or: its steps, */
  uint32_t reduced;        /* and the dimensions of its space that they reduce, as bits */
} lw_member_t;

int32_t lw_rows_result(const lw_build_t *b); /* dtype of the node's first result that is there */
/* A sum over all dimensions, m, but the innermost in memory (the last; with channels last the second) becomes one
 * across the rows that this one is; 0: it stays what it is. So what makes its terms shares a loop with it. Asked when
 * groups are found, and when they become loops: by the declared strides, since kernels may have laid the terms
 * otherwise by then. */
int lw_sum_across(const lw_build_t *b, lw_member_t *m);
int lw_member(const lw_build_t *b, lw_member_t *out); /* of the node at hand; 0: loops cannot hold it */
/* What it has an element for in every iteration: its result, or the tensor whose rows it reduces. */
const lw_tensor_t *lw_member_space(const lw_build_t *b, const lw_member_t *m);
/* Rows of x along these dimensions are adjacent: the stride within a row exceeds that between rows. */
int lw_is_across_memory(const lw_tensor_t *x, uint32_t reduced);
uint32_t lw_n_places(const lw_build_t *b); /* of arguments that a loop's operators may have */

#endif
