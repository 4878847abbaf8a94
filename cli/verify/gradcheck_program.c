/* A program of one node of the model, its tensor operands as user inputs: floats in float64, sizes as they are in the
 * run, numbers that other nodes compute at their hints. */
#include <cli/verify/gradcheck.h>

#include <aot/inline.h>
#include <compiler/session_lifetime.h>
#include <ir/tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct building {
  const aoth_gradcheck_t *g;
  aoth_gradcheck_case_t *c;
  aot_prog_t *from, *to;
  aot_graph_t graph;
  aot_value_t *made; /* by operand of the case */
} building_t;

static int32_t widened(int32_t dtype) { return aot_dtype_is_float(dtype) ? AOT_F64 : dtype; }

static aot_status_t refuse(building_t *b, const char *why) {
  b->c->why = why;
  return AOT_E_UNIMPLEMENTED;
}

/* The operand's contents, in the one-node program's dtype. */
static aot_status_t read_operand(building_t *b, aoth_gradcheck_operand_t *o) {
  char key[32];
  snprintf(key, sizeof key, "output.%u", b->g->key[o->value.id]);
  const aoth_st_entry_t *e = aoth_st_find(b->g->values, key);
  if (!e) return refuse(b, "an operand's value is unknown: the run has no tensor for it");
  if (aot_dtype_is_complex(e->tensor.dtype)) return refuse(b, "an operand is complex");
  const aoth_tensor_t *t = &e->tensor;
  o->tensor = aoth_tensor_make(NULL, widened(t->dtype), t->rank, t->sizes);
  o->tensor.data = calloc(1, (size_t)o->tensor.nbytes + 8);
  if (!o->tensor.data) return AOT_E_EXHAUSTED;
  o->needs = b->g->needs[o->value.id];
  aoth_walk_t w;
  if (o->tensor.dtype == t->dtype) aoth_tensor_copy(&o->tensor, t);
  else
    for (aoth_walk_begin(&w, &o->tensor, t); w.left > 0; aoth_walk_next(&w))
      kit_element_store(AOT_F64, w.at[0], kit_element_load(t->dtype, w.at[1]));
  return AOT_OK;
}

/* Can the input have the strides of the model's type? They are known, and no two elements share memory. */
static int has_own_strides(const aot_type_t *t) {
  int64_t reach = 1;
  uint32_t done = 0; /* a bit a dimension, by ascending stride */
  if (!t->strides) return 0;
  for (int32_t n = 0; n < t->rank; n++) {
    int32_t least = -1;
    for (int32_t d = 0; d < t->rank; d++) {
      if (AOT_DIM_IS_SYM(t->sizes[d]) || AOT_DIM_IS_SYM(t->strides[d])) return 0;
      if (!(done >> d & 1) && (least < 0 || t->strides[d] < t->strides[least])) least = d;
    }
    done |= 1u << least;
    if (t->sizes[least] > 1 && t->strides[least] < reach) return 0;
    if (t->sizes[least] > 1) reach += (t->sizes[least] - 1) * t->strides[least];
  }
  return 1;
}

static aot_status_t add_input(building_t *b, uint32_t k) {
  aoth_gradcheck_operand_t *o = &b->c->operands[k];
  aot_type_t t;
  char name[24];
  AOT_TRY(aoth_graph_value_type(b->from, o->value, &t));
  if (t.encoding.id != AOT_NO_ID) return refuse(b, "an operand has a vendor's encoding");
  AOT_TRY(read_operand(b, o));
  snprintf(name, sizeof name, "x%u", k);
  const aot_str_t text = aot_str(name);
  t.dtype = o->tensor.dtype;
  t.flags = o->needs ? AOT_TYPE_REQUIRES_GRAD : 0;
  t.strides = has_own_strides(&t) ? t.strides : NULL;
  t.sizes = o->tensor.sizes;
  t.offset = 0;
  const aot_leaf_info_t leaf = {.struct_size = sizeof leaf,
                                .role = AOT_ROLE_USER_INPUT,
                                .flags = o->needs ? AOT_LEAF_REQUIRES_GRAD : 0,
                                .ordinal = k,
                                .n_names = 1,
                                .names = &text,
                                .type = t};
  aot_leaf_t id;
  AOT_TRY(aoth_edit_leaf_create(b->to, &leaf, &id));
  return aoth_edit_input_add(b->to, b->graph, AOT_ROLE_USER_INPUT, id.id, &t, text, &b->made[k]);
}

/* The input for a value of the model, made when it is first met. */
static aot_status_t operand(building_t *b, aot_value_t v, aot_value_t *out) {
  uint32_t k = 0;
  while (k < b->c->n_operands && b->c->operands[k].value.id != v.id) k++;
  if (k == b->c->n_operands) {
    b->c->operands[b->c->n_operands++].value = v;
    AOT_TRY(add_input(b, k));
  }
  *out = b->made[k];
  return AOT_OK;
}

static aot_status_t value_arg(building_t *b, aot_arg_t *a) {
  const aot_value_t v = {(uint32_t)a->u.i};
  aot_type_t t;
  AOT_TRY(aoth_graph_value_type(b->from, v, &t));
  if (t.kind == AOT_TYPE_SYMINT || t.kind == AOT_TYPE_SYMBOOL) {
    const int64_t number = aoth_graph_dim_hint(b->from, t.expr);
    *a = t.kind == AOT_TYPE_SYMINT ? aot_arg_int(number) : aot_arg_bool(number != 0);
    return AOT_OK;
  }
  if (t.kind != AOT_TYPE_TENSOR) return refuse(b, "an operand is no tensor");
  aot_value_t made;
  AOT_TRY(operand(b, v, &made));
  *a = aot_arg_value(made);
  return AOT_OK;
}

static aot_status_t values_arg(building_t *b, aot_arg_t *a) {
  uint32_t *ids = kit_arena_alloc(b->g->s->arena, sizeof *ids, (a->n + (size_t)1) * sizeof *ids);
  if (!ids) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < a->n; i++) {
    aot_value_t made = {AOT_NO_ID};
    aot_type_t t;
    const aot_value_t v = {a->u.ids[i]};
    if (v.id != AOT_NO_ID) {
      AOT_TRY(aoth_graph_value_type(b->from, v, &t));
      if (t.kind != AOT_TYPE_TENSOR) return refuse(b, "an operand is no tensor");
      AOT_TRY(operand(b, v, &made));
    }
    ids[i] = made.id;
  }
  a->u.ids = ids;
  return AOT_OK;
}

static aot_status_t ints_arg(building_t *b, aot_arg_t *a) {
  int64_t *own = kit_arena_copy(b->g->s->arena, sizeof *own, a->u.ints, a->n * sizeof *own);
  if (!own) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < a->n; i++)
    if (AOT_DIM_IS_SYM(own[i])) own[i] = aoth_graph_dim_hint(b->from, own[i]);
  a->u.ints = own;
  return AOT_OK;
}

static aot_status_t map_arg(building_t *b, aot_arg_t *a) {
  switch (a->kind) {
    case AOT_ARG_VALUE: return value_arg(b, a);
    case AOT_ARG_VALUES: return values_arg(b, a);
    case AOT_ARG_INTS: return a->n ? ints_arg(b, a) : AOT_OK;
    case AOT_ARG_INT:
      if (AOT_DIM_IS_SYM(a->u.i)) a->u.i = aoth_graph_dim_hint(b->from, a->u.i);
      return AOT_OK;
    case AOT_ARG_DTYPE: a->u.i = widened((int32_t)a->u.i); return AOT_OK;
    case AOT_ARG_GRAPH: return refuse(b, "it has sub-graphs");
    default: return AOT_OK;
  }
}

/* Rows that by convention get no gradient, or one divided by their frequency: the differences know no such thing. */
static void drop_convention(const aot_schema_arg_t *schema, aot_arg_t *a) {
  if (a->kind == AOT_ARG_INT && aot_str_eq(schema->name, aot_str("padding_idx"))) a->u.i = -1;
  if (a->kind == AOT_ARG_BOOL && aot_str_eq(schema->name, aot_str("scale_grad_by_freq"))) a->u.i = 0;
}

static aot_status_t add_node(building_t *b, const aot_node_info_t *info) {
  const aot_op_desc_t *op = aoth_graph_op_desc(b->from, info->op);
  aot_arg_t *args = kit_arena_alloc(b->g->s->arena, sizeof(int64_t), (info->n_args + (size_t)1) * sizeof *args);
  aot_node_info_t made = {.struct_size = sizeof made};
  aot_node_t node;
  uint32_t n_outputs = 0;
  if (!args) return AOT_E_EXHAUSTED;
  for (uint32_t i = 0; i < info->n_args; i++) {
    args[i] = info->args[i];
    AOT_TRY(map_arg(b, &args[i]));
    if (i < op->n_args) drop_convention(&op->args[i], &args[i]);
  }
  const aot_node_spec_t spec = {
      .struct_size = sizeof spec, .op = aoth_graph_op_find(b->to, op->name), .n_args = info->n_args, .args = args};
  AOT_TRY(aoth_edit_node_create(b->to, b->graph, &spec, aot_no_node(), &node));
  AOT_TRY(aoth_graph_node_info(b->to, node, &made));
  for (uint32_t r = 0; r < made.n_results; r++) {
    const aot_value_t v = {info->first_result.id + r}, own = {made.first_result.id + r};
    if (!b->g->needs[v.id] || !b->g->used[v.id]) continue;
    AOT_TRY(aoth_edit_output_add(b->to, b->graph, AOT_ROLE_USER_OUTPUT, n_outputs++, own, (aot_str_t){0}));
  }
  return n_outputs ? AOT_OK : refuse(b, "none of its results is used");
}

aot_status_t aoth_gradcheck_program(const aoth_gradcheck_t *g, aot_node_t node, aoth_gradcheck_case_t *c) {
  aoth_session_t *s = g->s;
  const aoth_model_t none = {.file = {.struct_size = sizeof none.file, .path = AOT_STR_INIT("one node")}};
  aot_node_info_t info = {.struct_size = sizeof info};
  building_t b = {.g = g, .c = c, .from = s->now.prog};
  const uint32_t effects = AOT_OP_EFFECT | AOT_OP_COLLECTIVE;
  AOT_TRY(aoth_graph_node_info(b.from, node, &info));
  if (aoth_graph_op_desc(b.from, info.op)->flags & effects)
    return refuse(&b, "it has effects, or other ranks take part");
  c->operands = calloc(info.n_operands + (size_t)1, sizeof *c->operands);
  b.made = calloc(info.n_operands + (size_t)1, sizeof *b.made);
  if (!c->operands || !b.made) return AOT_E_EXHAUSTED;
  s->now.prog = NULL; /* the model's stays: this process ends soon */
  AOT_TRY(aoth_session_new_program(s, &none));
  b.to = s->now.prog;
  AOT_TRY(aoth_edit_graph_create(b.to, AOT_GRAPH_FORWARD, aot_str("main"), &b.graph));
  AOT_TRY(add_node(&b, &info));
  const aoth_properties_t properties = {.known = AOTH_PROP_IMPORTED | AOTH_PROP_FUNCTIONAL};
  AOT_TRY(aoth_prog_set_properties(b.to, properties));
  return aoth_verify(b.to, properties.known);
}
