/* Which nodes the interpreter runs, and why it refuses one. */
#include "ref_state.h"
#include "kit/graph/snap_complex.h"
#include <aot/graph.h>
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define MAX_ARGS 24 /* of what rk_refuse looks at */

static const char *refuse_fit(const aot_snapshot_t *s, uint32_t graph, uint32_t operands, uint32_t results,
                              rf_error_t *error) {
  const aot_snap_graph_t *g = &AOT_SNAP_ROWS(s, aot_snap_graph_t, graphs)[graph];
  if (g->n_inputs == operands && g->n_outputs == results) return NULL;
  snprintf(error->text, sizeof error->text,
           "one of its graphs takes %u operands and gives %u results; the node has %u and %u", g->n_inputs,
           g->n_outputs, operands, results);
  return error->text;
}

/* What is carried comes back from each step; a scan has lists to loop over. */
static const char *refuse_loop(const aot_snapshot_t *s, const aot_snap_node_t *n, int kind, uint32_t after,
                               rf_error_t *error) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  const uint32_t n_lists = kind == RF_SCAN ? 2 : 1;
  if (n->n_args < after + n_lists) return "its operands do not stand in lists";
  for (uint32_t k = 0; k < n_lists; k++)
    if (args[after + k].kind == AOT_ARG_INTS && args[after + k].n > 0)
      return "numbers that change from step to step are not supported";
  const uint32_t n_carries = rf_region_length(&args[after]);
  if (kind == RF_SCAN ? n->n_results >= n_carries : n->n_results == n_carries) return NULL;
  snprintf(error->text, sizeof error->text, "it carries %u values and has %u results", n_carries, n->n_results);
  return error->text;
}

static const char *refuse_region(const aot_snapshot_t *s, const aot_snap_node_t *n, int kind, rf_error_t *error) {
  uint32_t graphs[2], after, wanted = kind == RF_COND || kind == RF_WHILE ? 2 : 1,
                             have = rf_region_graphs(s, n, graphs, 2, &after);
  uint32_t operands = rf_region_operands(s, n, after, NULL, NULL);
  const char *why = NULL;
  if (have != wanted) {
    snprintf(error->text, sizeof error->text, "it names %u graphs where %u are expected", have, wanted);
    return error->text;
  }
  for (uint32_t g = 0; g < have && !why; g++)
    why = refuse_fit(s, graphs[g], operands, kind == RF_WHILE && g == 0 ? 1 : n->n_results, error);
  if (!why && (kind == RF_SCAN || kind == RF_WHILE)) why = refuse_loop(s, n, kind, after, error);
  return why;
}

/* The arguments as far as they are numbers; tensors have no data. */
static const char *refuse_arguments(const aot_snapshot_t *s, const aot_snap_node_t *n, const rk_kernel_t *k) {
  const aot_snap_arg_t *args = AOT_SNAP_ROWS(s, aot_snap_arg_t, args) + n->arg_begin;
  rk_tensor_t none = {0};
  rk_arg_t list[MAX_ARGS];
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

static const char *refuse_dtypes(const aot_snapshot_t *s, const aot_snap_node_t *n, rf_error_t *error) {
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  for (uint32_t r = 0; r < n->n_results; r++) {
    const aot_snap_value_t *v = &values[n->result_begin + r];
    if (v->kind != AOT_TYPE_TENSOR || !aot_dtype_is_complex(v->dtype)) continue;
    snprintf(error->text, sizeof error->text, "result %u has dtype %s, which kernels of plugins do not have", r,
             aot_dtype_name(v->dtype));
    return error->text;
  }
  return NULL;
}

static const char *refuse_custom(const aot_snapshot_t *s, uint32_t node, const custom_world_t *world,
                                 rf_error_t *error) {
  custom_error_t why;
  const char *text = custom_refuse(world, s, node, &why);
  if (text) snprintf(error->text, sizeof error->text, "%s", text);
  return text ? error->text : refuse_dtypes(s, &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node], error);
}

const char *rf_refuse(const aot_snapshot_t *s, uint32_t node, const custom_world_t *world, rf_error_t *error) {
  const aot_snap_node_t *n = &AOT_SNAP_ROWS(s, aot_snap_node_t, nodes)[node];
  const aot_snap_value_t *values = AOT_SNAP_ROWS(s, aot_snap_value_t, values);
  const aot_snap_op_t *op = &AOT_SNAP_ROWS(s, aot_snap_op_t, ops)[n->op];
  aot_str_t name = aot_snap_text(s, op->name);
  const rk_kernel_t *k = rk_find(name);
  int kind = rf_region_kind(name), symbols = n->n_results > 0;
  if (kind != RF_NO_REGION) return refuse_region(s, n, kind, error);
  for (uint32_t r = 0; r < n->n_results; r++)
    symbols = symbols && (values[n->result_begin + r].kind == AOT_TYPE_SYMINT ||
                          values[n->result_begin + r].kind == AOT_TYPE_SYMBOOL);
  if (!k && symbols) return NULL; /* numbers of the shape environment */
  if (!k && op->flags & AOT_OP_RANDOM) return "it draws random numbers; make them explicit first (stage rng)";
  if (!k) return refuse_custom(s, node, world, error);
  if (op->flags & AOT_OP_WRITES) return "it writes an argument; functionalize the program first";
  if (sn_node_is_complex(s, n) && !rk_takes_complex(k)) return "it is not supported for complex numbers";
  return refuse_arguments(s, n, k);
}
