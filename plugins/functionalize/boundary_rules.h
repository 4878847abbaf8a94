/* Boundary rules: what the caller observes after the call. Written leaves, leaves with changed shape, outputs that are
 * inputs, views of inputs, or views of one another. The rules of graph.h, in the order of leaves, then outputs. */
#ifndef FZ_BOUNDARY_RULES_H
#define FZ_BOUNDARY_RULES_H

#include "rewriting.h"

/* After fz_rewrite_graph. *out_n_rules counts what was added. O(inputs + outputs). */
aot_status_t fz_add_boundary(fz_rewrite_t *w, const uint32_t *original_outputs, uint32_t *out_n_rules);

#endif
