/* emit.h has the contract. A call costs one look-up in the host's table of names. */
#include "emit.h"

#include "kit/base/errors.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

em_t em_make(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph) {
  return (em_t){.host = host, .ctx = ctx, .prog = prog, .graph = graph, .code = "emit", .what = "the program"};
}

aot_status_t em_look(em_t *e, aot_node_t node) {
  if (e->status != AOT_OK) return e->status;
  e->node = node;
  e->info = (aot_node_info_t){.struct_size = sizeof e->info};
  e->desc = em_ok(e, e->host->graph->node_info(e->prog, node, &e->info)) ? e->host->graph->op_desc(e->prog, e->info.op)
                                                                         : NULL;
  return e->status;
}

aot_status_t em_rewrite(em_t *e, aot_node_t node) {
  AOT_TRY(em_look(e, node));
  e->graph = e->info.graph;
  e->before = node;
  em_carry(e, &e->info);
  return AOT_OK;
}

void em_carry(em_t *e, const aot_node_info_t *marks) {
  e->origin = marks->origin;
  e->flags = marks->flags;
  e->region_tag = marks->region_tag;
}

/* ---- failures ---- */

int em_ok(em_t *e, aot_status_t status) {
  if (e->status == AOT_OK) e->status = status;
  return e->status == AOT_OK;
}

void em_tell(em_t *e, aot_status_t status, const aot_diag_t *d) {
  if (e->status != AOT_OK) return;
  e->host->diag(e->host, e->ctx, d);
  e->status = status;
}

void em_fail(em_t *e, aot_status_t status, const char *hint, const char *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  aot_diag_t d = kit_diag(AOT_SEVERITY_ERROR, e->code, text);
  d.hint = aot_str(hint);
  d.node = e->node;
  em_tell(e, status, &d);
}

void *em_scratch(em_t *e, uint64_t n, uint64_t size) {
  void *memory = e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 8, (n ? n : 1) * size);
  if (!memory) em_ok(e, AOT_E_EXHAUSTED);
  return memory;
}

/* What is made of new nodes: the operator at hand, or what the plugin calls it. */
static aot_str_t made_thing(const em_t *e) { return e->desc ? e->desc->name : aot_str(e->what); }

/* ---- the node at hand ---- */

em_x_t em_in(const em_t *e, const char *name) {
  const aot_str_t wanted = aot_str(name);
  for (uint32_t i = 0; e->desc && i < e->desc->n_args; i++)
    if (aot_str_eq(e->desc->args[i].name, wanted))
      return i < e->info.n_args ? e->info.args[i] : e->desc->args[i].preset;
  return em_none();
}

static void refuse_argument(em_t *e, const char *name, const char *must_be) {
  const aot_str_t thing = made_thing(e);
  em_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s: '%s' must be a constant %s", (int)thing.size, thing.data, name, must_be);
}

double em_in_float(em_t *e, const char *name, double otherwise) {
  const em_x_t x = em_in(e, name);
  if (x.kind == AOT_ARG_FLOAT) return x.u.f;
  if (x.kind == AOT_ARG_BOOL || (x.kind == AOT_ARG_INT && !AOT_DIM_IS_SYM(x.u.i))) return (double)x.u.i;
  if (x.kind != AOT_ARG_NONE) refuse_argument(e, name, "number");
  return otherwise;
}

int em_in_bool(em_t *e, const char *name, int otherwise) {
  const em_x_t x = em_in(e, name);
  if (x.kind == AOT_ARG_BOOL || x.kind == AOT_ARG_INT) return x.u.i != 0;
  if (x.kind != AOT_ARG_NONE) refuse_argument(e, name, "truth");
  return otherwise;
}

aot_type_t em_result_type(em_t *e, uint32_t i) { return em_type(e, em_v((aot_value_t){e->info.first_result.id + i})); }

int em_touches_complex(const em_t *e) {
  for (uint32_t i = 0; i < e->info.n_results; i++)
    if (em_is_complex(e, em_v((aot_value_t){e->info.first_result.id + i}))) return 1;
  for (uint32_t k = 0; k < e->info.n_operands; k++)
    if (em_is_complex(e, em_v((aot_value_t){e->info.operands[k]}))) return 1;
  return 0;
}

/* ---- values ---- */

int em_is_complex(const em_t *e, em_x_t x) {
  aot_type_t t;
  if (!em_is_value(x) || e->host->graph->value_type(e->prog, (aot_value_t){(uint32_t)x.u.i}, &t) != AOT_OK) return 0;
  return t.kind == AOT_TYPE_TENSOR && aot_dtype_is_complex(t.dtype);
}

em_x_t em_list(em_t *e, const int64_t *ints, uint32_t n) {
  int64_t *copy = em_scratch(e, n, sizeof *copy);
  if (!copy) return em_none();
  if (n) memcpy(copy, ints, n * sizeof *copy);
  return aot_arg_ints(copy, n);
}

aot_value_t em_value(em_t *e, em_x_t x) {
  const aot_str_t thing = made_thing(e);
  if (e->status != AOT_OK || x.kind == AOT_ARG_NONE) return aot_no_value();
  if (em_is_value(x)) return (aot_value_t){(uint32_t)x.u.i};
  em_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s: a number stands where a tensor is expected", (int)thing.size, thing.data);
  return aot_no_value();
}

aot_type_t em_type(em_t *e, em_x_t x) {
  const aot_str_t thing = made_thing(e);
  aot_type_t t = {.kind = AOT_TYPE_NONE};
  if (!em_is_value(x))
    em_fail(e, AOT_E_UNIMPLEMENTED, "", "%.*s: a tensor is expected where there is none", (int)thing.size, thing.data);
  if (e->status == AOT_OK) em_ok(e, e->host->graph->value_type(e->prog, (aot_value_t){(uint32_t)x.u.i}, &t));
  return t;
}

void em_types(em_t *e, aot_value_t first, uint32_t n, aot_type_t *out) {
  for (uint32_t i = 0; i < n && e->status == AOT_OK; i++)
    em_ok(e, e->host->graph->value_type(e->prog, (aot_value_t){first.id + i}, &out[i]));
}

void em_take_over(em_t *e, aot_value_t from, aot_value_t to, uint32_t n) {
  for (uint32_t i = 0; i < n; i++, from.id++, to.id++) {
    const aot_str_t name = e->host->graph->value_name(e->prog, from);
    if (name.size && em_ok(e, AOT_OK)) em_ok(e, e->host->edit->name_set(e->prog, to, name));
    if (em_ok(e, AOT_OK)) em_ok(e, e->host->edit->uses_replace(e->prog, from, to));
  }
}

/* ---- nodes ---- */

static int is_full_name(const char *op) {
  const char *dot = strchr(op, '.');
  return strncmp(op, "higher_order.", 13) == 0 || (dot && strchr(dot + 1, '.'));
}

aot_op_t em_op(em_t *e, const char *name) {
  char full[128];
  if (e->status != AOT_OK) return (aot_op_t){AOT_NO_ID};
  if (!is_full_name(name)) {
    snprintf(full, sizeof full, "aten.%s%s", name, strchr(name, '.') ? "" : ".default");
    name = full;
  }
  const aot_op_t op = e->host->graph->op_find(e->prog, aot_str(name));
  const aot_str_t thing = made_thing(e);
  if (op.id == AOT_NO_ID)
    em_fail(e, AOT_E_PRECONDITION, "open the operator set that has it", "%.*s is made of %s, which no operator set has",
            (int)thing.size, thing.data, name);
  return op;
}

aot_node_t em_put(em_t *e, aot_op_t op, uint32_t n_args, const aot_arg_t *args, uint32_t n_types,
                  const aot_type_t *types, aot_node_info_t *out_made) {
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec,
      .flags = e->flags,
      .op = op,
      .n_args = n_args,
      .args = args,
      .n_types = n_types,
      .region_tag = e->region_tag,
      .types = types,
      .origin = e->origin,
  };
  aot_node_t node = aot_no_node();
  if (e->status != AOT_OK || !em_ok(e, e->host->edit->node_create(e->prog, e->graph, &spec, e->before, &node)))
    return aot_no_node();
  if (out_made) {
    *out_made = (aot_node_info_t){.struct_size = sizeof *out_made};
    em_ok(e, e->host->graph->node_info(e->prog, node, out_made));
  }
  return node;
}

aot_node_t em_repeat(em_t *e, const aot_node_info_t *node, aot_node_info_t *out_made) {
  aot_type_t *types = em_scratch(e, node->n_results, sizeof *types);
  if (!types) return aot_no_node();
  em_types(e, node->first_result, node->n_results, types);
  return em_put(e, node->op, node->n_args, node->args, node->n_results, types, out_made);
}

em_x_t em_call(em_t *e, const char *op, uint32_t n_args, const em_x_t *args) {
  aot_node_info_t made;
  em_put(e, em_op(e, op), n_args, args, 0, NULL, &made);
  return e->status == AOT_OK ? em_v(made.first_result) : em_none();
}

/* ---- formulas ---- */

em_x_t em_add(em_t *e, em_x_t x, em_x_t y) {
  if (em_is_number(x)) return EM(e, "add.Scalar", y, x);
  return em_is_number(y) ? EM(e, "add.Scalar", x, y) : EM(e, "add.Tensor", x, y);
}

em_x_t em_sub(em_t *e, em_x_t x, em_x_t y) {
  if (em_is_number(x)) return EM(e, "rsub.Scalar", y, x);
  return em_is_number(y) ? EM(e, "sub.Scalar", x, y) : EM(e, "sub.Tensor", x, y);
}

em_x_t em_mul(em_t *e, em_x_t x, em_x_t y) {
  if (em_is_number(x)) return EM(e, "mul.Scalar", y, x);
  return em_is_number(y) ? EM(e, "mul.Scalar", x, y) : EM(e, "mul.Tensor", x, y);
}

em_x_t em_div(em_t *e, em_x_t x, em_x_t y) {
  return em_is_number(y) ? EM(e, "div.Scalar", x, y) : EM(e, "div.Tensor", x, y);
}

em_x_t em_pow(em_t *e, em_x_t x, em_x_t y) {
  if (em_is_number(x)) return EM(e, "pow.Scalar", x, y);
  return em_is_number(y) ? EM(e, "pow.Tensor_Scalar", x, y) : EM(e, "pow.Tensor_Tensor", x, y);
}

em_x_t em_cast(em_t *e, em_x_t x, int32_t dtype) {
  if (e->status != AOT_OK || !em_is_value(x)) return x;
  const aot_type_t t = em_type(e, x);
  return t.kind != AOT_TYPE_TENSOR || t.dtype == dtype ? x : EM(e, "_to_copy", x, em_dtype(dtype));
}
