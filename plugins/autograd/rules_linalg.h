/* Matrices in rules: what rules_linalg.c and rules_reflectors.c share. NONE is zero. */
#ifndef AG_RULES_LINALG_H
#define AG_RULES_LINALG_H

#include "rules.h"

ag_val_t ag_product_of(ag_t *a, ag_val_t x, ag_val_t y); /* x y, batches broadcast; NONE when one of them is */
ag_val_t ag_turned(ag_t *a, ag_val_t x);                 /* transposed */
ag_val_t ag_unit(ag_t *a, int64_t rows, int64_t columns, ag_val_t like); /* ones on the diagonal, in the dtype of `like` */

#endif
