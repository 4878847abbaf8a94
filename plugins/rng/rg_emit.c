#include "rg_emit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rg_begin(rg_emit_t *e, aot_node_t node) {
  e->node = node;
  e->is_left = 0;
  e->info = (aot_node_info_t){.struct_size = sizeof e->info};
  e->status = e->host->graph->node_info(e->prog, node, &e->info);
  e->graph = e->info.graph;
  e->desc = e->status == AOT_OK ? e->host->graph->op_desc(e->prog, e->info.op) : NULL;
}

void rg_fail(rg_emit_t *e, aot_status_t status, const char *hint, const char *format, ...) {
  char text[400];
  va_list args;
  if (e->status != AOT_OK) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const aot_diag_t d = {.struct_size = sizeof d,
                        .severity = AOT_SEVERITY_ERROR,
                        .code = aot_str("rng.rewrite"),
                        .message = aot_str(text),
                        .hint = aot_str(hint),
                        .node = e->node,
                        .value = aot_no_value()};
  e->host->diag(e->ctx, &d);
  e->status = status;
}

/* ---- the rewritten node ---- */

rg_x rg_in(rg_emit_t *e, const char *name) {
  const aot_str_t wanted = aot_str(name);
  for (uint32_t i = 0; e->status == AOT_OK && i < e->desc->n_args; i++)
    if (aot_str_eq(e->desc->args[i].name, wanted)) return i < e->info.n_args ? e->info.args[i] : e->desc->args[i].preset;
  return rg_none();
}

double rg_in_float(rg_emit_t *e, const char *name, double otherwise) {
  const rg_x x = rg_in(e, name);
  if (x.kind == AOT_ARG_FLOAT) return x.u.f;
  if (x.kind == AOT_ARG_BOOL || (x.kind == AOT_ARG_INT && !AOT_DIM_IS_SYM(x.u.i))) return (double)x.u.i;
  if (x.kind != AOT_ARG_NONE)
    rg_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s: '%s' must be a constant number", (int)e->desc->name.size, e->desc->name.data, name);
  return otherwise;
}

int rg_in_bool(rg_emit_t *e, const char *name, int otherwise) {
  const rg_x x = rg_in(e, name);
  if (x.kind == AOT_ARG_BOOL || x.kind == AOT_ARG_INT) return x.u.i != 0;
  if (x.kind != AOT_ARG_NONE)
    rg_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s: '%s' must be a constant truth", (int)e->desc->name.size, e->desc->name.data, name);
  return otherwise;
}

aot_type_t rg_result_type(rg_emit_t *e, uint32_t i) {
  return rg_type(e, rg_v((aot_value_t){e->info.first_result.id + i}));
}

/* ---- values and numbers ---- */

aot_value_t rg_value(rg_emit_t *e, rg_x x) {
  if (e->status == AOT_OK && x.kind != AOT_ARG_VALUE)
    rg_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s: a tensor is expected where there is none", (int)e->desc->name.size,
            e->desc->name.data);
  return e->status == AOT_OK ? (aot_value_t){(uint32_t)x.u.i} : aot_no_value();
}

aot_type_t rg_type(rg_emit_t *e, rg_x x) {
  aot_type_t t = {.kind = AOT_TYPE_NONE};
  const aot_value_t v = rg_value(e, x);
  if (e->status == AOT_OK) e->status = e->host->graph->value_type(e->prog, v, &t);
  return t;
}

/* ---- nodes ---- */

rg_x rg_call(rg_emit_t *e, const char *op, uint32_t n_args, const rg_x *args) {
  char name[128];
  aot_node_spec_t spec = {.struct_size = sizeof spec, .flags = e->info.flags, .n_args = n_args, .args = args,
                          .region_tag = e->info.region_tag, .origin = e->info.origin};
  aot_node_info_t made = {.struct_size = sizeof made};
  aot_node_t node;
  if (e->status != AOT_OK) return rg_none();
  const char *dot = strchr(op, '.');
  if (dot && strchr(dot + 1, '.')) snprintf(name, sizeof name, "%s", op);
  else snprintf(name, sizeof name, "aten.%s%s", op, dot ? "" : ".default");
  spec.op = e->host->graph->op_find(e->prog, aot_str(name));
  if (spec.op.id == AOT_NO_ID) {
    rg_fail(e, AOT_E_PRECONDITION, "open the opset aten", "%.*s is written with %s, which no opset offers",
            (int)e->desc->name.size, e->desc->name.data, name);
    return rg_none();
  }
  e->status = e->host->edit->node_create(e->prog, e->graph, &spec, e->node, &node);
  if (e->status == AOT_OK) e->status = e->host->graph->node_info(e->prog, node, &made);
  return e->status == AOT_OK ? rg_v(made.first_result) : rg_none();
}

rg_x rg_nth(rg_x first, uint32_t i) {
  if (first.kind == AOT_ARG_VALUE) first.u.i += i;
  return first;
}

rg_x rg_cast(rg_emit_t *e, rg_x x, int32_t dtype) {
  if (e->status != AOT_OK || rg_type(e, x).dtype == dtype) return x;
  return RG(e, "_to_copy", x, rg_dtype(dtype));
}

/* ---- layout ---- */

/* Dimensions from the outermost in memory to the innermost; equal strides stay in order. 0: there are gaps or overlaps. */
static int memory_order(const rg_emit_t *e, const aot_type_t *t, int64_t *order) {
  const aot_graph_api_t *g = e->host->graph;
  int64_t dense = 1;
  for (int32_t d = 0; d < t->rank; d++) {
    const int64_t stride = g->dim_hint(e->prog, t->strides[d]);
    int32_t at = d;
    for (; at > 0 && g->dim_hint(e->prog, t->strides[order[at - 1]]) < stride; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int32_t i = t->rank; i-- > 0;) {
    const int64_t size = g->dim_hint(e->prog, t->sizes[order[i]]);
    if (size != 1 && g->dim_hint(e->prog, t->strides[order[i]]) != dense) return 0;
    dense *= size;
  }
  return 1;
}

static int lies_alike(const rg_emit_t *e, const aot_type_t *a, const aot_type_t *b) {
  for (int32_t d = 0; d < a->rank; d++)
    if (e->host->graph->dim_hint(e->prog, a->sizes[d]) == 0) return 1;
  for (int32_t d = 0; d < a->rank; d++)
    if (a->sizes[d] != 1 && a->strides[d] != b->strides[d] &&
        e->host->graph->dim_hint(e->prog, a->strides[d]) != e->host->graph->dim_hint(e->prog, b->strides[d]))
      return 0;
  return 1;
}

rg_x rg_laid_out(rg_emit_t *e, rg_x x, const aot_type_t *like) {
  int64_t order[AOT_MAX_RANK], back[AOT_MAX_RANK];
  const aot_type_t t = rg_type(e, x);
  if (e->status != AOT_OK || t.kind != AOT_TYPE_TENSOR || t.rank != like->rank || lies_alike(e, &t, like)) return x;
  if (!memory_order(e, like, order)) return x;
  for (int32_t i = 0; i < t.rank; i++) back[order[i]] = i;
  const uint32_t rank = (uint32_t)t.rank;
  const rg_x outermost_first = RG(e, "permute", x, aot_arg_ints(order, rank));
  const rg_x dense = RG(e, "clone", outermost_first, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS));
  return RG(e, "permute", dense, aot_arg_ints(back, rank));
}
