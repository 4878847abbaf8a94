#include "loop_times.h"

#include "value_size.h"
#include "kit/loops/group.h"
#include <aot/assert.h>
#include <aot/inline.h>
#include <stdlib.h>

typedef struct loops {
  const nc_costs_t *c;
  const aot_snapshot_t *s;
  const aot_snap_graph_t *graph;
  const int64_t *dims;
  uint32_t *group;  /* by node of the graph: its loop's last member */
  uint32_t *base;   /* by value row: the value that it is a view of, itself when it has memory of its own */
  uint32_t *read;   /* by value row: 1 + the loop that has read it last */
  uint8_t *escapes; /* by value row: something else outside of its maker's loop reads it */
} loops_t;

static const aot_snap_node_t *node_at(const loops_t *l, uint32_t i) {
  return AOT_SNAP_ROWS(l->s, aot_snap_node_t, nodes) + l->graph->node_begin + i;
}

static const uint32_t *operands_of(const loops_t *l, uint32_t i) {
  return AOT_SNAP_ROWS(l->s, uint32_t, operands) + node_at(l, i)->operand_begin;
}

/* Of the graph's nodes; FU_NONE: an input. */
static uint32_t maker(const loops_t *l, uint32_t value) {
  const uint32_t def = AOT_SNAP_ROWS(l->s, aot_snap_value_t, values)[l->base[value]].def;
  return def ? def - l->graph->node_begin : FU_NONE;
}

static void find_bases(loops_t *l) {
  for (uint32_t v = 0; v < l->s->values.count; v++) l->base[v] = v;
  for (uint32_t i = 0; i < l->graph->n_nodes; i++) {
    const aot_snap_node_t *n = node_at(l, i);
    for (uint32_t v = n->result_begin; v < n->result_begin + n->n_results; v++) {
      const uint32_t k = l->c->view_of[v];
      if (k && k <= n->n_operands && operands_of(l, i)[k - 1] != AOT_NO_ID)
        l->base[v] = l->base[operands_of(l, i)[k - 1]];
    }
  }
}

/* It reads nothing: who reads the view reads what it is of. */
static int is_view(const loops_t *l, uint32_t i) {
  const aot_snap_node_t *n = node_at(l, i);
  uint32_t n_views = 0;
  for (uint32_t v = n->result_begin; v < n->result_begin + n->n_results; v++) n_views += l->c->view_of[v] != 0;
  return n->n_results && n_views == n->n_results;
}

static int find_groups(loops_t *l) {
  const uint32_t n = l->graph->n_nodes;
  uint32_t n_operands = 0, at = 0;
  for (uint32_t i = 0; i < n; i++) n_operands += node_at(l, i)->n_operands;
  uint32_t *begin = malloc(((size_t)n + 1) * sizeof *begin), *space = malloc(((size_t)n + 1) * sizeof *space);
  uint32_t *producers = malloc(((size_t)n_operands + 1) * sizeof *producers);
  int status = begin && space && producers ? 0 : -2;
  for (uint32_t i = 0; status == 0 && i < n; i++) {
    const uint32_t fusion = l->c->fusion[l->graph->node_begin + i];
    begin[i] = at;
    space[i] = fusion ? fusion : FU_NONE;
    for (uint32_t k = 0; k < node_at(l, i)->n_operands && !is_view(l, i); k++)
      if (operands_of(l, i)[k] != AOT_NO_ID) producers[at++] = maker(l, operands_of(l, i)[k]);
  }
  if (status == 0) {
    begin[n] = at;
    const fu_graph_t g = {.n_nodes = n,
                          .operand_begin = begin,
                          .producers = producers,
                          .space = space,
                          .max_nodes = l->c->max_fused ? l->c->max_fused : UINT32_MAX};
    status = fu_group(&g, l->group);
  }
  AOT_ASSERT(at <= n_operands);
  free(begin);
  free(space);
  free(producers);
  return status;
}

static void find_escapes(loops_t *l) {
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(l->s, aot_snap_port_t, ports);
  for (uint32_t p = l->graph->output_begin; p < l->graph->output_begin + l->graph->n_outputs; p++)
    l->escapes[l->base[ports[p].value]] = 1;
  for (uint32_t i = 0; i < l->graph->n_nodes; i++)
    for (uint32_t k = 0; k < node_at(l, i)->n_operands && !is_view(l, i); k++) {
      const uint32_t v = operands_of(l, i)[k], from = v == AOT_NO_ID ? FU_NONE : maker(l, v);
      if (from != FU_NONE && l->group[from] != l->group[i]) l->escapes[l->base[v]] = 1;
    }
}

/* The share of a node's bytes that reach memory. */
static double share_of(loops_t *l, uint32_t i) {
  const aot_snap_node_t *n = node_at(l, i);
  uint64_t all = 0, moved = 0;
  for (uint32_t k = 0; k < n->n_operands; k++) {
    const uint32_t v = operands_of(l, i)[k];
    if (v == AOT_NO_ID) continue;
    const uint64_t nbytes = nc_nbytes(l->s, v, l->dims);
    const uint32_t from = maker(l, v), base = l->base[v];
    const int is_own = from != FU_NONE && l->group[from] == l->group[i];
    all += nbytes;
    if (!is_own && l->read[base] != l->group[i] + 1) moved += nbytes;
    l->read[base] = l->group[i] + 1;
  }
  for (uint32_t v = n->result_begin; v < n->result_begin + n->n_results; v++) {
    if (l->c->view_of[v]) continue;
    all += nc_nbytes(l->s, v, l->dims);
    if (l->escapes[v]) moved += nc_nbytes(l->s, v, l->dims);
  }
  AOT_ASSERT(moved <= all);
  return all ? (double)moved / (double)all : 1;
}

int nc_time_loops(nc_costs_t *c, const aot_snapshot_t *s, uint32_t graph_row, const int64_t *dims) {
  loops_t l = {.c = c, .s = s, .graph = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs) + graph_row, .dims = dims};
  const size_t n_values = (size_t)s->values.count + 1;
  l.group = malloc(((size_t)l.graph->n_nodes + 1) * sizeof *l.group);
  l.base = malloc(n_values * sizeof *l.base);
  l.read = calloc(n_values, sizeof *l.read);
  l.escapes = calloc(n_values, 1);
  int status = l.group && l.base && l.read && l.escapes ? 0 : -2;
  if (status == 0) find_bases(&l);
  if (status == 0) status = find_groups(&l);
  if (status == 0) find_escapes(&l);
  for (uint32_t i = 0; status == 0 && i < l.graph->n_nodes; i++) {
    uint64_t *ns = &c->nanoseconds[l.graph->node_begin + i];
    if (c->fusion[l.graph->node_begin + i] && *ns) *ns = 1 + (uint64_t)((double)(*ns - 1) * share_of(&l, i));
  }
  free(l.group);
  free(l.base);
  free(l.read);
  free(l.escapes);
  return status;
}
