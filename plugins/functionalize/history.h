/* Writes that autograd does not see, and views that pass no gradient.
 *
 *     with no_grad(): x.mul_(2)      d = x.detach(); d.add_(1)
 *
 * Eager PyTorch changes x's numbers and keeps its history: a gradient of the new x continues as if nothing had been
 * written. The node aot.with_history(old, new) expresses this: the value of new, the gradient of old. O(1) each. */
#ifndef FZ_HISTORY_H
#define FZ_HISTORY_H

#include "rewriting.h"

int fz_step_stops_gradient(const fz_rewrite_t *w, aot_node_t view);
/* Is the step to a place none for autograd? Then what is written on one side of it has no history on the other: a step
 * that stops gradients, and one whose schema does not say that memory is shared (unsafe_split). */
int fz_history_is_apart(const fz_rewrite_t *w, uint32_t place);
/* Does a value of the type have a gradient at all? */
int fz_is_differentiable(const aot_type_t *t);
/* The numbers of `value` with the history of `history`, put before `before` (AOT_NO_ID: at the end). */
aot_status_t fz_with_history(fz_rewrite_t *w, aot_value_t history, aot_value_t value, aot_node_t before,
                             aot_value_t *out);
/* A value that stands outside of any history: detached, unless it was computed so. */
aot_status_t fz_without_history(fz_rewrite_t *w, aot_value_t *value, aot_node_t before);
/* Which storages carry gradients: leaves that require one, and what is computed from them outside no_grad regions. */
aot_status_t fz_mark_leaf(fz_rewrite_t *w, const aot_port_t *port, uint32_t place);
int fz_node_carries(const fz_rewrite_t *w, const aot_node_info_t *n, const uint32_t *operands, uint32_t n_operands);

#endif
