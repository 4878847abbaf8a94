/* Replaces mutation by new values: one walk over a graph in program order.
 *
 * At each node, stale operands are replayed on the current base. A writing node is replaced by its functional form; its
 * result becomes the value of the written place and, by the inverse of each view step, of the places above it up to the
 * base. Schema marks specify writes and the opset reports aliases (hidden_alias.h), so there are no operator names
 * here. O(nodes + operands + length of replayed view chains). */
#ifndef FZ_REWRITE_H
#define FZ_REWRITE_H

#include "rewriting.h"

/* The whole graph; afterwards no live node writes, and outputs hold the values that eager execution would leave. */
aot_status_t fz_rewrite_graph(fz_rewrite_t *w);
/* Erases what nothing reads any more: the writers, views that were replayed elsewhere, what the pass made in vain. Once
 * nothing else is to be read. */
aot_status_t fz_erase_dead(fz_rewrite_t *w);

#endif
