/* The body of a region in place of a node that runs it, once or step by step. The copies stand before the node. */
#ifndef AT_REGION_BODY_H
#define AT_REGION_BODY_H

#include "at_emit.h"

typedef struct at_body {
  at_emit_t *e;
  aot_graph_t graph;
  uint32_t n_inputs, n_outputs, n_nodes;
  uint32_t *map; /* by value of the body: value in the node's graph */
  aot_arg_t *args;
  aot_type_t *types;
  uint32_t *ids;
  uint32_t capacity; /* of args, types and ids */
} at_body_t;

/* O(values of the program), once for all copies. Failures stay in e->status; at_body_close is due either way. */
void at_body_open(at_body_t *b, at_emit_t *e, aot_graph_t graph);
void at_body_close(at_body_t *b);

/* One copy: inputs are n_inputs arguments, of which a number needs no binding: it stands in the body as an expression. outputs gets
 * n_outputs; None where the body gives None. */
void at_body_copy(at_body_t *b, const at_x *inputs, uint32_t n, at_x *outputs);

#endif
