/* Derivatives provided by opsets (aot/ext/derivative.h). */
#ifndef AG_OUTSIDE_H
#define AG_OUTSIDE_H

#include "bound_rule.h"

/* out[op id].outside for the operators that have no rule of ours and a derivative somewhere. Failures go to a->status.
 * O(derivatives) */
void ag_bind_outside(em_t *a, ag_bound_t *out);
/* Run the derivative of the node in *a. */
void ag_apply_outside(em_t *a, const aot_derivative_t *derivative);

#endif
