/* Editing graphs, their ports, and values: the rest of what <aot/edit.h> does to graphs.
 *
 * Every output port owns a slot, so that a use by an output and a use by a node are one thing to uses_replace,
 * O(uses). */
#include <aot/assert.h>
#include <ir/program_store.h>
#include <string.h>

static int role_names_leaf(int32_t role) {
  switch (role) {
    case AOT_ROLE_PARAMETER:
    case AOT_ROLE_BUFFER:
    case AOT_ROLE_CONSTANT:
    case AOT_ROLE_USER_INPUT:
    case AOT_ROLE_STATE:
    case AOT_ROLE_GRADIENT:
    case AOT_ROLE_UPDATE: return 1;
    default: return 0;
  }
}

static aot_status_t check_port(aot_prog_t *p, int32_t role, uint32_t index, int is_output) {
  if (role < AOT_ROLE_PARAMETER || role > AOT_ROLE_BASE)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-role", "there is no port role %d", (int)role);
  if (!aoth_role_allowed(role, is_output))
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-role", "role %s is not one of %s", aoth_role_name(role),
                         is_output ? "outputs" : "inputs");
  if (role_names_leaf(role) && (!index || index >= p->leaves.n))
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "port %s %u names leaf %u; there are %u", aoth_role_name(role),
                         aoth_port_number(role, index), aoth_port_number(role, index), p->leaves.n - 1);
  return AOT_OK;
}

int aoth_role_allowed(int32_t role, int is_output) {
  const uint32_t both = 1u << AOT_ROLE_SAVED | 1u << AOT_ROLE_GRADIENT | 1u << AOT_ROLE_OFFSET | 1u << AOT_ROLE_TOKEN |
                        1u << AOT_ROLE_REGION;
  const uint32_t out =
      both | 1u << AOT_ROLE_USER_OUTPUT | 1u << AOT_ROLE_LOSS | 1u << AOT_ROLE_UPDATE | 1u << AOT_ROLE_BASE;
  const uint32_t in = both | 1u << AOT_ROLE_PARAMETER | 1u << AOT_ROLE_BUFFER | 1u << AOT_ROLE_CONSTANT |
                      1u << AOT_ROLE_USER_INPUT | 1u << AOT_ROLE_STATE | 1u << AOT_ROLE_TANGENT | 1u << AOT_ROLE_HYPER |
                      1u << AOT_ROLE_SEED;
  AOT_ASSERT(role >= 0 && role < 32);
  return ((is_output ? out : in) >> role) & 1u;
}

int aoth_role_is_leaf(int32_t role) { return role_names_leaf(role); }
int aoth_role_counts_from_one(int32_t role) { return role_names_leaf(role) || role == AOT_ROLE_HYPER; }
uint32_t aoth_port_number(int32_t role, uint32_t index) { return index - (uint32_t)aoth_role_counts_from_one(role); }

/* A stored copy of a name as a row of names; row 0 for an empty one. */
static aot_status_t make_name(aot_prog_t *p, aot_str_t name, uint32_t *out) {
  *out = 0;
  if (!name.size) return AOT_OK;
  aot_str_t copy = aoth_store_text(p, name);
  if (!copy.data || !ROWS_ROOM(p->names, 1)) return aoth_no_memory(p, "a name", name.size);
  *out = p->names.n++;
  p->names.at[*out] = copy;
  return AOT_OK;
}

aot_status_t aoth_edit_graph_create(aot_prog_t *p, int32_t kind, aot_str_t name, aot_graph_t *out) {
  if (kind < AOT_GRAPH_FORWARD || kind > AOT_GRAPH_PART)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-kind", "there is no graph kind %d", (int)kind);
  aoth_graph_row_t g = {.kind = kind, .alive = 1, .name = aoth_store_text(p, name), .first = NONE, .last = NONE};
  if ((name.size && !g.name.data) || !ROWS_ROOM(p->graphs, 1)) return aoth_no_memory(p, "a graph", sizeof g);
  AOT_TRY(aoth_edit_begin(p));
  out->id = p->graphs.n;
  p->graphs.at[p->graphs.n++] = g;
  aoth_edit_record(p, EDIT_GRAPH_CREATE, out->id, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

void aoth_graph_alive(aot_prog_t *p, uint32_t graph, int alive) {
  aoth_graph_row_t *g = &p->graphs.at[graph];
  AOT_ASSERT((g->alive != 0) != (alive != 0) && !g->n_refs);
  g->alive = (uint32_t)alive;
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    uint32_t *type = &p->values.at[g->inputs.at[i].value.id].type;
    *type = alive ? *type & ~VALUE_DEAD : *type | VALUE_DEAD;
  }
  for (uint32_t n = g->first; n != NONE; n = p->nodes.at[n].next) {
    AOT_ASSERT(p->nodes.at[n].graph == graph);
    aoth_node_refs(p, p->nodes.at[n].args, p->nodes.at[n].n_args, alive ? 1 : -1);
    aoth_node_alive(p, n, alive);
  }
}

aot_status_t aoth_edit_graph_erase(aot_prog_t *p, aot_graph_t g) {
  AOT_TRY(aoth_need_graph(p, g));
  if (p->graphs.at[g.id].n_refs)
    return aoth_diagnose(p, AOT_E_PRECONDITION, "ir.still-used",
                         "graph %u cannot be erased: %u nodes name it as a region", g.id, p->graphs.at[g.id].n_refs);
  AOT_TRY(aoth_edit_begin(p));
  aoth_graph_alive(p, g.id, 0);
  aoth_edit_record(p, EDIT_GRAPH_ERASE, g.id, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

aot_status_t aoth_edit_input_add(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, const aot_type_t *t,
                                 aot_str_t name, aot_value_t *out) {
  uint32_t type, named;
  AOT_TRY(aoth_need_graph(p, g));
  AOT_TRY(check_port(p, role, index, 0));
  AOT_TRY(aoth_type_intern(p, t, &type));
  AOT_TRY(make_name(p, name, &named));
  aoth_graph_row_t *row = &p->graphs.at[g.id];
  if (!ROWS_ROOM(p->values, 1) || !ROWS_ROOM(row->inputs, 1))
    return aoth_no_memory(p, "a graph input", sizeof(aot_port_t));
  AOT_TRY(aoth_edit_begin(p));
  out->id = p->values.n;
  aoth_value_row_t v = {
      .type = type,
      .def = NONE,
      .graph = g.id,
      .index = row->inputs.n,
      .first_use = NONE,
      .last_use = NONE,
      .name = named,
  };
  aot_port_t port = {.role = role, .index = index, .value = *out, .name = p->names.at[named]};
  p->values.at[p->values.n++] = v;
  row->inputs.at[row->inputs.n++] = port;
  aoth_edit_record(p, EDIT_INPUT_ADD, g.id, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

aot_status_t aoth_edit_input_erase(aot_prog_t *p, aot_graph_t g, uint32_t i) {
  AOT_TRY(aoth_need_graph(p, g));
  aoth_graph_row_t *row = &p->graphs.at[g.id];
  if (i >= row->inputs.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "graph %u has %u inputs, there is no input %u", g.id,
                         row->inputs.n, i);
  uint32_t value = row->inputs.at[i].value.id;
  AOT_ASSERT(p->values.at[value].def == NONE && p->values.at[value].index == i && p->values.at[value].graph == g.id);
  if (p->values.at[value].n_uses)
    return aoth_diagnose(p, AOT_E_PRECONDITION, "ir.still-used", "input %u of graph %u still has %u uses", i, g.id,
                         p->values.at[value].n_uses);
  const aot_port_t *old = kit_arena_copy(p->store, 8, &row->inputs.at[i], sizeof *old);
  if (!old) return aoth_no_memory(p, "a graph input", sizeof *old);
  AOT_TRY(aoth_edit_begin(p));
  p->values.at[value].type |= VALUE_DEAD;
  row->inputs.n--;
  for (uint32_t k = i; k < row->inputs.n; k++) {
    row->inputs.at[k] = row->inputs.at[k + 1];
    p->values.at[row->inputs.at[k].value.id].index = k;
  }
  aoth_edit_record(p, EDIT_INPUT_ERASE, g.id, i, 0, 0, 0, old);
  return AOT_OK;
}

static aot_status_t check_output_value(aot_prog_t *p, aot_graph_t g, aot_value_t v) {
  if (v.id == NONE) return AOT_OK;
  AOT_TRY(aoth_need_value(p, v));
  if (p->values.at[v.id].graph != g.id)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.other-graph", "an output of graph %u cannot be value %u of graph %u",
                         g.id, v.id, p->values.at[v.id].graph);
  return AOT_OK;
}

aot_status_t aoth_edit_output_add(aot_prog_t *p, aot_graph_t g, int32_t role, uint32_t index, aot_value_t v,
                                  aot_str_t name) {
  AOT_TRY(aoth_need_graph(p, g));
  AOT_TRY(check_port(p, role, index, 1));
  AOT_TRY(check_output_value(p, g, v));
  aoth_graph_row_t *row = &p->graphs.at[g.id];
  aot_port_t port = {.role = role, .index = index, .value = v, .name = aoth_store_text(p, name)};
  if ((name.size && !port.name.data) || !ROWS_ROOM(row->outputs, 1) || !ROWS_ROOM(row->output_slots, 1) ||
      !ROWS_ROOM(p->slots, 1))
    return aoth_no_memory(p, "a graph output", sizeof port);
  AOT_TRY(aoth_edit_begin(p));
  AOT_ASSERT(row->outputs.n == row->output_slots.n);
  aoth_slot_row_t slot = {.owner = g.id | SLOT_OUTPUT, .operand = row->outputs.n, .prev = NONE, .next = NONE};
  row->outputs.at[row->outputs.n++] = port;
  row->output_slots.at[row->output_slots.n++] = p->slots.n;
  p->slots.at[p->slots.n++] = slot;
  if (v.id != NONE) aoth_use_append(p, p->slots.n - 1, v.id);
  aoth_edit_record(p, EDIT_OUTPUT_ADD, g.id, 0, 0, 0, 0, NULL);
  return AOT_OK;
}

aot_status_t aoth_edit_output_set(aot_prog_t *p, aot_graph_t g, uint32_t i, aot_value_t v) {
  AOT_TRY(aoth_need_graph(p, g));
  AOT_TRY(check_output_value(p, g, v));
  aoth_graph_row_t *row = &p->graphs.at[g.id];
  if (i >= row->outputs.n)
    return aoth_diagnose(p, AOT_E_RANGE, "ir.bad-id", "graph %u has %u outputs, there is no output %u", g.id,
                         row->outputs.n, i);
  uint32_t slot = row->output_slots.at[i], old = row->outputs.at[i].value.id;
  if (old == v.id) return AOT_OK;
  AOT_ASSERT(p->slots.at[slot].owner == (g.id | SLOT_OUTPUT) && p->slots.at[slot].operand == i);
  AOT_TRY(aoth_edit_begin(p));
  aoth_edit_record(p, EDIT_OUTPUT_SET, g.id, i, old, p->slots.at[slot].prev, p->slots.at[slot].next, NULL);
  if (old != NONE) aoth_use_unlink(p, slot, old);
  aoth_slot_store(p, slot, v.id);
  if (v.id != NONE) aoth_use_append(p, slot, v.id);
  return AOT_OK;
}

aot_status_t aoth_edit_outputs_clear(aot_prog_t *p, aot_graph_t g) {
  AOT_TRY(aoth_need_graph(p, g));
  aoth_graph_row_t *row = &p->graphs.at[g.id];
  if (!row->outputs.n) return AOT_OK;
  aoth_saved_outputs_t saved = {.n = row->outputs.n};
  AOT_ASSERT(row->output_slots.n == saved.n);
  saved.ports = kit_arena_copy(p->store, 8, row->outputs.at, saved.n * sizeof *saved.ports);
  saved.slots = kit_arena_copy(p->store, 8, row->output_slots.at, saved.n * sizeof *saved.slots);
  const aoth_saved_outputs_t *kept = kit_arena_copy(p->store, 8, &saved, sizeof saved);
  if (!saved.ports || !saved.slots || !kept) return aoth_no_memory(p, "graph outputs", saved.n * sizeof *saved.ports);
  AOT_TRY(aoth_edit_begin(p));
  for (uint32_t i = 0; i < row->outputs.n; i++)
    if (row->outputs.at[i].value.id != NONE) aoth_use_unlink(p, row->output_slots.at[i], row->outputs.at[i].value.id);
  row->outputs.n = row->output_slots.n = 0;
  aoth_edit_record(p, EDIT_OUTPUTS_CLEAR, g.id, 0, 0, 0, 0, kept);
  return AOT_OK;
}

aot_status_t aoth_edit_uses_replace(aot_prog_t *p, aot_value_t from, aot_value_t to) {
  AOT_TRY(aoth_need_value(p, from));
  AOT_TRY(aoth_need_value(p, to));
  aoth_value_row_t *f = &p->values.at[from.id], *t = &p->values.at[to.id];
  int32_t kind_from = value_type_of(p, from.id)->kind, kind_to = value_type_of(p, to.id)->kind;
  if (f->graph != t->graph)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.other-graph", "value %u of graph %u cannot replace value %u of graph %u",
                         to.id, t->graph, from.id, f->graph);
  if (from.id == to.id || !f->n_uses) return AOT_OK;
  if (kind_from != kind_to && kind_from != AOT_TYPE_NONE && kind_to != AOT_TYPE_NONE)
    return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-argument",
                         "value %u is another kind of thing than value %u, which it replaces", to.id, from.id);
  AOT_ASSERT(p->slots.at[f->first_use].prev == NONE && p->slots.at[f->last_use].next == NONE);
  AOT_TRY(aoth_edit_begin(p));
  aoth_edit_record(p, EDIT_USES_REPLACE, from.id, to.id, f->n_uses, f->first_use, f->last_use, NULL);
  for (uint32_t slot = f->first_use; slot != NONE; slot = p->slots.at[slot].next) aoth_slot_store(p, slot, to.id);
  p->slots.at[f->first_use].prev = t->last_use;
  if (t->last_use == NONE) t->first_use = f->first_use;
  else p->slots.at[t->last_use].next = f->first_use;
  t->last_use = f->last_use;
  t->n_uses += f->n_uses;
  f->first_use = f->last_use = NONE;
  f->n_uses = 0;
  return AOT_OK;
}

aot_status_t aoth_edit_type_set(aot_prog_t *p, aot_value_t v, const aot_type_t *t) {
  uint32_t type;
  AOT_TRY(aoth_need_value(p, v));
  AOT_TRY(aoth_type_intern(p, t, &type));
  if (p->values.at[v.id].type == type) return AOT_OK;
  AOT_TRY(aoth_edit_begin(p));
  aoth_edit_record(p, EDIT_TYPE_SET, v.id, p->values.at[v.id].type, 0, 0, 0, NULL);
  p->values.at[v.id].type = type;
  return AOT_OK;
}

void aoth_value_rename(aot_prog_t *p, uint32_t value, uint32_t name) {
  aoth_value_row_t *v = &p->values.at[value];
  AOT_ASSERT(name < p->names.n);
  v->name = name;
  if (v->def != NONE) return;
  aot_port_t *port = &p->graphs.at[v->graph].inputs.at[v->index];
  AOT_ASSERT(port->value.id == value);
  port->name = p->names.at[name]; /* an input and its port share one */
}

aot_status_t aoth_edit_name_set(aot_prog_t *p, aot_value_t v, aot_str_t name) {
  uint32_t named;
  AOT_TRY(aoth_need_value(p, v));
  AOT_TRY(make_name(p, name, &named));
  AOT_TRY(aoth_edit_begin(p));
  aoth_edit_record(p, EDIT_NAME_SET, v.id, p->values.at[v.id].name, 0, 0, 0, NULL);
  aoth_value_rename(p, v.id, named);
  return AOT_OK;
}
