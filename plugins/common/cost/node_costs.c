#include "common/cost/node_costs.h"

#include "common/memory/sim_graph.h"
#include "common/memory/sim_regions.h"
#include "common/snapshot/snap_check.h"
#include <aot/inline.h>
#include <stdlib.h>

static const uint32_t *operands_of(const aot_snapshot_t *s, const aot_snap_node_t *node) {
  return AOT_SNAP_ROWS(s, uint32_t, operands) + node->operand_begin;
}

/* Views are of the first operand that is there (sim_graph.c), which has its place among those that are not. */
static uint32_t first_operand(const aot_snapshot_t *s, const aot_snap_node_t *node) {
  uint32_t k = 0;
  while (k < node->n_operands && operands_of(s, node)[k] == AOT_NO_ID) k++;
  return k + 1;
}

static aot_status_t put_graph(const aot_snapshot_t *s, uint32_t row, const ms_sim_t *m, nc_machine_t machine,
                              const aot_cost_sink_t *sink) {
  const aot_snap_graph_t *graph = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + row;
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + graph->node_begin;
  const ms_graph_t *g = &m->graph;
  uint32_t most = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) most = nodes[n].n_results > most ? nodes[n].n_results : most;
  uint32_t *view_of = calloc((size_t)most + 1, sizeof *view_of);
  aot_status_t status = view_of ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t n = 0; n < graph->n_nodes && status == AOT_OK; n++) {
    aot_node_cost_t c = {
        .struct_size = sizeof c,
        .node = {nodes[n].id},
        .n_results = nodes[n].n_results,
        .flops = m->flops[n],
        .fusion = machine.fuses && g->space[n] != MS_NONE ? g->space[n] + 1 : 0,
        .workspace_nbytes = machine.has_workspace ? g->scratch[n] : 0,
        .view_of = view_of,
    };
    for (uint32_t v = g->result_begin[n]; v < g->result_begin[n + 1]; v++) {
      const int is_view = g->base[v] != v;
      view_of[v - g->result_begin[n]] = is_view ? first_operand(s, &nodes[n]) : 0;
      if (!is_view) c.written_nbytes += g->nbytes[v];
    }
    for (uint32_t k = g->operand_begin[n]; c.written_nbytes && k < g->operand_begin[n + 1]; k++)
      c.read_nbytes += g->nbytes[g->operands[k]];
    status = sink->put(sink, &c);
  }
  free(view_of);
  return status;
}

/* dims: by expression, under the symbols. */
static aot_status_t put_all(const aot_snapshot_t *s, uint32_t graph, const int64_t *dims, nc_machine_t machine,
                            const aot_cost_sink_t *sink) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  uint64_t *inside = calloc((size_t)s->graphs.count + 1, sizeof *inside);
  aot_status_t status = inside && ms_region_memory(s, dims, inside) == 0 ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t row = 1; row < s->graphs.count && status == AOT_OK; row++) {
    if (graph != AOT_NO_ID && graphs[row].id != graph) continue;
    ms_sim_t m;
    status = ms_sim_init(&m, s, row, dims, inside) == 0 ? put_graph(s, row, &m, machine, sink) : AOT_E_EXHAUSTED;
    ms_sim_deinit(&m);
  }
  free(inside);
  return status;
}

aot_status_t nc_node_costs(const aot_snapshot_t *s, uint32_t graph, const int64_t *given, uint64_t n_given,
                           nc_machine_t machine, const aot_cost_sink_t *sink) {
  const aot_snap_symbol_t *rows = AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols);
  if (n_given && n_given < s->symbols.count) return AOT_E_INVALID;
  int64_t *symbols = malloc(((size_t)s->symbols.count + 1) * sizeof *symbols);
  int64_t *dims = malloc(((size_t)s->exprs.count + 1) * sizeof *dims);
  sn_error_t wrong;
  aot_status_t status = symbols && dims ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < s->symbols.count && status == AOT_OK; i++) symbols[i] = n_given ? given[i] : rows[i].hint;
  if (status == AOT_OK) status = sn_exprs_eval(s, symbols, s->symbols.count, dims, &wrong);
  if (status == AOT_OK) status = put_all(s, graph, dims, machine, sink);
  free(symbols);
  free(dims);
  return status;
}
