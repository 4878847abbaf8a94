/* build_args.c - the arguments of a node: matched with the schema by name, converted by the slot's type, defaults
 * filled in.
 *
 * A Tensor slot may hold a Python number (PyTorch's wrapped number): it stays INT, FLOAT or BOOL. A float slot takes an
 * int as a float, a Scalar slot keeps the kind that it was given. Symbolic integers become dimensions. */
#include "builder.h"
#include <aot/inline.h>
#include <string.h>

#define BAD_ARGUMENT "import-pt2.bad-argument"

typedef struct converter {
  p2_builder_t *b;
  const p2_scope_t *scope;
  const p2_node_t *node;
  const aot_schema_arg_t *slot;
} converter_t;

static const char *kind_name(int32_t kind) {
  /* clang-format off */
  static const char *const names[] = {"None",      "a tensor",        "a list of tensors", "a list of optional tensors",
                                      "an int",    "a list of ints",  "a float",           "a list of floats",
                                      "a bool",    "a list of bools", "a string",          "a symbolic int",
                                      "a list of symbolic ints",      "a symbolic bool",   "a symbolic float",
                                      "a dtype",   "a layout",        "a memory format",   "a device",
                                      "a graph",   "an operator",     "a complex number",
                                       "of a kind that is not supported"};
  /* clang-format on */
  return kind >= 0 && kind <= P2_ARG_OTHER ? names[kind] : "?";
}

static aot_status_t misfit(converter_t *c, const p2_argument_t *a) {
  if (a->kind == P2_ARG_OTHER)
    return p2_node_bad(c->b, c->node, BAD_ARGUMENT, "argument '%.*s' is given as '%.*s', which is not supported",
                       P2_SHOW(c->slot->name), P2_SHOW(a->u.s));
  return p2_node_bad(c->b, c->node, BAD_ARGUMENT, "argument '%.*s' is %s, which does not fit its schema",
                     P2_SHOW(c->slot->name), kind_name(a->kind));
}

/* ---- names ---- */

static aot_status_t value_of(converter_t *c, aot_str_t name, aot_arg_t *out) {
  p2_bound_t bound;
  AOT_TRY(p2_lookup(c->b, c->scope, name, &bound));
  switch (bound.kind) {
    case P2_BOUND_VALUE: *out = aot_arg_int_kind(AOT_ARG_VALUE, bound.i); break;
    case P2_BOUND_DIM: *out = aot_arg_int(bound.i); break;
    case P2_BOUND_FLOAT: *out = aot_arg_float(bound.f); break;
    default: *out = aot_arg_none();
  }
  return AOT_OK;
}

/* A symbolic name: its expression. In a bool slot only a constant will do. */
static aot_status_t symbolic(converter_t *c, const p2_argument_t *a, aot_arg_t *out) {
  AOT_TRY(value_of(c, a->u.s, out));
  if (a->kind != P2_ARG_SYM_BOOL || out->kind != AOT_ARG_INT) return AOT_OK;
  if (!AOT_DIM_IS_SYM(out->u.i)) {
    *out = aot_arg_bool(out->u.i != 0);
    return AOT_OK;
  }
  if (c->slot->type != AOT_STYPE_BOOL) return AOT_OK;
  p2_node_bad(c->b, c->node, BAD_ARGUMENT, "argument '%.*s' depends on a symbolic size, which is not supported",
              P2_SHOW(c->slot->name));
  p2_hint(c->b->env, "export the model with this size fixed");
  return AOT_E_INVALID;
}

static aot_status_t values_of(converter_t *c, const p2_argument_t *a, aot_arg_t *out) {
  uint32_t *ids, i;
  AOT_TRY(P2_NEW(c->b->env, P2_SCRATCH, a->n, &ids));
  for (i = 0; i < a->n; i++) {
    aot_arg_t one;
    ids[i] = AOT_NO_ID;
    if (a->kind == P2_ARG_OPTIONAL_TENSORS && !a->u.names[i].size) continue;
    AOT_TRY(value_of(c, a->u.names[i], &one));
    if (one.kind == AOT_ARG_VALUE) ids[i] = (uint32_t)one.u.i;
    else if (one.kind == AOT_ARG_INT &&
             c->slot->type == AOT_STYPE_ANY) /* a size that a region reads, as an expression */
      continue;
    else if (one.kind != AOT_ARG_NONE || a->kind != P2_ARG_OPTIONAL_TENSORS) return misfit(c, a);
  }
  *out = aot_arg_values(ids, a->n);
  return AOT_OK;
}

/* ---- numbers ---- */

static aot_status_t plain_int(converter_t *c, int64_t i) {
  if (!AOT_DIM_IS_SYM(i)) return AOT_OK;
  return p2_node_bad(c->b, c->node, BAD_ARGUMENT, "argument '%.*s' holds %lld, which is reserved for symbolic sizes",
                     P2_SHOW(c->slot->name), (long long)i);
}

static aot_status_t int_list(converter_t *c, const p2_argument_t *a, aot_arg_t *out) {
  int64_t *list;
  uint32_t i;
  AOT_TRY(P2_NEW(c->b->env, P2_SCRATCH, a->n, &list));
  for (i = 0; i < a->n; i++) {
    aot_arg_t one = aot_arg_int(a->kind == P2_ARG_INTS ? a->u.ints[i] : a->u.syms[i].value);
    if (a->kind == P2_ARG_SYM_INTS && a->u.syms[i].name.size) AOT_TRY(value_of(c, a->u.syms[i].name, &one));
    else AOT_TRY(plain_int(c, one.u.i));
    if (one.kind != AOT_ARG_INT) return misfit(c, a);
    list[i] = one.u.i;
  }
  *out = aot_arg_ints(list, a->n);
  return AOT_OK;
}

/* A bare number where the schema says int[2]: as many copies. */
static aot_status_t repeat_int(converter_t *c, int64_t i, aot_arg_t *out) {
  uint32_t n = c->slot->list_size > 0 ? (uint32_t)c->slot->list_size : 1, k;
  int64_t *list;
  AOT_TRY(P2_NEW(c->b->env, P2_SCRATCH, n, &list));
  for (k = 0; k < n; k++) list[k] = i;
  *out = aot_arg_ints(list, n);
  return AOT_OK;
}

static aot_status_t float_list(converter_t *c, const p2_argument_t *a, aot_arg_t *out) {
  double *list;
  uint32_t i;
  AOT_TRY(P2_NEW(c->b->env, P2_SCRATCH, a->n, &list));
  for (i = 0; i < a->n; i++) list[i] = a->kind == P2_ARG_INTS ? (double)a->u.ints[i] : a->u.floats[i];
  memset(out, 0, sizeof *out);
  out->kind = AOT_ARG_FLOATS;
  out->n = a->n;
  out->u.floats = list;
  return AOT_OK;
}

/* The argument as it is, without regard to a slot. */
static aot_status_t natural(converter_t *c, const p2_argument_t *a, aot_arg_t *out) {
  int32_t device = 0, index = 0;
  switch (a->kind) {
    case P2_ARG_NONE: *out = aot_arg_none(); return AOT_OK;
    case P2_ARG_TENSOR: return value_of(c, a->u.s, out);
    case P2_ARG_TENSORS:
    case P2_ARG_OPTIONAL_TENSORS: return values_of(c, a, out);
    case P2_ARG_INT: *out = aot_arg_int(a->u.i); return plain_int(c, a->u.i);
    case P2_ARG_INTS:
    case P2_ARG_SYM_INTS: return int_list(c, a, out);
    case P2_ARG_FLOAT: *out = aot_arg_float(a->u.f); return AOT_OK;
    case P2_ARG_FLOATS: return float_list(c, a, out);
    case P2_ARG_BOOL: *out = aot_arg_bool(a->u.i != 0); return AOT_OK;
    case P2_ARG_BOOLS:
      *out = aot_arg_ints(a->u.ints, a->n);
      out->kind = AOT_ARG_BOOLS;
      return AOT_OK;
    case P2_ARG_STRING: *out = aot_arg_str(a->u.s); return AOT_OK;
    case P2_ARG_SYM_INT:
    case P2_ARG_SYM_BOOL:
    case P2_ARG_SYM_FLOAT: return symbolic(c, a, out);
    case P2_ARG_DTYPE: *out = aot_arg_dtype((int32_t)(a->u.i > 0 && a->u.i < 256 ? a->u.i : 0)); break;
    case P2_ARG_LAYOUT: *out = aot_arg_int_kind(AOT_ARG_LAYOUT, a->u.i); return AOT_OK;
    case P2_ARG_MEMORY_FORMAT: *out = aot_arg_int_kind(AOT_ARG_MEMORY_FORMAT, a->u.i); return AOT_OK;
    case P2_ARG_DEVICE:
      AOT_TRY(p2_device(c->b, &a->u.device, &device, &index));
      *out = aot_arg_device(device, index);
      return AOT_OK;
    case P2_ARG_GRAPH: {
      const p2_region_t *r = &c->b->regions[a->u.i];
      *out = aot_arg_int_kind(AOT_ARG_GRAPH,
                              c->b->regions[r->fate == P2_REGION_SKIP ? r->same_as : (uint32_t)a->u.i].graph.id);
      return AOT_OK;
    }
    case P2_ARG_OPERATOR: {
      aot_str_t name = a->u.s;
      if (p2_str_starts(name, "torch.ops.")) name.data += 10, name.size -= 10;
      *out = aot_arg_int_kind(AOT_ARG_OP, c->b->host->graph->op_find(c->b->prog, name).id);
      if ((uint32_t)out->u.i != AOT_NO_ID) return AOT_OK;
      return p2_node_bad(c->b, c->node, "import-pt2.unknown-operator", "the operator '%.*s' is not known",
                         P2_SHOW(name));
    }
    default: return misfit(c, a);
  }
  if (aot_dtype_size((int32_t)out->u.i)) return AOT_OK;
  return p2_node_bad(c->b, c->node, "import-pt2.dtype",
                     "argument '%.*s' is the dtype %s (%lld), which is not supported", P2_SHOW(c->slot->name),
                     p2_dtype_name(a->u.i), (long long)a->u.i);
}

/* ---- one argument into one slot ---- */

static aot_status_t to_float(converter_t *c, const p2_argument_t *a, aot_arg_t *out) {
  if (a->kind == P2_ARG_INT || a->kind == P2_ARG_BOOL) {
    *out = aot_arg_float((double)a->u.i);
    return AOT_OK;
  }
  return natural(c, a, out);
}

static aot_status_t to_list(converter_t *c, const p2_argument_t *a, aot_arg_t *out) {
  int32_t type = c->slot->type;
  if (type == AOT_STYPE_FLOAT && a->kind == P2_ARG_INTS) return float_list(c, a, out);
  if (type == AOT_STYPE_INT && a->kind == P2_ARG_INT) {
    AOT_TRY(plain_int(c, a->u.i));
    return repeat_int(c, a->u.i, out);
  }
  AOT_TRY(natural(c, a, out));
  if (type == AOT_STYPE_INT && out->kind == AOT_ARG_INT) return repeat_int(c, out->u.i, out);
  /* an empty list */
  if (type == AOT_STYPE_TENSOR && out->kind == AOT_ARG_INTS && out->n == 0) out->kind = AOT_ARG_VALUES;
  return AOT_OK;
}

static aot_status_t convert(converter_t *c, const p2_argument_t *a, aot_arg_t *out) {
  const aot_schema_arg_t *slot = c->slot;
  if (slot->type == AOT_STYPE_ANY) return natural(c, a, out);
  if (slot->flags & AOT_SARG_LIST) return to_list(c, a, out);
  if (slot->type == AOT_STYPE_FLOAT) return to_float(c, a, out);
  AOT_TRY(natural(c, a, out));
  if (slot->type == AOT_STYPE_INT && out->kind == AOT_ARG_BOOL) out->kind = AOT_ARG_INT;
  return AOT_OK;
}

/* ---- all arguments of a node ---- */

static const aot_schema_arg_t *variadic_of(const aot_op_desc_t *d) {
  return d->n_args && (d->args[d->n_args - 1].flags & AOT_SARG_VARIADIC) ? &d->args[d->n_args - 1] : NULL;
}

/* The operator whose arguments the variadic ones are, all by its own schema: run_with_rng_state(state, op, ..).
 * NULL: none. */
static const aot_op_desc_t *wrapped(const p2_builder_t *b, const aot_op_desc_t *d, const aot_arg_t *args,
                                    uint32_t fixed) {
  if (!variadic_of(d) || fixed == 0 || d->args[fixed - 1].type != AOT_STYPE_OP || args[fixed - 1].kind != AOT_ARG_OP)
    return NULL;
  return b->host->graph->op_desc(b->prog, (aot_op_t){(uint32_t)args[fixed - 1].u.i});
}

/* given[i]: the input for schema argument i, NULL: none. Inputs without a name go by position; those after the last
 * fixed argument belong to the variadic one, from *out_tail on. */
static aot_status_t match(p2_builder_t *b, const p2_node_t *n, const aot_op_desc_t *d, const p2_input_t **given,
                          uint32_t *out_tail) {
  uint32_t i, k, fixed = d->n_args - (variadic_of(d) ? 1 : 0);
  *out_tail = n->n_inputs;
  for (i = 0; i < n->n_inputs; i++) {
    aot_str_t name = n->inputs[i].name;
    if (i >= fixed && variadic_of(d) && (!name.size || (fixed > 0 && d->args[fixed - 1].type == AOT_STYPE_OP))) {
      *out_tail = i;
      return AOT_OK;
    }
    for (k = 0; name.size && k < fixed && !aot_str_eq(d->args[k].name, name); k++) {}
    if (!name.size) k = i;
    if (k >= fixed) {
      p2_node_bad(b, n, BAD_ARGUMENT,
                  name.size ? "the operator has no argument '%.*s'" : "the operator has fewer arguments",
                  P2_SHOW(name));
      p2_hint(b->env, "its schema here is %.*s", P2_SHOW(d->schema));
      return AOT_E_INVALID;
    }
    if (given[k]) return p2_node_bad(b, n, BAD_ARGUMENT, "argument '%.*s' is given twice", P2_SHOW(d->args[k].name));
    given[k] = &n->inputs[i];
  }
  return AOT_OK;
}

static aot_status_t missing(p2_builder_t *b, const p2_node_t *n, const aot_op_desc_t *d, uint32_t k, aot_arg_t *out) {
  const aot_schema_arg_t *slot = &d->args[k];
  *out = slot->flags & AOT_SARG_HAS_DEFAULT ? slot->preset : aot_arg_none();
  if ((slot->flags & (AOT_SARG_HAS_DEFAULT | AOT_SARG_OPTIONAL)) || slot->type == AOT_STYPE_GENERATOR) return AOT_OK;
  p2_node_bad(b, n, BAD_ARGUMENT, "argument '%.*s' is missing", P2_SHOW(slot->name));
  p2_hint(b->env, "its schema here is %.*s", P2_SHOW(d->schema));
  return AOT_E_INVALID;
}

/* The fixed arguments, then those of the operator among them. An operator in an operator in an operator is not read. */
static aot_status_t wrapped_args(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n, const aot_op_desc_t *inner,
                                 uint32_t fixed, uint32_t tail, aot_arg_t **out_args, uint32_t *out_n) {
  p2_node_t rest = *n;
  aot_arg_t *own, *both;
  uint32_t n_own;
  if (variadic_of(inner))
    return p2_node_bad(b, n, BAD_ARGUMENT, "%.*s runs an operator that runs an operator, which is not supported",
                       P2_SHOW(n->target));
  rest.inputs += tail;
  rest.n_inputs -= tail;
  AOT_TRY(p2_build_args(b, s, &rest, inner, &own, &n_own));
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, fixed + n_own, &both));
  memcpy(both, *out_args, fixed * sizeof *both);
  if (n_own) memcpy(both + fixed, own, n_own * sizeof *both);
  *out_args = both;
  *out_n = fixed + n_own;
  return AOT_OK;
}

aot_status_t p2_build_args(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n, const aot_op_desc_t *d,
                           aot_arg_t **out_args, uint32_t *out_n) {
  converter_t c = {b, s, n, NULL};
  const p2_input_t **given;
  uint32_t k, i, tail = 0, fixed = d->n_args - (variadic_of(d) ? 1 : 0);
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, d->n_args, &given));
  AOT_TRY(match(b, n, d, given, &tail));
  *out_n = fixed + (n->n_inputs - tail);
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, *out_n, out_args));
  for (k = 0; k < fixed; k++) {
    c.slot = &d->args[k];
    AOT_TRY(given[k] ? convert(&c, &given[k]->arg, &(*out_args)[k]) : missing(b, n, d, k, &(*out_args)[k]));
  }
  const aot_op_desc_t *inner = wrapped(b, d, *out_args, fixed);
  if (inner) return wrapped_args(b, s, n, inner, fixed, tail, out_args, out_n);
  c.slot = variadic_of(d);
  for (i = tail; i < n->n_inputs; i++) AOT_TRY(convert(&c, &n->inputs[i].arg, &(*out_args)[k++]));
  return AOT_OK;
}
