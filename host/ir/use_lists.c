/* Use lists and node order: the doubly linked lists under every edit.
 *
 * A value's list holds its slots oldest use first. Unlinking leaves the slot's own links in place; relinking in exactly
 * the opposite order restores the list as it was (dancing links). All functions are O(1) or O(operands). */
#include <aot/assert.h>
#include <ir/program_store.h>

/* What precedes and after a slot in its value's list. */
static uint32_t follows(const aot_prog_t *p, const aoth_value_row_t *v, uint32_t prev) {
  return prev == NONE ? v->first_use : p->slots.at[prev].next;
}
static uint32_t precedes(const aot_prog_t *p, const aoth_value_row_t *v, uint32_t next) {
  return next == NONE ? v->last_use : p->slots.at[next].prev;
}

/* The same of nodes in their graph. */
static uint32_t node_follows(const aot_prog_t *p, const aoth_graph_row_t *g, uint32_t prev) {
  return prev == NONE ? g->first : p->nodes.at[prev].next;
}
static uint32_t node_precedes(const aot_prog_t *p, const aoth_graph_row_t *g, uint32_t next) {
  return next == NONE ? g->last : p->nodes.at[next].prev;
}

void aoth_use_append(aot_prog_t *p, uint32_t slot, uint32_t value) {
  aoth_value_row_t *v = &p->values.at[value];
  aoth_slot_row_t *s = &p->slots.at[slot];
  AOT_ASSERT(aoth_slot_value(p, slot) == value && (v->n_uses == 0) == (v->last_use == NONE));
  s->prev = v->last_use;
  s->next = NONE;
  if (v->last_use == NONE) v->first_use = slot;
  else p->slots.at[v->last_use].next = slot;
  v->last_use = slot;
  v->n_uses++;
}

void aoth_use_unlink(aot_prog_t *p, uint32_t slot, uint32_t value) {
  aoth_value_row_t *v = &p->values.at[value];
  const aoth_slot_row_t *s = &p->slots.at[slot];
  AOT_ASSERT(v->n_uses > 0 && follows(p, v, s->prev) == slot && precedes(p, v, s->next) == slot);
  if (s->prev == NONE) v->first_use = s->next;
  else p->slots.at[s->prev].next = s->next;
  if (s->next == NONE) v->last_use = s->prev;
  else p->slots.at[s->next].prev = s->prev;
  v->n_uses--;
}

void aoth_use_relink(aot_prog_t *p, uint32_t slot, uint32_t value) {
  aoth_value_row_t *v = &p->values.at[value];
  const aoth_slot_row_t *s = &p->slots.at[slot];
  AOT_ASSERT(follows(p, v, s->prev) == s->next && precedes(p, v, s->next) == s->prev); /* as it was left */
  AOT_ASSERT(aoth_slot_value(p, slot) == value);
  if (s->prev == NONE) v->first_use = slot;
  else p->slots.at[s->prev].next = slot;
  if (s->next == NONE) v->last_use = slot;
  else p->slots.at[s->next].prev = slot;
  v->n_uses++;
}

uint32_t aoth_slot_value(const aot_prog_t *p, uint32_t slot) {
  const aoth_slot_row_t *s = &p->slots.at[slot];
  if (s->owner & SLOT_OUTPUT) return p->graphs.at[s->owner & ~SLOT_OUTPUT].outputs.at[s->operand].value.id;
  return p->nodes.at[s->owner].operands[s->operand];
}

void aoth_slot_store(aot_prog_t *p, uint32_t slot, uint32_t value) {
  const aoth_slot_row_t *s = &p->slots.at[slot];
  if (s->owner & SLOT_OUTPUT) {
    p->graphs.at[s->owner & ~SLOT_OUTPUT].outputs.at[s->operand].value.id = value;
    return;
  }
  aoth_node_row_t *n = &p->nodes.at[s->owner];
  n->operands[s->operand] = value; /* VALUES arguments point here */
  if (n->args[s->arg].kind == AOT_ARG_VALUE) n->args[s->arg].u.i = (int64_t)value;
}

void aoth_node_use(aot_prog_t *p, uint32_t node) {
  const aoth_node_row_t *n = &p->nodes.at[node];
  for (uint32_t i = 0; i < n->n_operands; i++)
    if (n->operands[i] != NONE) aoth_use_append(p, n->slot_begin + i, n->operands[i]);
}

void aoth_node_unuse(aot_prog_t *p, uint32_t node) {
  const aoth_node_row_t *n = &p->nodes.at[node];
  for (uint32_t i = 0; i < n->n_operands; i++)
    if (n->operands[i] != NONE) aoth_use_unlink(p, n->slot_begin + i, n->operands[i]);
}

void aoth_node_reuse(aot_prog_t *p, uint32_t node) {
  const aoth_node_row_t *n = &p->nodes.at[node];
  for (uint32_t i = n->n_operands; i-- > 0;)
    if (n->operands[i] != NONE) aoth_use_relink(p, n->slot_begin + i, n->operands[i]);
}

void aoth_node_refs(aot_prog_t *p, const aot_arg_t *args, uint32_t n, int delta) {
  for (uint32_t i = 0; i < n; i++) {
    if (args[i].kind != AOT_ARG_GRAPH) continue;
    AOT_ASSERT(args[i].u.i > 0 && args[i].u.i < p->graphs.n);
    AOT_ASSERT(delta > 0 || p->graphs.at[args[i].u.i].n_refs > 0);
    p->graphs.at[args[i].u.i].n_refs += (uint32_t)delta;
  }
}

void aoth_node_link(aot_prog_t *p, uint32_t node, uint32_t before) {
  aoth_node_row_t *n = &p->nodes.at[node];
  aoth_graph_row_t *g = &p->graphs.at[n->graph];
  AOT_ASSERT(before == NONE || (node_is_alive(p, before) && p->nodes.at[before].graph == n->graph));
  n->next = before;
  n->prev = before == NONE ? g->last : p->nodes.at[before].prev;
  aoth_node_relink(p, node);
}

void aoth_node_relink(aot_prog_t *p, uint32_t node) {
  const aoth_node_row_t *n = &p->nodes.at[node];
  aoth_graph_row_t *g = &p->graphs.at[n->graph];
  AOT_ASSERT(node_follows(p, g, n->prev) == n->next && node_precedes(p, g, n->next) == n->prev);
  if (n->prev == NONE) g->first = node;
  else p->nodes.at[n->prev].next = node;
  if (n->next == NONE) g->last = node;
  else p->nodes.at[n->next].prev = node;
  g->n_nodes++;
}

void aoth_node_unlink(aot_prog_t *p, uint32_t node) {
  const aoth_node_row_t *n = &p->nodes.at[node];
  aoth_graph_row_t *g = &p->graphs.at[n->graph];
  AOT_ASSERT(g->n_nodes > 0 && node_follows(p, g, n->prev) == node && node_precedes(p, g, n->next) == node);
  if (n->prev == NONE) g->first = n->next;
  else p->nodes.at[n->prev].next = n->next;
  if (n->next == NONE) g->last = n->prev;
  else p->nodes.at[n->next].prev = n->prev;
  g->n_nodes--;
}

void aoth_node_alive(aot_prog_t *p, uint32_t node, int alive) {
  aoth_node_row_t *n = &p->nodes.at[node];
  AOT_ASSERT((n->alive != 0) != (alive != 0) && n->first_result + n->n_results <= p->values.n);
  n->alive = (uint32_t)alive;
  for (uint32_t i = 0; i < n->n_results; i++) {
    uint32_t *type = &p->values.at[n->first_result + i].type;
    *type = alive ? *type & ~VALUE_DEAD : *type | VALUE_DEAD;
  }
}

int aoth_graph_is_named(aot_prog_t *p, aot_graph_t g) { return g.id < p->graphs.n && p->graphs.at[g.id].n_refs > 0; }
