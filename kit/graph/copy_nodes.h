/* Copies nodes of one graph into another, values renamed: how a partition makes its graphs, and how a body is in
 * for its call. */
#ifndef JG_COPY_NODES_H
#define JG_COPY_NODES_H

#include <aot/host.h>

typedef struct jg_copier {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  aot_node_t before;   /* where copies go; none: at the end */
  uint32_t region_tag; /* of copies without one of their own */
  uint32_t *map;       /* by value id: its copy; AOT_NO_ID: not there */
  uint32_t *ids;       /* scratch for one node's lists */
  uint32_t ids_capacity;
  aot_arg_t *args; /* scratch for one node's arguments */
  uint32_t args_capacity;
  aot_type_t *types;
  uint32_t types_capacity;
} jg_copier_t;

/* The node `node_id` in c->graph; flags: besides its own, a checkpoint tag of its own standing above theirs. Its
 * results join the map. Diagnoses. */
aot_status_t jg_copy_node(jg_copier_t *c, uint32_t node_id, uint32_t flags);
/* An input of the type of port->value, which joins the map. */
aot_status_t jg_add_input(jg_copier_t *c, const aot_port_t *port, int32_t role, uint32_t index, aot_str_t name);
void jg_copier_deinit(jg_copier_t *c); /* the scratch, not the map */

#endif
