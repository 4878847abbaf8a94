/* Which nodes the interpreter runs, and why it refuses one. */
#include "ref_state.h"
#include "common/snapshot/snap_complex.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define MAX_ARGS 24 /* of what rk_refuse looks at */

static const char *refuse_region(const aot_snapshot_t *s, const aot_snap_node_t *n, int kind, rf_error *error) {
  uint32_t graphs[2], after, wanted = kind == RF_COND ? 2 : 1, have = rf_region_graphs(s, n, graphs, 2, &after);
  uint32_t operands = rf_region_operands(s, n, after, NULL, NULL);
  const aot_snap_graph_t *rows = AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs);
  if (have != wanted) {
    snprintf(error->text, sizeof error->text, "it names %u graphs where %u are expected", have, wanted);
    return error->text;
  }
  for (uint32_t g = 0; g < have; g++) {
    if (rows[graphs[g]].n_inputs == operands && rows[graphs[g]].n_outputs == n->n_results) continue;
    snprintf(error->text, sizeof error->text, "graph %u takes %u operands and gives %u results; the node has %u and %u", g,
             rows[graphs[g]].n_inputs, rows[graphs[g]].n_outputs, operands, n->n_results);
    return error->text;
  }
  return NULL;
}

/* The arguments as far as they are numbers; tensors have no data. */
static const char *refuse_arguments(const aot_snapshot_t *s, const aot_snap_node_t *n, const rk_kernel *k) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  rk_tensor none = {0};
  rk_arg list[MAX_ARGS];
  uint32_t count = n->n_args < MAX_ARGS ? n->n_args : MAX_ARGS;
  memset(list, 0, sizeof list);
  for (uint32_t a = 0; a < count; a++) {
    if (args[a].kind == AOT_ARG_FLOAT) memcpy(&list[a].u.f, &args[a].i, sizeof list[a].u.f);
    else if (args[a].kind == AOT_ARG_VALUE) list[a].u.tensor = &none;
    else if (args[a].kind == AOT_ARG_INT || args[a].kind == AOT_ARG_BOOL) list[a].u.i = args[a].i;
    else continue;
    list[a].kind = args[a].kind;
  }
  return rk_refuse(k, list, count);
}

static const char *refuse_dtypes(const aot_snapshot_t *s, const aot_snap_node_t *n, rf_error *error) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  for (uint32_t r = 0; r < n->n_results; r++) {
    const aot_snap_value_t *v = &values[n->result_begin + r];
    if (v->kind != AOT_TYPE_TENSOR || !rk_dtype_complex(v->dtype)) continue;
    snprintf(error->text, sizeof error->text, "result %u has dtype %s, which kernels of plugins do not have", r,
             aot_dtype_name(v->dtype));
    return error->text;
  }
  return NULL;
}

static const char *refuse_custom(const aot_snapshot_t *s, uint32_t node, const cu_world_t *world, rf_error *error) {
  cu_error_t why;
  const char *text = cu_refuse(world, s, node, &why);
  if (text) snprintf(error->text, sizeof error->text, "%s", text);
  return text ? error->text : refuse_dtypes(s, &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node], error);
}

const char *rf_refuse(const aot_snapshot_t *s, uint32_t node, const cu_world_t *world, rf_error *error) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  const aot_snap_op_t *op = &AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[n->op];
  aot_str_t name = aot_snap_text(s, op->name);
  const rk_kernel *k = rk_find(name);
  int kind = rf_region_kind(name), symbols = n->n_results > 0;
  if (kind != RF_NO_REGION) return refuse_region(s, n, kind, error);
  for (uint32_t r = 0; r < n->n_results; r++)
    symbols = symbols && (values[n->result_begin + r].kind == AOT_TYPE_SYMINT || values[n->result_begin + r].kind == AOT_TYPE_SYMBOOL);
  if (!k && symbols) return NULL; /* numbers of the shape environment */
  if (op->flags & AOT_OP_COLLECTIVE) return "collectives are not supported";
  if (!k && op->flags & AOT_OP_RANDOM) return "it draws random numbers; make them explicit first (stage rng)";
  if (!k) return refuse_custom(s, node, world, error);
  if (op->flags & AOT_OP_WRITES) return "it writes an argument; functionalize the program first";
  if (sn_node_is_complex(s, n) && !rk_takes_complex(k)) return "it is not supported for complex numbers";
  return refuse_arguments(s, n, k);
}
