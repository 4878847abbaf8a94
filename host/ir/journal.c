/* The journal: what each edit replaced, so that all edits since `begin` can be taken back, newest first.
 *
 * u[] of each kind, as recorded by edit.c and its neighbours (first column: what undo needs):
 *   graph_create g            graph_erase g             input_add g          input_erase g i   p: the port
 *   output_add g              output_set g i old prev next                   outputs_clear g   p: saved_outputs_t
 *   node_create n typed       node_erase n              operand_set n operand old prev next
 *   arg_set n arg 0           p: the old argument;      arg_set n arg 1      p: the old row with its body
 *   uses_replace from to count first last               type_set v old       flags_set n old   name_set v old
 *   leaf_create, rule_add, origin_create, encoding_create, symbol_create, expr_create: the newest row of its array
 *
 * Because undo runs strictly backwards, the state it finds is the state right after the edit: ids are taken back by
 * shortening arrays, and list neighbours are where they were. So is all that the edit put in: redo.c reads it there, to
 * make the edit again. begin nests; commit of an inner begin keeps its records
 * for the outer one. Memory: 32 bytes an edit, and the replaced bodies. The record of an edit has its room before the
 * edit is made; an edit without it is not made, and then the journal is not whole, whatever becomes of the edit's
 * status. */
#include <base/debug_assert.h>
#include <inttypes.h>
#include <ir/program_store.h>
#include <ir/words.h>
#include <stdlib.h>
#include <string.h>

aot_status_t aoth_edit_begin(aot_prog_t *p) {
  if (p->has_journal && !ROWS_ROOM(p->edits, 1)) return aoth_no_memory(p, "the journal", sizeof *p->edits.at);
  p->generation++;
  return AOT_OK;
}

void aoth_edit_record(aot_prog_t *p, uint32_t kind, uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e,
                      const void *ptr) {
  if (!p->has_journal) return;
  AOT_ASSERT(p->edits.n < p->edits.capacity); /* aoth_edit_begin has made room */
  edit_row_t row = {.kind = kind, .u = {a, b, c, d, e}, .p = ptr};
  p->edits.at[p->edits.n++] = row;
}

aot_status_t aoth_journal_begin(aot_prog_t *p) {
  if (!ROWS_ROOM(p->marks, 1)) return aoth_no_memory(p, "the journal", sizeof *p->marks.at);
  if (!p->has_journal) p->lacked_memory = 0;
  p->marks.at[p->marks.n++] = p->edits.n;
  p->has_journal = 1;
  return AOT_OK;
}

int aoth_journal_is_whole(const aot_prog_t *p) { return !p->lacked_memory; }

static uint32_t mark_of(const aot_prog_t *p) { return p->marks.n ? p->marks.at[p->marks.n - 1] : p->edits.n; }

uint64_t aoth_journal_count(aot_prog_t *p) { return p->edits.n - mark_of(p); }

static void end(aot_prog_t *p) {
  if (p->marks.n) p->marks.n--;
  p->has_journal = p->marks.n > 0;
  if (p->has_journal) return;
  free(p->edits.at); /* of a large program the journal is large; the next stage starts with none */
  memset(&p->edits, 0, sizeof p->edits);
}

void aoth_journal_commit(aot_prog_t *p) { end(p); }

static void undo_node_create(aot_prog_t *p, uint32_t node) {
  const node_row_t *r = &p->nodes.at[node];
  AOT_ASSERT(node + 1 == p->nodes.n && r->first_result + r->n_results == p->values.n &&
             r->slot_begin + r->n_operands == p->slots.n);
  aoth_node_refs(p, r->args, r->n_args, -1);
  for (uint32_t i = r->n_operands; i-- > 0;)
    if (r->operands[i] != NONE) aoth_use_unlink(p, r->slot_begin + i, r->operands[i]);
  aoth_node_unlink(p, node);
  p->slots.n = r->slot_begin;
  p->values.n = r->first_result;
  p->nodes.n = node;
}

static void undo_node_erase(aot_prog_t *p, uint32_t node) {
  const node_row_t *r = &p->nodes.at[node];
  aoth_node_alive(p, node, 1);
  aoth_node_relink(p, node);
  aoth_node_refs(p, r->args, r->n_args, 1);
  aoth_node_reuse(p, node);
}

/* A slot that was moved to another value goes back between its old neighbours. */
static void undo_slot_set(aot_prog_t *p, uint32_t slot, uint32_t old, uint32_t prev, uint32_t next) {
  uint32_t now = aoth_slot_value(p, slot);
  if (now != NONE) aoth_use_unlink(p, slot, now);
  aoth_slot_store(p, slot, old);
  p->slots.at[slot].prev = prev;
  p->slots.at[slot].next = next;
  if (old != NONE) aoth_use_relink(p, slot, old);
}

static void undo_arg_set(aot_prog_t *p, const edit_row_t *e) {
  node_row_t *r = &p->nodes.at[e->u[0]];
  if (!e->u[2]) {
    r->args[e->u[1]] = *(const aot_arg_t *)e->p;
    return;
  }
  const node_row_t *old = e->p;
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

static void undo_uses_replace(aot_prog_t *p, const edit_row_t *e) {
  uint32_t first = e->u[3], last = e->u[4], n_moved = 0;
  value_row_t *from = &p->values.at[e->u[0]], *to = &p->values.at[e->u[1]];
  to->last_use = p->slots.at[first].prev; /* what was moved stands at the end of the list */
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

static void undo_input_erase(aot_prog_t *p, const edit_row_t *e) {
  graph_row_t *g = &p->graphs.at[e->u[0]];
  const aot_port_t *port = e->p;
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
  graph_row_t *g = &p->graphs.at[graph];
  uint32_t i = --g->outputs.n;
  uint32_t slot = g->output_slots.at[--g->output_slots.n];
  if (g->outputs.at[i].value.id != NONE) aoth_use_unlink(p, slot, g->outputs.at[i].value.id);
  p->slots.n = slot;
}

static void undo_outputs_clear(aot_prog_t *p, const edit_row_t *e) {
  graph_row_t *g = &p->graphs.at[e->u[0]];
  const saved_outputs_t *saved = e->p;
  memcpy(g->outputs.at, saved->ports, saved->n * sizeof *saved->ports);
  memcpy(g->output_slots.at, saved->slots, saved->n * sizeof *saved->slots);
  g->outputs.n = g->output_slots.n = saved->n;
  for (uint32_t i = saved->n; i-- > 0;)
    if (saved->ports[i].value.id != NONE) aoth_use_relink(p, saved->slots[i], saved->ports[i].value.id);
}

static void undo_input_add(aot_prog_t *p, uint32_t graph) {
  graph_row_t *g = &p->graphs.at[graph];
  AOT_ASSERT(g->inputs.n > 0 && g->inputs.at[g->inputs.n - 1].value.id + 1 == p->values.n);
  g->inputs.n--;
  p->values.n--;
}

static void undo_one(aot_prog_t *p, const edit_row_t *e) {
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
    case EDIT_LEAF_CREATE: p->leaves.n--; break;
    case EDIT_RULE_ADD: p->rules.n--; break;
    case EDIT_ORIGIN_CREATE: aoth_origin_forget(p); break;
    case EDIT_ENCODING_CREATE: aoth_encoding_forget(p); break;
    case EDIT_SYMBOL_CREATE: p->symbols.n--; break;
    case EDIT_EXPR_CREATE: aoth_expr_forget(p); break;
    default: break; /* EDIT_NOTE */
  }
}

const edit_row_t *aoth_journal_newest(const aot_prog_t *p) {
  return p->edits.n > mark_of(p) ? &p->edits.at[p->edits.n - 1] : NULL;
}

void aoth_journal_undo_newest(aot_prog_t *p) { undo_one(p, &p->edits.at[--p->edits.n]); }

void aoth_journal_undo(aot_prog_t *p) {
  while (aoth_journal_newest(p)) aoth_journal_undo_newest(p);
  p->generation++; /* another program than before, whatever it equals */
  end(p);
}

/* ---- printing ---- */
static void print_node_name(aot_prog_t *p, uint32_t node, aoth_text_t *out) {
  aoth_text_f(out, "node %u", node);
  if (node < p->nodes.n) aoth_text_f(out, " %.*s", STR_ARGS(op_name(p, p->nodes.at[node].op)));
}

static void print_created(aot_prog_t *p, uint32_t node, aoth_text_t *out) {
  aot_node_t n = {node};
  aoth_text_f(out, "node_create %u: ", node);
  aoth_print_node(p, n, out);
}

static void print_edit(aot_prog_t *p, const edit_row_t *e, aoth_text_t *out) {
  switch (e->kind) {
    case EDIT_NODE_CREATE: print_created(p, e->u[0], out); break;
    case EDIT_NODE_ERASE:
    case EDIT_FLAGS_SET:
    case EDIT_OPERAND_SET:
    case EDIT_ARG_SET:
    case EDIT_NOTE:
      aoth_text_f(out, "%s ", aoth_edit_name(e->kind));
      print_node_name(p, e->u[0], out);
      if (e->kind == EDIT_OPERAND_SET) aoth_text_f(out, " operand %u, was value %" PRIu32, e->u[1], e->u[2]);
      if (e->kind == EDIT_ARG_SET) aoth_text_f(out, " argument %u", e->u[1]);
      if (e->kind == EDIT_NOTE) aoth_text_f(out, ": %s", (const char *)e->p);
      break;
    case EDIT_USES_REPLACE:
      aoth_text_f(out, "uses_replace value %u by value %u, %u uses", e->u[0], e->u[1], e->u[2]);
      break;
    case EDIT_OUTPUT_SET: aoth_text_f(out, "output_set graph %u output %u", e->u[0], e->u[1]); break;
    case EDIT_INPUT_ERASE: aoth_text_f(out, "input_erase graph %u input %u", e->u[0], e->u[1]); break;
    default: aoth_text_f(out, "%s %u", aoth_edit_name(e->kind), e->u[0]); break;
  }
  aoth_text_z(out, "\n");
}

void aoth_journal_print(aot_prog_t *p, aoth_text_t *out) {
  for (uint32_t i = mark_of(p); i < p->edits.n; i++) print_edit(p, &p->edits.at[i], out);
}
