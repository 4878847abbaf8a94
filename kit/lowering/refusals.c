#include "refusals.h"

#include "kit/graph/snap_complex.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <string.h>

int lw_only_numbers(const aot_snapshot_t *s, const aot_snap_node_t *node) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  for (uint32_t r = 0; r < node->n_results; r++) {
    const int32_t kind = values[node->result_begin + r].kind;
    if (kind != AOT_TYPE_SYMINT && kind != AOT_TYPE_SYMBOOL) return 0;
  }
  return node->n_results > 0;
}

/* ---- regions ---- */

/* Graphs first.., then lists of operands, of which some go around a loop. */
static const struct region_row {
  const char *op;
  uint32_t first_graph, n_graphs, n_lists;
  int has_cond;     /* the first graph gives one result: whether to continue */
  int n_loop_lists; /* what is carried, what is looped over */
} regions[LW_N_REGION_OPS] = {
    {"higher_order.cond", 1, 2, 1, 0, 0},
    {"higher_order.scan", 0, 1, 3, 0, 2},
    {"higher_order.while_loop", 0, 2, 2, 1, 1},
};

aot_str_t lw_region_op(uint32_t i) { return aot_str(regions[i].op); }

static const struct region_row *region_row(aot_str_t op) {
  for (uint32_t i = 0; i < LW_N_REGION_OPS; i++)
    if (aot_str_eq(op, aot_str(regions[i].op))) return &regions[i];
  return NULL;
}

/* A region is lowered like any graph; what the node hands over must be what it takes. */
static const char *bad_region(const aot_snapshot_t *s, const aot_snap_node_t *node, const struct region_row *row) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  const aot_snap_graph_t *graphs = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  const uint32_t lists = row->first_graph + row->n_graphs;
  uint32_t n_operands = 0;
  if (node->n_args < lists + row->n_lists) return "it has too few arguments";
  for (uint32_t a = lists; a < lists + row->n_lists; a++) {
    const int is_loop_list = a < lists + (uint32_t)row->n_loop_lists;
    if (args[a].kind != AOT_ARG_VALUES && args[a].kind != AOT_ARG_INTS) return "its operands are no list";
    if (is_loop_list && args[a].kind == AOT_ARG_INTS && args[a].n > 0)
      return "numbers that change from step to step are not supported";
    n_operands += args[a].n;
  }
  for (uint32_t a = row->first_graph; a < lists; a++) {
    if (args[a].kind != AOT_ARG_GRAPH) return "it names no graph";
    if (graphs[args[a].i].n_inputs != n_operands ||
        graphs[args[a].i].n_outputs != (row->has_cond && a == row->first_graph ? 1 : node->n_results))
      return "a region takes another number of operands, or gives another number of results, than the node has";
  }
  return NULL;
}

/* ---- births ---- */

/* A node whose result has a size or is a number that only a run reports: it ends a part of the program
 * (dynamic_segments.h). */
static const char *bad_birth(const aot_snapshot_t *s, const aot_snap_node_t *node, const rk_kernel_t *kernel) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values) + node->result_begin;
  int has_tensor = 0;
  for (uint32_t r = 0; r < node->n_results; r++) has_tensor |= values[r].kind == AOT_TYPE_TENSOR;
  if (AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[node->graph].kind == AOT_GRAPH_REGION)
    return "the size or value of its result depends on the data, and it stands in a region; use backend-ref";
  if (!kernel || (has_tensor && !rk_gives_sizes(kernel) && !rk_is_view(kernel)))
    return "the size or value of its result depends on the data, and its kernel does not tell it";
  return NULL;
}

/* ---- all others ---- */

static const char *bad_call(const aot_snapshot_t *s, uint32_t i, const rk_kernel_t *kernel, const custom_world_t *world,
                            custom_error_t *error) {
  const aot_snap_node_t *node = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + i;
  const aot_snap_op_t *op = AOT_SNAP_ROWS(s, aot_snap_op_t, ops) + node->op;
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + node->arg_begin;
  rk_arg_t plain[16];
  uint32_t n = node->n_args < 16 ? node->n_args : 16;
  const struct region_row *region = region_row(aot_snap_text(s, op->name));
  if (region) return bad_region(s, node, region);
  if (op->flags & AOT_OP_REGION)
    return "operators that own graphs are not run here, but for branches and loops; inline their regions";
  if (!kernel && sn_node_is_complex(s, node)) return "kernels of plugins have no complex numbers";
  if (!kernel) return custom_refuse(world, s, i, error);
  if (sn_node_is_complex(s, node) && !rk_takes_complex(kernel)) return "it is not supported for complex numbers";
  if (op->flags & AOT_OP_WRITES)
    return "it writes an argument; make the program functional first (stage functionalize)";
  memset(plain, 0, sizeof plain);
  for (uint32_t k = 0; k < n; k++) { /* what rk_refuse looks at: numbers */
    plain[k].kind = args[k].kind == AOT_ARG_INT || args[k].kind == AOT_ARG_BOOL || args[k].kind == AOT_ARG_FLOAT
                        ? args[k].kind
                        : AOT_ARG_NONE;
    memcpy(&plain[k].u.i, &args[k].i, sizeof args[k].i);
  }
  return rk_refuse(kernel, plain, n);
}

const char *lw_refusal(const aot_snapshot_t *s, uint32_t i, const rk_kernel_t *kernel, int is_birth,
                       const custom_world_t *world, custom_error_t *error) {
  const aot_snap_node_t *node = AOT_SNAP_ROWS(s, aot_snap_node_t, nodes) + i;
  const char *why = is_birth ? bad_birth(s, node, kernel) : NULL;
  if (why || (!is_birth && lw_only_numbers(s, node))) return why;
  return bad_call(s, i, kernel, world, error);
}
