/* The body of a region in place of what calls it. */
#ifndef PLUGINS_COMMON_INLINE_BODY_H
#define PLUGINS_COMMON_INLINE_BODY_H

#include "emit.h"
#include "kit/graph/copy_nodes.h"

typedef struct em_inliner {
  em_t *e;
  jg_copier_t copier;
} em_inliner_t;

/* O(values of the program), once for all copies of the graphs that are there. Failures stay in e->status;
 * em_inline_close is due either way. */
void em_inline_open(em_inliner_t *in, em_t *e);
void em_inline_close(em_inliner_t *in);

/* One copy of the graph's nodes, where e makes nodes; with e's flags and checkpoint region, above which their own
 * are. n inputs, as many as the graph has: a number needs no binding, as it is in the body as an expression.
 * outputs: as many as the graph has; none where it gives none. */
void em_inline(em_inliner_t *in, aot_graph_t graph, uint32_t n, const em_x_t *inputs, em_x_t *outputs);

#endif
