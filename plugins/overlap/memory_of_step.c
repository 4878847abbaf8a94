#include "memory_of_step.h"

#include "kit/model/ask_costs.h"
#include "kit/model/sim_graph.h"
#include <aot/snapshot.h>
#include <stdlib.h>
#include <string.h>

typedef struct simulated {
  const aot_snapshot_t *s;
  const aot_snap_graph_t *graph;
  ms_sim_t sim;
  ms_arena_t arena;
  uint8_t *part; /* by value: OV_GATHERED .. */
} simulated_t;

static const aot_snap_node_t *node_of(const simulated_t *m, uint32_t node) {
  return AOT_SNAP_ROWS(m->s, aot_snap_node_t, nodes) + m->graph->node_begin + node;
}

static int is_named(const simulated_t *m, uint32_t node, const char *const *names) {
  const aot_snap_op_t *op = AOT_SNAP_ROWS(m->s, aot_snap_op_t, ops) + node_of(m, node)->op;
  for (; *names; names++)
    if (aot_str_eq(aot_snap_text(m->s, op->name), aot_str(*names))) return 1;
  return 0;
}

static const char *const gathers[] = {"_c10d_functional.all_gather_into_tensor.default", "aot.start_all_gather.default",
                                      NULL};
static const char *const reductions[] = {"_c10d_functional.reduce_scatter_tensor.default",
                                         "_c10d_functional.all_reduce.default",
                                         "aot.start_reduce_scatter.default",
                                         "aot.start_all_reduce.default",
                                         "aot.all_to_all.default",
                                         "aot.start_all_to_all.default",
                                         NULL};

static const char *const waits[] = {"_c10d_functional.wait_tensor.default", "aot.wait_for_ranks.default", NULL};

/* A wait is its argument. Backends know that from its kernel, which is there in a run with ranks alone. */
static void mark_waits(const simulated_t *m, nc_costs_t *costs) {
  for (uint32_t n = 0; n < m->graph->n_nodes; n++)
    if (is_named(m, n, waits)) costs->view_of[node_of(m, n)->result_begin] = 1;
}

static void mark(simulated_t *m, uint32_t value, uint8_t part) { m->part[m->sim.base[value]] = part; }

/* Of the values that the nodes make; of one that is read by a view of it, its base. */
static void find_parts(simulated_t *m) {
  const ms_graph_t *g = &m->sim.graph;
  memset(m->part, OV_ACTIVATIONS, (size_t)g->n_values + 1);
  for (uint32_t n = 0; n < g->n_nodes; n++) {
    const int gathered = is_named(m, n, gathers), is_reduced = is_named(m, n, reductions);
    const int reads_gradients = is_reduced || node_of(m, n)->flags & AOT_NODE_UPDATE;
    for (uint32_t v = g->result_begin[n]; v < g->result_begin[n + 1] && (gathered || is_reduced); v++)
      mark(m, v, gathered ? OV_GATHERED : OV_GRADIENTS);
    for (uint32_t k = g->operand_begin[n]; reads_gradients && k < g->operand_begin[n + 1]; k++) {
      const uint32_t base = m->sim.base[g->operands[k]], row = m->sim.value_row[base];
      const uint32_t def = AOT_SNAP_ROWS(m->s, aot_snap_value_t, values)[row].def;
      if (def && !(AOT_SNAP_ROWS(m->s, aot_snap_node_t, nodes)[def].flags & AOT_NODE_UPDATE) &&
          m->part[base] != OV_GATHERED)
        m->part[base] = OV_GRADIENTS;
    }
  }
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Sums of what begins and ends at each position. */
static aot_status_t sweep(const simulated_t *m, ov_memory_t *io) {
  const uint32_t n = m->graph->n_nodes;
  int64_t *change = malloc(((size_t)n + 2) * sizeof *change);
  if (!change) return AOT_E_EXHAUSTED;
  for (uint8_t part = 0; part < OV_N_PARTS; part++) {
    int64_t now = 0;
    memset(change, 0, ((size_t)n + 2) * sizeof *change);
    for (uint32_t i = 0; i < m->arena.n_buffers; i++) {
      const ms_buffer_t *b = &m->arena.buffers[i];
      if ((b->value == MS_NONE ? OV_ACTIVATIONS : m->part[b->value]) != part) continue;
      change[b->first] += (int64_t)b->nbytes;
      change[b->last + 1] -= (int64_t)b->nbytes;
    }
    for (uint32_t at = 0; at <= n; at++) {
      now += change[at];
      io->most[part] = larger(io->most[part], (uint64_t)now);
    }
  }
  free(change);
  io->arena_nbytes = larger(io->arena_nbytes, m->arena.nbytes);
  return AOT_OK;
}

uint32_t ov_graph_row(const aot_snapshot_t *s, aot_graph_t graph) {
  uint32_t row = 0;
  for (uint32_t g = 1; g < s->graphs.count; g++)
    if (AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[g].id == graph.id) row = g;
  return row;
}

static aot_status_t simulate(simulated_t *m, const em_t *e) {
  nc_question_t q = {.host = e->host, .ctx = e->ctx, .prog = e->prog, .snapshot = m->s};
  nc_costs_t costs = {0};
  int64_t *dims = NULL;
  int is_told;
  const uint32_t row = ov_graph_row(m->s, e->graph);
  m->graph = AOT_SNAP_ROWS(m->s, aot_snap_graph_t, graphs) + row;
  aot_status_t status = nc_dims(m->s, NULL, 0, &dims);
  if (status == AOT_OK && nc_ask(&costs, &q, dims, &is_told) != 0) status = AOT_E_EXHAUSTED;
  if (status == AOT_OK) mark_waits(m, &costs);
  if (status == AOT_OK && ms_sim_init(&m->sim, m->s, row, dims, &costs, NULL) != 0) status = AOT_E_EXHAUSTED;
  const uint32_t n = m->graph->n_nodes;
  uint32_t *nodes = calloc((size_t)n + 1, sizeof *nodes);
  uint8_t *is_given = calloc((size_t)m->sim.graph.n_values + 1, 1);
  m->part = calloc((size_t)m->sim.graph.n_values + 1, 1);
  if (!nodes || !is_given || !m->part) status = AOT_E_EXHAUSTED;
  if (status == AOT_OK) {
    for (uint32_t i = 0; i < n; i++) nodes[i] = i;
    memset(is_given, 1, m->graph->n_inputs);
    const ms_run_t run = {nodes, n, is_given, NULL, 0};
    if (ms_simulate(&m->sim.graph, &run, &m->arena) != 0) status = AOT_E_EXHAUSTED;
  }
  nc_deinit(&costs);
  free(dims);
  free(nodes);
  free(is_given);
  return status;
}

aot_status_t ov_memory_of_step(const em_t *e, ov_memory_t *io) {
  simulated_t m = {.part = NULL};
  AOT_TRY(e->host->graph->snapshot(e->prog, &m.s));
  aot_status_t status = simulate(&m, e);
  if (status == AOT_OK) {
    find_parts(&m);
    status = sweep(&m, io);
  }
  ms_arena_deinit(&m.arena);
  ms_sim_deinit(&m.sim);
  free(m.part);
  return status;
}
