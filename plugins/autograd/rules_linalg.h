/* Matrices in rules: what rules_linalg.c and rules_reflectors.c share. NONE is zero. */
#ifndef AG_RULES_LINALG_H
#define AG_RULES_LINALG_H

#include "rules.h"

em_x_t ag_product_of(em_t *a, em_x_t x, em_x_t y); /* x y, batches broadcast; NONE when one of them is */
em_x_t ag_turned(em_t *a, em_x_t x);               /* transposed */
em_x_t ag_unit(em_t *a, int64_t rows, int64_t columns, em_x_t like); /* ones on the diagonal, in the dtype of `like` */

#endif
