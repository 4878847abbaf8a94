/* build_complex.c - complex numbers among a node's arguments.
 *
 * No argument of the host holds one: it becomes a tensor without dimensions, made where the node is. Promotion
 * takes such a tensor for what PyTorch's wrapped number is, of single precision unless an operand of the node is
 * double. Where the schema wants a number, the operator's overload that takes a tensor there is built instead. */
#include "builder.h"
#include <aot/inline.h>
#include <stdio.h>
#include <string.h>

#define UNSUPPORTED "import-pt2.complex-number"

int p2_has_complex(const p2_node_t *n) {
  for (uint32_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i].arg.kind == P2_ARG_COMPLEX) return 1;
  return 0;
}

/* Does an operand say that the node computes in double? */
static aot_status_t is_double(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n, int *out) {
  *out = 0;
  for (uint32_t i = 0; i < n->n_inputs; i++) {
    p2_bound_t bound;
    aot_type_t t;
    if (n->inputs[i].arg.kind != P2_ARG_TENSOR) continue;
    AOT_TRY(p2_lookup(b, s, n->inputs[i].arg.u.s, &bound));
    if (bound.kind != P2_BOUND_VALUE) continue;
    AOT_TRY(b->host->graph->value_type(b->prog, (aot_value_t){(uint32_t)bound.i}, &t));
    *out |= t.kind == AOT_TYPE_TENSOR && (t.dtype == AOT_F64 || t.dtype == AOT_C128);
  }
  return AOT_OK;
}

static aot_status_t make_number(p2_builder_t *b, aot_graph_t g, aot_origin_t origin, const double *parts, int32_t dtype,
                                aot_value_t *out) {
  aot_arg_t both[2];
  for (int k = 0; k < 2; k++) {
    const aot_arg_t args[2] = {aot_arg_float(parts[k]), aot_arg_dtype(dtype)};
    aot_value_t part;
    AOT_TRY(p2_emit(b, g, origin, "aten.scalar_tensor.default", args, 2, &part));
    both[k] = aot_arg_value(part);
  }
  return p2_emit(b, g, origin, "aten.complex.default", both, 2, out);
}

/* ---- the overload ---- */

static const aot_schema_arg_t *slot_of(const aot_op_desc_t *d, const p2_input_t *in, uint32_t i) {
  if (!in->name.size) return i < d->n_args ? &d->args[i] : NULL;
  for (uint32_t k = 0; k < d->n_args; k++)
    if (aot_str_eq(d->args[k].name, in->name)) return &d->args[k];
  return NULL;
}

static int takes_tensors(const aot_op_desc_t *d, const p2_node_t *n) {
  for (uint32_t i = 0; i < n->n_inputs; i++) {
    const aot_schema_arg_t *slot = slot_of(d, &n->inputs[i], i);
    if (!slot) return 0;
    if (n->inputs[i].arg.kind == P2_ARG_COMPLEX && (slot->type != AOT_STYPE_TENSOR || slot->flags & AOT_SARG_LIST))
      return 0;
  }
  return 1;
}

/* The operator itself, or its overload that takes tensors where the complex numbers are. */
static aot_status_t choose(p2_builder_t *b, const p2_node_t *n, aot_str_t *out_target) {
  static const char *const overloads[] = {"", "Tensor", "Tensor_Tensor", "self"};
  aot_str_t name = p2_op_name(n);
  uint64_t packet = name.size;
  while (packet > 0 && name.data[packet - 1] != '.') packet--;
  for (size_t i = 0; i < sizeof overloads / sizeof *overloads; i++) {
    char text[160];
    const int size = *overloads[i] ? snprintf(text, sizeof text, "%.*s%s", (int)packet, name.data, overloads[i])
                                   : snprintf(text, sizeof text, "%.*s", (int)name.size, name.data);
    aot_op_t op = b->host->graph->op_find(b->prog, aot_str(text));
    const aot_op_desc_t *d =
        size < 0 || (size_t)size >= sizeof text || op.id == AOT_NO_ID ? NULL : b->host->graph->op_desc(b->prog, op);
    if (!d || !takes_tensors(d, n)) continue;
    *out_target = d->name;
    return AOT_OK;
  }
  p2_node_bad(b, n, UNSUPPORTED, "a complex number is an argument, and no overload takes a tensor in its place");
  p2_hint(b->env, "pass a tensor of one element instead");
  return AOT_E_UNIMPLEMENTED;
}

aot_status_t p2_complex_numbers(p2_builder_t *b, p2_scope_t *s, const p2_node_t *n, aot_graph_t g, p2_node_t *out) {
  p2_input_t *inputs;
  aot_origin_t origin;
  int wide;
  *out = *n;
  AOT_TRY(choose(b, n, &out->target));
  AOT_TRY(is_double(b, s, n, &wide));
  AOT_TRY(p2_origin(b, n, &origin));
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, n->n_inputs, &inputs));
  for (uint32_t i = 0; i < n->n_inputs; i++) {
    char *text;
    aot_value_t number;
    inputs[i] = n->inputs[i];
    if (inputs[i].arg.kind != P2_ARG_COMPLEX) continue;
    AOT_TRY(make_number(b, g, origin, n->inputs[i].arg.u.floats, wide ? AOT_F64 : AOT_F32, &number));
    AOT_TRY(P2_NEW(b->env, P2_SCRATCH, n->name.size + 32, &text)); /* a name that no exported value has */
    snprintf(text, (size_t)n->name.size + 32, "%.*s.number.%u", (int)n->name.size, n->name.data, number.id);
    inputs[i].arg = (p2_argument_t){.kind = P2_ARG_TENSOR, .u.s = aot_str(text)};
    AOT_TRY(p2_bind_value(b, s, inputs[i].arg.u.s, number));
  }
  out->inputs = inputs;
  return AOT_OK;
}
