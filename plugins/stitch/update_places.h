/* Positions of update nodes in a step: as early as possible, so that gradients are freed after their update.
 *
 *     forward, backward    n1  n2  n3  n4        n5     n3 makes the gradient of w, n4 is the last read of w
 *     with the update      n1  n2  n3  n4  u  u  n5     new values of w and of its optimizer states
 *
 * A new value reuses the buffer of the old one, so it follows the last read of the old value. Nodes shared by several
 * new values are placed at the first of them, in the order of the update: nodes of one parameter stay adjacent and can
 * be fused. A new value that depends on no gradient is placed at the end. */
#ifndef ST_UPDATE_PLACES_H
#define ST_UPDATE_PLACES_H

#include <aot/host.h>

typedef struct st_places { /* of the graph that is being made; what it points to is scratch */
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  uint32_t *node;      /* by position, from 1: its nodes in order; AOT_NO_ID after the last */
  uint32_t n;          /* positions */
  uint32_t *made;      /* by value id: the position of the node that makes it, 0: an input */
  uint32_t *last_read; /* by leaf: the position of the last node that reads its input or a view of it, 0: none */
} st_places_t;

/* Of the nodes that are in `graph` so far. O(nodes). */
aot_status_t st_places_init(st_places_t *p, const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog,
                            aot_graph_t graph);
/* The node that follows the one that makes the value, AOT_NO_ID: none. */
static inline aot_node_t st_places_behind(const st_places_t *p, uint32_t value) {
  return (aot_node_t){p->node[p->made[value] + 1]};
}

/* given: by leaf, the gradient that the update gets, a value of the graph. *out: by id of the update's nodes, the node
 * before which a copy goes, AOT_NO_ID: at the end. O(nodes). */
aot_status_t st_places_of_update(const st_places_t *p, aot_graph_t update, const uint32_t *given, uint32_t **out);

#endif
