/* Applies entry rules: replaces duplicate inputs and makes members of a base as_strided views of it. */
#include "entry.h"

#include "rewriting.h"
#include "same_layout.h"
#include "schema_marks.h"
#include <aot/inline.h>
#include <string.h>

/* A value whose type is another than at tracing. */
typedef struct moved {
  uint8_t is;
  int64_t by; /* its storage begins so many elements earlier than then */
} moved_t;

typedef struct entry_state {
  const aot_host_t *host;
  aot_ctx_t *ctx;
  aot_prog_t *prog;
  aot_graph_t graph;
  uint32_t n_leaves;
  uint32_t *port;    /* by leaf: its value as an input of the graph, or AOT_NO_ID */
  uint32_t *made;    /* by leaf with an entry rule: what represents it now */
  aot_type_t *types; /* scratch of one node */
  uint32_t n_types, type_capacity;
  moved_t *moved; /* by value */
} entry_state_t;

static void *room(entry_state_t *e, size_t n, size_t size) {
  return e->host->alloc(e->host, e->ctx, AOT_ARENA_SCRATCH, 16, (uint64_t)(n + 1) * size);
}

static aot_status_t type_of(const entry_state_t *e, uint32_t value, aot_type_t *out) {
  return e->host->graph->value_type(e->prog, (aot_value_t){value}, out);
}

static aot_status_t leaf_of(const entry_state_t *e, uint32_t leaf, aot_leaf_info_t *out) {
  *out = (aot_leaf_info_t){.struct_size = sizeof *out};
  return e->host->graph->leaf_info(e->prog, (aot_leaf_t){leaf}, out);
}

/* The leaf as an input of the graph, which it becomes if it is none. */
static aot_status_t input_of(entry_state_t *e, uint32_t leaf) {
  aot_leaf_info_t info;
  aot_value_t value;
  if (e->port[leaf] != AOT_NO_ID) return AOT_OK;
  AOT_TRY(leaf_of(e, leaf, &info));
  AOT_TRY(e->host->edit->input_add(e->prog, e->graph, info.role, leaf, &info.type,
                                   info.n_names ? info.names[0] : aot_str(""), &value));
  e->port[leaf] = value.id;
  return AOT_OK;
}

static aot_status_t call(entry_state_t *e, const char *op, const aot_arg_t *args, uint32_t n_args, uint32_t *out) {
  const aot_node_t first = e->host->graph->first(e->prog, e->graph);
  em_t emitter = fz_emitter(e->host, e->ctx, e->prog, e->graph, first, "an input that overlaps another");
  *out = em_value(&emitter, em_call(&emitter, op, n_args, args)).id;
  return emitter.status;
}

/* ---- rules ---- */

/* as_strided of the base; of the detached base, for a leaf that requires no gradient. Nodes are put before the first,
 * so the later one is made first. */
static aot_status_t make_view(entry_state_t *e, const aot_rule_t *r) {
  aot_leaf_info_t leaf, base;
  uint32_t detached;
  AOT_TRY(leaf_of(e, r->a, &leaf));
  AOT_TRY(leaf_of(e, r->b, &base));
  AOT_TRY(input_of(e, r->b));
  const aot_arg_t args[4] = {aot_arg_value((aot_value_t){e->port[r->b]}), aot_arg_ints(r->sizes, (uint32_t)r->rank),
                             aot_arg_ints(r->strides, (uint32_t)r->rank), aot_arg_int(r->offset)};
  AOT_TRY(call(e, "aten.as_strided.default", args, 4, &e->made[r->a]));
  if (!(base.flags & ~leaf.flags & AOT_LEAF_REQUIRES_GRAD)) return AOT_OK;
  AOT_TRY(call(e, "aten.detach.default", args, 1, &detached));
  aot_node_t view = e->host->graph->value_def(e->prog, (aot_value_t){e->made[r->a]});
  return e->host->edit->operand_set(e->prog, view, 0, (aot_value_t){detached});
}

static aot_status_t make_same(entry_state_t *e, const aot_rule_t *r) {
  if (e->made[r->b] == AOT_NO_ID) AOT_TRY(input_of(e, r->b));
  e->made[r->a] = e->made[r->b] != AOT_NO_ID ? e->made[r->b] : e->port[r->b];
  return AOT_OK;
}

static aot_status_t follow_rules(entry_state_t *e, int32_t kind, fz_entries_t *out) {
  uint32_t n = e->host->graph->n_rules(e->prog);
  for (uint32_t i = 0; i < n; i++) {
    aot_rule_t r;
    AOT_TRY(e->host->graph->rule(e->prog, i, &r));
    if (r.kind != kind) continue;
    out->n_rules++;
    AOT_TRY(kind == AOT_RULE_ENTRY_VIEW ? make_view(e, &r) : make_same(e, &r));
    if (kind == AOT_RULE_ENTRY_VIEW) out->at[out->n++] = (fz_entry_t){r.a, e->made[r.a]};
  }
  return AOT_OK;
}

/* ---- types of what is made of them ---- */

static aot_status_t AOT_CALL put_type(const aot_type_sink_t *sink, const aot_type_t *type) {
  entry_state_t *e = sink->head.self;
  if (e->n_types == e->type_capacity) return AOT_E_INTERNAL;
  e->types[e->n_types++] = *type;
  return AOT_OK;
}

static aot_status_t infer(entry_state_t *e, const aot_node_info_t *n) {
  aot_type_sink_t sink = {.head = {.struct_size = sizeof sink, .self = e}, .put = put_type};
  if (n->n_results > e->type_capacity) {
    e->types = room(e, 2 * (size_t)n->n_results, sizeof *e->types);
    e->type_capacity = 2 * n->n_results;
  }
  if (!e->types) return fz_no_memory(e->host, e->ctx, aot_no_node(), "for inputs that share memory");
  e->n_types = 0;
  return e->host->edit->infer(e->prog, n->op, n->args, n->n_args, &sink);
}

/* as_strided addresses the storage, which begins elsewhere now. */
static aot_status_t shift_address(entry_state_t *e, aot_node_t node, const aot_op_desc_t *d, const aot_node_info_t *n,
                                  int64_t by) {
  for (uint32_t a = 0; by != 0 && a < n->n_args && a < d->n_args; a++) {
    if (!aot_str_eq(d->args[a].name, aot_str("storage_offset")) || n->args[a].kind != AOT_ARG_INT) continue;
    const aot_arg_t shifted = aot_arg_int(n->args[a].u.i + by);
    if (AOT_DIM_IS_SYM(n->args[a].u.i))
      return fz_fail(e->host, e->ctx, AOT_E_UNIMPLEMENTED, "functionalize.storage",
                     "a symbolic place in the storage of an input that overlaps another is not supported", node);
    return e->host->edit->arg_set(e->prog, node, a, &shifted);
  }
  return AOT_OK;
}

/* Results that share memory with something that has moved. */
static aot_status_t retype_node(entry_state_t *e, aot_node_t node) {
  const aot_graph_api_t *g = e->host->graph;
  aot_node_info_t info = {.struct_size = sizeof info};
  int inferred = 0;
  AOT_TRY(g->node_info(e->prog, node, &info));
  const aot_op_desc_t *d = g->op_desc(e->prog, info.op);
  for (uint32_t i = 0; i < info.n_results; i++) {
    uint32_t k = fz_aliased_operand(d, &info, i), v = k ? info.operands[k - 1] : AOT_NO_ID;
    if (v == AOT_NO_ID || !e->moved[v].is) continue;
    const moved_t moved = e->moved[v];
    if (!inferred) {
      AOT_TRY(shift_address(e, node, d, &info, moved.by));
      AOT_TRY(g->node_info(e->prog, node, &info));
      AOT_TRY(infer(e, &info));
    }
    inferred = 1;
    if (i >= e->n_types) return AOT_E_INTERNAL;
    AOT_TRY(e->host->edit->type_set(e->prog, (aot_value_t){info.first_result.id + i}, &e->types[i]));
    e->moved[info.first_result.id + i] = moved;
  }
  return AOT_OK;
}

static aot_status_t note_moved(entry_state_t *e, uint32_t leaf) {
  aot_type_t was, is;
  AOT_TRY(type_of(e, e->port[leaf], &was));
  AOT_TRY(type_of(e, e->made[leaf], &is));
  if (fz_same_layout(&was, &is) && was.offset == is.offset) return AOT_OK;
  if (AOT_DIM_IS_SYM(was.offset) || AOT_DIM_IS_SYM(is.offset))
    return fz_fail(e->host, e->ctx, AOT_E_UNIMPLEMENTED, "functionalize.storage",
                   "inputs that overlap where one begins at a symbolic place are not supported", aot_no_node());
  e->moved[e->made[leaf]] = (moved_t){1, is.offset - was.offset};
  return AOT_OK;
}

/* ---- the whole ---- */

static aot_status_t replace_ports(entry_state_t *e) {
  e->moved = room(e, e->host->graph->n_values(e->prog), sizeof *e->moved);
  if (!e->moved) return fz_no_memory(e->host, e->ctx, aot_no_node(), "for inputs that share memory");
  memset(e->moved, 0, ((size_t)e->host->graph->n_values(e->prog) + 1) * sizeof *e->moved);
  for (uint32_t leaf = 1; leaf < e->n_leaves; leaf++) {
    if (e->made[leaf] == AOT_NO_ID || e->port[leaf] == AOT_NO_ID) continue; /* the latter: nothing reads it */
    AOT_TRY(note_moved(e, leaf));
    AOT_TRY(e->host->edit->uses_replace(e->prog, (aot_value_t){e->port[leaf]}, (aot_value_t){e->made[leaf]}));
  }
  for (uint32_t i = e->host->graph->n_inputs(e->prog, e->graph); i-- > 0;) {
    const aot_port_t *port = &e->host->graph->inputs(e->prog, e->graph)[i];
    if (port->role == AOT_ROLE_USER_INPUT && e->made[port->index] != AOT_NO_ID)
      AOT_TRY(e->host->edit->input_erase(e->prog, e->graph, i));
  }
  for (aot_node_t n = e->host->graph->first(e->prog, e->graph); n.id != AOT_NO_ID; n = e->host->graph->next(e->prog, n))
    AOT_TRY(retype_node(e, n));
  return AOT_OK;
}

aot_status_t fz_enter(const aot_host_t *host, aot_ctx_t *ctx, aot_prog_t *prog, aot_graph_t graph, fz_entries_t *out) {
  entry_state_t e = {.host = host, .ctx = ctx, .prog = prog, .graph = graph, .n_leaves = host->graph->n_leaves(prog)};
  memset(out, 0, sizeof *out);
  e.port = room(&e, e.n_leaves, sizeof *e.port);
  e.made = room(&e, e.n_leaves, sizeof *e.made);
  out->at = room(&e, e.n_leaves, sizeof *out->at);
  if (!e.port || !e.made || !out->at) return fz_no_memory(e.host, e.ctx, aot_no_node(), "for inputs that share memory");
  for (uint32_t i = 0; i < host->graph->n_inputs(prog, graph); i++) {
    const aot_port_t *port = &host->graph->inputs(prog, graph)[i];
    if (port->role == AOT_ROLE_USER_INPUT) e.port[port->index] = port->value.id;
  }
  AOT_TRY(follow_rules(&e, AOT_RULE_ENTRY_VIEW, out));
  AOT_TRY(follow_rules(&e, AOT_RULE_ENTRY_SAME, out));
  return out->n_rules ? replace_ports(&e) : AOT_OK;
}
