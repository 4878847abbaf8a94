#include "copy_nodes.h"

#include "kit/base/vector.h"
#include "joint_error.h"
#include <aot/assert.h>
#include <aot/inline.h>
#include <stdlib.h>

#define CHECKPOINT_TAGS                                                                                                \
  (AOT_NODE_MUST_SAVE | AOT_NODE_PREFER_SAVE | AOT_NODE_MUST_RECOMPUTE | AOT_NODE_PREFER_RECOMPUTE)

void jg_copier_deinit(jg_copier_t *c) {
  free(c->ids);
  free(c->args);
  free(c->types);
}

static int grow(void **data, uint32_t *capacity, uint32_t want, size_t size) {
  void *grown = kit_grow(*data, capacity, want, size);
  if (!grown) return -1;
  *data = grown;
  return 0;
}

static aot_status_t lost_value(jg_copier_t *c, uint32_t id) {
  aot_value_t v = {id};
  return jg_fail(c->host, c->ctx, AOT_E_INTERNAL, "partition.lost-value",
                 "a node reads a value that is on the other side of the cut and was not saved", v);
}

static aot_status_t map_args(jg_copier_t *c, const aot_node_info_t *info) {
  uint32_t n_ids = 0;
  if (grow((void **)&c->args, &c->args_capacity, info->n_args + 1, sizeof *c->args) ||
      grow((void **)&c->ids, &c->ids_capacity, info->n_operands + 1, sizeof *c->ids))
    return jg_no_memory(c->host, c->ctx);
  for (uint32_t i = 0; i < info->n_args; i++) {
    aot_arg_t a = info->args[i];
    if (a.kind == AOT_ARG_VALUE) {
      uint32_t from = (uint32_t)a.u.i;
      if (c->map[from] == AOT_NO_ID) return lost_value(c, from);
      a.u.i = c->map[from];
    } else if (a.kind == AOT_ARG_VALUES) {
      uint32_t first = n_ids;
      for (uint32_t k = 0; k < a.n; k++) {
        uint32_t from = a.u.ids[k];
        if (from != AOT_NO_ID && c->map[from] == AOT_NO_ID) return lost_value(c, from);
        c->ids[n_ids++] = c->map[from];
      }
      a.u.ids = c->ids + first;
    }
    c->args[i] = a;
  }
  AOT_ASSERT(n_ids <= info->n_operands);
  return AOT_OK;
}

aot_status_t jg_copy_node(jg_copier_t *c, uint32_t node_id, uint32_t flags) {
  const aot_graph_api_t *g = c->host->graph;
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t from = {node_id}, made;
  AOT_TRY(g->node_info(c->prog, from, &info));
  AOT_TRY(map_args(c, &info));
  if (grow((void **)&c->types, &c->types_capacity, info.n_results + 1, sizeof *c->types))
    return jg_no_memory(c->host, c->ctx);
  for (uint32_t i = 0; i < info.n_results; i++) {
    aot_value_t v = {info.first_result.id + i};
    AOT_TRY(g->value_type(c->prog, v, &c->types[i]));
  }
  if (info.flags & CHECKPOINT_TAGS) flags &= ~(uint32_t)CHECKPOINT_TAGS;
  aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .flags = info.flags | flags,
      .op = info.op,
      .n_args = info.n_args,
      .args = c->args,
      .n_types = info.n_results,
      .region_tag = info.region_tag ? info.region_tag : c->region_tag,
      .types = c->types,
      .origin = info.origin,
  };
  AOT_TRY(c->host->edit->node_create(c->prog, c->graph, &spec, c->before, &made));
  aot_node_info_t copy = {.struct_size = sizeof copy};
  AOT_TRY(g->node_info(c->prog, made, &copy));
  AOT_ASSERT(copy.n_results >= info.n_results);
  for (uint32_t i = 0; i < info.n_results; i++) c->map[info.first_result.id + i] = copy.first_result.id + i;
  return AOT_OK;
}

aot_status_t jg_add_input(jg_copier_t *c, const aot_port_t *port, int32_t role, uint32_t index, aot_str_t name) {
  aot_type_t type;
  aot_value_t made;
  AOT_TRY(c->host->graph->value_type(c->prog, port->value, &type));
  AOT_TRY(c->host->edit->input_add(c->prog, c->graph, role, index, &type, name, &made));
  c->map[port->value.id] = made.id;
  return AOT_OK;
}
