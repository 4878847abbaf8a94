#include "sim_graph.h"

#include "value_size.h"
#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <aot/opset.h>
#include <stdlib.h>
#include <string.h>

typedef struct build {
  const aot_snapshot_t *s;
  const aot_snap_graph_t *graph;
  const aot_snap_node_t *nodes; /* of the graph */
  const int64_t *dims;
  const nc_costs_t *costs;
  const uint64_t *inside; /* by graph row: bytes that a call of it takes while it runs; NULL: no regions are called */
  uint32_t *value_of_row;
  ms_sim_t *m;
  uint32_t *operand_begin, *operands, *result_begin, *space; /* m's */
  uint64_t *nbytes, *scratch;
} build_t;

static int allocate(build_t *b) {
  size_t nodes = (size_t)b->graph->n_nodes + 1, operands = 1, values = (size_t)b->graph->n_inputs + 1;
  for (uint32_t n = 0; n < b->graph->n_nodes; n++) {
    operands += b->nodes[n].n_operands;
    values += b->nodes[n].n_results;
  }
  b->operand_begin = calloc(nodes, 4);
  b->operands = calloc(operands, 4);
  b->result_begin = calloc(nodes, 4);
  b->m->base = calloc(values, 4);
  b->space = calloc(nodes, 4);
  b->nbytes = calloc(values, 8);
  b->scratch = calloc(nodes, 8);
  b->m->value_row = calloc(values, 4);
  b->m->view_of = calloc(values, 4);
  b->m->flops = calloc(nodes, 8);
  b->m->nanoseconds = calloc(nodes, 8);
  b->m->extent = calloc(values, 8);
  b->value_of_row = malloc(((size_t)b->s->values.count + 1) * 4);
  b->m->graph = (ms_graph_t){
      .n_nodes = b->graph->n_nodes,
      .n_values = (uint32_t)values - 1,
      .operand_begin = b->operand_begin,
      .operands = b->operands,
      .result_begin = b->result_begin,
      .nbytes = b->nbytes,
      .base = b->m->base,
      .space = b->space,
      .scratch = b->scratch,
      .max_loop = b->costs->max_fused ? b->costs->max_fused : UINT32_MAX,
      .align = b->costs->alignment,
  };
  if (!b->operand_begin || !b->operands || !b->result_begin || !b->m->base || !b->space || !b->nbytes || !b->scratch ||
      !b->m->value_row || !b->m->view_of || !b->m->flops || !b->m->nanoseconds || !b->m->extent || !b->value_of_row)
    return -2;
  memset(b->value_of_row, 0xff, ((size_t)b->s->values.count + 1) * 4);
  return 0;
}

static void add_value(build_t *b, uint32_t v, uint32_t row) {
  if (row == AOT_NO_ID) return;
  b->value_of_row[row] = v;
  b->m->value_row[v] = row;
  b->nbytes[v] = nc_nbytes(b->s, row, b->dims);
  b->m->extent[v] = nc_extent(b->s, row, b->dims);
}

/* Of the regions that node n may run: the largest, one runs at a time. */
static uint64_t region_work(const build_t *b, uint32_t n) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(b->s, aot_snap_arg_t, args) + b->nodes[n].arg_begin;
  uint64_t most = 0;
  for (uint32_t a = 0; b->inside && a < b->nodes[n].n_args; a++)
    if (args[a].kind == AOT_ARG_GRAPH && b->inside[args[a].i] > most) most = b->inside[args[a].i];
  return most;
}

static void add_costs(build_t *b, uint32_t n) {
  const aot_snap_op_t *ops = AOT_SNAP_ROWS(b->s, aot_snap_op_t, ops);
  const uint32_t row = b->graph->node_begin + n;
  const uint64_t inside = ops[b->nodes[n].op].flags & AOT_OP_REGION ? region_work(b, n) : 0;
  b->scratch[n] = b->costs->workspace[row] > inside ? b->costs->workspace[row] : inside;
  b->m->flops[n] = b->costs->flops[row];
  b->m->nanoseconds[n] = b->costs->nanoseconds[row];
  b->space[n] = b->costs->fusion[row] ? b->costs->fusion[row] - 1 : MS_NONE;
}

static void add_node(build_t *b, uint32_t n, uint32_t *at, uint32_t *v) {
  const uint32_t *rows = AOT_SNAP_ROWS(b->s, uint32_t, operands) + b->nodes[n].operand_begin;
  b->operand_begin[n] = *at;
  b->result_begin[n] = *v;
  for (uint32_t r = 0; r < b->nodes[n].n_results; r++)
    b->m->view_of[*v + r] = b->costs->view_of[b->nodes[n].result_begin + r];
  for (uint32_t k = 0; k < b->nodes[n].n_operands; k++) {
    if (rows[k] != AOT_NO_ID) {
      b->operands[(*at)++] = b->value_of_row[rows[k]];
      continue;
    }
    for (uint32_t r = 0; r < b->nodes[n].n_results; r++) /* places count without it */
      b->m->view_of[*v + r] -= b->costs->view_of[b->nodes[n].result_begin + r] > k + 1;
  }
  for (uint32_t r = 0; r < b->nodes[n].n_results; r++) add_value(b, (*v)++, b->nodes[n].result_begin + r);
  b->operand_begin[n + 1] = *at;
  b->result_begin[n + 1] = *v;
  add_costs(b, n);
}

static void find_bases(ms_sim_t *m, const uint32_t *operand_begin, const uint32_t *operands) {
  const ms_graph_t *g = &m->graph;
  for (uint32_t v = 0; v < g->n_values; v++) m->base[v] = v;
  for (uint32_t n = 0; n < g->n_nodes; n++)
    for (uint32_t v = g->result_begin[n]; v < g->result_begin[n + 1]; v++)
      if (m->view_of[v] && operand_begin[n] + m->view_of[v] <= operand_begin[n + 1])
        m->base[v] = operands[operand_begin[n] + m->view_of[v] - 1];
}

static void fill(build_t *b) {
  const aot_snap_port_t *inputs = AOT_SNAP_ROWS(b->s, aot_snap_port_t, ports) + b->graph->input_begin;
  uint32_t v = 0, at = 0;
  for (uint32_t i = 0; i < b->graph->n_inputs; i++, v++) add_value(b, v, inputs[i].value);
  for (uint32_t n = 0; n < b->graph->n_nodes; n++) add_node(b, n, &at, &v);
  AOT_ASSERT(v == b->m->graph.n_values);
  find_bases(b->m, b->operand_begin, b->operands);
}

int ms_sim_init(ms_sim_t *m, const aot_snapshot_t *s, uint32_t graph_row, const int64_t *dims, const nc_costs_t *costs,
                const uint64_t *inside) {
  const aot_snap_graph_t *graph = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + graph_row;
  build_t b = {
      .s = s,
      .graph = graph,
      .nodes = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + graph->node_begin,
      .dims = dims,
      .costs = costs,
      .inside = inside,
      .m = m,
  };
  memset(m, 0, sizeof *m);
  const int status = allocate(&b);
  if (status == 0) fill(&b);
  free(b.value_of_row);
  return status;
}

ms_graph_t ms_sim_reading(ms_sim_t *m, const uint32_t *operand_begin, const uint32_t *operands) {
  ms_graph_t g = m->graph;
  g.operand_begin = operand_begin;
  g.operands = operands;
  find_bases(m, operand_begin, operands);
  return g;
}

void ms_sim_deinit(ms_sim_t *m) {
  const void *arrays[] = {
      m->graph.operand_begin, m->graph.operands, m->graph.result_begin, m->graph.nbytes, m->graph.base,
      m->graph.space,         m->graph.scratch,  m->value_row,          m->view_of,      m->flops,
      m->nanoseconds,         m->extent};
  for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free((void *)(uintptr_t)arrays[i]);
  memset(m, 0, sizeof *m);
}
