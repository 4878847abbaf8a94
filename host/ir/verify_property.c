/* One checker for each property of <aot/contract.h>.
 *
 * imported      a forward or joint graph whose inputs have their leaves' dtype and shape
 * functional    no effective write; every updated leaf is copied back by a rule
 * joint         one joint graph; tangents match outputs; a gradient for every input leaf that requires one, of its type
 * rng-explicit  no operator draws hidden random numbers
 * partitioned   forward and backward, no joint; saved slots match one to one; next to slots, tangents and
 *               what comes with the call the backward reads only leaves that the forward does not update
 * hooked, sharded, lowered add no rule about structure: what they promise is in operators that the host does not
 * know. */
#include <aot/contract.h>
#include <aot/inline.h>
#include <ir/verifier.h>
#include <stdlib.h>
#include <string.h>

typedef void (*check_t)(aoth_verifier_t *v);

static uint32_t find_graph(const aoth_verifier_t *v, int32_t kind) { return aoth_graph_graph_find(v->p, kind).id; }

static int same_dims(const int64_t *a, const int64_t *b, int32_t n) {
  return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static int same_shape(const aot_type_t *a, const aot_type_t *b) {
  return a->kind == b->kind && a->dtype == b->dtype && a->rank == b->rank && same_dims(a->sizes, b->sizes, a->rank);
}

static const char *leaf_name(aoth_verifier_t *v, uint32_t leaf) {
  static const char unnamed[] = "(unnamed)";
  const aot_leaf_info_t *l = &v->p->leaves.at[leaf];
  if (!l->n_names || !l->names[0].size) return unnamed;
  return l->names[0].data; /* stored with a terminator */
}

/* ---- imported ---- */
static void check_leaf_types(aoth_verifier_t *v, uint32_t graph) {
  aot_prog_t *p = v->p;
  const aoth_graph_row_t *g = &p->graphs.at[graph];
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    const aot_port_t *port = &g->inputs.at[i];
    if (port->role > AOT_ROLE_STATE || same_shape(value_type_of(p, port->value.id), &p->leaves.at[port->index].type))
      continue;
    aoth_verify_report(v, NONE, "verify.imported", "%s: input %u has another dtype or shape than leaf %u \"%s\"",
                       aoth_verify_graph_text(v, graph), i, port->index - 1, leaf_name(v, port->index));
  }
}

static void check_imported(aoth_verifier_t *v) {
  uint32_t graph = find_graph(v, AOT_GRAPH_FORWARD);
  if (graph == NONE) graph = find_graph(v, AOT_GRAPH_JOINT);
  if (graph == NONE) graph = find_graph(v, AOT_GRAPH_STEP);
  if (graph == NONE) aoth_verify_report(v, NONE, "verify.imported", "the program has no forward graph");
  else if (!(v->properties & AOTH_PROP_SHARDED)) check_leaf_types(v, graph); /* a shard is smaller than its leaf */
}

/* ---- functional ---- */
static void check_writes(aoth_verifier_t *v, uint32_t node) {
  const aoth_node_row_t *n = &v->p->nodes.at[node];
  aot_op_t op = {n->op};
  const aot_op_desc_t *d = aoth_ops_desc(v->p->ops, op);
  if (!(d->flags & AOT_OP_WRITES)) return;
  for (uint32_t i = 0; i < n->n_args; i++) {
    if (!aoth_arg_is_written(d, n->args, n->n_args, i)) continue;
    aoth_verify_report(v, node, "verify.functional",
                       "a functional program holds no operator that writes: %.*s writes argument %u (%.*s)",
                       STR_ARGS(d->name), i, STR_ARGS(aoth_schema_arg(d, i)->name));
    return;
  }
}

static void check_functional(aoth_verifier_t *v) {
  aot_prog_t *p = v->p;
  memset(v->leaf_seen, 0, p->leaves.n);
  for (uint32_t i = 0; i < p->rules.n; i++)
    if (p->rules.at[i].kind == AOT_RULE_COPY_BACK) v->leaf_seen[p->rules.at[i].a] = 1;
  for (uint32_t g = 1; g < p->graphs.n; g++) {
    const aoth_graph_row_t *row = &p->graphs.at[g];
    if (!row->alive) continue;
    for (uint32_t n = row->first; n != NONE && !aoth_verify_full(v); n = p->nodes.at[n].next) check_writes(v, n);
    for (uint32_t i = 0; i < row->outputs.n && row->kind != AOT_GRAPH_UPDATE; i++)
      if (row->outputs.at[i].role == AOT_ROLE_UPDATE && !v->leaf_seen[row->outputs.at[i].index])
        aoth_verify_report(v, NONE, "verify.functional", "%s: the new value of leaf %u \"%s\" has no copy_back rule",
                           aoth_verify_graph_text(v, g), row->outputs.at[i].index - 1,
                           leaf_name(v, row->outputs.at[i].index));
  }
}

/* ---- joint ---- */
static const aot_port_t *find_port(const aot_port_t *ports, uint32_t n, int32_t role, uint32_t index) {
  for (uint32_t i = 0; i < n; i++)
    if (ports[i].index == index &&
        (ports[i].role == role || (role == AOT_ROLE_USER_OUTPUT && ports[i].role == AOT_ROLE_LOSS)))
      return &ports[i];
  return NULL;
}

static void check_tangent(aoth_verifier_t *v, uint32_t graph, const aot_port_t *tangent) {
  aot_prog_t *p = v->p;
  const aoth_graph_row_t *g = &p->graphs.at[graph];
  const aot_port_t *output = find_port(g->outputs.at, g->outputs.n, AOT_ROLE_USER_OUTPUT, tangent->index);
  if (!output || output->value.id == NONE)
    aoth_verify_report(v, NONE, "verify.joint", "%s: tangent %u belongs to no user output",
                       aoth_verify_graph_text(v, graph), tangent->index);
  else if (!same_shape(value_type_of(p, output->value.id), value_type_of(p, tangent->value.id)))
    aoth_verify_report(v, NONE, "verify.joint", "%s: tangent %u has another dtype or shape than user output %u",
                       aoth_verify_graph_text(v, graph), tangent->index, tangent->index);
}

/* Gradients of a joint graph: each of its leaf's dtype and shape, and one for every input leaf that requires it. */
static void check_gradients(aoth_verifier_t *v, uint32_t graph) {
  aot_prog_t *p = v->p;
  const aoth_graph_row_t *g = &p->graphs.at[graph];
  memset(v->leaf_seen, 0, p->leaves.n);
  for (uint32_t i = 0; i < g->outputs.n; i++) {
    const aot_port_t *port = &g->outputs.at[i];
    if (port->role != AOT_ROLE_GRADIENT) continue;
    v->leaf_seen[port->index] = 1;
    if (port->value.id != NONE && !same_shape(value_type_of(p, port->value.id), &p->leaves.at[port->index].type))
      aoth_verify_report(v, p->values.at[port->value.id].def, "verify.joint",
                         "the gradient of leaf %u \"%s\" has another dtype or shape than the leaf", port->index - 1,
                         leaf_name(v, port->index));
  }
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    const aot_port_t *port = &g->inputs.at[i];
    if (port->role > AOT_ROLE_USER_INPUT || v->leaf_seen[port->index]) continue;
    if (p->leaves.at[port->index].flags & AOT_LEAF_REQUIRES_GRAD)
      aoth_verify_report(v, NONE, "verify.joint", "%s: leaf %u \"%s\" requires a gradient and has no gradient output",
                         aoth_verify_graph_text(v, graph), port->index - 1, leaf_name(v, port->index));
  }
}

static void check_joint(aoth_verifier_t *v) {
  uint32_t joint = find_graph(v, AOT_GRAPH_JOINT);
  if (joint == NONE) {
    aoth_verify_report(v, NONE, "verify.joint", "the program has no joint graph");
    return;
  }
  const aoth_graph_row_t *g = &v->p->graphs.at[joint];
  for (uint32_t i = 0; i < g->inputs.n; i++)
    if (g->inputs.at[i].role == AOT_ROLE_TANGENT) check_tangent(v, joint, &g->inputs.at[i]);
  check_gradients(v, joint);
}

/* ---- rng-explicit ---- */
static void check_rng_explicit(aoth_verifier_t *v) {
  aot_prog_t *p = v->p;
  for (uint32_t n = 1; n < p->nodes.n && !aoth_verify_full(v); n++) {
    aot_op_t op = {p->nodes.at[n].op};
    if (p->nodes.at[n].alive && (aoth_ops_desc(p->ops, op)->flags & AOT_OP_RANDOM))
      aoth_verify_report(v, n, "verify.rng-explicit", "%.*s draws hidden random numbers", STR_ARGS(op_name(p, op.id)));
  }
}

/* ---- partitioned ---- */
/* By leaf: the forward gives it a new value. NULL without memory. */
static uint8_t *mark_updated(const aot_prog_t *p, const aoth_graph_row_t *f) {
  uint8_t *updated = calloc(p->leaves.n + (size_t)1, 1);
  for (uint32_t i = 0; updated && i < f->outputs.n; i++)
    if (f->outputs.at[i].role == AOT_ROLE_UPDATE && f->outputs.at[i].index < p->leaves.n)
      updated[f->outputs.at[i].index] = 1;
  return updated;
}

/* Slots and what comes with the call; a leaf in place, as long as the forward leaves it alone. */
static int backward_may_read(const uint8_t *updated, const aot_port_t *input) {
  switch (input->role) {
    case AOT_ROLE_SAVED:
    case AOT_ROLE_TANGENT:
    case AOT_ROLE_SEED:
    case AOT_ROLE_OFFSET:
    case AOT_ROLE_TOKEN: return 1;
    case AOT_ROLE_PARAMETER:
    case AOT_ROLE_BUFFER:
    case AOT_ROLE_CONSTANT:
    case AOT_ROLE_USER_INPUT:
    case AOT_ROLE_STATE: return !updated[input->index];
    default: return 0;
  }
}

/* By slot, the port; `out` has n entries, NULL where a slot is missing. The number of saved ports. */
static uint32_t saved_ports(const aot_port_t *ports, uint32_t n, const aot_port_t **out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (ports[i].role != AOT_ROLE_SAVED) continue;
    count++;
    if (ports[i].index < n) out[ports[i].index] = &ports[i];
  }
  return count;
}

static void check_slots(aoth_verifier_t *v, const aot_port_t **saved, uint32_t n_saved, const aot_port_t **read,
                        uint32_t n_read) {
  aot_prog_t *p = v->p;
  if (n_saved != n_read)
    aoth_verify_report(v, NONE, "verify.partitioned", "the forward saves %u values, the backward reads %u", n_saved,
                       n_read);
  for (uint32_t i = 0; i < n_saved && i < n_read; i++) {
    if (!saved[i] || !read[i]) {
      aoth_verify_report(v, NONE, "verify.partitioned",
                         "saved slot %u is missing in the %s: slots are numbered 0 to %u", i,
                         saved[i] ? "backward" : "forward", n_saved - 1);
      continue;
    }
    const aot_type_t *a = value_type_of(p, saved[i]->value.id), *b = value_type_of(p, read[i]->value.id);
    if (!same_shape(a, b) || !same_dims(a->strides, b->strides, a->rank) || !aoth_same_encoding(a, b))
      aoth_verify_report(v, p->values.at[saved[i]->value.id].def, "verify.partitioned",
                         "saved slot %u leaves the forward with another type than it enters the backward with", i);
  }
}

static void check_partitioned(aoth_verifier_t *v) {
  aot_prog_t *p = v->p;
  uint32_t forward = find_graph(v, AOT_GRAPH_FORWARD), backward = find_graph(v, AOT_GRAPH_BACKWARD);
  if (find_graph(v, AOT_GRAPH_JOINT) != NONE)
    aoth_verify_report(v, NONE, "verify.partitioned", "the joint graph is still there");
  if (forward == NONE || backward == NONE) {
    aoth_verify_report(v, NONE, "verify.partitioned", "the program has no %s graph",
                       forward == NONE ? "forward" : "backward");
    return;
  }
  const aoth_graph_row_t *f = &p->graphs.at[forward], *b = &p->graphs.at[backward];
  const aot_port_t **saved = calloc(f->outputs.n + (size_t)1, sizeof(void *)),
                   **read = calloc(b->inputs.n + (size_t)1, sizeof(void *));
  uint8_t *updated = mark_updated(p, f);
  for (uint32_t i = 0; updated && i < b->inputs.n; i++)
    if (!backward_may_read(updated, &b->inputs.at[i]))
      aoth_verify_report(v, NONE, "verify.partitioned", "the backward reads %s %u, which was not saved",
                         aoth_role_name(b->inputs.at[i].role),
                         aoth_port_number(b->inputs.at[i].role, b->inputs.at[i].index));
  if (saved && read && updated) {
    uint32_t n_saved = saved_ports(f->outputs.at, f->outputs.n, saved),
             n_read = saved_ports(b->inputs.at, b->inputs.n, read);
    check_slots(v, saved, n_saved, read, n_read);
  } else {
    aoth_verify_report(v, NONE, "verify.no-memory", "no memory to check saved slots");
  }
  free(saved);
  free(read);
  free(updated);
}

/* ---- stitched ---- */

/* New values that take their leaves' memory lie as the leaves do. */
static void check_in_place(aoth_verifier_t *v, uint32_t graph) {
  const aoth_graph_row_t *g = &v->p->graphs.at[graph];
  const uint32_t n_leaves = v->p->leaves.n;
  uint32_t *input = calloc(n_leaves + (size_t)1, sizeof *input); /* by leaf: its value there, NONE: none */
  if (!input) {
    aoth_verify_report(v, NONE, "verify.no-memory", "no memory to check new values");
    return;
  }
  for (uint32_t i = 0; i < g->inputs.n; i++)
    if (aot_role_is_leaf(g->inputs.at[i].role) && g->inputs.at[i].index < n_leaves)
      input[g->inputs.at[i].index] = g->inputs.at[i].value.id;
  for (uint32_t i = 0; i < g->outputs.n; i++) {
    const aot_port_t *update = &g->outputs.at[i];
    if (update->role != AOT_ROLE_UPDATE || update->index >= n_leaves || input[update->index] == NONE) continue;
    const aot_type_t *b = update->value.id == NONE ? NULL : value_type_of(v->p, update->value.id);
    if (!b || !same_shape(value_type_of(v->p, input[update->index]), b))
      aoth_verify_report(v, NONE, "verify.stitched",
                         "%s: the new value of leaf %u \"%s\" has another dtype or shape than the leaf",
                         aoth_verify_graph_text(v, graph), update->index, leaf_name(v, update->index));
  }
  free(input);
}

static void check_stitched(aoth_verifier_t *v) {
  static const int32_t parts[] = {AOT_GRAPH_JOINT, AOT_GRAPH_FORWARD, AOT_GRAPH_BACKWARD, AOT_GRAPH_UPDATE};
  if (find_graph(v, AOT_GRAPH_STEP) == NONE)
    aoth_verify_report(v, NONE, "verify.stitched", "the program has no step graph");
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
    if (find_graph(v, parts[k]) != NONE)
      aoth_verify_report(v, NONE, "verify.stitched", "the program still has a %s graph beside its step",
                         aoth_graph_kind_name(parts[k]));
  for (uint32_t g = 1; g < v->p->graphs.n; g++)
    if (v->p->graphs.at[g].alive && v->p->graphs.at[g].kind == AOT_GRAPH_STEP) check_in_place(v, g);
}

void aoth_verify_properties(aoth_verifier_t *v, uint32_t properties) {
  v->properties = properties;
  static const struct {
    uint32_t property;
    check_t check;
  } checks[] = {{AOTH_PROP_IMPORTED, check_imported},
                {AOTH_PROP_FUNCTIONAL, check_functional},
                {AOTH_PROP_JOINT, check_joint},
                {AOTH_PROP_RNG_EXPLICIT, check_rng_explicit},
                {AOTH_PROP_PARTITIONED, check_partitioned},
                {AOTH_PROP_STITCHED, check_stitched}};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
    if (properties & checks[i].property) checks[i].check(v);
}
