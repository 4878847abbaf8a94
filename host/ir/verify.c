/* The verifier: is the program well formed, and has it the properties that it claims?
 *
 * Structure: ids alive and in their graph; every value defined before it is used; node lists and use lists consistent;
 * each argument fits its schema slot; result types as the schema says; ports unique, of an allowed role, and of their
 * leaf's role; regions named without cycles. Linear in the program: one pass over each graph with a byte a value. At
 * most 20 complaints. The checkers of properties are in verify_property.c. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/verifier.h>
#include <stdlib.h>
#include <string.h>

#define UNDEFINED 0
#define DEFINED 1

/* ---- operands and arguments ---- */
static void check_operand(aoth_verifier_t *v, uint32_t node, uint32_t graph, uint32_t i, uint32_t value) {
  aot_prog_t *p = v->p;
  if (value == NONE) return;
  if (!value_is_alive(p, value)) {
    aoth_verify_report(v, node, "verify.dead-operand", "operand %u is value %u, which does not exist", i, value);
  } else if (p->values.at[value].graph != graph) {
    aoth_verify_report(v, node, "verify.other-graph", "operand %u is value %u of another graph", i, value);
  } else {
    v->n_uses[value]++;
    if (v->state[value] == UNDEFINED)
      aoth_verify_report(v, node, "verify.use-before-def", "operand %u is used before it is defined", i);
  }
}

static void check_args(aoth_verifier_t *v, uint32_t node) {
  const aoth_node_row_t *n = &v->p->nodes.at[node];
  aot_op_t op = {n->op};
  const aot_op_desc_t *d = aoth_ops_desc(v->p->ops, op);
  uint32_t n_operands = 0;
  if (n->n_args < aoth_args_full_count(d, 0) || (n->n_args && !aoth_schema_arg(d, n->n_args - 1)))
    aoth_verify_report(v, node, "verify.arguments", "%u arguments do not match the schema", n->n_args);
  for (uint32_t i = 0; i < n->n_args && aoth_schema_arg(d, i); i++) {
    const aot_schema_arg_t *s = aoth_schema_arg(d, i);
    const char *wanted = aoth_arg_misfit(v->p, s, &n->args[i]);
    n_operands += aoth_arg_n_operands(&n->args[i]);
    if (wanted)
      aoth_verify_report(v, node, "verify.arguments", "argument %u (%.*s) is %s; it wants %s", i, STR_ARGS(s->name),
                         aoth_arg_kind_name(n->args[i].kind), wanted);
  }
  if (n_operands != n->n_operands)
    aoth_verify_report(v, node, "verify.arguments", "the arguments hold %u operands, the node counts %u", n_operands,
                       n->n_operands);
}

static int kind_fits(const aot_schema_arg_t *s, int32_t kind) {
  switch (s->type) {
    case AOT_STYPE_TENSOR: return kind == AOT_TYPE_TENSOR || kind == AOT_TYPE_NONE;
    case AOT_STYPE_INT: return kind == AOT_TYPE_SYMINT;
    case AOT_STYPE_FLOAT: return kind == AOT_TYPE_SYMFLOAT;
    case AOT_STYPE_BOOL: return kind == AOT_TYPE_SYMBOOL;
    case AOT_STYPE_SCALAR: return kind == AOT_TYPE_SYMINT || kind == AOT_TYPE_SYMFLOAT || kind == AOT_TYPE_SYMBOOL;
    default: return 1;
  }
}

static void check_results(aoth_verifier_t *v, uint32_t node) {
  aot_prog_t *p = v->p;
  const aoth_node_row_t *n = &p->nodes.at[node];
  aot_op_t op = {n->op};
  const aot_op_desc_t *d = aoth_ops_desc(p->ops, op);
  int has_list = 0;
  for (uint32_t i = 0; i < d->n_results; i++) has_list |= (d->results[i].flags & AOT_SARG_LIST) != 0;
  for (uint32_t i = 0; i < n->n_results; i++) {
    uint32_t id = n->first_result + i;
    if (!value_is_alive(p, id) || p->values.at[id].def != node || p->values.at[id].index != i ||
        p->values.at[id].graph != n->graph) {
      aoth_verify_report(v, node, "verify.results", "result %u (value %u) is not defined by this node", i, id);
      continue;
    }
    if (v->state[id] == DEFINED) aoth_verify_report(v, node, "verify.results", "result %u is defined twice", i);
    v->state[id] = DEFINED;
    int32_t kind = value_type_of(p, id)->kind;
    if (!has_list && i < d->n_results && !kind_fits(&d->results[i], kind))
      aoth_verify_report(v, node, "verify.results", "result %u is another kind of value than the schema says", i);
  }
}

/* ---- regions: graphs that nodes name, without cycles (depth-first, explicit stack) ---- */
static void check_region_args(aoth_verifier_t *v, uint32_t node) {
  const aoth_node_row_t *n = &v->p->nodes.at[node];
  for (uint32_t i = 0; i < n->n_args; i++) {
    if (n->args[i].kind != AOT_ARG_GRAPH) continue;
    uint32_t g = (uint32_t)n->args[i].u.i;
    if (!graph_is_alive(v->p, g)) continue; /* said already */
    const int32_t kind = v->p->graphs.at[g].kind;
    if (kind != AOT_GRAPH_REGION && kind != AOT_GRAPH_PART)
      aoth_verify_report(v, node, "verify.region", "argument %u names a %s graph; a node owns regions and parts only",
                         i, aoth_graph_kind_name(kind));
    v->refs[g]++;
    v->n_region_args++;
  }
}

/* Kahn's order over the graphs: what cannot be ordered is on a cycle. */
static void check_region_cycles(aoth_verifier_t *v) {
  aot_prog_t *p = v->p;
  uint32_t n_ready = 0, live = 0, done = 0;
  if (!v->n_region_args) return;
  for (uint32_t g = 1; g < p->graphs.n; g++) {
    live += p->graphs.at[g].alive != 0;
    if (p->graphs.at[g].alive && !v->refs[g]) v->ready[n_ready++] = g;
  }
  while (done < n_ready) {
    for (uint32_t n = p->graphs.at[v->ready[done++]].first; n != NONE; n = p->nodes.at[n].next)
      for (uint32_t i = 0; i < p->nodes.at[n].n_args; i++) {
        const aot_arg_t *a = &p->nodes.at[n].args[i];
        if (a->kind == AOT_ARG_GRAPH && graph_is_alive(p, (uint32_t)a->u.i) && --v->refs[a->u.i] == 0)
          v->ready[n_ready++] = (uint32_t)a->u.i;
      }
  }
  AOT_ASSERT(n_ready <= live);
  if (n_ready < live)
    aoth_verify_report(v, NONE, "verify.region", "%u graphs contain each other as regions", live - n_ready);
}

/* ---- ports ---- */
typedef struct port_key {
  uint32_t space, index, position;
} port_key_t;

static int compare_keys(const void *a, const void *b) {
  const port_key_t *x = a, *y = b;
  if (x->space != y->space) return x->space < y->space ? -1 : 1;
  if (x->index != y->index) return x->index < y->index ? -1 : 1;
  return x->position < y->position ? -1 : x->position > y->position;
}

/* No two ports of a side with the same role and index; the loss counts among the user outputs. */
static void check_unique(aoth_verifier_t *v, uint32_t graph, const aot_port_t *ports, uint32_t n, const char *side) {
  if (n < 2) return;
  port_key_t *keys = malloc(n * sizeof *keys);
  if (!keys) {
    aoth_verify_report(v, NONE, "verify.no-memory", "no memory to check %u ports", n);
    return;
  }
  for (uint32_t i = 0; i < n; i++) {
    keys[i].space = (uint32_t)(ports[i].role == AOT_ROLE_LOSS ? AOT_ROLE_USER_OUTPUT : ports[i].role);
    keys[i].index = ports[i].index;
    keys[i].position = i;
  }
  qsort(keys, n, sizeof *keys, compare_keys);
  for (uint32_t i = 1; i < n; i++)
    if (keys[i].space == keys[i - 1].space && keys[i].index == keys[i - 1].index)
      aoth_verify_report(v, NONE, "verify.port", "%s: %ss %u and %u are both %s %u", aoth_verify_graph_text(v, graph),
                         side, keys[i - 1].position, keys[i].position, aoth_role_name((int32_t)keys[i].space),
                         aoth_port_number((int32_t)keys[i].space, keys[i].index));
  free(keys);
}

static void check_port_leaf(aoth_verifier_t *v, uint32_t graph, const aot_port_t *port, const char *side, uint32_t i) {
  aot_prog_t *p = v->p;
  if (!aoth_role_is_leaf(port->role)) return;
  if (!port->index || port->index >= p->leaves.n) {
    aoth_verify_report(v, NONE, "verify.port", "%s: %s %u names leaf %u; there are %u",
                       aoth_verify_graph_text(v, graph), side, i, port->index - 1, p->leaves.n - 1);
  } else if (port->role <= AOT_ROLE_STATE && p->leaves.at[port->index].role != port->role) {
    aoth_verify_report(v, NONE, "verify.port", "%s: %s %u has role %s, leaf %u is a %s",
                       aoth_verify_graph_text(v, graph), side, i, aoth_role_name(port->role), port->index - 1,
                       aoth_role_name(p->leaves.at[port->index].role));
  }
}

static void check_inputs(aoth_verifier_t *v, uint32_t graph) {
  aot_prog_t *p = v->p;
  const aoth_graph_row_t *g = &p->graphs.at[graph];
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    uint32_t id = g->inputs.at[i].value.id;
    check_port_leaf(v, graph, &g->inputs.at[i], "input", i);
    if (!value_is_alive(p, id) || p->values.at[id].def != NONE || p->values.at[id].graph != graph ||
        p->values.at[id].index != i)
      aoth_verify_report(v, NONE, "verify.port", "%s: input %u is not the value %u that it names",
                         aoth_verify_graph_text(v, graph), i, id);
    else v->state[id] = DEFINED;
  }
  check_unique(v, graph, g->inputs.at, g->inputs.n, "input");
}

static int may_be_none(int32_t role) {
  return role == AOT_ROLE_USER_OUTPUT || role == AOT_ROLE_GRADIENT || role == AOT_ROLE_REGION;
}

static void check_outputs(aoth_verifier_t *v, uint32_t graph) {
  aot_prog_t *p = v->p;
  const aoth_graph_row_t *g = &p->graphs.at[graph];
  for (uint32_t i = 0; i < g->outputs.n; i++) {
    const aot_port_t *port = &g->outputs.at[i];
    uint32_t id = port->value.id;
    check_port_leaf(v, graph, port, "output", i);
    if (id == NONE) {
      if (!may_be_none(port->role))
        aoth_verify_report(v, NONE, "verify.port", "%s: output %u (%s %u) cannot be none",
                           aoth_verify_graph_text(v, graph), i, aoth_role_name(port->role),
                           aoth_port_number(port->role, port->index));
      continue;
    }
    if (!value_is_alive(p, id) || p->values.at[id].graph != graph) {
      aoth_verify_report(v, NONE, "verify.port", "%s: output %u is value %u, which is not in the graph",
                         aoth_verify_graph_text(v, graph), i, id);
      continue;
    }
    v->n_uses[id]++;
    if (v->state[id] == UNDEFINED)
      aoth_verify_report(v, NONE, "verify.port", "%s: output %u is never defined", aoth_verify_graph_text(v, graph), i);
  }
  check_unique(v, graph, g->outputs.at, g->outputs.n, "output");
}

/* ---- graphs ---- */
static void check_nodes(aoth_verifier_t *v, uint32_t graph) {
  aot_prog_t *p = v->p;
  const aoth_graph_row_t *g = &p->graphs.at[graph];
  uint32_t prev = NONE, count = 0;
  for (uint32_t n = g->first; n != NONE; prev = n, n = p->nodes.at[n].next) {
    const aoth_node_row_t *r = &p->nodes.at[n];
    if (!r->alive || r->graph != graph || r->prev != prev || ++count > g->n_nodes) {
      aoth_verify_report(v, n, "verify.order", "the node list of the graph is broken here");
      return;
    }
    for (uint32_t i = 0; i < r->n_operands; i++) check_operand(v, n, graph, i, r->operands[i]);
    check_args(v, n);
    check_region_args(v, n);
    check_results(v, n);
  }
  if (g->last != prev || count != g->n_nodes)
    aoth_verify_report(v, NONE, "verify.order", "%s: %u nodes in the list, %u counted",
                       aoth_verify_graph_text(v, graph), count, g->n_nodes);
}

/* Each value's use list holds exactly the places that read it. */
static void check_use_lists(aoth_verifier_t *v) {
  aot_prog_t *p = v->p;
  for (uint32_t id = 1; id < p->values.n && !aoth_verify_full(v); id++) {
    if (!value_is_alive(p, id)) continue;
    const aoth_value_row_t *r = &p->values.at[id];
    uint32_t count = 0, prev = NONE, slot = r->first_use;
    for (; slot != NONE && count <= r->n_uses; prev = slot, slot = p->slots.at[slot].next, count++)
      if (p->slots.at[slot].prev != prev || aoth_slot_value(p, slot) != id) break;
    if (slot != NONE || prev != r->last_use || count != r->n_uses || count != v->n_uses[id])
      aoth_verify_report(v, r->def, "verify.uses",
                         "the use list of value %u is broken: %u in the list, %u counted, %u found", id, count,
                         r->n_uses, v->n_uses[id]);
  }
}

static void check_structure(aoth_verifier_t *v) {
  for (uint32_t g = 1; g < v->p->graphs.n && !aoth_verify_full(v); g++) {
    if (!v->p->graphs.at[g].alive) continue;
    check_inputs(v, g);
    check_nodes(v, g);
    check_outputs(v, g);
  }
  if (v->n_bad == 0) check_use_lists(v);
  check_region_cycles(v);
}

static int prepare(aoth_verifier_t *v, kit_arena_t *a) {
  aot_prog_t *p = v->p;
  v->state = kit_arena_alloc(a, 8, p->values.n + (size_t)1);
  v->n_uses = kit_arena_alloc(a, 8, (p->values.n + (size_t)1) * sizeof *v->n_uses);
  v->refs = kit_arena_alloc(a, 8, (p->graphs.n + (size_t)1) * sizeof *v->refs);
  v->ready = kit_arena_alloc(a, 8, (p->graphs.n + (size_t)1) * sizeof *v->ready);
  v->leaf_seen = kit_arena_alloc(a, 8, p->leaves.n + (size_t)1);
  return v->state && v->n_uses && v->refs && v->ready && v->leaf_seen;
}

aot_status_t aoth_verify(aot_prog_t *p, uint32_t properties) {
  aoth_verifier_t v = {.p = p};
  kit_arena_t *tables = kit_arena_create();
  if (!tables || !prepare(&v, tables)) {
    kit_arena_destroy(tables);
    return aoth_no_memory(p, "the verifier", (uint64_t)p->values.n * 5);
  }
  check_structure(&v);
  if (!v.n_bad) aoth_verify_encodings(&v);
  if (!v.n_bad) aoth_verify_properties(&v, properties);
  kit_arena_destroy(tables);
  if (v.n_bad > VERIFY_MAX_REPORTS)
    aoth_sink_report(p->ctx->sink, AOT_SEVERITY_NOTE, NULL, NULL, "%u more complaints like these",
                     v.n_bad - VERIFY_MAX_REPORTS);
  return v.n_bad ? AOT_E_INVALID : AOT_OK;
}
