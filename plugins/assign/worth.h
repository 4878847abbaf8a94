/* Which parts are worth their submission, and what is moved for it. */
#ifndef AS_WORTH_H
#define AS_WORTH_H

#include "convex.h"
#include "wires.h"

/* A graph that is divided: nodes by their position in it. */
typedef struct as_division {
  as_graph_t order;
  const uint32_t *nodes;   /* ids */
  const as_wires_t *wires; /* NULL: nothing is moved */
  uint32_t *colour;        /* backends, counted from 0 */
  uint32_t *part;
  uint32_t n_parts;
} as_division_t;

/* as_divide, until every part is worth its submission: the nodes of one that is not go to the next backend that claims
 * them. *out_moved grows by how many. */
aot_status_t as_divide_worthily(const as_stage_t *s, as_division_t *d, uint32_t *out_moved);

#endif
