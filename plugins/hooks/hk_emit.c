#include "hk_emit.h"

#include <aot/inline.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void hk_fail(hk_emit_t *e, aot_status_t status, const char *code, aot_str_t file, uint32_t line, hk_v at, const char *hint,
             const char *format, ...) {
  char text[600];
  va_list args;
  if (e->status != AOT_OK) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const aot_diag_t d = {.struct_size = sizeof d,
                        .severity = AOT_SEVERITY_ERROR,
                        .code = aot_str(code),
                        .message = aot_str(text),
                        .hint = aot_str(hint),
                        .file = file,
                        .line = line,
                        .node = aot_no_node(),
                        .value = at};
  e->host->diag(e->ctx, &d);
  e->status = status;
}

hk_v hk_make(hk_emit_t *e, const char *op, const aot_arg_t *args, uint32_t n_args) {
  aot_node_spec_t spec = {
      .struct_size = sizeof spec, .flags = e->flags, .n_args = n_args, .args = args, .origin = e->origin};
  aot_node_info_t info = {.struct_size = sizeof info};
  aot_node_t node;
  if (e->status != AOT_OK) return aot_no_value();
  spec.op = e->host->graph->op_find(e->prog, aot_str(op));
  if (spec.op.id == AOT_NO_ID) {
    hk_fail(e, AOT_E_PRECONDITION, "hooks.operator", aot_str(NULL), 0, aot_no_value(), "open the opset aten",
            "the hook needs operator %s, which no opset offers", op);
    return aot_no_value();
  }
  e->status = e->host->edit->node_create(e->prog, e->graph, &spec, e->before, &node);
  if (e->status == AOT_OK) e->status = e->host->graph->node_info(e->prog, node, &info);
  return e->status == AOT_OK ? info.first_result : aot_no_value();
}

hk_v hk_unary(hk_emit_t *e, const char *op, hk_v a) {
  return hk_make(e, op, (aot_arg_t[]){aot_arg_value(a)}, 1);
}
hk_v hk_binary(hk_emit_t *e, const char *op, hk_v a, hk_v b) {
  return hk_make(e, op, (aot_arg_t[]){aot_arg_value(a), aot_arg_value(b)}, 2);
}
hk_v hk_with_int(hk_emit_t *e, const char *op, hk_v a, int64_t number) {
  return hk_make(e, op, (aot_arg_t[]){aot_arg_value(a), aot_arg_int(number)}, 2);
}
hk_v hk_with_float(hk_emit_t *e, const char *op, hk_v a, double number) {
  return hk_make(e, op, (aot_arg_t[]){aot_arg_value(a), aot_arg_float(number)}, 2);
}
hk_v hk_cast(hk_emit_t *e, hk_v a, int32_t dtype) {
  if (hk_type(e, a).dtype == dtype) return a;
  return hk_make(e, "aten._to_copy.default", (aot_arg_t[]){aot_arg_value(a), aot_arg_dtype(dtype)}, 2);
}
hk_v hk_bits(hk_emit_t *e, hk_v a, int32_t dtype) {
  return hk_make(e, "aten.view.dtype", (aot_arg_t[]){aot_arg_value(a), aot_arg_dtype(dtype)}, 2);
}
hk_v hk_clamp(hk_emit_t *e, hk_v a, double min, double max) {
  return hk_make(e, "aten.clamp.default", (aot_arg_t[]){aot_arg_value(a), aot_arg_float(min), aot_arg_float(max)}, 3);
}
hk_v hk_where(hk_emit_t *e, hk_v condition, hk_v a, hk_v b) {
  return hk_make(e, "aten.where.self", (aot_arg_t[]){aot_arg_value(condition), aot_arg_value(a), aot_arg_value(b)}, 3);
}

aot_type_t hk_type(hk_emit_t *e, hk_v a) {
  aot_type_t t = {.kind = AOT_TYPE_NONE};
  if (e->status == AOT_OK) e->status = e->host->graph->value_type(e->prog, a, &t);
  return t;
}

int hk_same_strides(const aot_type_t *a, const aot_type_t *b) {
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] == 0) return 1;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != 1 && a->strides[d] != b->strides[d]) return 0;
  return 1;
}

int64_t hk_numel(const hk_emit_t *e, const aot_type_t *t) {
  int64_t n = 1;
  for (int32_t d = 0; d < t->rank; d++) n *= e->host->graph->dim_hint(e->prog, t->sizes[d]);
  return n;
}

/* Dimensions from the outermost in memory to the innermost; equal strides stay in order. At most AOT_MAX_RANK of them. */
static void memory_order(const hk_emit_t *e, const aot_type_t *t, int64_t *order) {
  for (int32_t d = 0; d < t->rank; d++) {
    const int64_t stride = e->host->graph->dim_hint(e->prog, t->strides[d]);
    int32_t at = d;
    for (; at > 0 && e->host->graph->dim_hint(e->prog, t->strides[order[at - 1]]) < stride; at--) order[at] = order[at - 1];
    order[at] = d;
  }
}

hk_v hk_restride(hk_emit_t *e, hk_v a, const aot_type_t *like) {
  int64_t order[AOT_MAX_RANK], inverse[AOT_MAX_RANK];
  const uint32_t rank = (uint32_t)like->rank;
  memory_order(e, like, order);
  for (uint32_t d = 0; d < rank; d++) inverse[order[d]] = d;
  const hk_v outermost_first =
      hk_make(e, "aten.permute.default", (aot_arg_t[]){aot_arg_value(a), aot_arg_ints(order, rank)}, 2);
  const aot_arg_t dense[] = {aot_arg_value(outermost_first), aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS)};
  const hk_v copied = hk_make(e, "aten.clone.default", dense, 2);
  return hk_make(e, "aten.permute.default", (aot_arg_t[]){aot_arg_value(copied), aot_arg_ints(inverse, rank)}, 2);
}
