/* What decompositions of windows over the last dimensions share: decomp_window.c, decomp_pool.c. */
#ifndef AT_DECOMP_WINDOW_H
#define AT_DECOMP_WINDOW_H

#include "at_formula.h"

enum { AT_MOST_SPACE = 3, AT_MOST_READS = 64 }; /* dimensions; places that are read for an element */

int32_t at_space_of(const em_t *e);                                 /* dimensions, by the operator's name */
em_x_t at_or_else(em_t *e, em_x_t valid, em_x_t x, double outside); /* valid none: x */
em_x_t at_floor_of_quotient(em_t *e, em_x_t x, int64_t n);          /* floor(x / n) of integers x >= 0 */
em_x_t at_scaled_range(em_t *e, int64_t n, int64_t step, int64_t shift, em_x_t like); /* k * step + shift, k < n */
/* x as the result of that number: its dtype, laid out as it is declared. */
aot_status_t at_give_result(em_t *e, uint32_t result, em_x_t x, aot_value_t *out);

#endif
