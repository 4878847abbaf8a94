/* What goes from device to device when a program that was divided among backends runs: read off the parts. */
#ifndef AOTH_MOVES_VIEW_H
#define AOTH_MOVES_VIEW_H

#include <ir/program.h>
#include <jansson.h>

/* A row a move, in order: graph, part (that it precedes or follows), after, what, from, to (null: where the run
 * is), bytes (at the hints of symbols), kept (a copy of a leaf, until that is another). A new reference; an empty list
 * where nothing moves. O(program). */
json_t *aoth_moves_json(aot_ctx_t *ctx, aot_prog_t *p);
void aoth_moves_print(const json_t *moves); /* nothing for an empty list */

#endif
