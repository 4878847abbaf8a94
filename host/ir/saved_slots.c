/* Storages are classes of values: the values of one alias mark at a node join, and all values at a node that owns
 * graphs, for what happens inside them is not looked at. Union by path halving: near linear. */
#include <ir/saved_slots.h>

#include <aot/assert.h>
#include <aot/ext/saved.h>
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>

static uint32_t storage_of(uint32_t *parent, uint32_t v) {
  while (parent[v] != v) v = parent[v] = parent[parent[v]];
  return v;
}

static void join(uint32_t *parent, uint32_t a, uint32_t b) { parent[storage_of(parent, a)] = storage_of(parent, b); }

/* The mark of result i; a Tensor[] result represents all further ones. */
static int32_t result_mark(const aot_op_desc_t *d, uint32_t i) {
  if (!d->n_results) return 0;
  return d->results[i < d->n_results ? i : d->n_results - 1].alias_set;
}

/* The first value seen with each mark of a node; [0]: of the wildcard, which is every mark. */
#define N_MARKS 32
typedef struct marked {
  uint32_t first[N_MARKS];
} marked_t;

static void see(uint32_t *parent, marked_t *m, int32_t mark, uint32_t value) {
  if (mark == 0 || value == NONE) return;
  const uint32_t k = mark >= N_MARKS ? 0 : (uint32_t)mark; /* AOT_ALIAS_ANY among them */
  if (m->first[k] == NONE) m->first[k] = value;
  else join(parent, value, m->first[k]);
}

static void join_node(uint32_t *parent, const aoth_node_row_t *n, const aot_op_desc_t *d) {
  const int owns_graphs = (d->flags & AOT_OP_REGION) != 0;
  uint32_t operand = 0;
  marked_t m;
  for (int k = 0; k < N_MARKS; k++) m.first[k] = NONE;
  for (uint32_t a = 0; a < n->n_args; a++) {
    const uint32_t end = operand + aoth_arg_n_operands(&n->args[a]);
    const int32_t mark = owns_graphs ? 1 : aoth_schema_arg(d, a)->alias_set;
    for (; operand < end; operand++) see(parent, &m, mark, n->operands[operand]);
  }
  AOT_ASSERT(operand == n->n_operands);
  for (uint32_t r = 0; r < n->n_results; r++) see(parent, &m, owns_graphs ? 1 : result_mark(d, r), n->first_result + r);
  for (int k = 1; k < N_MARKS && m.first[0] != NONE; k++)
    if (m.first[k] != NONE) join(parent, m.first[k], m.first[0]);
}

static void join_graph(const aot_prog_t *p, uint32_t *parent, uint32_t graph) {
  for (uint32_t n = p->graphs.at[graph].first; n != NONE; n = p->nodes.at[n].next)
    join_node(parent, &p->nodes.at[n], aoth_ops_desc(p->ops, (aot_op_t){p->nodes.at[n].op}));
}

int aoth_input_is_static(const aot_port_t *port) {
  return port->role == AOT_ROLE_PARAMETER || port->role == AOT_ROLE_BUFFER || port->role == AOT_ROLE_CONSTANT ||
         port->role == AOT_ROLE_STATE;
}

static uint32_t held_by_input(const aot_port_t *port) {
  return aoth_input_is_static(port) ? AOT_HELD_STATIC : AOT_HELD_INPUT;
}

/* by[storage]: what holds it, the slots themselves aside. */
static void mark_holders(uint32_t *parent, uint8_t *by, const aoth_graph_row_t *f, const aoth_graph_row_t *b) {
  for (uint32_t i = 0; i < f->inputs.n; i++)
    by[storage_of(parent, f->inputs.at[i].value.id)] |= (uint8_t)held_by_input(&f->inputs.at[i]);
  for (uint32_t i = 0; i < f->outputs.n; i++)
    if (f->outputs.at[i].role != AOT_ROLE_SAVED && f->outputs.at[i].value.id != NONE)
      by[storage_of(parent, f->outputs.at[i].value.id)] |= AOT_HELD_OUTPUT;
  for (uint32_t i = 0; i < b->outputs.n; i++)
    if (b->outputs.at[i].value.id != NONE) by[storage_of(parent, b->outputs.at[i].value.id)] |= AOT_HELD_GRADIENT;
}

/* A slot is one storage on both sides of the cut: what holds it in either graph counts. */
static void collect(uint32_t *parent, const uint8_t *by, const aot_port_t *ports, uint32_t n_ports, uint32_t *out_held,
                    uint32_t capacity, uint32_t *out_n) {
  for (uint32_t i = 0; i < n_ports; i++) {
    if (ports[i].role != AOT_ROLE_SAVED) continue;
    if (ports[i].index >= *out_n) *out_n = ports[i].index + 1;
    if (ports[i].index < capacity && ports[i].value.id != NONE)
      out_held[ports[i].index] |= by[storage_of(parent, ports[i].value.id)];
  }
}

aot_status_t aoth_saved_held(aot_prog_t *p, uint32_t *out_held, uint32_t capacity, uint32_t *out_n) {
  const aot_graph_t forward = aoth_graph_graph_find(p, AOT_GRAPH_FORWARD),
                    backward = aoth_graph_graph_find(p, AOT_GRAPH_BACKWARD);
  *out_n = 0;
  if (capacity) memset(out_held, 0, capacity * sizeof *out_held);
  if (forward.id == NONE || backward.id == NONE)
    return aoth_diagnose(p, AOT_E_PRECONDITION, "ir.saved", "a program that is not partitioned saves nothing");
  const aoth_graph_row_t *f = &p->graphs.at[forward.id], *b = &p->graphs.at[backward.id];
  uint32_t *parent = malloc((p->values.n + (size_t)1) * sizeof *parent);
  uint8_t *by = calloc(p->values.n + (size_t)1, 1);
  if (parent && by) {
    for (uint32_t v = 0; v < p->values.n; v++) parent[v] = v;
    join_graph(p, parent, forward.id);
    join_graph(p, parent, backward.id);
    mark_holders(parent, by, f, b);
    collect(parent, by, f->outputs.at, f->outputs.n, out_held, capacity, out_n);
    collect(parent, by, b->inputs.at, b->inputs.n, out_held, capacity, out_n);
  }
  const int done = parent && by;
  free(parent);
  free(by);
  return done ? AOT_OK : aoth_no_memory(p, "storages of saved values", p->values.n * sizeof *parent);
}

int aoth_input_to_detach(aot_prog_t *p, const aot_port_t *port, aot_graph_t gradients) {
  aot_leaf_info_t leaf = {.struct_size = sizeof leaf};
  if (port->role != AOT_ROLE_USER_INPUT || aoth_graph_leaf_info(p, (aot_leaf_t){port->index}, &leaf) != AOT_OK)
    return 0;
  if (!(leaf.flags & AOT_LEAF_REQUIRES_GRAD)) return 0;
  const aot_port_t *outputs = aoth_graph_outputs(p, gradients);
  for (uint32_t i = 0; i < aoth_graph_n_outputs(p, gradients); i++)
    if (outputs[i].role == AOT_ROLE_GRADIENT && outputs[i].index == port->index) return outputs[i].value.id == NONE;
  return 1;
}
