#include <device/hetero/hetero.h>

#include <aot/assert.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

aot_status_t aoth_parts_no_memory(aot_ctx_t *ctx) {
  return aoth_report_error(ctx, AOT_E_EXHAUSTED, "run.memory", "no memory for the parts of the program");
}

int aoth_is_part_call(aot_prog_t *prog, const aot_node_info_t *node, aot_graph_t *out_part, aot_str_t *out_backend,
                      aot_str_t *out_device) {
  int32_t kind;
  aot_str_t name;
  const aot_arg_t *a = node->args;
  if (node->n_args < 3 || a[0].kind != AOT_ARG_GRAPH || a[1].kind != AOT_ARG_STR) return 0;
  *out_part = (aot_graph_t){(uint32_t)a[0].u.i};
  *out_backend = (aot_str_t){a[1].u.chars, a[1].n};
  *out_device = a[2].kind == AOT_ARG_STR ? (aot_str_t){a[2].u.chars, a[2].n} : (aot_str_t){"", 0};
  return aoth_graph_graph_info(prog, *out_part, &kind, &name) == AOT_OK && kind == AOT_GRAPH_PART;
}

typedef struct reader {
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  const aoth_part_route_t *routes;
  uint32_t n_routes;
  kit_arena_t *arena;
  aoth_parts_t *out;
  uint32_t *route_of;  /* by graph: of a part, the route + 1 */
  uint32_t *number_of; /* by graph: of a part, which of its backend's */
  uint32_t *slot;      /* by value: slot + 1 */
  /* of the graph that is read */
  aot_graph_t id;
  aoth_part_graph_t *g;
  uint32_t *lane;              /* by slot: of the port, or of the part that makes it */
  uint32_t *origin;            /* by slot: where its contents are first: a place .. */
  uint32_t *origin_lane;       /* .. on this lane */
  uint32_t *cells;             /* by slot: the first cell; AOTH_NO_PLACE */
  uint32_t *input_of;          /* by leaf: its input port + 1 */
  uint32_t offset;             /* the input port + 1 of the offset of random numbers; 0: none */
  uint32_t capacity, n_places; /* n_places: of ports */
} reader_t;

static void *rows(const reader_t *r, uint64_t n, size_t size) {
  return kit_arena_alloc(r->arena, sizeof(void *), ((size_t)n + 1) * size);
}

static uint32_t find_route(const reader_t *r, aot_str_t backend) {
  uint32_t i = 0;
  while (i < r->n_routes && !aot_str_eq(aot_str(r->routes[i].backend), backend)) i++;
  return i;
}

static int is_called(aot_prog_t *p, uint32_t graph, int32_t *out_kind) {
  aot_str_t name;
  return aoth_graph_graph_info(p, (aot_graph_t){graph}, out_kind, &name) == AOT_OK && *out_kind != AOT_GRAPH_REGION &&
         *out_kind != AOT_GRAPH_PART;
}

/* The call that a node is. */
static aot_status_t call_at(const reader_t *r, aot_node_t node, aot_node_info_t *out, aot_graph_t *out_part) {
  aot_str_t backend, device;
  *out = (aot_node_info_t){.struct_size = sizeof *out};
  *out_part = (aot_graph_t){AOT_NO_ID};
  AOT_TRY(aoth_graph_node_info(r->prog, node, out));
  if (aoth_is_part_call(r->prog, out, out_part, &backend, &device)) {
    const uint32_t route = find_route(r, backend);
    if (route < r->n_routes && r->routes[route].is_there) {
      r->route_of[out_part->id] = route + 1;
      return AOT_OK;
    }
  }
  return aoth_report_error(r->ctx, AOT_E_INVALID, "run.part",
                           "a graph that is divided among backends holds something that none of them runs");
}

/* ---- where leaves live ---- */

typedef struct stored { /* a leaf of the model file */
  const void *data;
  uint64_t nbytes;
  uint32_t leaf;
} stored_t;

static int compare_stored(const void *a, const void *b) {
  const stored_t *x = a, *y = b;
  if (x->data != y->data) return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
  if (x->nbytes != y->nbytes) return x->nbytes < y->nbytes ? -1 : 1;
  return x->leaf < y->leaf ? -1 : 1;
}

/* Leaves in one storage live where the first of them does. */
static aot_status_t join_storages(const reader_t *r) {
  const uint32_t n_leaves = aoth_graph_n_leaves(r->prog);
  stored_t *list = rows(r, n_leaves, sizeof *list);
  uint32_t n = 0;
  if (!list) return aoth_parts_no_memory(r->ctx);
  for (uint32_t i = 1; i < n_leaves; i++) {
    aot_leaf_info_t info = {.struct_size = sizeof info};
    AOT_TRY(aoth_graph_leaf_info(r->prog, (aot_leaf_t){i}, &info));
    if (info.role != AOT_ROLE_USER_INPUT && info.data && info.nbytes) list[n++] = (stored_t){info.data, info.nbytes, i};
  }
  qsort(list, n, sizeof *list, compare_stored);
  for (uint32_t i = 1; i < n; i++)
    if (list[i].data == list[i - 1].data && list[i].nbytes == list[i - 1].nbytes)
      r->out->home[list[i].leaf] = r->out->home[list[i - 1].leaf];
  return AOT_OK;
}

/* Written: home + 1, read: the same where nothing is there yet. */
static aot_status_t note_homes(const reader_t *r, aot_graph_t graph, uint32_t *written, uint32_t *read) {
  aot_prog_t *p = r->prog;
  uint32_t *leaf_of = rows(r, aoth_graph_n_values(p), sizeof *leaf_of);
  if (!leaf_of) return aoth_parts_no_memory(r->ctx);
  for (uint32_t i = 0, n = aoth_graph_n_inputs(p, graph); i < n; i++) {
    const aot_port_t *port = &aoth_graph_inputs(p, graph)[i];
    if (aot_role_is_leaf(port->role) && port->role != AOT_ROLE_USER_INPUT) leaf_of[port->value.id] = port->index;
  }
  for (uint32_t i = 0, n = aoth_graph_n_outputs(p, graph); i < n; i++) {
    const aot_port_t *port = &aoth_graph_outputs(p, graph)[i];
    const aot_node_t def = port->value.id == AOT_NO_ID ? (aot_node_t){AOT_NO_ID} : aoth_graph_value_def(p, port->value);
    aot_node_info_t call;
    aot_graph_t part;
    if (port->role != AOT_ROLE_UPDATE || def.id == AOT_NO_ID) continue;
    AOT_TRY(call_at(r, def, &call, &part));
    if (!written[port->index]) written[port->index] = r->routes[r->route_of[part.id] - 1].lane + 1;
  }
  for (aot_node_t n = aoth_graph_first(p, graph); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) {
    aot_node_info_t call;
    aot_graph_t part;
    AOT_TRY(call_at(r, n, &call, &part));
    for (uint32_t i = 0; i < call.n_operands; i++) {
      const uint32_t leaf = leaf_of[call.operands[i]];
      if (leaf && !read[leaf]) read[leaf] = r->routes[r->route_of[part.id] - 1].lane + 1;
    }
  }
  return AOT_OK;
}

static aot_status_t find_homes(const reader_t *r) {
  const uint32_t n_leaves = aoth_graph_n_leaves(r->prog);
  uint32_t *written = rows(r, n_leaves, sizeof *written), *read = rows(r, n_leaves, sizeof *read);
  int32_t kind;
  r->out->home = rows(r, n_leaves, sizeof *r->out->home);
  if (!written || !read || !r->out->home) return aoth_parts_no_memory(r->ctx);
  for (uint32_t g = 1; g < aoth_graph_n_graphs(r->prog); g++)
    if (is_called(r->prog, g, &kind)) AOT_TRY(note_homes(r, (aot_graph_t){g}, written, read));
  for (uint32_t i = 1; i < n_leaves; i++) r->out->home[i] = written[i] ? written[i] - 1 : read[i] ? read[i] - 1 : 0;
  return join_storages(r);
}

/* ---- ports, cells and moves of a graph ---- */

static uint32_t add_cell(const reader_t *r, uint32_t slot, uint32_t lane, uint32_t part, uint32_t leaf) {
  aoth_part_graph_t *g = r->g;
  g->cells[g->n_cells] = (aoth_part_cell_t){slot, lane, part, part, leaf, r->cells[slot]};
  r->cells[slot] = g->n_cells;
  return r->n_places + g->n_cells++;
}

/* Where the slot's contents are on that lane; AOTH_NO_PLACE: nowhere yet. */
static uint32_t find_place(const reader_t *r, uint32_t slot, uint32_t lane) {
  for (uint32_t c = r->cells[slot]; c != AOTH_NO_PLACE; c = r->g->cells[c].next)
    if (r->g->cells[c].lane == lane) return r->n_places + c;
  return slot < r->n_places && r->lane[slot] == lane ? slot : AOTH_NO_PLACE;
}

static void use(const reader_t *r, uint32_t place, uint32_t part) {
  if (place < r->n_places) return;
  aoth_part_cell_t *cell = &r->g->cells[place - r->n_places];
  AOT_ASSERT(cell->last <= part);
  cell->last = part;
}

static void add_move(const reader_t *r, aoth_part_move_t move, uint32_t part) {
  r->g->moves[r->g->n_moves++] = move;
  use(r, move.from, part);
}

static uint32_t leaf_of(const reader_t *r, uint32_t slot) {
  if (slot >= r->g->n_inputs) return AOT_NO_ID;
  const aot_port_t *port = &aoth_graph_inputs(r->prog, r->id)[slot];
  return aot_role_is_leaf(port->role) && port->role != AOT_ROLE_USER_INPUT ? port->index : AOT_NO_ID;
}

static uint32_t take(const reader_t *r, uint32_t slot, uint32_t lane, uint32_t part) {
  uint32_t place = find_place(r, slot, lane);
  if (place == AOTH_NO_PLACE) {
    place = add_cell(r, slot, lane, part, leaf_of(r, slot));
    add_move(r,
             (aoth_part_move_t){.from_lane = r->origin_lane[slot],
                                .to_lane = lane,
                                .from = r->origin[slot],
                                .to = place,
                                .leaf = leaf_of(r, slot)},
             part);
  }
  use(r, place, part);
  return place;
}

/* The input + 1 in whose memory an output lies; 0: it has its own. */
static uint32_t home_of(const reader_t *r, uint32_t slot) {
  if (r->g->kind != AOT_GRAPH_STEP || slot < r->g->n_inputs || slot >= r->n_places) return 0;
  const aot_port_t *port = &aoth_graph_outputs(r->prog, r->id)[slot - r->g->n_inputs];
  if (port->role == AOT_ROLE_OFFSET) return r->offset;
  return port->role == AOT_ROLE_UPDATE ? r->input_of[port->index] : 0;
}

/* Where the part on that lane leaves the slot's contents. A new value is in the memory of the old one there, too. */
static uint32_t give(const reader_t *r, uint32_t slot, uint32_t lane, uint32_t part) {
  const uint32_t home = home_of(r, slot);
  if (slot < r->n_places && r->lane[slot] == lane) return slot;
  const uint32_t old = home ? find_place(r, home - 1, lane) : AOTH_NO_PLACE;
  if (old != AOTH_NO_PLACE) return old;
  const uint32_t place = add_cell(r, slot, lane, part, AOT_NO_ID);
  if (home)
    add_move(
        r, (aoth_part_move_t){.from_lane = r->lane[slot], .to_lane = lane, .from = slot, .to = place, .is_filling = 1},
        part);
  return place;
}

static aot_status_t read_part(reader_t *r, aot_node_t node, uint32_t at) {
  aoth_part_graph_t *g = r->g;
  aoth_part_t *part = &g->parts[at];
  aot_node_info_t call;
  aot_graph_t id;
  AOT_TRY(call_at(r, node, &call, &id));
  const uint32_t route = r->route_of[id.id] - 1, lane = r->routes[route].lane;
  AOT_ASSERT(route < r->n_routes && lane < AOTH_MAX_LANES);
  uint32_t *places = rows(r, (uint64_t)call.n_operands + call.n_results, sizeof *places);
  if (!places) return aoth_parts_no_memory(r->ctx);
  *part = (aoth_part_t){.backend = route,
                        .number = r->number_of[id.id],
                        .graph = id.id,
                        .lane = lane,
                        .n_inputs = call.n_operands,
                        .n_outputs = call.n_results,
                        .places = places,
                        .move_begin = g->n_moves};
  g->lanes |= 1u << lane;
  for (uint32_t i = 0; i < call.n_operands; i++) places[i] = take(r, r->slot[call.operands[i]] - 1, lane, at);
  for (uint32_t i = 0; i < call.n_results; i++) {
    const uint32_t value = call.first_result.id + i;
    if (!r->slot[value]) {
      aoth_graph_value_type(r->prog, (aot_value_t){value}, &g->types[r->n_places + g->n_between]);
      g->makers[g->n_between] = id.id;
      r->slot[value] = r->n_places + g->n_between++ + 1;
    }
    const uint32_t slot = r->slot[value] - 1;
    places[call.n_operands + i] = r->origin[slot] = give(r, slot, lane, at);
    r->origin_lane[slot] = lane;
    part->writes_home |= home_of(r, slot) != 0;
  }
  part->move_middle = g->n_moves;
  for (uint32_t i = 0; i < call.n_results; i++) {
    const uint32_t slot = r->slot[call.first_result.id + i] - 1;
    if (slot < r->n_places && r->lane[slot] != lane)
      add_move(r,
               (aoth_part_move_t){.from_lane = lane,
                                  .to_lane = r->lane[slot],
                                  .from = r->origin[slot],
                                  .to = slot,
                                  .is_home = home_of(r, slot) != 0},
               at);
  }
  part->move_end = g->n_moves;
  return AOT_OK;
}

static void read_ports(reader_t *r) {
  aot_prog_t *p = r->prog;
  const aoth_part_graph_t *g = r->g;
  r->offset = 0;
  memset(r->input_of, 0, (size_t)aoth_graph_n_leaves(p) * sizeof *r->input_of);
  for (uint32_t i = 0; i < g->n_inputs; i++) {
    const aot_port_t *port = &aoth_graph_inputs(p, r->id)[i];
    const uint32_t leaf = leaf_of(r, i);
    r->slot[port->value.id] = i + 1;
    r->origin[i] = i;
    r->lane[i] = r->origin_lane[i] = leaf == AOT_NO_ID ? 0 : r->out->home[leaf];
    if (leaf != AOT_NO_ID) r->input_of[leaf] = i + 1;
    if (port->role == AOT_ROLE_OFFSET) r->offset = i + 1;
    aoth_graph_value_type(p, port->value, &g->types[i]);
  }
  for (uint32_t i = 0; i < g->n_outputs; i++) {
    const aot_port_t *port = &aoth_graph_outputs(p, r->id)[i];
    const uint32_t slot = g->n_inputs + i;
    if (port->value.id == AOT_NO_ID) continue;
    r->slot[port->value.id] = slot + 1;
    if (port->role == AOT_ROLE_UPDATE && home_of(r, slot)) r->lane[slot] = r->out->home[port->index];
    aoth_graph_value_type(p, port->value, &g->types[slot]);
  }
}

static aot_status_t read_graph(reader_t *r) {
  aot_prog_t *p = r->prog;
  aoth_part_graph_t *g = r->g;
  uint64_t n_results = 0, n_operands = 0;
  g->n_inputs = aoth_graph_n_inputs(p, r->id);
  g->n_outputs = aoth_graph_n_outputs(p, r->id);
  for (aot_node_t n = aoth_graph_first(p, r->id); n.id != AOT_NO_ID; n = aoth_graph_next(p, n), g->n_parts++) {
    aot_node_info_t info = {.struct_size = sizeof info};
    AOT_TRY(aoth_graph_node_info(p, n, &info));
    n_results += info.n_results;
    n_operands += info.n_operands;
  }
  r->n_places = g->n_inputs + g->n_outputs;
  const uint64_t n_slots = r->n_places + n_results;
  g->parts = rows(r, g->n_parts, sizeof *g->parts);
  g->types = rows(r, n_slots, sizeof *g->types);
  g->makers = rows(r, n_results, sizeof *g->makers);
  g->cells = rows(r, n_results + n_operands, sizeof *g->cells);
  g->moves = rows(r, 2 * n_results + n_operands, sizeof *g->moves);
  r->lane = rows(r, n_slots, sizeof *r->lane);
  r->origin = rows(r, n_slots, sizeof *r->origin);
  r->origin_lane = rows(r, n_slots, sizeof *r->origin_lane);
  r->cells = rows(r, n_slots, sizeof *r->cells);
  if (!g->parts || !g->types || !g->makers || !g->cells || !g->moves || !r->lane || !r->origin || !r->origin_lane ||
      !r->cells)
    return aoth_parts_no_memory(r->ctx);
  memset(r->cells, 0xff, (size_t)n_slots * sizeof *r->cells);
  read_ports(r);
  uint32_t at = 0;
  for (aot_node_t n = aoth_graph_first(p, r->id); n.id != AOT_NO_ID; n = aoth_graph_next(p, n))
    AOT_TRY(read_part(r, n, at++));
  AOT_ASSERT(at == g->n_parts && g->n_between <= n_results);
  AOT_ASSERT(g->n_cells <= n_results + n_operands && g->n_moves <= 2 * n_results + n_operands);
  return AOT_OK;
}

/* ---- all of it ---- */

/* Which of their backend's graphs the parts are: in the order of their ids, as the backend met them. */
static aot_status_t number_parts(const reader_t *r) {
  aot_prog_t *p = r->prog;
  uint32_t *n_of = rows(r, r->n_routes, sizeof *n_of);
  int32_t kind;
  if (!n_of) return aoth_parts_no_memory(r->ctx);
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++) {
    if (!is_called(p, g, &kind)) continue;
    r->out->n_graphs++;
    for (aot_node_t n = aoth_graph_first(p, (aot_graph_t){g}); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) {
      aot_node_info_t call;
      aot_graph_t part;
      AOT_TRY(call_at(r, n, &call, &part));
    }
  }
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    if (r->route_of[g]) r->number_of[g] = n_of[r->route_of[g] - 1]++;
  return AOT_OK;
}

aot_status_t aoth_parts_read(aot_ctx_t *ctx, aot_prog_t *prog, const aoth_part_route_t *routes, uint32_t n_routes,
                             kit_arena_t *arena, aoth_parts_t *out) {
  reader_t r = {.ctx = ctx, .prog = prog, .routes = routes, .n_routes = n_routes, .arena = arena, .out = out};
  const uint32_t n_graphs = aoth_graph_n_graphs(prog);
  uint32_t n = 0;
  int32_t kind;
  *out = (aoth_parts_t){0};
  r.slot = rows(&r, aoth_graph_n_values(prog), sizeof *r.slot);
  r.route_of = rows(&r, n_graphs, sizeof *r.route_of);
  r.number_of = rows(&r, n_graphs, sizeof *r.number_of);
  r.input_of = rows(&r, aoth_graph_n_leaves(prog), sizeof *r.input_of);
  if (!r.slot || !r.route_of || !r.number_of || !r.input_of) return aoth_parts_no_memory(ctx);
  AOT_TRY(number_parts(&r));
  AOT_TRY(find_homes(&r));
  out->graphs = rows(&r, out->n_graphs, sizeof *out->graphs);
  if (!out->graphs) return aoth_parts_no_memory(ctx);
  for (uint32_t g = 1; g < n_graphs; g++) {
    if (!is_called(prog, g, &kind)) continue;
    r.g = &out->graphs[n];
    r.g->id = g;
    r.g->kind = kind;
    r.id = (aot_graph_t){g};
    for (uint32_t k = 0; k < n; k++) r.g->number += out->graphs[k].kind == kind; /* graphs that are called are few */
    AOT_TRY(read_graph(&r));
    n++;
  }
  AOT_ASSERT(n == out->n_graphs);
  return AOT_OK;
}
