#include "snap_births.h"

#include <aot/assert.h>
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS UINT32_MAX /* known in every graph */

typedef struct marks {
  const aot_snapshot_t *s;
  uint32_t *symbol, *expr; /* the graph for which it is known, ALWAYS, or 0 */
  uint32_t *stack;
} marks_t;

static int is_known(uint32_t mark, uint32_t graph) { return mark == ALWAYS || mark == graph; }

/* Every symbol of the dimension is known from here on, in the graph or ALWAYS; 1: some was not. */
static int learn(marks_t *m, int64_t dim, uint32_t graph) {
  const aot_snap_expr_t *exprs = AOT_SNAP_ROWS(m->s, aot_snap_expr_t, exprs);
  uint32_t depth = 0;
  int any = 0;
  if (!AOT_DIM_IS_SYM(dim) || is_known(m->expr[AOT_DIM_EXPR(dim)], graph)) return 0;
  m->expr[AOT_DIM_EXPR(dim)] = graph;
  m->stack[depth++] = AOT_DIM_EXPR(dim);
  while (depth) {
    const aot_snap_expr_t *e = &exprs[m->stack[--depth]];
    const int64_t parts[3] = {e->a, e->b, e->c};
    if (e->op == AOT_EXPR_SYMBOL) {
      if (e->a < 0 || (uint64_t)e->a >= m->s->symbols.count) continue;
      any |= !is_known(m->symbol[e->a], graph);
      m->symbol[e->a] = graph;
      continue;
    }
    for (int k = 0; k < 3; k++) {
      if (!AOT_DIM_IS_SYM(parts[k]) || is_known(m->expr[AOT_DIM_EXPR(parts[k])], graph)) continue;
      m->expr[AOT_DIM_EXPR(parts[k])] = graph; /* marked when pushed: each is pushed once */
      m->stack[depth++] = AOT_DIM_EXPR(parts[k]);
      AOT_ASSERT(depth <= m->s->exprs.count);
    }
  }
  return any;
}

/* 1: the value has a size, or is a number, that was not known. */
static int see_value(marks_t *m, uint32_t value, uint32_t graph) {
  const aot_snap_value_t *v = &AOT_SNAP_ROWS(m->s, aot_snap_value_t, values)[value];
  const int64_t *dims = AOT_SNAP_ROWS(m->s, int64_t, ints) + v->dims;
  int any = 0;
  if (v->kind == AOT_TYPE_SYMINT || v->kind == AOT_TYPE_SYMBOOL) any = learn(m, v->expr, graph);
  for (int32_t d = 0; v->kind == AOT_TYPE_TENSOR && d < v->rank; d++) any |= learn(m, dims[d], graph);
  return any;
}

/* Numbers that the node is given. */
static void see_arguments(marks_t *m, const aot_snap_node_t *node, uint32_t graph) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(m->s, aot_snap_arg_t, args) + node->arg_begin;
  const int64_t *ints = AOT_SNAP_ROWS(m->s, int64_t, ints);
  for (uint32_t k = 0; k < node->n_args; k++) {
    if (args[k].kind == AOT_ARG_INT) learn(m, args[k].i, graph);
    for (uint32_t e = 0; args[k].kind == AOT_ARG_INTS && e < args[k].n; e++) learn(m, ints[args[k].i + e], graph);
  }
}

static void see_leaves(marks_t *m) {
  const aot_snap_leaf_t *leaves = AOT_SNAP_ROWS(m->s, aot_snap_leaf_t, leaves);
  const int64_t *ints = AOT_SNAP_ROWS(m->s, int64_t, ints);
  for (uint32_t l = 1; l < m->s->leaves.count; l++)
    for (int32_t d = 0; d < leaves[l].rank; d++) learn(m, ints[leaves[l].dims + (uint32_t)d], ALWAYS);
}

static void see_graph(marks_t *m, uint32_t graph, uint8_t *out) {
  const aot_snap_graph_t *g = &AOT_SNAP_ROWS(m->s, aot_snap_graph_t, graphs)[graph];
  const aot_snap_port_t *ports = AOT_SNAP_ROWS(m->s, aot_snap_port_t, ports);
  const aot_snap_node_t *nodes = AOT_SNAP_ROWS(m->s, aot_snap_node_t, nodes);
  for (uint32_t p = g->input_begin; p < g->input_begin + g->n_inputs; p++)
    if (ports[p].value != AOT_NO_ID) see_value(m, ports[p].value, graph);
  for (uint32_t n = g->node_begin; n < g->node_begin + g->n_nodes; n++) {
    see_arguments(m, &nodes[n], graph);
    for (uint32_t r = 0; r < nodes[n].n_results; r++)
      if (see_value(m, nodes[n].result_begin + r, graph)) out[n] = 1;
  }
}

int sn_births(const aot_snapshot_t *s, uint8_t *out) {
  const size_t n = (size_t)s->exprs.count + 1;
  marks_t m = {s, calloc((size_t)s->symbols.count + 1, 4), calloc(n, 4), calloc(n, 4)};
  const int ok = m.symbol && m.expr && m.stack;
  memset(out, 0, s->nodes.count);
  if (ok) see_leaves(&m);
  for (uint32_t g = 1; ok && g < s->graphs.count; g++) see_graph(&m, g, out);
  free(m.symbol);
  free(m.expr);
  free(m.stack);
  return ok ? 0 : -1;
}
