/* Editing nodes: the node functions of <aot/edit.h>.
 *
 * Each edit runs in three steps: check everything, get all memory, then change and record; a failing edit changes
 * nothing (shape expressions and interned types apart, which mean nothing until they are used). Bodies of nodes
 * (arguments and operands) are in the store's arena; a replaced body stays there for undo. Create and erase cost
 * O(arguments). */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/ops_store.h>
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>

#define FEW 32

typedef struct type_list { /* result types being gathered */
  aot_prog_t *prog;
  uint32_t *at, n, capacity;
  uint32_t few[FEW];
} type_list_t;

static aot_status_t type_list_room(type_list_t *l) {
  if (l->n < l->capacity) return AOT_OK;
  AOT_ASSERT(l->n == l->capacity && (l->at == l->few) == (l->capacity == FEW));
  uint32_t *grown = malloc((size_t)l->capacity * 2 * sizeof *grown);
  if (!grown) return aoth_no_memory(l->prog, "result types", l->capacity * 8u);
  memcpy(grown, l->at, l->n * sizeof *grown);
  if (l->at != l->few) free(l->at);
  l->at = grown;
  l->capacity *= 2;
  return AOT_OK;
}

static aot_status_t type_list_add(type_list_t *l, const aot_type_t *type) {
  AOT_TRY(type_list_room(l));
  AOT_TRY(aoth_type_intern(l->prog, type, &l->at[l->n]));
  l->n++;
  return AOT_OK;
}

/* A type of the program's that undo may have left without what it names. */
static aot_status_t type_list_number(type_list_t *l, uint32_t number) {
  AOT_TRY(type_list_room(l));
  if (number == NONE || number >= l->prog->types.n || !aoth_type_is_live(l->prog, &l->prog->types.at[number]))
    return aoth_diagnose(l->prog, AOT_E_RANGE, "ir.bad-type", "there is no type %u", number);
  l->at[l->n++] = number;
  return AOT_OK;
}

static aot_status_t type_list_put(const aot_type_sink_t *sink, const aot_type_t *type) {
  return type_list_add(sink->head.self, type);
}

static void type_list_init(type_list_t *l, aot_prog_t *p) {
  l->prog = p;
  l->at = l->few;
  l->n = 0;
  l->capacity = FEW;
}

static void type_list_deinit(type_list_t *l) {
  if (l->at != l->few) free(l->at);
}

static aot_status_t check_count(aot_prog_t *p, const aot_op_desc_t *d, uint32_t n) {
  uint32_t lists = 0;
  for (uint32_t i = 0; i < d->n_results; i++)
    lists += (d->results[i].flags & (AOT_SARG_LIST | AOT_SARG_VARIADIC)) || d->results[i].type == AOT_STYPE_ANY;
  if (lists ? n + lists >= d->n_results : n == d->n_results) return AOT_OK;
  return aoth_diagnose(p, AOT_E_INVALID, "ir.result-count", "%.*s has %s%u results, %u types were given or inferred",
                       STR_ARGS(d->name), lists ? "at least " : "", d->n_results - lists, n);
}

static aot_status_t result_types(aot_prog_t *p, const aot_op_desc_t *d, const aot_node_spec_t *s, const aot_arg_t *args,
                                 uint32_t n_args, type_list_t *out) {
  if (s->n_types) {
    for (uint32_t i = 0; i < s->n_types; i++) AOT_TRY(type_list_add(out, &s->types[i]));
  } else if (d->n_results) {
    aot_type_sink_t sink = {.head = {.struct_size = (uint32_t)sizeof sink, .self = out}, .put = type_list_put};
    const uint32_t n_told = p->ctx->n_diags;
    const aot_status_t status = aoth_infer_complete(p, s->op, args, n_args, &sink);
    if (status == AOT_E_UNIMPLEMENTED && p->ctx->n_diags == n_told)
      return aoth_diagnose(p, status, "ir.no-inference", "the opset of %.*s infers no types: give result types",
                           STR_ARGS(d->name));
    AOT_TRY(status);
  }
  return check_count(p, d, out->n);
}

/* Operands must be values of the graph that the node goes into. */
static aot_status_t check_scope(aot_prog_t *p, uint32_t graph, const aot_op_desc_t *d, const aot_arg_t *args,
                                uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t one = (uint32_t)args[i].u.i;
    const uint32_t *ids = args[i].kind == AOT_ARG_VALUES ? args[i].u.ids : &one;
    for (uint32_t k = 0; k < aoth_arg_n_operands(&args[i]); k++)
      if (ids[k] != NONE && p->values.at[ids[k]].graph != graph)
        return aoth_complain_arg(p, i, AOT_E_INVALID, "ir.other-graph",
                                 "argument %u of %.*s is value %u of graph %u; the node is in graph %u", i,
                                 STR_ARGS(d->name), ids[k], p->values.at[ids[k]].graph, graph);
  }
  return AOT_OK;
}

/* Copy what an argument points to into the store; VALUES go to *operands, which moves on. */
static int store_arg(aot_prog_t *p, aot_arg_t *a, uint32_t **operands) {
  switch (a->kind) {
    case AOT_ARG_VALUE: *(*operands)++ = (uint32_t)a->u.i; return 1;
    case AOT_ARG_VALUES:
      if (a->n) memcpy(*operands, a->u.ids, a->n * sizeof **operands);
      a->u.ids = *operands;
      *operands += a->n;
      return 1;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: a->u.ints = aoth_ints_intern(p, a->u.ints, a->n); return a->u.ints != NULL;
    case AOT_ARG_FLOATS:
      a->u.floats = kit_arena_copy(p->store, 8, a->u.floats, a->n * sizeof(double));
      return a->u.floats != NULL;
    case AOT_ARG_STR: a->u.chars = kit_arena_text(p->store, a->u.chars, a->n); return a->u.chars != NULL;
    default: return 1;
  }
}

/* Arguments and operands in the arena, and slots for the operands, as members of *r. Nothing is linked. */
static aot_status_t make_body(aot_prog_t *p, uint32_t node, const aot_arg_t *args, uint32_t n_args,
                              aoth_node_row_t *r) {
  uint64_t n_operands = 0;
  for (uint32_t i = 0; i < n_args; i++) n_operands += aoth_arg_n_operands(&args[i]);
  size_t nbytes = n_args * sizeof *args + (size_t)n_operands * sizeof(uint32_t);
  char *body = kit_arena_alloc(p->store, 8, nbytes);
  if (!body || !ROWS_ROOM(p->slots, n_operands)) return aoth_no_memory(p, "a node", nbytes);
  r->args = (aot_arg_t *)(void *)body;
  r->operands = (uint32_t *)(void *)(body + n_args * sizeof *args);
  r->n_args = n_args;
  r->n_operands = (uint32_t)n_operands;
  r->slot_begin = p->slots.n;
  if (n_args) memcpy(r->args, args, n_args * sizeof *args);
  uint32_t *operands = r->operands;
  for (uint32_t i = 0; i < n_args; i++)
    if (!store_arg(p, &r->args[i], &operands)) return aoth_no_memory(p, "arguments of a node", nbytes);
  AOT_ASSERT(operands == r->operands + r->n_operands);
  for (uint32_t i = 0, k = 0; i < n_args; i++)
    for (uint32_t end = k + aoth_arg_n_operands(&args[i]); k < end; k++) {
      aoth_slot_row_t slot = {.owner = node, .operand = k, .arg = i, .prev = NONE, .next = NONE};
      p->slots.at[r->slot_begin + k] = slot;
    }
  return AOT_OK;
}

static aot_status_t check_spec(aot_prog_t *p, aot_graph_t g, const aot_node_spec_t *s, aot_node_t before) {
  AOT_TRY(aoth_need_graph(p, g));
  if (!aoth_ops_desc(p->ops, s->op)) return aoth_no_op(p, s->op);
  if (s->origin.id != NONE && s->origin.id >= p->origins.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "there is no origin %u; %u were made", s->origin.id,
                         p->origins.n - 1);
  if ((s->n_args && !s->args) || (s->n_types && !s->types))
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-spec", "%u arguments and %u types, but a pointer to them is NULL",
                         s->n_args, s->n_types);
  if (before.id == NONE) return AOT_OK;
  AOT_TRY(aoth_need_node(p, before));
  if (p->nodes.at[before.id].graph != g.id)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.other-graph", "node %u, before which to insert, is in graph %u, not %u",
                         before.id, p->nodes.at[before.id].graph, g.id);
  return AOT_OK;
}

static uint32_t origin_of_spec(const aot_prog_t *p, const aot_node_spec_t *s, uint32_t before) {
  return s->origin.id == NONE && before != NONE ? p->nodes.at[before].origin : s->origin.id;
}

static aot_status_t insert_node(aot_prog_t *p, aot_graph_t g, const aot_node_spec_t *s, const aot_arg_t *args,
                                uint32_t n_args, const type_list_t *types, uint32_t before, aot_node_t *out) {
  uint32_t id = p->nodes.n;
  aoth_node_row_t r = {
      .op = s->op.id,
      .graph = g.id,
      .flags = s->flags,
      .region_tag = s->region_tag,
      .origin = origin_of_spec(p, s, before),
      .first_result = p->values.n,
      .n_results = types->n,
      .alive = 1,
  };
  if (!ROWS_ROOM(p->nodes, 1) || !ROWS_ROOM(p->values, types->n)) return aoth_no_memory(p, "a node", sizeof r);
  AOT_TRY(make_body(p, id, args, n_args, &r));
  AOT_TRY(aoth_edit_begin(p));
  /* listeners edit nothing */
  AOT_ASSERT(id == p->nodes.n && r.slot_begin == p->slots.n && r.first_result == p->values.n);
  p->nodes.at[p->nodes.n++] = r;
  p->slots.n += r.n_operands;
  for (uint32_t i = 0; i < types->n; i++) {
    aoth_value_row_t v = {
        .type = types->at[i], .def = id, .graph = g.id, .index = i, .first_use = NONE, .last_use = NONE};
    p->values.at[p->values.n++] = v;
  }
  aoth_node_link(p, id, before);
  aoth_node_use(p, id);
  aoth_node_refs(p, r.args, r.n_args, 1);
  aoth_edit_record(p, EDIT_NODE_CREATE, id, s->n_types != 0, 0, 0, 0, NULL);
  out->id = id;
  touch(p, id);
  AOT_ASSERT(p->nodes.at[id].next == before && p->nodes.n <= p->nodes.capacity && p->values.n <= p->values.capacity);
  return AOT_OK;
}

static aot_status_t create_with(aot_prog_t *p, aot_graph_t g, const aot_node_spec_t *s, aot_node_t before,
                                aot_arg_t *args, aot_node_t *out) {
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, s->op);
  uint32_t n_args = aoth_args_full_count(d, s->n_args);
  type_list_t types;
  AOT_ASSERT(d && n_args >= s->n_args);
  type_list_init(&types, p);
  aoth_node_row_t making = {.op = s->op.id, .graph = g.id, .origin = origin_of_spec(p, s, before.id), .args = args};
  const aoth_node_row_t *outer = p->making;
  p->making = &making;
  aot_status_t status = aoth_args_complete(p, d, s->args, s->n_args, args);
  if (status == AOT_OK) making.n_args = n_args;
  if (status == AOT_OK) status = check_scope(p, g.id, d, args, n_args);
  if (status == AOT_OK) status = result_types(p, d, s, args, n_args, &types);
  AOT_ASSERT(p->making == &making); /* nodes that the opset made meanwhile are done */
  p->making = outer;
  if (status == AOT_OK) status = insert_node(p, g, s, args, n_args, &types, before.id, out);
  type_list_deinit(&types);
  return status;
}

/* All of them, in the form in which a node has them. */
static aot_status_t check_complete(aot_prog_t *p, const aot_op_desc_t *d, const aot_node_spec_t *s) {
  uint32_t i = 0;
  while (i < s->n_args && aoth_schema_arg(d, i) && !aoth_arg_misfit(p, aoth_schema_arg(d, i), &s->args[i])) i++;
  if (i == s->n_args && i >= aoth_args_full_count(d, 0)) return AOT_OK;
  return aoth_complain_arg(p, i, AOT_E_INVALID, "ir.bad-argument",
                           "argument %u of %.*s is not one that a node can have", i, STR_ARGS(d->name));
}

aot_status_t aoth_node_make_again(aot_prog_t *p, uint32_t graph, const aoth_made_node_t *made, aot_node_t *out) {
  aot_node_spec_t s = made->spec;
  const aot_graph_t g = {graph};
  const aot_node_t before = {made->before};
  type_list_t types;
  AOT_TRY(check_spec(p, g, &s, before));
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, s.op);
  AOT_TRY(check_complete(p, d, &s));
  AOT_TRY(check_scope(p, graph, d, s.args, s.n_args));
  type_list_init(&types, p);
  aot_status_t status = AOT_OK;
  for (uint32_t i = 0; i < made->n_types && status == AOT_OK; i++) status = type_list_number(&types, made->types[i]);
  for (uint32_t i = 0; i < s.n_types && status == AOT_OK; i++) status = type_list_add(&types, &s.types[i]);
  s.n_types = made->is_typed;
  if (status == AOT_OK) status = check_count(p, d, types.n);
  if (status == AOT_OK) status = insert_node(p, g, &s, s.args, s.n_args, &types, before.id, out);
  type_list_deinit(&types);
  return status;
}

aot_status_t aoth_edit_node_create(aot_prog_t *p, aot_graph_t g, const aot_node_spec_t *spec, aot_node_t before,
                                   aot_node_t *out) {
  aot_node_spec_t s;
  aot_arg_t few[FEW];
  if (aot_import(&s, sizeof s, spec) != AOT_OK)
    return aoth_diagnose(p, AOT_E_TOO_NEW, "ir.too-new", "a node specification is made for a newer host");
  AOT_TRY(check_spec(p, g, &s, before));
  uint32_t n_args = aoth_args_full_count(aoth_ops_desc(p->ops, s.op), s.n_args);
  if (n_args <= FEW) return create_with(p, g, &s, before, few, out);
  aot_arg_t *many = malloc(n_args * sizeof *many);
  if (!many) return aoth_no_memory(p, "arguments of a node", n_args * sizeof *many);
  aot_status_t status = create_with(p, g, &s, before, many, out);
  free(many);
  return status;
}

aot_status_t aoth_edit_node_erase(aot_prog_t *p, aot_node_t n) {
  AOT_TRY(aoth_need_node(p, n));
  const aoth_node_row_t *r = &p->nodes.at[n.id];
  for (uint32_t i = 0; i < r->n_results; i++) {
    const aoth_value_row_t *v = &p->values.at[r->first_result + i];
    if (!v->n_uses) continue;
    aoth_report_node(p, n, AOT_SEVERITY_ERROR, "ir.still-used", "replace or erase its uses first",
                     "node cannot be erased: its result %u still has %u uses", i, v->n_uses);
    return AOT_E_PRECONDITION;
  }
  AOT_TRY(aoth_edit_begin(p));
  aoth_node_unuse(p, n.id);
  aoth_node_refs(p, r->args, r->n_args, -1);
  aoth_node_unlink(p, n.id);
  aoth_node_alive(p, n.id, 0);
  aoth_edit_record(p, EDIT_NODE_ERASE, n.id, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

/* An argument as if it alone held this operand, to check whether it fits. */
static aot_arg_t operand_arg(const aoth_node_row_t *r, uint32_t arg, const uint32_t *id) {
  aot_arg_t a = aot_arg_none();
  a.kind = r->args[arg].kind;
  if (a.kind == AOT_ARG_VALUE) {
    a.u.i = (int64_t)*id;
  } else {
    a.n = 1;
    a.u.ids = id;
  }
  return a;
}

aot_status_t aoth_edit_operand_set(aot_prog_t *p, aot_node_t n, uint32_t operand, aot_value_t v) {
  AOT_TRY(aoth_need_node(p, n));
  aoth_node_row_t *r = &p->nodes.at[n.id];
  aot_op_t op = {r->op};
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, op);
  if (operand >= r->n_operands)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "%.*s (node %u) has %u operands, there is no operand %u",
                         STR_ARGS(d->name), n.id, r->n_operands, operand);
  uint32_t slot = r->slot_begin + operand, arg = p->slots.at[slot].arg;
  AOT_ASSERT(p->slots.at[slot].owner == n.id && p->slots.at[slot].operand == operand && arg < r->n_args);
  if (v.id != NONE) AOT_TRY(aoth_need_value(p, v));
  aot_arg_t a = operand_arg(r, arg, &v.id);
  if ((v.id == NONE && a.kind == AOT_ARG_VALUE) || aoth_arg_misfit(p, aoth_schema_arg(d, arg), &a))
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-argument", "operand %u of %.*s (node %u) cannot be %s %u", operand,
                         STR_ARGS(d->name), n.id, v.id == NONE ? "absent:" : "value", v.id);
  AOT_TRY(check_scope(p, r->graph, d, &a, 1));
  uint32_t old = r->operands[operand];
  if (old == v.id) return AOT_OK;
  AOT_TRY(aoth_edit_begin(p));
  aoth_edit_record(p, EDIT_OPERAND_SET, n.id, operand, old, p->slots.at[slot].prev, p->slots.at[slot].next, NULL);
  if (old != NONE) aoth_use_unlink(p, slot, old);
  aoth_slot_store(p, slot, v.id);
  if (v.id != NONE) aoth_use_append(p, slot, v.id);
  return AOT_OK;
}

/* The general case: the node gets a new body; the old one is stored in a copy of the row. */
static aot_status_t replace_body(aot_prog_t *p, aot_node_t n, uint32_t arg, const aot_arg_t *a) {
  aoth_node_row_t *r = &p->nodes.at[n.id];
  const aoth_node_row_t *old = kit_arena_copy(p->store, 8, r, sizeof *r);
  aot_arg_t *args = malloc((r->n_args + 1) * sizeof *args);
  if (!old || !args) {
    free(args);
    return aoth_no_memory(p, "arguments of a node", r->n_args * sizeof *args);
  }
  memcpy(args, r->args, r->n_args * sizeof *args);
  args[arg] = *a;
  aoth_node_row_t fresh = *r;
  aot_status_t status = make_body(p, n.id, args, r->n_args, &fresh);
  free(args);
  AOT_TRY(status);
  AOT_TRY(aoth_edit_begin(p));
  AOT_ASSERT(r == &p->nodes.at[n.id] && fresh.slot_begin == p->slots.n);
  aoth_node_unuse(p, n.id);
  aoth_node_refs(p, old->args, old->n_args, -1);
  *r = fresh;
  p->slots.n += fresh.n_operands;
  aoth_node_use(p, n.id);
  aoth_node_refs(p, fresh.args, fresh.n_args, 1);
  aoth_edit_record(p, EDIT_ARG_SET, n.id, arg, 1, 0, 0, old);
  return AOT_OK;
}

/* No operand before or after, no graph: only the attribute changes. */
static aot_status_t replace_attribute(aot_prog_t *p, aot_node_t n, uint32_t arg, const aot_arg_t *a) {
  aot_arg_t fresh = *a, *slot = &p->nodes.at[n.id].args[arg];
  AOT_ASSERT(!aoth_arg_n_operands(slot) && !aoth_arg_n_operands(a));
  const aot_arg_t *old = kit_arena_copy(p->store, 8, slot, sizeof *slot);
  if (!old || !store_arg(p, &fresh, NULL)) return aoth_no_memory(p, "an argument", sizeof fresh);
  AOT_TRY(aoth_edit_begin(p));
  *slot = fresh;
  aoth_edit_record(p, EDIT_ARG_SET, n.id, arg, 0, 0, 0, old);
  return AOT_OK;
}

static int is_attribute(const aot_arg_t *a) {
  return a->kind != AOT_ARG_VALUE && a->kind != AOT_ARG_VALUES && a->kind != AOT_ARG_GRAPH;
}

aot_status_t aoth_edit_arg_set(aot_prog_t *p, aot_node_t n, uint32_t arg, const aot_arg_t *a) {
  AOT_TRY(aoth_need_node(p, n));
  const aoth_node_row_t *r = &p->nodes.at[n.id];
  aot_op_t op = {r->op};
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, op);
  if (arg >= r->n_args)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "%.*s (node %u) has %u arguments, there is no argument %u",
                         STR_ARGS(d->name), n.id, r->n_args, arg);
  aot_arg_t value = *a;
  AOT_TRY(aoth_arg_accept(p, d, arg, &value));
  AOT_TRY(check_scope(p, r->graph, d, &value, 1));
  if (aoth_arg_same(&r->args[arg], &value)) return AOT_OK;
  return is_attribute(&r->args[arg]) && is_attribute(&value) ? replace_attribute(p, n, arg, &value)
                                                             : replace_body(p, n, arg, &value);
}

aot_status_t aoth_edit_flags_set(aot_prog_t *p, aot_node_t n, uint32_t flags) {
  AOT_TRY(aoth_need_node(p, n));
  if (p->nodes.at[n.id].flags == flags) return AOT_OK;
  AOT_TRY(aoth_edit_begin(p));
  aoth_edit_record(p, EDIT_FLAGS_SET, n.id, p->nodes.at[n.id].flags, 0, 0, 0, NULL);
  p->nodes.at[n.id].flags = flags;
  return AOT_OK;
}

aot_status_t aoth_edit_note(aot_prog_t *p, aot_node_t n, aot_str_t text) {
  AOT_TRY(aoth_need_node(p, n));
  if (!p->has_journal) return AOT_OK;
  const char *copy = kit_arena_text(p->store, text.data, (size_t)text.size);
  if (!copy || !ROWS_ROOM(p->edits, 1)) return aoth_no_memory(p, "a note", text.size);
  aoth_edit_record(p, EDIT_NOTE, n.id, 0, 0, 0, 0, copy);
  return AOT_OK;
}
