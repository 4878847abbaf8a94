/* The emitter: arguments by name, nodes by operator name. Each call costs one look-up in the host's name table. */
#include "at_emit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void at_emit_fail(at_emit_t *e, const char *hint, const char *format, ...) {
  char message[320];
  aot_diag_t d;
  va_list list;
  if (e->status != AOT_OK) return;
  e->status = AOT_E_UNIMPLEMENTED;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  memset(&d, 0, sizeof d);
  d.struct_size = sizeof d;
  d.severity = AOT_SEVERITY_ERROR;
  d.code = aot_str("aten.rewrite");
  d.message = aot_str(message);
  d.hint = aot_str(hint);
  d.node = e->node;
  d.value = aot_no_value();
  e->host->diag(e->host, e->ctx, &d);
}

/* A failure that the host has told already. */
static int ok(at_emit_t *e, aot_status_t status) {
  if (status != AOT_OK && e->status == AOT_OK) e->status = status;
  return e->status == AOT_OK;
}

void at_emit_begin(at_emit_t *e, aot_node_t node, aot_node_t before) {
  e->node = node;
  e->before = before;
  e->status = AOT_OK;
  memset(&e->info, 0, sizeof e->info);
  e->info.struct_size = sizeof e->info;
  ok(e, e->host->graph->node_info(e->prog, node, &e->info));
  e->infer->status = AOT_OK;
  e->infer->n_pool = 0;
}

/* ---- the rewritten node ---- */

at_x at_in(at_emit_t *e, const char *name) {
  size_t n = strlen(name);
  uint32_t i;
  for (i = 0; i < e->desc->n_args; i++) {
    const aot_schema_arg_t *s = &e->desc->args[i];
    if (s->name.size != n || memcmp(s->name.data, name, n) != 0) continue;
    /* arguments are borrowed until the node's next edit, which a rule never makes */
    return i < e->info.n_args ? e->info.args[i] : s->preset;
  }
  return at_none();
}

int at_in_has(at_emit_t *e, const char *name) { return at_in(e, name).kind != AOT_ARG_NONE; }

static int64_t int_of(at_emit_t *e, at_x x, int64_t otherwise) {
  switch (x.kind) {
    case AOT_ARG_NONE: return otherwise;
    case AOT_ARG_FLOAT: return aot_float_to_int(x.u.f);
    case AOT_ARG_VALUE: return at_type(e, x).expr;
    default: return x.u.i;
  }
}

int64_t at_in_int(at_emit_t *e, const char *name, int64_t otherwise) { return int_of(e, at_in(e, name), otherwise); }

double at_in_float(at_emit_t *e, const char *name, double otherwise) {
  at_x x = at_in(e, name);
  if (x.kind == AOT_ARG_FLOAT) return x.u.f;
  if (x.kind == AOT_ARG_INT || x.kind == AOT_ARG_BOOL) return (double)x.u.i;
  if (x.kind != AOT_ARG_NONE) at_emit_fail(e, "", "%s: argument '%s' must be a constant number", e->row->name, name);
  return otherwise;
}

uint32_t at_in_ints(at_emit_t *e, const char *name, const int64_t **out) {
  at_x x = at_in(e, name);
  int64_t *copy;
  uint32_t i;
  *out = NULL;
  if (x.kind == AOT_ARG_INTS || x.kind == AOT_ARG_BOOLS) {
    *out = x.u.ints;
    return x.n;
  }
  if (x.kind == AOT_ARG_NONE || (x.kind == AOT_ARG_FLOATS && x.n == 0)) return 0;
  copy = at_dims(e->infer, x.kind == AOT_ARG_VALUES ? (int32_t)x.n : 1);
  *out = copy;
  if (x.kind != AOT_ARG_VALUES) {
    copy[0] = int_of(e, x, 0);
    return 1;
  }
  for (i = 0; i < x.n && e->infer->status == AOT_OK; i++) {
    aot_value_t v;
    v.id = x.u.ids[i];
    copy[i] = at_type(e, at_v(v)).expr;
  }
  return x.n;
}

int at_in_str_is(at_emit_t *e, const char *name, const char *text) {
  at_x x = at_in(e, name);
  return x.kind == AOT_ARG_STR && x.n == strlen(text) && memcmp(x.u.chars, text, x.n) == 0;
}

aot_type_t at_result_type(at_emit_t *e, uint32_t i) {
  aot_value_t v = e->info.first_result;
  v.id += i;
  return at_type(e, at_v(v));
}

/* ---- values and numbers ---- */

at_x at_v(aot_value_t v) { return aot_arg_value(v); }

aot_value_t at_value(at_emit_t *e, at_x x) {
  aot_value_t v = aot_no_value();
  if (e->status != AOT_OK || x.kind == AOT_ARG_NONE) return v;
  if (x.kind == AOT_ARG_VALUE) v.id = (uint32_t)x.u.i;
  else at_emit_fail(e, "", "%s: a number stands where a tensor is expected", e->row->name);
  return v;
}

at_x at_i(int64_t i) { return aot_arg_int(i); }
at_x at_f(double f) { return aot_arg_float(f); }
at_x at_b(int b) { return aot_arg_bool(b); }
at_x at_none(void) { return aot_arg_none(); }
at_x at_dtype_of(int32_t dtype) { return aot_arg_dtype(dtype); }
int at_is_none(at_x x) { return x.kind == AOT_ARG_NONE; }

at_x at_list(at_emit_t *e, const int64_t *ints, uint32_t n) {
  int64_t *copy = at_dims(e->infer, (int32_t)n);
  if (e->infer->status != AOT_OK) {
    at_emit_fail(e, "", "%s: a list of %u numbers is too long to rewrite", e->row->name, n);
    return at_none();
  }
  if (n) memcpy(copy, ints, n * sizeof *copy);
  return aot_arg_ints(copy, n);
}

aot_type_t at_type(at_emit_t *e, at_x x) {
  aot_type_t t = at_operand_of(e->infer, &x);
  if (e->infer->status != AOT_OK && e->status == AOT_OK) {
    at_emit_fail(e, "", "%s: %s", e->row->name, e->infer->message);
    e->status = AOT_E_INTERNAL;
  }
  return t;
}

/* ---- nodes ---- */

/* "namespace.operator.overload", or "higher_order.operator" */
static int is_full_name(const char *op) {
  const char *dot = strchr(op, '.');
  if (strncmp(op, "higher_order.", 13) == 0) return 1;
  return dot != NULL && strchr(dot + 1, '.') != NULL;
}

at_x at_call(at_emit_t *e, const char *op, uint32_t n_args, const at_x *args) {
  char name[128];
  aot_node_spec_t s;
  aot_node_info_t made;
  aot_node_t node;
  if (e->status != AOT_OK) return at_none();
  if (is_full_name(op)) snprintf(name, sizeof name, "%s", op);
  else snprintf(name, sizeof name, "aten.%s%s", op, strchr(op, '.') ? "" : ".default");
  memset(&s, 0, sizeof s);
  s.struct_size = sizeof s;
  s.flags = e->info.flags;
  s.op = e->host->graph->op_find(e->prog, aot_str(name));
  s.n_args = n_args;
  s.args = args;
  s.region_tag = e->info.region_tag;
  s.origin = e->info.origin;
  if (s.op.id == AOT_NO_ID) {
    at_emit_fail(e, "load the operator set that has it", "%s is rewritten with '%s', which is not loaded", e->row->name,
                 name);
    return at_none();
  }
  if (!ok(e, e->host->edit->node_create(e->prog, e->info.graph, &s, e->before, &node))) return at_none();
  memset(&made, 0, sizeof made);
  made.struct_size = sizeof made;
  if (!ok(e, e->host->graph->node_info(e->prog, node, &made))) return at_none();
  return at_v(made.first_result);
}

at_x at_nth(at_x first, uint32_t i) {
  if (first.kind == AOT_ARG_VALUE) first.u.i += i;
  return first;
}

/* ---- small combinations ---- */

at_x at_cast(at_emit_t *e, at_x x, int32_t dtype) {
  aot_type_t t;
  if (x.kind != AOT_ARG_VALUE) return x;
  t = at_type(e, x);
  if (t.kind != AOT_TYPE_TENSOR || t.dtype == dtype) return x;
  return AT(e, "_to_copy", x, at_dtype_of(dtype));
}

static int is_complex_value(at_emit_t *e, uint32_t id) {
  aot_type_t t;
  if (id == AOT_NO_ID || e->host->graph->value_type(e->prog, (aot_value_t){id}, &t) != AOT_OK) return 0;
  return t.kind == AOT_TYPE_TENSOR && aot_dtype_is_complex(t.dtype);
}

int at_touches_complex(at_emit_t *e) {
  for (uint32_t i = 0; i < e->info.n_results; i++)
    if (is_complex_value(e, e->info.first_result.id + i)) return 1;
  for (uint32_t k = 0; k < e->info.n_operands; k++)
    if (is_complex_value(e, e->info.operands[k])) return 1;
  return 0;
}

int at_same_shape(at_emit_t *e, const aot_type_t *t, const int64_t *sizes, int32_t rank) {
  int32_t d;
  if (t->rank != rank) return 0;
  for (d = 0; d < rank; d++)
    if (!at_same(e->infer, t->sizes[d], sizes[d])) return 0;
  return 1;
}

at_x at_reshaped(at_emit_t *e, at_x x, const int64_t *sizes, int32_t rank) {
  aot_type_t t = at_type(e, x);
  int64_t strides[AOT_MAX_RANK];
  if (e->status != AOT_OK || at_same_shape(e, &t, sizes, rank)) return x;
  if (!at_view_strides(e->infer, &t, sizes, rank, strides))
    x = AT(e, "clone", x, aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS));
  return AT(e, "view", x, at_list(e, sizes, (uint32_t)rank));
}

at_x at_expanded(at_emit_t *e, at_x x, const int64_t *sizes, int32_t rank) {
  aot_type_t t = at_type(e, x);
  if (at_same_shape(e, &t, sizes, rank)) return x;
  return AT(e, "expand", x, at_list(e, sizes, (uint32_t)rank));
}

static int same_order(at_emit_t *e, const aot_type_t *t, const int64_t *strides) {
  int32_t d;
  for (d = 0; d < t->rank; d++)
    if (at_hint(e->infer, t->sizes[d]) > 1 && !at_same(e->infer, t->strides[d], strides[d])) return 0;
  return 1;
}

at_x at_laid_out(at_emit_t *e, at_x x, const aot_type_t *like) {
  const at_x contiguous = aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS);
  int64_t strides[AOT_MAX_RANK], order[AOT_MAX_RANK], back[AOT_MAX_RANK];
  aot_type_t t = at_type(e, x);
  int32_t d, i, moved = 0;
  if (e->status != AOT_OK || t.rank != like->rank) return x;
  for (d = 0; d < t.rank; d++)
    if (at_hint(e->infer, t.sizes[d]) == 0) return x;
  at_strides_for_format(e->infer, like, AOT_MEMORY_PRESERVE, strides);
  if (same_order(e, &t, strides)) return x;
  for (d = 0; d < t.rank; d++) { /* slowest first */
    for (i = d; i > 0 && at_hint(e->infer, strides[order[i - 1]]) < at_hint(e->infer,
                                                                            strides[d]); i--) order[i] = order[i - 1];
    order[i] = d;
  }
  for (d = 0; d < t.rank; d++) back[order[d]] = d, moved |= order[d] != d;
  if (!moved) return AT(e, "clone", x, contiguous);
  x = AT(e, "clone", AT(e, "permute", x, at_list(e, order, (uint32_t)t.rank)), contiguous);
  return AT(e, "permute", x, at_list(e, back, (uint32_t)t.rank));
}

at_x at_summed(at_emit_t *e, at_x x, const int64_t *dims, uint32_t n, int keep) {
  if (n == 0) return x;
  return AT(e, "sum.dim_IntList", x, at_list(e, dims, n), at_b(keep));
}
