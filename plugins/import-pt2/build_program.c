/* build_program.c - graphs and nodes. See builder.h.
 *
 * A region is built when the first node that owns it is reached, so that symbols come into the program in the order of
 * execution; the loop over nodes keeps a stack of graphs for it. Nodes on symbolic sizes (sym_size, Python arithmetic)
 * become expressions and leave no node after, unless they bring in a new symbol (item). An autocast region is put in
 * line, its casts made explicit; so is an activation-checkpoint region, its nodes tagged. Linear in nodes and
 * arguments. */
#include "builder.h"
#include "kit/emit/emit.h"
#include <aot/inline.h>
#include <string.h>

#define INVOKE "torch.ops.higher_order.invoke_subgraph"

/* ---- what becomes of nested graphs ---- */

static const p2_argument_t *graph_argument(const p2_node_t *n) {
  uint32_t i;
  for (i = 0; i < n->n_inputs; i++)
    if (n->inputs[i].arg.kind == P2_ARG_GRAPH) return &n->inputs[i].arg;
  return NULL;
}

static void skip(p2_region_t *r, uint32_t same_as) {
  r->fate = P2_REGION_SKIP;
  r->same_as = same_as;
}

/* The body of invoke_subgraph is written out at every call; calls with one identifier have one body. */
static aot_status_t share_body(p2_builder_t *b, const p2_node_t *n, uint32_t body, p2_names_t *bodies) {
  const p2_graph_t *graphs = b->program->graphs;
  uint32_t first = body;
  aot_status_t status;
  if (n->n_inputs < 2 || n->inputs[1].arg.kind != P2_ARG_STRING) return AOT_OK;
  status = p2_names_add(b->env, bodies, n->inputs[1].arg.u.s, body, &first);
  if (status != AOT_E_EXISTS) return status;
  if (graphs[first].n_inputs != graphs[body].n_inputs || graphs[first].n_nodes != graphs[body].n_nodes ||
      graphs[first].n_outputs != graphs[body].n_outputs)
    return p2_node_bad(b, n, "import-pt2.bad-region", "two different bodies are named '%.*s'",
                       P2_SHOW(n->inputs[1].arg.u.s));
  skip(&b->regions[body], first);
  return AOT_OK;
}

static aot_status_t decide_fates(p2_builder_t *b) {
  const p2_program_t *p = b->program;
  p2_names_t bodies;
  uint32_t g, i, k;
  memset(&bodies, 0, sizeof bodies);
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, p->n_graphs, &b->regions));
  for (g = 0; g < p->n_graphs; g++)
    for (i = 0; i < p->graphs[g].n_nodes; i++) {
      const p2_node_t *n = &p->graphs[g].nodes[i];
      const p2_argument_t *owned = graph_argument(n);
      if (!owned) continue;
      if (b->regions[g].fate == P2_REGION_SKIP) {
        for (k = 0; k < n->n_inputs; k++)
          if (n->inputs[k].arg.kind == P2_ARG_GRAPH) skip(&b->regions[n->inputs[k].arg.u.i], 0);
      } else if (p2_is_inline(n)) {
        b->regions[owned->u.i].fate = P2_REGION_INLINE;
      } else if (p2_str_is(n->target, INVOKE)) {
        AOT_TRY(share_body(b, n, (uint32_t)owned->u.i, &bodies));
      }
    }
  return AOT_OK;
}

/* ---- results ---- */

static aot_status_t add_type(p2_builder_t *b, p2_types_t *l, const aot_type_t *t) {
  AOT_TRY(p2_grow(b->env, (void **)&l->at, l->n, &l->capacity, sizeof *l->at));
  l->at[l->n++] = *t;
  return AOT_OK;
}

static aot_status_t symbolic_value(p2_builder_t *b, const p2_graph_t *g, const p2_argument_t *a, p2_bound_t *out) {
  const p2_names_t *index = a->kind == P2_ARG_SYM_INT    ? &g->sym_int_index
                            : a->kind == P2_ARG_SYM_BOOL ? &g->sym_bool_index
                                                         : &g->sym_float_index;
  const p2_dim_t *table = a->kind == P2_ARG_SYM_INT    ? g->sym_ints
                          : a->kind == P2_ARG_SYM_BOOL ? g->sym_bools
                                                       : g->sym_floats;
  uint32_t i = p2_names_find(index, a->u.s);
  memset(out, 0, sizeof *out);
  if (i == P2_NO_ENTRY)
    return p2_node_bad(b, b->node, "import-pt2.no-meta", "the symbolic number '%.*s' has no value in its graph",
                       P2_SHOW(a->u.s));
  if (a->kind != P2_ARG_SYM_FLOAT) {
    out->kind = P2_BOUND_DIM;
    return p2_dim(b, &table[i], &out->i);
  }
  out->kind = table[i].text.size ? P2_BOUND_NONE : P2_BOUND_FLOAT; /* NONE: it stays a value of its own */
  if (out->kind == P2_BOUND_FLOAT) memcpy(&out->f, &table[i].value, sizeof out->f);
  return AOT_OK;
}

/* An offset that hangs on symbols is recorded where the traced tensor lay. What a region gives is elsewhere, and
 * so do its views. */
#define OFFSET_UNTOLD (-1)

static aot_status_t tensor_type(p2_builder_t *b, const p2_scope_t *s, aot_str_t name, int recorded, p2_types_t *out) {
  const uint32_t i = p2_names_find(&s->graph->meta_index, name);
  aot_type_t t;
  if (recorded || i == P2_NO_ENTRY || !s->graph->metas[i].offset.text.size) {
    AOT_TRY(p2_type_of_name(b, s->graph, name, &t));
  } else {
    p2_meta_t meta = s->graph->metas[i];
    memset(&meta.offset, 0, sizeof meta.offset);
    AOT_TRY(p2_type_of_meta(b, name, &meta, &t));
    t.offset = OFFSET_UNTOLD;
  }
  return add_type(b, out, &t);
}

/* recorded: with offsets that hang on symbols */
static aot_status_t result_type(p2_builder_t *b, const p2_scope_t *s, const p2_argument_t *a, int recorded,
                                p2_types_t *out) {
  p2_bound_t bound;
  aot_type_t t;
  uint32_t i;
  memset(&t, 0, sizeof t);
  switch (a->kind) {
    case P2_ARG_NONE: return add_type(b, out, &t);
    case P2_ARG_TENSOR: return tensor_type(b, s, a->u.s, recorded, out);
    case P2_ARG_TENSORS:
      for (i = 0; i < a->n; i++) AOT_TRY(tensor_type(b, s, a->u.names[i], recorded, out));
      return AOT_OK;
    case P2_ARG_SYM_INT:
    case P2_ARG_SYM_BOOL:
    case P2_ARG_SYM_FLOAT:
      AOT_TRY(symbolic_value(b, s->graph, a, &bound));
      t.kind = a->kind == P2_ARG_SYM_INT    ? AOT_TYPE_SYMINT
               : a->kind == P2_ARG_SYM_BOOL ? AOT_TYPE_SYMBOOL
                                            : AOT_TYPE_SYMFLOAT;
      t.expr = bound.kind == P2_BOUND_DIM ? bound.i : 0;
      return add_type(b, out, &t);
    default:
      return p2_node_bad(b, b->node, "import-pt2.bad-result", "a result is neither a tensor nor a symbolic number");
  }
}

/* Results have consecutive ids, lists flattened. */
static aot_status_t bind_results(p2_builder_t *b, p2_scope_t *s, const p2_node_t *n, aot_value_t first) {
  p2_bound_t bound;
  uint32_t i, k;
  for (i = 0; i < n->n_outputs; i++) {
    const p2_argument_t *a = &n->outputs[i];
    if (a->kind == P2_ARG_TENSOR) {
      AOT_TRY(p2_bind_value(b, s, a->u.s, first));
      AOT_TRY(b->host->edit->name_set(b->prog, first, a->u.s));
    } else if (a->kind == P2_ARG_TENSORS) {
      for (k = 0; k < a->n; k++, first.id++) {
        AOT_TRY(p2_bind_value(b, s, a->u.names[k], first));
        AOT_TRY(b->host->edit->name_set(b->prog, first, a->u.names[k]));
      }
      continue;
    } else if (a->kind != P2_ARG_NONE) {
      AOT_TRY(symbolic_value(b, s->graph, a, &bound));
      if (bound.kind == P2_BOUND_NONE) {
        bound.kind = P2_BOUND_VALUE;
        bound.i = first.id;
      }
      AOT_TRY(p2_bind(b, s, a->u.s, bound));
    }
    first.id++;
  }
  return AOT_OK;
}

/* A node on sizes: *out_done when its results are expressions of symbols that are known already. */
static aot_status_t as_expressions(p2_builder_t *b, p2_scope_t *s, const p2_node_t *n, int *out_done) {
  uint32_t i, n_symbols = b->n_symbols;
  p2_bound_t bound;
  *out_done = 0;
  for (i = 0; i < n->n_outputs; i++) {
    AOT_TRY(symbolic_value(b, s->graph, &n->outputs[i], &bound));
    if (bound.kind == P2_BOUND_NONE || b->n_symbols != n_symbols) return AOT_OK;
  }
  for (i = 0; i < n->n_outputs; i++) {
    AOT_TRY(symbolic_value(b, s->graph, &n->outputs[i], &bound));
    AOT_TRY(p2_bind(b, s, n->outputs[i].u.s, bound));
  }
  *out_done = 1;
  return AOT_OK;
}

/* ---- nodes ---- */

/* Offsets that are not known yet: none after a region, as the operator says, or as recorded. */
static aot_status_t resolve_offsets(p2_builder_t *b, const p2_scope_t *s, const p2_node_t *n, uint32_t flags,
                                    const p2_types_t *inferred, p2_types_t *types) {
  p2_types_t recorded = {0};
  uint32_t n_unknown = 0;
  for (uint32_t i = 0; i < types->n; i++) {
    if (types->at[i].offset != OFFSET_UNTOLD) continue;
    if (flags & AOT_OP_REGION) types->at[i].offset = 0;
    else if (inferred && i < inferred->n && inferred->at[i].kind == AOT_TYPE_TENSOR)
      types->at[i].offset = inferred->at[i].offset;
    else n_unknown++;
  }
  if (n_unknown == 0) return AOT_OK;
  for (uint32_t i = 0; i < n->n_outputs; i++) AOT_TRY(result_type(b, s, &n->outputs[i], 1, &recorded));
  for (uint32_t i = 0; i < types->n; i++)
    if (types->at[i].offset == OFFSET_UNTOLD) types->at[i].offset = recorded.at[i].offset;
  return AOT_OK;
}

static aot_status_t build_node(p2_builder_t *b, p2_scope_t *s, const p2_node_t *n, aot_graph_t g, int autocast) {
  const aot_host_t *h = b->host;
  const aot_op_desc_t *d;
  p2_types_t types, inferred;
  aot_node_spec_t spec;
  aot_node_info_t info;
  aot_arg_t *args = NULL;
  aot_node_t node;
  uint32_t i, n_args = 0, n_mistaken = b->n_mistaken;
  int known = 0;
  p2_node_t plain;
  if (p2_has_complex(n)) {
    AOT_TRY(p2_complex_numbers(b, s, n, g, &plain));
    n = &plain;
  }
  memset(&types, 0, sizeof types);
  memset(&inferred, 0, sizeof inferred);
  memset(&spec, 0, sizeof spec);
  spec.struct_size = sizeof spec;
  spec.op = h->graph->op_find(b->prog, p2_op_name(n));
  d = spec.op.id == AOT_NO_ID ? NULL : h->graph->op_desc(b->prog, spec.op);
  if (!d) return p2_node_bad(b, n, "import-pt2.unknown-operator", "the operator is not known");
  AOT_TRY(p2_build_args(b, s, n, d, &args, &n_args));
  AOT_TRY(p2_define_symbols(b, s, n, spec.op, args, n_args));
  for (i = 0; i < n->n_outputs; i++) AOT_TRY(result_type(b, s, &n->outputs[i], 0, &types));
  AOT_TRY(p2_origin(b, n, &spec.origin));
  if (autocast) AOT_TRY(p2_autocast(b, g, d, spec.origin, args, n_args, types.at, types.n));
  const uint32_t n_symbols = h->graph->n_symbols(b->prog);
  if (b->n_symbols == b->n_symbols_before) /* else only the archive knows the symbols that the node brings in */
    AOT_TRY(p2_infer(b, spec.op, args, n_args, &inferred, &known));
  AOT_TRY(resolve_offsets(b, s, n, d->flags, known ? &inferred : NULL, &types));
  AOT_TRY(p2_correct_types(b, n, args, n_args, &inferred, &types));
  if (known) AOT_TRY(p2_check_types(b, n, &inferred, types.at, types.n));
  if (h->graph->n_symbols(b->prog) != n_symbols) inferred.n = 0; /* its strides are in terms of symbols of its own */
  AOT_TRY(p2_lay_out(b, n, d->flags, args, n_args, &inferred, &types));
  spec.n_args = n_args;
  spec.args = args;
  spec.n_types = types.n;
  spec.types = types.at;
  spec.flags = b->tags.flags;
  spec.region_tag = b->tags.region;
  AOT_TRY(h->edit->node_create(b->prog, g, &spec, aot_no_node(), &node));
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  AOT_TRY(h->graph->node_info(b->prog, node, &info));
  p2_number_mistaken(b, n_mistaken, info.first_result);
  return bind_results(b, s, n, info.first_result);
}

/* ---- the loop: a stack of graphs being built ---- */

#define NOT_A_REGION AOT_NO_INDEX

typedef struct frame {
  p2_scope_t *scope;
  aot_graph_t target; /* where its nodes go */
  uint32_t next;      /* node */
  uint32_t region;    /* a region graph of its own: its record; else NOT_A_REGION */
  int autocast;
  const p2_node_t *owner; /* of a region in line */
  p2_tags_t tags;         /* of the nodes in it */
} frame_t;

typedef struct graph_builder {
  frame_t *frames;
  uint32_t n, capacity;
} graph_builder_t;

static aot_status_t push(p2_builder_t *b, graph_builder_t *w, frame_t f) {
  AOT_TRY(p2_grow(b->env, (void **)&w->frames, w->n, &w->capacity, sizeof *w->frames));
  w->frames[w->n++] = f;
  return AOT_OK;
}

/* ---- regions in line ---- */

/* The first of the two bools of wrap_with_autocast: enabled. */
static int turns_autocast_on(const p2_node_t *n) {
  uint32_t i;
  for (i = 0; i < n->n_inputs; i++)
    if (n->inputs[i].arg.kind == P2_ARG_BOOL) return n->inputs[i].arg.u.i != 0;
  return 1;
}

/* wrap_with_autocast(device, dtype, enabled, cache, graph, operands..), tag_activation_checkpoint(graph, operands..,
 * use_reentrant=..): operands bind to the body's inputs by position; what has a name is for torch.utils.checkpoint. */
static aot_status_t enter_in_line(p2_builder_t *b, graph_builder_t *w, const p2_node_t *n) {
  frame_t from = w->frames[w->n - 1], into = {NULL, from.target, 0, NOT_A_REGION, from.autocast, n, from.tags};
  const p2_argument_t *owned = graph_argument(n);
  uint32_t i, first = 0, end = n->n_inputs;
  if (!owned) return p2_node_bad(b, n, "import-pt2.bad-region", "the region has no graph");
  if (p2_str_is(n->target, P2_CHECKPOINT)) into.tags = p2_tags_of_checkpoint(b);
  else into.autocast = turns_autocast_on(n);
  while (&n->inputs[first++].arg != owned) {}
  while (end > first && n->inputs[end - 1].name.size) end--;
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, 1, &into.scope));
  into.scope->graph = &b->program->graphs[owned->u.i];
  if (end - first != into.scope->graph->n_inputs)
    return p2_node_bad(b, n, "import-pt2.bad-region", "the region takes %u operands, %u are given",
                       into.scope->graph->n_inputs, end - first);
  for (i = 0; i < into.scope->graph->n_inputs; i++) {
    const p2_argument_t *outer = &n->inputs[first + i].arg, *name = &into.scope->graph->inputs[i];
    p2_bound_t bound;
    if ((outer->kind != P2_ARG_TENSOR && outer->kind != P2_ARG_SYM_INT) || outer->kind != name->kind)
      return p2_node_bad(b, n, "import-pt2.bad-region", "operand %u of the region is neither a tensor nor a size", i);
    AOT_TRY(p2_lookup(b, from.scope, outer->u.s, &bound));
    AOT_TRY(p2_bind(b, into.scope, name->u.s, bound));
  }
  return push(b, w, into);
}

static aot_status_t leave_in_line(p2_builder_t *b, const frame_t *done, const frame_t *into) {
  const p2_graph_t *g = done->scope->graph;
  const p2_node_t *owner = done->owner;
  uint32_t i;
  b->node = owner;
  if (g->n_outputs != owner->n_outputs)
    return p2_node_bad(b, owner, "import-pt2.bad-region", "the region gives %u results, its node has %u", g->n_outputs,
                       owner->n_outputs);
  for (i = 0; i < g->n_outputs; i++) {
    p2_bound_t bound;
    if (g->outputs[i].kind == P2_ARG_NONE) continue;
    if ((g->outputs[i].kind != P2_ARG_TENSOR && g->outputs[i].kind != P2_ARG_SYM_INT) ||
        owner->outputs[i].kind != g->outputs[i].kind)
      return p2_node_bad(b, owner, "import-pt2.bad-region", "result %u of the region is neither a tensor nor a size",
                         i);
    AOT_TRY(p2_lookup(b, done->scope, g->outputs[i].u.s, &bound));
    AOT_TRY(p2_bind(b, into->scope, owner->outputs[i].u.s, bound));
  }
  return AOT_OK;
}

/* ---- regions with a graph of their own ---- */

static aot_status_t region_input(p2_builder_t *b, aot_graph_t g, p2_scope_t *s, uint32_t position) {
  const p2_argument_t *a = &s->graph->inputs[position];
  aot_value_t v;
  aot_type_t t;
  p2_bound_t bound;
  if (a->kind == P2_ARG_TENSOR) {
    AOT_TRY(p2_type_of_name(b, s->graph, a->u.s, &t));
    AOT_TRY(b->host->edit->input_add(b->prog, g, AOT_ROLE_REGION, position, &t, a->u.s, &v));
    return p2_bind_value(b, s, a->u.s, v);
  }
  if (a->kind != P2_ARG_SYM_INT)
    return p2_node_bad(b, b->node, "import-pt2.bad-region",
                       "input %u of the region '%.*s' is neither a tensor nor a size", position,
                       P2_SHOW(s->graph->name));
  AOT_TRY(symbolic_value(b, s->graph, a, &bound));
  memset(&t, 0, sizeof t);
  t.kind = AOT_TYPE_SYMINT;
  t.expr = bound.i;
  AOT_TRY(b->host->edit->input_add(b->prog, g, AOT_ROLE_REGION, position, &t, a->u.s, &v));
  return p2_bind(b, s, a->u.s, bound);
}

static aot_status_t region_output(p2_builder_t *b, aot_graph_t g, const p2_scope_t *s, const p2_argument_t *a,
                                  uint32_t *position) {
  uint32_t i, n = a->kind == P2_ARG_TENSORS ? a->n : 1;
  if (a->kind != P2_ARG_TENSOR && a->kind != P2_ARG_TENSORS && a->kind != P2_ARG_NONE)
    return p2_node_bad(b, NULL, "import-pt2.bad-region", "output %u of the region '%.*s' is no tensor", *position,
                       P2_SHOW(s->graph->name));
  for (i = 0; i < n; i++) {
    aot_str_t name = a->kind == P2_ARG_TENSORS ? a->u.names[i] : a->kind == P2_ARG_TENSOR ? a->u.s : p2_str("");
    aot_value_t v = aot_no_value();
    p2_bound_t bound;
    if (a->kind != P2_ARG_NONE) {
      AOT_TRY(p2_lookup(b, s, name, &bound));
      if (bound.kind == P2_BOUND_VALUE) v.id = (uint32_t)bound.i;
    }
    AOT_TRY(b->host->edit->output_add(b->prog, g, AOT_ROLE_REGION, (*position)++, v, name));
  }
  return AOT_OK;
}

/* Inputs of a region that runs once are the operands after the graphs, in order. */
static aot_status_t check_region_inputs(p2_builder_t *b, const p2_scope_t *outer, const frame_t *f,
                                        const p2_node_t *n) {
  const p2_graph_t *g = f->scope->graph;
  const aot_op_t op = b->host->graph->op_find(b->prog, p2_op_name(n));
  const aot_op_desc_t *d = op.id == AOT_NO_ID ? NULL : b->host->graph->op_desc(b->prog, op);
  uint32_t last = n->n_inputs, position = 0;
  if (!d || d->flags & AOT_OP_LOOP) return AOT_OK;
  for (uint32_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i].arg.kind == P2_ARG_GRAPH) last = i;
  for (uint32_t i = last + 1; i < n->n_inputs; i++) {
    const p2_argument_t *a = &n->inputs[i].arg;
    const uint32_t count =
        a->kind == P2_ARG_TENSORS ? a->n : a->kind != P2_ARG_STRING; /* an identifier binds nothing */
    for (uint32_t k = 0; k < count; k++, position++) {
      const aot_str_t name = a->kind == P2_ARG_TENSORS ? a->u.names[k] : a->u.s;
      const int is_tensor = a->kind == P2_ARG_TENSORS || a->kind == P2_ARG_TENSOR;
      aot_type_t input, operand;
      p2_bound_t outside, inside;
      if (position >= g->n_inputs || !is_tensor || g->inputs[position].kind != P2_ARG_TENSOR) continue;
      AOT_TRY(p2_lookup(b, outer, name, &outside));
      AOT_TRY(p2_lookup(b, f->scope, g->inputs[position].u.s, &inside));
      if (outside.kind != P2_BOUND_VALUE || inside.kind != P2_BOUND_VALUE) continue;
      AOT_TRY(b->host->graph->value_type(b->prog, (aot_value_t){(uint32_t)outside.i}, &operand));
      AOT_TRY(b->host->graph->value_type(b->prog, (aot_value_t){(uint32_t)inside.i}, &input));
      AOT_TRY(p2_check_region_input(b, position, &input, &operand));
    }
  }
  return AOT_OK;
}

/* The first region of the node that is not built yet; *out_any 0 when there is none. */
static aot_status_t enter_region(p2_builder_t *b, graph_builder_t *w, const p2_node_t *n, int *out_any) {
  frame_t f = {NULL, {AOT_NO_ID}, 0, NOT_A_REGION, 0, NULL, {0, 0}};
  uint32_t i;
  *out_any = 0;
  for (i = 0; i < n->n_inputs && f.region == NOT_A_REGION; i++)
    if (n->inputs[i].arg.kind == P2_ARG_GRAPH) {
      p2_region_t *r = &b->regions[n->inputs[i].arg.u.i];
      uint32_t index = r->fate == P2_REGION_SKIP ? r->same_as : (uint32_t)n->inputs[i].arg.u.i;
      if (b->regions[index].graph.id == AOT_NO_ID) f.region = index;
    }
  if (f.region == NOT_A_REGION) return AOT_OK;
  *out_any = 1;
  if (b->regions[f.region].building) return p2_node_bad(b, n, "import-pt2.bad-region", "the region contains itself");
  b->regions[f.region].building = 1;
  AOT_TRY(P2_NEW(b->env, P2_SCRATCH, 1, &f.scope));
  f.scope->graph = &b->program->graphs[f.region];
  AOT_TRY(b->host->edit->graph_create(b->prog, AOT_GRAPH_REGION, f.scope->graph->name, &f.target));
  for (i = 0; i < f.scope->graph->n_inputs; i++) AOT_TRY(region_input(b, f.target, f.scope, i));
  AOT_TRY(check_region_inputs(b, w->frames[w->n - 1].scope, &f, n));
  return push(b, w, f);
}

static aot_status_t leave_region(p2_builder_t *b, const frame_t *done) {
  const p2_graph_t *g = done->scope->graph;
  uint32_t i, position = 0;
  b->node = NULL;
  for (i = 0; i < g->n_outputs; i++) AOT_TRY(region_output(b, done->target, done->scope, &g->outputs[i], &position));
  b->regions[done->region].graph = done->target;
  return AOT_OK;
}

/* ---- the loop ---- */

static aot_status_t one_node(p2_builder_t *b, graph_builder_t *w) {
  frame_t *f = &w->frames[w->n - 1];
  const p2_node_t *n = &f->scope->graph->nodes[f->next];
  int done = 0;
  b->node = n;
  b->n_symbols_before = b->n_symbols;
  if (!p2_is_inline(n)) {
    AOT_TRY(enter_region(b, w, n, &done));
    if (done) return AOT_OK; /* the node's turn comes again */
  }
  f->next++;
  if (p2_is_assertion(n)) return p2_check_assertion(b, f->scope, n);
  if (p2_is_guarded(b, f->scope, n)) return AOT_OK;
  if (p2_is_inline(n)) return enter_in_line(b, w, n);
  AOT_TRY(p2_tags_of_node(b, n, f->tags, &b->tags));
  if (p2_is_symbolic(n)) AOT_TRY(as_expressions(b, f->scope, n, &done));
  return done ? AOT_OK : build_node(b, f->scope, n, f->target, f->autocast);
}

static aot_status_t build_graphs(p2_builder_t *b, aot_graph_t target, p2_scope_t *scope) {
  frame_t bottom = {scope, target, 0, NOT_A_REGION, 0, NULL, {0, 0}};
  graph_builder_t w;
  memset(&w, 0, sizeof w);
  AOT_TRY(push(b, &w, bottom));
  for (;;) {
    frame_t *f = &w.frames[w.n - 1];
    if (f->next < f->scope->graph->n_nodes) {
      AOT_TRY(one_node(b, &w));
    } else {
      w.n--;
      if (w.n == 0) break;
      AOT_TRY(f->owner ? leave_in_line(b, f, f - 1) : leave_region(b, f));
    }
    if (b->host->cancelled(b->host, b->ctx)) return AOT_E_CANCELLED;
  }
  b->node = NULL;
  return AOT_OK;
}

/* Gradients among the outputs: the archive was exported with its backward (torch.export's joint signature). */
static int has_gradients(const p2_program_t *p) {
  uint32_t i;
  for (i = 0; i < p->n_output_specs; i++)
    if (p->output_specs[i].kind == P2_OUT_GRADIENT || p->output_specs[i].kind == P2_OUT_INPUT_GRADIENT) return 1;
  return 0;
}

/* Guards first: they determines which dimensions are equal. Inputs next: they bring in the symbols, so that nodes on
 * sizes are known to need no node. */
aot_status_t p2_build(p2_builder_t *b) {
  const int joint = has_gradients(b->program);
  aot_graph_t g;
  p2_scope_t scope;
  memset(&scope, 0, sizeof scope);
  scope.graph = &b->program->graphs[0];
  AOT_TRY(decide_fates(b));
  AOT_TRY(p2_check_operators(b));
  AOT_TRY(p2_symbols_prepare(b));
  AOT_TRY(p2_build_guards(b));
  AOT_TRY(b->host->edit->graph_create(b->prog, joint ? AOT_GRAPH_JOINT : AOT_GRAPH_FORWARD,
                                      aot_str(joint ? "joint" : "forward"), &g));
  AOT_TRY(p2_build_inputs(b, g, &scope));
  AOT_TRY(build_graphs(b, g, &scope));
  return p2_build_outputs(b, g, &scope);
}
