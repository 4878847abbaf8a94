/* Mutation becomes new values: one walk over a graph in program order.
 *
 * At each node every operand is brought up to date (stale views are replayed on the new base). A node that writes is
 * replaced by its functional form; the new value goes into the written place, and through the inverse of each view step
 * into the places it is a view of, up to the base. Who writes what is read off the alias marks of the schemas, what
 * aliases what is asked of the opset (hidden_alias.h); there are no operator names here. O(nodes + operands + length
 * of replayed view chains). */
#ifndef FZ_REWRITE_H
#define FZ_REWRITE_H

#include "rewriting.h"

/* The whole graph; afterwards no live node writes, and outputs hold the values that eager execution would leave. */
aot_status_t fz_rewrite_graph(fz_rewrite_t *w);
/* Erases what nothing reads any more: the writers, views that were replayed elsewhere, what the pass made in vain. Once
 * nothing else is to be read. */
aot_status_t fz_erase_dead(fz_rewrite_t *w);

#endif
