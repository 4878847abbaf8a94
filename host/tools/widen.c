#include <tools/widen.h>

#include <aot/inline.h>
#include <ir/tables.h>
#include <stdlib.h>
#include <string.h>

int32_t aoth_wide_dtype(int32_t dtype) {
  if (dtype == AOT_C64) return AOT_C128;
  return aot_dtype_is_float(dtype) ? AOT_F64 : dtype;
}

static int is_narrow(const aot_type_t *t) {
  return t->kind == AOT_TYPE_TENSOR && aoth_wide_dtype(t->dtype) != t->dtype;
}

/* n elements; a complex one is two numbers. */
static void widen_numbers(int32_t dtype, const char *from, double *to, uint64_t n) {
  const int32_t part = aot_dtype_part(dtype);
  const uint64_t width = aot_dtype_size(part), n_parts = aot_dtype_is_complex(dtype) ? 2 * n : n;
  for (uint64_t i = 0; i < n_parts; i++) to[i] = aoth_tensor_load(part, from + i * width);
}

static aot_status_t widen_leaf(aot_prog_t *p, aot_leaf_t leaf) {
  aot_leaf_info_t info = {.struct_size = sizeof info};
  AOT_TRY(aoth_graph_leaf_info(p, leaf, &info));
  if (!is_narrow(&info.type)) return AOT_OK;
  const int32_t dtype = info.type.dtype;
  const uint64_t n = info.nbytes / aot_dtype_size(dtype), nbytes = n * aot_dtype_size(aoth_wide_dtype(dtype));
  double *data = info.data ? malloc(nbytes + 1) : NULL;
  if (info.data && !data) return AOT_E_EXHAUSTED;
  if (data) widen_numbers(dtype, info.data, data, n);
  info.type.dtype = aoth_wide_dtype(dtype);
  aot_status_t status = aoth_leaf_retype(p, leaf, &info.type, data, data ? nbytes : 0);
  free(data);
  return status;
}

static aot_status_t widen_value(aot_prog_t *p, aot_value_t v) {
  aot_type_t type;
  AOT_TRY(aoth_graph_value_type(p, v, &type));
  if (!is_narrow(&type)) return AOT_OK;
  type.dtype = aoth_wide_dtype(type.dtype);
  return aoth_edit_type_set(p, v, &type);
}

/* The dtype that an argument asks for. One that asks for none may stand for float32, as in zeros([2]): it asks for the result's. */
static int32_t asked_dtype(aot_prog_t *p, const aot_node_info_t *node, uint32_t a, const aot_type_t *result) {
  const aot_op_desc_t *op = aoth_graph_op_desc(p, node->op);
  if (node->args[a].kind == AOT_ARG_DTYPE) return (int32_t)node->args[a].u.i;
  if (node->args[a].kind != AOT_ARG_NONE || !op || a >= op->n_args || op->args[a].type != AOT_STYPE_DTYPE) return 0;
  return is_narrow(result) ? result->dtype : 0;
}

static int is_wide(const aot_type_t *t) {
  return t->kind == AOT_TYPE_TENSOR && (aot_dtype_is_float(t->dtype) || aot_dtype_is_complex(t->dtype)) &&
         !is_narrow(t);
}

/* A float of integers alone, which no argument asks for, is float32 whatever the model's floats are, 3 / 2 of counts; so is
 * what is computed of such floats alone, or of such that have dimensions and numbers, which do not promote them. */
static int stays_narrow(aot_prog_t *p, const aot_node_info_t *node, const aot_type_t *result) {
  int reads = 0, reads_number = 0, reads_narrow = 0;
  for (uint32_t a = 0; a < node->n_args; a++)
    if (node->args[a].kind == AOT_ARG_GRAPH || asked_dtype(p, node, a, result)) return 0;
  for (uint32_t k = 0; k < node->n_operands; k++) {
    aot_type_t type = {0};
    if (node->operands[k] == AOT_NO_ID) continue;
    if (aoth_graph_value_type(p, (aot_value_t){node->operands[k]}, &type) != AOT_OK) return 0;
    if (is_wide(&type) && type.rank) return 0;
    reads_number |= is_wide(&type);
    reads_narrow |= is_narrow(&type) && type.rank > 0;
    reads |= type.kind == AOT_TYPE_TENSOR;
  }
  return reads && (reads_narrow || !reads_number);
}

static aot_status_t widen_node(aot_prog_t *p, aot_node_t n) {
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_type_t result = {0};
  AOT_TRY(aoth_graph_node_info(p, n, &info));
  if (info.n_results) AOT_TRY(aoth_graph_value_type(p, info.first_result, &result));
  if (stays_narrow(p, &info, &result)) return AOT_OK;
  for (uint32_t a = 0; a < info.n_args; a++) {
    const int32_t dtype = asked_dtype(p, &info, a, &result);
    if (dtype == 0 || aoth_wide_dtype(dtype) == dtype) continue;
    const aot_arg_t wide = aot_arg_dtype(aoth_wide_dtype(dtype));
    AOT_TRY(aoth_edit_arg_set(p, n, a, &wide));
  }
  for (uint32_t i = 0; i < info.n_results; i++) AOT_TRY(widen_value(p, (aot_value_t){info.first_result.id + i}));
  return AOT_OK;
}

static aot_status_t widen_graph(aot_prog_t *p, aot_graph_t g) {
  for (uint32_t i = 0; i < aoth_graph_n_inputs(p, g); i++) AOT_TRY(widen_value(p, aoth_graph_inputs(p, g)[i].value));
  for (aot_node_t n = aoth_graph_first(p, g); n.id != AOT_NO_ID; n = aoth_graph_next(p, n)) AOT_TRY(widen_node(p, n));
  return AOT_OK;
}

aot_status_t aoth_widen(aot_prog_t *p) {
  int32_t kind;
  aot_str_t name;
  for (uint32_t i = 1; i < aoth_graph_n_leaves(p); i++) AOT_TRY(widen_leaf(p, (aot_leaf_t){i}));
  for (uint32_t g = 1; g < aoth_graph_n_graphs(p); g++)
    if (aoth_graph_graph_info(p, (aot_graph_t){g}, &kind, &name) == AOT_OK) AOT_TRY(widen_graph(p, (aot_graph_t){g}));
  return AOT_OK;
}

int aoth_tensor_widen(const aoth_tensor_t *t, aoth_tensor_t *out) {
  const int32_t dtype = aoth_wide_dtype(t->dtype);
  const size_t narrow = aot_dtype_size(t->dtype), size = aot_dtype_size(dtype);
  const int64_t n = aoth_tensor_numel(t);
  char *to = malloc((size_t)(n > 0 ? n : 0) * size + 1);
  if (!to) return 0;
  *out = aoth_tensor_make(to, dtype, t->rank, t->sizes);
  aoth_walk_t w;
  for (aoth_walk_begin(&w, t, NULL); w.left > 0; aoth_walk_next(&w), to += size) {
    if (dtype == t->dtype) memcpy(to, w.at[0], narrow);
    else widen_numbers(t->dtype, w.at[0], (double *)(void *)to, 1);
  }
  return 1;
}
