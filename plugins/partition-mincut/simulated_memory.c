#include "simulated_memory.h"

#include "kit/model/sim_graph.h"
#include "kit/model/sim_regions.h"
#include "kit/graph/snap_graph.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

typedef struct machine { /* sizes and costs that both graphs are simulated at */
  int64_t *dims;
  nc_costs_t costs;
  uint64_t *inside;
} machine_t;

typedef struct side {
  mr_graph_t row;
  uint32_t *written;
  uint64_t arena_nbytes;
} side_t;

/* ---- one graph ---- */

typedef struct run_state {
  ms_sim_t sim;
  uint32_t *nodes, *outputs; /* all nodes; the values of the output ports */
  uint8_t *is_given;
} run_state_t;

/* Values of rows: inputs and results of the simulated graph. */
static int list_outputs(const aot_snapshot_t *s, const aot_snap_graph_t *g, run_state_t *r) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(s, aot_snap_port_t, ports) + g->output_begin;
  uint32_t *value_of_row = malloc(((size_t)s->values.count + 1) * sizeof *value_of_row);
  if (!value_of_row) return -2;
  memset(value_of_row, 0xff, ((size_t)s->values.count + 1) * sizeof *value_of_row);
  for (uint32_t v = 0; v < r->sim.graph.n_values; v++) value_of_row[r->sim.value_row[v]] = v;
  for (uint32_t i = 0; i < g->n_outputs; i++)
    r->outputs[i] = ports[i].value == AOT_NO_ID ? MS_NONE : value_of_row[ports[i].value];
  free(value_of_row);
  return 0;
}

static int prepare(const aot_snapshot_t *s, uint32_t graph, const machine_t *m, run_state_t *r) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + graph;
  if (ms_sim_init(&r->sim, s, graph, m->dims, &m->costs, m->inside) != 0) return -2;
  r->nodes = calloc((size_t)g->n_nodes + 1, 4);
  r->outputs = calloc((size_t)g->n_outputs + 1, 4);
  r->is_given = calloc((size_t)r->sim.graph.n_values + 1, 1);
  if (!r->nodes || !r->outputs || !r->is_given) return -2;
  for (uint32_t n = 0; n < g->n_nodes; n++) r->nodes[n] = n;
  memset(r->is_given, 1, g->n_inputs);
  return list_outputs(s, g, r);
}

/* One step a node, or one where there is none: the axis has room for what the boundary holds. */
static void add_rows(const aot_snapshot_t *s, const aot_snap_graph_t *g, const run_state_t *r, const ms_arena_t *a,
                     mr_rows_t *rows, side_t *out) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + g->node_begin;
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  out->row.begin = rows->n_steps;
  for (uint32_t n = 0; n < g->n_nodes; n++) mr_step(rows, g->id, nodes[n].id, mr_part_of(s, g->node_begin + n));
  if (!g->n_nodes) mr_step(rows, g->id, AOT_NO_ID, g->kind == AOT_GRAPH_BACKWARD ? MR_BACKWARD : MR_FORWARD);
  out->row.end = rows->n_steps;
  for (uint32_t i = 0; i < a->n_buffers; i++) {
    const ms_buffer_t *b = &a->buffers[i];
    const int is_value = b->value != MS_NONE;
    const aot_memory_buffer_t row = {
        .kind = is_value ? AOT_MEMORY_TEMPORARY : AOT_MEMORY_SCRATCH,
        .first = (uint32_t)out->row.begin + b->first,
        .last = (uint32_t)out->row.begin + b->last,
        .value = {is_value ? values[r->sim.value_row[b->value]].id : AOT_NO_ID},
        .nbytes = mr_padded(b->nbytes),
        .place = b->place,
    };
    mr_buffer(rows, &row);
  }
  for (uint32_t i = 0; i < g->n_outputs; i++) { /* made in place where its node runs; copied when the run ends */
    const uint32_t v = r->outputs[i];
    const int in_place = v != MS_NONE && !r->is_given[v] && r->sim.graph.base[v] == v;
    out->written[i] = (uint32_t)(in_place ? out->row.begin + a->made[v] : out->row.end - 1);
  }
}

static aot_status_t add_graph(const aot_snapshot_t *s, uint32_t graph, const machine_t *m, mr_rows_t *rows,
                              side_t *out) {
  const aot_snap_graph_t *g = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + graph;
  out->row.graph = graph;
  run_state_t r = {0};
  ms_arena_t a = {0};
  out->row.written = out->written = calloc((size_t)g->n_outputs + 1, sizeof *out->written);
  aot_status_t status = out->written && prepare(s, out->row.graph, m, &r) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
  if (status == AOT_OK) {
    const ms_run_t run = {r.nodes, g->n_nodes, r.is_given, r.outputs, g->n_outputs};
    status = ms_simulate(&r.sim.graph, &run, &a) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
  }
  if (status == AOT_OK) add_rows(s, g, &r, &a, rows, out);
  out->arena_nbytes = a.nbytes;
  ms_arena_deinit(&a);
  ms_sim_deinit(&r.sim);
  free(r.nodes);
  free(r.outputs);
  free(r.is_given);
  return status;
}

/* ---- the program ---- */

static aot_status_t prepare_machine(const nc_question_t *q, machine_t *m) {
  int is_told;
  m->inside = calloc((size_t)q->snapshot->graphs.count + 1, sizeof *m->inside);
  if (!m->inside) return AOT_E_EXHAUSTED;
  AOT_TRY(nc_dims(q->snapshot, q->symbols, q->n_symbols, &m->dims));
  int status = nc_ask(&m->costs, q, m->dims, &is_told);
  if (status == 0) status = ms_region_memory(q->snapshot, m->dims, &m->costs, m->inside);
  return status == 0 ? AOT_OK : AOT_E_EXHAUSTED;
}

aot_status_t mc_simulated_memory(const nc_question_t *q, mr_rows_t *out) {
  const aot_snapshot_t *s = q->snapshot;
  machine_t machine = {0};
  side_t sides[2] = {0};
  uint32_t graphs[2];
  uint64_t arena_nbytes = 0;
  mr_clear(out);
  const uint32_t n = sn_graph_of_kind(s, AOT_GRAPH_JOINT) == AOT_NO_ID ? mr_graphs_of(s, graphs) : 0;
  aot_status_t status = n ? prepare_machine(q, &machine) : AOT_E_PRECONDITION;
  for (uint32_t k = 0; k < n && status == AOT_OK; k++) {
    status = add_graph(s, graphs[k], &machine, out, &sides[k]);
    if (sides[k].arena_nbytes > arena_nbytes) arena_nbytes = sides[k].arena_nbytes;
  }
  const mr_graph_t rows[] = {sides[0].row, sides[1].row};
  if (status == AOT_OK) status = mr_boundary(out, s, machine.dims, rows, n);
  if (status == AOT_OK) status = mr_finish(out, arena_nbytes);
  free(sides[0].written);
  free(sides[1].written);
  nc_deinit(&machine.costs);
  free(machine.dims);
  free(machine.inside);
  return status;
}
