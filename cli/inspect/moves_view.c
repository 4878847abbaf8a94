#include <cli/inspect/moves_view.h>

#include <aot/inline.h>
#include <device/hetero/hetero.h>
#include <ir/tables.h>
#include <ir/text/words.h>
#include <stdio.h>
#include <string.h>
#include <cli/plugins/unit_json.h>

typedef struct view {
  aot_prog_t *p;
  kit_arena_t *arena;
  aoth_part_route_t *routes;
  uint32_t n_routes;
  const char *devices[AOTH_MAX_LANES]; /* by lane; "": where the run is */
  uint32_t n_devices;
  json_t *rows;
} view_t;

static uint32_t lane_of(view_t *v, aot_str_t device) {
  uint32_t lane = 0;
  while (lane < v->n_devices && !aot_str_eq(aot_str(v->devices[lane]), device)) lane++;
  if (lane < v->n_devices) return lane;
  if (v->n_devices == AOTH_MAX_LANES) return 0;
  v->devices[v->n_devices] = kit_arena_text(v->arena, device.data, (size_t)device.size);
  return v->n_devices++;
}

/* Backends and devices, as calls of parts name them. 0: the program is not divided. */
static int read_routes(view_t *v) {
  const uint32_t n_graphs = aoth_graph_n_graphs(v->p);
  v->routes = kit_arena_alloc(v->arena, sizeof(void *), ((size_t)n_graphs + 1) * sizeof *v->routes);
  v->devices[v->n_devices++] = "";
  for (uint32_t g = 1; v->routes && g < n_graphs; g++)
    for (aot_node_t n = aoth_graph_first(v->p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(v->p, n)) {
      aot_node_info_t info = {.struct_size = sizeof info};
      aot_graph_t part;
      aot_str_t backend, device;
      uint32_t i = 0;
      if (aoth_graph_node_info(v->p, n, &info) != AOT_OK || !aoth_is_part_call(v->p, &info, &part, &backend, &device))
        continue;
      while (i < v->n_routes && !aot_str_eq(aot_str(v->routes[i].backend), backend)) i++;
      if (i < v->n_routes) continue;
      v->routes[v->n_routes++] =
          (aoth_part_route_t){kit_arena_text(v->arena, backend.data, (size_t)backend.size), lane_of(v, device), 1};
    }
  return v->n_routes > 0;
}

static aot_str_t graph_name(const view_t *v, uint32_t graph) {
  aot_str_t name = {"", 0};
  int32_t kind;
  aoth_graph_graph_info(v->p, (aot_graph_t){graph}, &kind, &name);
  return name;
}

/* "parameter \"weight\"", "output saved 3", "a result of step_part2" */
static json_t *what(const view_t *v, const aoth_part_graph_t *g, uint32_t slot) {
  const uint32_t n_ports = g->n_inputs + g->n_outputs;
  char text[200];
  if (slot >= n_ports) {
    const aot_str_t part = graph_name(v, g->makers[slot - n_ports]);
    snprintf(text, sizeof text, "a result of %.*s", (int)part.size, part.data);
    return json_string(text);
  }
  const int is_input = slot < g->n_inputs;
  const aot_port_t *port = is_input ? &aoth_graph_inputs(v->p, (aot_graph_t){g->id})[slot]
                                    : &aoth_graph_outputs(v->p, (aot_graph_t){g->id})[slot - g->n_inputs];
  aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
  const int is_leaf = (aot_role_is_leaf(port->role) || port->role == AOT_ROLE_UPDATE) &&
                      aoth_graph_leaf_info(v->p, (aot_leaf_t){port->index}, &leaf) == AOT_OK && leaf.n_names;
  if (is_leaf)
    snprintf(text, sizeof text, "%s \"%.*s\"", aoth_role_name(port->role), (int)leaf.names[0].size, leaf.names[0].data);
  else snprintf(text, sizeof text, "%s %u", aoth_role_name(port->role), aoth_port_number(port->role, port->index));
  return json_string(text);
}

static json_int_t nbytes_of(const view_t *v, const aot_type_t *t) {
  int64_t n = (int64_t)aot_dtype_size(t->dtype);
  if (t->kind != AOT_TYPE_TENSOR) return 8;
  for (int32_t d = 0; d < t->rank; d++) n *= aoth_graph_dim_hint(v->p, t->sizes[d]);
  return n;
}

static json_t *device_json(const view_t *v, uint32_t lane) {
  return v->devices[lane][0] ? json_string(v->devices[lane]) : json_null();
}

static void add_moves(const view_t *v, const aoth_part_graph_t *g, const aoth_part_t *part) {
  const uint32_t n_ports = g->n_inputs + g->n_outputs;
  for (uint32_t i = part->move_begin; i < part->move_end; i++) {
    const aoth_part_move_t *m = &g->moves[i];
    const uint32_t slot = m->from < n_ports ? m->from : g->cells[m->from - n_ports].slot;
    if (m->is_filling) continue; /* only where the port has gaps */
    json_array_append_new(
        v->rows, json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:I, s:b}", "graph", aoth_str_json(graph_name(v, g->id)),
                           "part", aoth_str_json(graph_name(v, part->graph)), "behind", i >= part->move_middle, "what",
                           what(v, g, slot), "from", device_json(v, m->from_lane), "to", device_json(v, m->to_lane),
                           "bytes", nbytes_of(v, &g->types[slot]), "kept", m->leaf != AOT_NO_ID));
  }
}

json_t *aoth_moves_json(aot_ctx_t *ctx, aot_prog_t *p) {
  view_t v = {.p = p, .arena = kit_arena_create(), .rows = json_array()};
  aoth_parts_t parts;
  if (v.arena && read_routes(&v) && aoth_parts_read(ctx, p, v.routes, v.n_routes, v.arena, &parts) == AOT_OK)
    for (uint32_t g = 0; g < parts.n_graphs; g++)
      for (uint32_t i = 0; i < parts.graphs[g].n_parts; i++) add_moves(&v, &parts.graphs[g], &parts.graphs[g].parts[i]);
  kit_arena_destroy(v.arena);
  return v.rows;
}

static const char *text_of(const json_t *row, const char *key) {
  const char *text = json_string_value(json_object_get(row, key));
  return text ? text : "the run's device";
}

void aoth_moves_print(const json_t *moves) {
  size_t i;
  json_t *row;
  if (json_array_size(moves)) printf("\nmoved between devices\n");
  json_array_foreach(moves, i, row) {
    printf("  %s %s: %s, %lld bytes, from %s to %s%s\n",
           json_is_true(json_object_get(row, "behind")) ? "behind" : "before", text_of(row, "part"),
           text_of(row, "what"), (long long)json_integer_value(json_object_get(row, "bytes")), text_of(row, "from"),
           text_of(row, "to"), json_is_true(json_object_get(row, "kept")) ? ", until it changes" : "");
  }
}
