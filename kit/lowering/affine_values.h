/* What tensors hold as functions of their indices, where the program's text alone reports: ranges, and what
 * comparisons, sums and views make of them. Masks are made so. */
#ifndef LW_AFFINE_VALUES_H
#define LW_AFFINE_VALUES_H

#include "lower.h"

enum { LW_FORM_UNKNOWN, LW_FORM_NUMBERS, LW_FORM_CHOICE };

/* NUMBERS: the element of index i is n(i) = start + sum of steps[d] * i[d].
 * CHOICE: it is `yes` where n(i) >= 0, else `no`; what holds one number everywhere has it twice. */
typedef struct lw_form {
  int32_t kind, rank;
  int64_t start, sizes[AOT_MAX_RANK], steps[AOT_MAX_RANK]; /* dimensions of one element step by 0 */
  double yes, no;
} lw_form_t;

/* Of the node's argument k; NULL: it is not known. The first question walks the graph, linear in nodes. */
const lw_form_t *lw_form_of(lw_build_t *b, uint32_t k);

#endif
