/* Taking edits back, newest first.
 *
 * Because undo runs strictly backwards, the state it finds is the state right after the edit: ids are undone by
 * shortening arrays, and list neighbours are where they were. So is all that the edit put in: redo.c reads it there, to
 * make the edit again. */
#include <aot/assert.h>
#include <ir/program_store.h>
#include <string.h>

static int are_unused(const aot_prog_t *p, const aoth_node_row_t *r) {
  for (uint32_t i = 0; i < r->n_results; i++)
    if (p->values.at[r->first_result + i].n_uses) return 0;
  return 1;
}

static void undo_node_create(aot_prog_t *p, uint32_t node) {
  const aoth_node_row_t *r = &p->nodes.at[node];
  AOT_ASSERT(node + 1 == p->nodes.n && r->first_result + r->n_results == p->values.n &&
             r->slot_begin + r->n_operands == p->slots.n);
  AOT_ASSERT(r->alive && are_unused(p, r));
  aoth_node_refs(p, r->args, r->n_args, -1);
  for (uint32_t i = r->n_operands; i-- > 0;)
    if (r->operands[i] != NONE) aoth_use_unlink(p, r->slot_begin + i, r->operands[i]);
  aoth_node_unlink(p, node);
  p->slots.n = r->slot_begin;
  p->values.n = r->first_result;
  p->nodes.n = node;
}

static void undo_node_erase(aot_prog_t *p, uint32_t node) {
  const aoth_node_row_t *r = &p->nodes.at[node];
  AOT_ASSERT(!r->alive && graph_is_alive(p, r->graph));
  aoth_node_alive(p, node, 1);
  aoth_node_relink(p, node);
  aoth_node_refs(p, r->args, r->n_args, 1);
  aoth_node_reuse(p, node);
}

/* A slot that was moved to another value goes back between its old neighbours. */
static void undo_slot_set(aot_prog_t *p, uint32_t slot, uint32_t old, uint32_t prev, uint32_t next) {
  uint32_t now = aoth_slot_value(p, slot);
  AOT_ASSERT(now != old); /* else there was no edit */
  if (now != NONE) aoth_use_unlink(p, slot, now);
  aoth_slot_store(p, slot, old);
  p->slots.at[slot].prev = prev;
  p->slots.at[slot].next = next;
  if (old != NONE) aoth_use_relink(p, slot, old);
}

static void undo_arg_set(aot_prog_t *p, const aoth_edit_row_t *e) {
  aoth_node_row_t *r = &p->nodes.at[e->u[0]];
  if (!e->u[2]) {
    r->args[e->u[1]] = *(const aot_arg_t *)e->p;
    return;
  }
  const aoth_node_row_t *old = e->p;
  AOT_ASSERT(old->n_args == r->n_args && r->slot_begin + r->n_operands == p->slots.n);
  aoth_node_refs(p, r->args, r->n_args, -1);
  aoth_node_unuse(p, e->u[0]);
  p->slots.n = r->slot_begin;
  r->args = old->args;
  r->operands = old->operands;
  r->n_operands = old->n_operands;
  r->slot_begin = old->slot_begin;
  aoth_node_refs(p, r->args, r->n_args, 1);
  aoth_node_reuse(p, e->u[0]);
}

static void undo_uses_replace(aot_prog_t *p, const aoth_edit_row_t *e) {
  uint32_t first = e->u[3], last = e->u[4], n_moved = 0;
  aoth_value_row_t *from = &p->values.at[e->u[0]], *to = &p->values.at[e->u[1]];
  AOT_ASSERT(from->n_uses == 0 && to->n_uses >= e->u[2] && to->last_use == last);
  to->last_use = p->slots.at[first].prev; /* what was moved is at the end of the list */
  if (to->last_use == NONE) to->first_use = NONE;
  else p->slots.at[to->last_use].next = NONE;
  to->n_uses -= e->u[2];
  p->slots.at[first].prev = NONE;
  from->first_use = first;
  from->last_use = last;
  from->n_uses = e->u[2];
  for (uint32_t slot = first; slot != NONE; slot = p->slots.at[slot].next, n_moved++) aoth_slot_store(p, slot, e->u[0]);
  AOT_ASSERT(n_moved == e->u[2]);
}

static void undo_input_erase(aot_prog_t *p, const aoth_edit_row_t *e) {
  aoth_graph_row_t *g = &p->graphs.at[e->u[0]];
  const aot_port_t *port = e->p;
  AOT_ASSERT(e->u[1] <= g->inputs.n && g->inputs.n < g->inputs.capacity); /* arrays of ports never shrink */
  for (uint32_t k = g->inputs.n; k > e->u[1]; k--) {
    g->inputs.at[k] = g->inputs.at[k - 1];
    p->values.at[g->inputs.at[k].value.id].index = k;
  }
  g->inputs.at[e->u[1]] = *port;
  g->inputs.n++;
  p->values.at[port->value.id].type &= ~VALUE_DEAD;
  p->values.at[port->value.id].index = e->u[1];
}

static void undo_output_add(aot_prog_t *p, uint32_t graph) {
  aoth_graph_row_t *g = &p->graphs.at[graph];
  uint32_t i = --g->outputs.n;
  uint32_t slot = g->output_slots.at[--g->output_slots.n];
  AOT_ASSERT(g->output_slots.n == i && slot + 1 == p->slots.n);
  if (g->outputs.at[i].value.id != NONE) aoth_use_unlink(p, slot, g->outputs.at[i].value.id);
  p->slots.n = slot;
}

static void undo_outputs_clear(aot_prog_t *p, const aoth_edit_row_t *e) {
  aoth_graph_row_t *g = &p->graphs.at[e->u[0]];
  const aoth_saved_outputs_t *saved = e->p;
  AOT_ASSERT(g->outputs.n == 0 && saved->n <= g->outputs.capacity && saved->n <= g->output_slots.capacity);
  memcpy(g->outputs.at, saved->ports, saved->n * sizeof *saved->ports);
  memcpy(g->output_slots.at, saved->slots, saved->n * sizeof *saved->slots);
  g->outputs.n = g->output_slots.n = saved->n;
  for (uint32_t i = saved->n; i-- > 0;)
    if (saved->ports[i].value.id != NONE) aoth_use_relink(p, saved->slots[i], saved->ports[i].value.id);
}

static void undo_input_add(aot_prog_t *p, uint32_t graph) {
  aoth_graph_row_t *g = &p->graphs.at[graph];
  AOT_ASSERT(g->inputs.n > 0 && g->inputs.at[g->inputs.n - 1].value.id + 1 == p->values.n);
  g->inputs.n--;
  p->values.n--;
}

static void undo_one(aot_prog_t *p, const aoth_edit_row_t *e) {
  switch (e->kind) {
    case EDIT_GRAPH_CREATE: aoth_graph_free(&p->graphs.at[--p->graphs.n]); break;
    case EDIT_GRAPH_ERASE: aoth_graph_alive(p, e->u[0], 1); break;
    case EDIT_INPUT_ADD: undo_input_add(p, e->u[0]); break;
    case EDIT_INPUT_ERASE: undo_input_erase(p, e); break;
    case EDIT_OUTPUT_ADD: undo_output_add(p, e->u[0]); break;
    case EDIT_OUTPUT_SET:
      undo_slot_set(p, p->graphs.at[e->u[0]].output_slots.at[e->u[1]], e->u[2], e->u[3], e->u[4]);
      break;
    case EDIT_OUTPUTS_CLEAR: undo_outputs_clear(p, e); break;
    case EDIT_NODE_CREATE: undo_node_create(p, e->u[0]); break;
    case EDIT_NODE_ERASE: undo_node_erase(p, e->u[0]); break;
    case EDIT_OPERAND_SET:
      undo_slot_set(p, p->nodes.at[e->u[0]].slot_begin + e->u[1], e->u[2], e->u[3], e->u[4]);
      break;
    case EDIT_ARG_SET: undo_arg_set(p, e); break;
    case EDIT_USES_REPLACE: undo_uses_replace(p, e); break;
    case EDIT_TYPE_SET: p->values.at[e->u[0]].type = e->u[1]; break;
    case EDIT_FLAGS_SET: p->nodes.at[e->u[0]].flags = e->u[1]; break;
    case EDIT_NAME_SET: aoth_value_rename(p, e->u[0], e->u[1]); break;
    case EDIT_LEAF_CREATE:
      AOT_ASSERT(e->u[0] + 1 == p->leaves.n);
      p->leaves.n--;
      p->n_unbacked_leaves = UINT32_MAX; /* its symbols may be unbacked now (dim_order.c) */
      break;
    case EDIT_LEAF_PART: p->leaves.at[e->u[0]] = *(const aot_leaf_info_t *)e->p; break;
    case EDIT_RULE_ADD: p->rules.n--; break;
    case EDIT_ORIGIN_CREATE: aoth_origin_forget(p); break;
    case EDIT_ENCODING_CREATE: aoth_encoding_forget(p); break;
    case EDIT_SYMBOL_CREATE: p->symbols.n--; break;
    case EDIT_EXPR_CREATE: aoth_expr_forget(p); break;
    case EDIT_GUARD_ADD: aoth_guard_forget(p); break;
    default: break; /* EDIT_NOTE */
  }
}

void aoth_journal_undo_newest(aot_prog_t *p) {
  AOT_ASSERT(aoth_journal_newest(p));
  undo_one(p, &p->edits.at[--p->edits.n]);
}

void aoth_journal_undo(aot_prog_t *p) {
  while (aoth_journal_newest(p)) aoth_journal_undo_newest(p);
  p->generation++; /* another program than before, whatever it equals */
  aoth_journal_taken(p);
}
