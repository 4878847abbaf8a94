#include "ask_costs.h"

#include <aot/assert.h>
#include <aot/inline.h>
#include <stdlib.h>

typedef struct collector {
  const aot_snapshot_t *s;
  nc_costs_t *out;
  uint32_t *row_of; /* by node id; 0: no such node */
  uint32_t n_ids;
} collector_t;

/* Who says nothing of views leaves them to the marks. */
static aot_status_t gather_views(const collector_t *g, const aot_snap_node_t *node, const aot_node_cost_t *c) {
  const uint32_t *operands = AOT_SNAP_ROWS(g->s, uint32_t, operands) + node->operand_begin;
  if (!c->view_of) return AOT_OK;
  if (c->n_results != node->n_results) return AOT_E_RANGE;
  for (uint32_t r = 0; r < node->n_results; r++) {
    const uint32_t of = c->view_of[r];
    if (of > node->n_operands || (of && operands[of - 1] == AOT_NO_ID)) return AOT_E_RANGE;
    g->out->view_of[node->result_begin + r] = of;
  }
  return AOT_OK;
}

static aot_status_t put(const aot_cost_sink_t *sink, const aot_node_cost_t *given) {
  const collector_t *g = sink->head.self;
  aot_node_cost_t c;
  if (aot_import(&c, sizeof c, given) != AOT_OK) return AOT_E_TOO_NEW;
  if (c.node.id >= g->n_ids || !g->row_of[c.node.id]) return AOT_E_RANGE;
  const uint32_t row = g->row_of[c.node.id];
  g->out->flops[row] = c.flops;
  g->out->workspace[row] = c.workspace_nbytes;
  g->out->nanoseconds[row] = c.nanoseconds;
  g->out->fusion[row] = c.fusion;
  return gather_views(g, AOT_SNAP_ROWS(g->s, aot_snap_node_t, nodes) + row, &c);
}

static int find_rows(collector_t *g) {
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(g->s, aot_snap_node_t, nodes);
  for (uint32_t n = 1; n < g->s->nodes.count; n++)
    if (nodes[n].id >= g->n_ids) g->n_ids = nodes[n].id + 1;
  g->row_of = calloc((size_t)g->n_ids + 1, sizeof *g->row_of);
  for (uint32_t n = 1; g->row_of && n < g->s->nodes.count; n++) {
    AOT_ASSERT(!g->row_of[nodes[n].id]);
    g->row_of[nodes[n].id] = n;
  }
  return g->row_of ? 0 : -2;
}

static int is_power_of_two(uint64_t n) { return n && !(n & (n - 1)); }

/* AOT_OK: all rows are there. */
static aot_status_t ask(const nc_question_t *q, collector_t *g) {
  const aot_ext_cost_t *x = aot_ext(&q->host->head, AOT_EXT_COST);
  const aot_cost_sink_t sink = {.head = {.struct_size = sizeof sink, .self = g}, .put = put};
  aot_cost_machine_t machine = {.struct_size = sizeof machine};
  if (!x) return AOT_E_UNIMPLEMENTED;
  AOT_TRY(x->nodes(x, q->ctx, q->prog, (aot_graph_t){AOT_NO_ID}, q->symbols, q->n_symbols, &sink));
  if (x->machine(x, q->ctx, &machine) != AOT_OK) return AOT_OK;
  g->out->max_fused = machine.max_fused;
  if (is_power_of_two(machine.alignment)) g->out->alignment = machine.alignment;
  return AOT_OK;
}

int nc_ask(nc_costs_t *out, const nc_question_t *q, const int64_t *dims, int *out_is_told) {
  collector_t g = {.s = q->snapshot, .out = out};
  *out_is_told = 0;
  int status = nc_init(out, q->snapshot, dims);
  if (status == 0) status = find_rows(&g);
  if (status == 0) {
    *out_is_told = ask(q, &g) == AOT_OK;
    if (!*out_is_told) { /* some rows may have come */
      nc_deinit(out);
      status = nc_init(out, q->snapshot, dims);
    }
  }
  AOT_ASSERT(status != 0 || is_power_of_two(out->alignment));
  free(g.row_of);
  return status;
}
