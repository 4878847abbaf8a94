/* Copies nodes of one graph into another, values renamed: how a partition makes its graphs. */
#ifndef PT_COPY_NODES_H
#define PT_COPY_NODES_H

#include <aot/host.h>

typedef struct pt_copier {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  uint32_t *map; /* by joint value id; 0: not there */
  uint32_t *ids; /* scratch for one list argument */
  uint32_t ids_capacity;
  aot_arg_t *args; /* scratch for one node's arguments */
  uint32_t args_capacity;
  aot_type_t *types;
  uint32_t types_capacity;
} pt_copier_t;

/* The node `node_id` at the end of c->graph; recomputed: it runs again in the backward. Its results join the map. Diagnoses. */
aot_status_t pt_copy_node(pt_copier_t *c, uint32_t node_id, int recomputed);
/* An input of the type of port->value, which joins the map. */
aot_status_t pt_add_input(pt_copier_t *c, const aot_port_t *port, int32_t role, uint32_t index, aot_str_t name);
void pt_copier_deinit(pt_copier_t *c); /* the scratch, not the map */

#endif
