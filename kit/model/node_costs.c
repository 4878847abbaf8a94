#include "node_costs.h"

#include "flops.h"
#include "value_size.h"
#include "kit/graph/snap_expr.h"
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdlib.h>
#include <string.h>

aot_status_t nc_dims(const aot_snapshot_t *s, const int64_t *given, uint64_t n_given, int64_t **out) {
  const aot_snap_symbol_t *rows = AOT_SNAP_ROWS(s, aot_snap_symbol_t, symbols);
  *out = NULL;
  if (n_given && n_given < s->symbols.count) return AOT_E_INVALID;
  int64_t *symbols = malloc(((size_t)s->symbols.count + 1) * sizeof *symbols);
  int64_t *dims = malloc(((size_t)s->exprs.count + 1) * sizeof *dims);
  sn_error_t wrong;
  aot_status_t status = symbols && dims ? AOT_OK : AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < s->symbols.count && status == AOT_OK; i++) symbols[i] = n_given ? given[i] : rows[i].hint;
  if (status == AOT_OK) status = sn_exprs_eval(s, symbols, s->symbols.count, dims, &wrong);
  free(symbols);
  if (status == AOT_OK) *out = dims;
  else free(dims);
  return status;
}

/* ---- the neutral model ---- */

/* reach: by value row, bytes of the storage that it is in. What reaches further is no view but a copy (a reshape of
 * what was expanded). */
static void mark_views(nc_costs_t *c, const aot_snapshot_t *s, const aot_snap_node_t *node, uint64_t *reach) {
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands) + node->operand_begin;
  const uint32_t flags = AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[node->op].flags;
  uint32_t self = 0;
  while (self < node->n_operands && operands[self] == AOT_NO_ID) self++;
  if (self == node->n_operands || !(flags & (AOT_OP_VIEW | AOT_OP_MULTI_VIEW))) return;
  for (uint32_t v = node->result_begin; v < node->result_begin + node->n_results; v++) {
    if (reach[v] > reach[operands[self]]) continue;
    c->view_of[v] = self + 1;
    reach[v] = reach[operands[self]];
  }
}

int nc_init(nc_costs_t *c, const aot_snapshot_t *s, const int64_t *dims) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  const size_t n_nodes = (size_t)s->nodes.count + 1, n_values = (size_t)s->values.count + 1;
  uint64_t *reach = calloc(n_values, sizeof *reach);
  *c = (nc_costs_t){
      .flops = calloc(n_nodes, sizeof *c->flops),
      .workspace = calloc(n_nodes, sizeof *c->workspace),
      .nanoseconds = calloc(n_nodes, sizeof *c->nanoseconds),
      .fusion = calloc(n_nodes, sizeof *c->fusion),
      .view_of = calloc(n_values, sizeof *c->view_of),
      .max_fused = 1,
      .alignment = NC_ALIGN,
  };
  const int is_there = reach && c->flops && c->workspace && c->nanoseconds && c->fusion && c->view_of;
  for (uint32_t v = 1; is_there && v < s->values.count; v++) reach[v] = nc_extent(s, v, dims);
  for (uint32_t n = 1; is_there && n < s->nodes.count; n++) {
    c->flops[n] = nc_flops(s, n, dims);
    mark_views(c, s, &nodes[n], reach);
  }
  free(reach);
  return is_there ? 0 : -2;
}

void nc_deinit(nc_costs_t *c) {
  free(c->flops);
  free(c->workspace);
  free(c->nanoseconds);
  free(c->fusion);
  free(c->view_of);
  memset(c, 0, sizeof *c);
}

/* ---- times ---- */

/* What a node writes and reads; one of views only touches no memory. */
static void moved(const nc_costs_t *c, const aot_snapshot_t *s, const aot_snap_node_t *node, const int64_t *dims,
                  uint64_t *out_read, uint64_t *out_written) {
  const uint32_t *operands = AOT_SNAP_ROWS(s, uint32_t, operands) + node->operand_begin;
  *out_read = *out_written = 0;
  for (uint32_t v = node->result_begin; v < node->result_begin + node->n_results; v++)
    if (!c->view_of[v]) *out_written += nc_nbytes(s, v, dims);
  for (uint32_t k = 0; *out_written && k < node->n_operands; k++)
    if (operands[k] != AOT_NO_ID) *out_read += nc_nbytes(s, operands[k], dims);
}

double nc_rate_of(const nc_rates_t *rates, int32_t dtype) {
  return dtype == AOT_F16 || dtype == AOT_BF16 ? rates->halves : dtype == AOT_F64 ? rates->doubles : rates->singles;
}

void nc_time_nodes(nc_costs_t *c, const aot_snapshot_t *s, const int64_t *dims, const nc_rates_t *rates) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  for (uint32_t n = 1; n < s->nodes.count; n++) {
    uint64_t read, written;
    moved(c, s, &nodes[n], dims, &read, &written);
    if (!written) continue;
    const int32_t dtype = values[nodes[n].result_begin].dtype;
    const double move_ns = (double)(read + written) / rates->bytes;
    const double work_ns = (double)c->flops[n] / nc_rate_of(rates, dtype);
    c->nanoseconds[n] = 1 + (uint64_t)(rates->node_ns + (move_ns > work_ns ? move_ns : work_ns));
  }
}

/* ---- telling ---- */

aot_status_t nc_put(const nc_costs_t *c, const aot_snapshot_t *s, uint32_t graph, const int64_t *dims,
                    const aot_cost_sink_t *sink) {
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes);
  for (uint32_t n = 1; n < s->nodes.count; n++) {
    if (graph != AOT_NO_ID && graphs[nodes[n].graph].id != graph) continue;
    aot_node_cost_t row = {
        .struct_size = sizeof row,
        .fusion = c->fusion[n],
        .node = {nodes[n].id},
        .n_results = nodes[n].n_results,
        .flops = c->flops[n],
        .workspace_nbytes = c->workspace[n],
        .nanoseconds = c->nanoseconds[n],
        .view_of = c->view_of + nodes[n].result_begin,
    };
    moved(c, s, &nodes[n], dims, &row.read_nbytes, &row.written_nbytes);
    AOT_TRY(sink->put(sink, &row));
  }
  return AOT_OK;
}
