#include "sim_regions.h"

#include "kit/base/vector.h"
#include "sim_graph.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdlib.h>
#include <string.h>

enum { UNSEEN, OPEN, DONE };

typedef struct region_traversal {
  const aot_snapshot_t *s;
  const aot_snap_graph_t *graphs;
  const int64_t *dims;
  const nc_costs_t *costs;
  uint64_t *inside;
  uint8_t *state;  /* by graph row */
  uint32_t *stack; /* graphs that are open, and those to be looked at */
  uint32_t n_stack, capacity;
  uint32_t *value_of_row; /* MS_NONE between two simulations */
} region_traversal_t;

/* ---- one body ---- */

static void find_outputs(region_traversal_t *w, const aot_snap_graph_t *g, const ms_sim_t *sim, uint32_t *outputs) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(w->s, aot_snap_port_t, ports) + g->output_begin;
  for (uint32_t v = 0; v < sim->graph.n_values; v++) w->value_of_row[sim->value_row[v]] = v;
  for (uint32_t i = 0; i < g->n_outputs; i++)
    outputs[i] = ports[i].value == AOT_NO_ID ? MS_NONE : w->value_of_row[ports[i].value];
  for (uint32_t v = 0; v < sim->graph.n_values; v++) w->value_of_row[sim->value_row[v]] = MS_NONE;
}

static int simulate_body(region_traversal_t *w, uint32_t row) {
  const aot_snap_graph_t *g = &w->graphs[row];
  ms_sim_t sim;
  ms_arena_t arena;
  AOT_ASSERT(w->state[row] == OPEN);
  int status = ms_sim_init(&sim, w->s, row, w->dims, w->costs, w->inside);
  uint32_t *nodes = calloc((size_t)g->n_nodes + 1, 4), *outputs = calloc((size_t)g->n_outputs + 1, 4);
  uint8_t *is_given = calloc((size_t)sim.graph.n_values + 1, 1);
  if (!nodes || !outputs || !is_given) status = -2;
  if (status == 0) {
    for (uint32_t n = 0; n < g->n_nodes; n++) nodes[n] = n;
    memset(is_given, 1, g->n_inputs);
    find_outputs(w, g, &sim, outputs);
    const ms_run_t run = {nodes, g->n_nodes, is_given, outputs, g->n_outputs};
    status = ms_simulate(&sim.graph, &run, &arena);
    w->inside[row] = arena.nbytes;
    ms_arena_deinit(&arena);
  }
  free(nodes);
  free(outputs);
  free(is_given);
  ms_sim_deinit(&sim);
  return status;
}

/* ---- bodies before those that call them ---- */

static int push(region_traversal_t *w, uint32_t row) {
  uint32_t *stack = kit_grow(w->stack, &w->capacity, (uint64_t)w->n_stack + 1, sizeof *stack);
  if (!stack) return -2;
  w->stack = stack;
  w->stack[w->n_stack++] = row;
  return 0;
}

static int push_callees(region_traversal_t *w, uint32_t row) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(w->s, aot_snap_node_t, nodes) + w->graphs[row].node_begin;
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(w->s, aot_snap_op_t, ops);
  int status = 0;
  for (uint32_t n = 0; n < w->graphs[row].n_nodes && status == 0; n++) {
    const aot_snap_arg_t *args = AOT_SNAP_ROWS(w->s, aot_snap_arg_t, args) + nodes[n].arg_begin;
    for (uint32_t a = 0; (ops[nodes[n].op].flags & AOT_OP_REGION) && a < nodes[n].n_args && status == 0; a++)
      if (args[a].kind == AOT_ARG_GRAPH && w->state[args[a].i] == UNSEEN) status = push(w, (uint32_t)args[a].i);
  }
  return status;
}

static int visit(region_traversal_t *w) {
  int status = 0;
  while (w->n_stack && status == 0) {
    const uint32_t row = w->stack[w->n_stack - 1];
    if (w->state[row] == UNSEEN) {
      w->state[row] = OPEN;
      status = push_callees(w, row);
      continue;
    }
    w->n_stack--;
    if (w->state[row] == OPEN && w->graphs[row].kind == AOT_GRAPH_REGION) status = simulate_body(w, row);
    w->state[row] = DONE;
  }
  return status;
}

int ms_region_memory(const aot_snapshot_t *s, const int64_t *dims, const nc_costs_t *costs, uint64_t *out) {
  region_traversal_t w = {
      .s = s,
      .graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs),
      .dims = dims,
      .costs = costs,
      .inside = out,
      .state = calloc((size_t)s->graphs.count + 1, 1),
      .value_of_row = malloc(((size_t)s->values.count + 1) * 4),
  };
  int status = w.state && w.value_of_row ? 0 : -2;
  if (status == 0) memset(w.value_of_row, 0xff, ((size_t)s->values.count + 1) * 4);
  for (uint32_t row = 1; row < s->graphs.count && status == 0; row++)
    if (w.graphs[row].kind != AOT_GRAPH_REGION) {
      status = push(&w, row);
      if (status == 0) status = visit(&w);
    }
  free(w.state);
  free(w.stack);
  free(w.value_of_row);
  return status;
}
