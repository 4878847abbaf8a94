#include <ir/redo.h>

#include <aot/assert.h>
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>

const char *aoth_edit_name(uint32_t kind) {
  switch (kind) {
#define NAME_CASE(name, number, text)                                                                                  \
  case number: return text;
    AOTH_EDIT_MAP(NAME_CASE)
#undef NAME_CASE
    default: return "?";
  }
}

/* ---- out of the program: what is there right after the edit; NULL: no memory ---- */

/* Where rows go. What they point to goes along, or, for one who looks at it at once, stays in the program. */
typedef struct edit_room {
  kit_arena_t *arena;
  union borrowed *row; /* that is looked at at once; NULL: it is stored */
} edit_room_t;

#define FEW 8

typedef union borrowed {
  struct {
    aoth_made_node_t made;
    uint32_t types[FEW];
  } node;
  aot_str_t text;
  aoth_input_t input;
  aot_port_t port;
  aot_arg_t arg;
  aot_type_t type;
  aot_leaf_info_t leaf;
  aot_rule_t rule;
  aot_origin_info_t origin;
  aot_symbol_info_t symbol;
  aot_expr_info_t expr;
  aot_encoding_info_t encoding;
} borrowed_t;

static const void *put(const edit_room_t *r, const void *row, size_t nbytes) {
  AOT_ASSERT(!r->row || nbytes <= sizeof *r->row);
  return r->row ? memcpy(r->row, row, nbytes) : kit_arena_copy(r->arena, 8, row, nbytes);
}

static const void *keep(const edit_room_t *r, const void *at, size_t nbytes) {
  static const int64_t nothing;
  if (nbytes == 0) return &nothing;
  return r->row ? at : kit_arena_copy(r->arena, 8, at, nbytes);
}

static int keep_text(const edit_room_t *a, aot_str_t *s) {
  s->data = keep(a, s->data, (size_t)s->size);
  return s->data != NULL;
}

static const aot_str_t *text_of(const edit_room_t *a, aot_str_t s) {
  return keep_text(a, &s) ? put(a, &s, sizeof s) : NULL;
}

static int keep_type(const edit_room_t *a, aot_type_t *t) {
  const size_t nbytes = (size_t)t->rank * sizeof *t->sizes;
  t->sizes = keep(a, t->sizes, nbytes);
  t->strides = keep(a, t->strides, nbytes);
  return t->sizes && t->strides;
}

static int keep_arg(const edit_room_t *a, aot_arg_t *arg) {
  switch (arg->kind) {
    case AOT_ARG_VALUES: return (arg->u.ids = keep(a, arg->u.ids, arg->n * sizeof *arg->u.ids)) != NULL;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: return (arg->u.ints = keep(a, arg->u.ints, arg->n * sizeof *arg->u.ints)) != NULL;
    case AOT_ARG_FLOATS: return (arg->u.floats = keep(a, arg->u.floats, arg->n * sizeof *arg->u.floats)) != NULL;
    case AOT_ARG_STR: return (arg->u.chars = keep(a, arg->u.chars, arg->n)) != NULL;
    default: return 1;
  }
}

/* Result types as they are, or, of a row that is looked at at once, their numbers. */
static aot_type_t *result_types(const edit_room_t *a, const aot_prog_t *p, const aoth_node_row_t *r) {
  aot_type_t *types = kit_arena_alloc(a->arena, 8, (r->n_results + (size_t)1) * sizeof *types);
  for (uint32_t i = 0; i < r->n_results && types; i++) {
    types[i] = *value_type_of(p, r->first_result + i);
    if (!keep_type(a, &types[i])) return NULL;
  }
  return types;
}

static uint32_t *result_numbers(const edit_room_t *a, const aot_prog_t *p, const aoth_node_row_t *r) {
  uint32_t *numbers = a->row->node.types;
  if (r->n_results > FEW) {
    kit_arena_reset(a->arena);
    numbers = kit_arena_alloc(a->arena, 8, r->n_results * sizeof *numbers);
  }
  for (uint32_t i = 0; i < r->n_results && numbers; i++)
    numbers[i] = p->values.at[r->first_result + i].type & ~VALUE_DEAD;
  return numbers;
}

static aot_arg_t *kept_args(const edit_room_t *a, const aoth_node_row_t *r) {
  aot_arg_t *args = kit_arena_alloc(a->arena, 8, (r->n_args + (size_t)1) * sizeof *args);
  for (uint32_t i = 0; i < r->n_args && args; i++) {
    args[i] = r->args[i];
    if (!keep_arg(a, &args[i])) return NULL;
  }
  return args;
}

static const void *made_node(const edit_room_t *a, const aot_prog_t *p, const aoth_edit_row_t *e) {
  const aoth_node_row_t *r = &p->nodes.at[e->u[0]];
  const aot_arg_t *args = a->row ? r->args : kept_args(a, r);
  const aot_type_t *types = a->row ? NULL : result_types(a, p, r);
  uint32_t *numbers = a->row ? result_numbers(a, p, r) : NULL;
  if ((!args && r->n_args) || (!types && !numbers)) return NULL;
  const aoth_made_node_t made = {
      .spec =
          {
              .struct_size = sizeof made.spec,
              .flags = r->flags,
              .op = {r->op},
              .n_args = r->n_args,
              .args = args,
              .n_types = types ? r->n_results : 0,
              .region_tag = r->region_tag,
              .types = types,
              .origin = {r->origin},
          },
      .before = r->next,
      .is_typed = e->u[1],
      .n_types = numbers ? r->n_results : 0,
      .types = numbers,
  };
  return put(a, &made, sizeof made);
}

static const void *added_input(const edit_room_t *a, const aot_prog_t *p, const aoth_graph_row_t *g) {
  aoth_input_t in = {.port = g->inputs.at[g->inputs.n - 1]};
  AOT_ASSERT(in.port.value.id + 1 == p->values.n);
  in.type = *value_type_of(p, in.port.value.id);
  return keep_text(a, &in.port.name) && keep_type(a, &in.type) ? put(a, &in, sizeof in) : NULL;
}

static const void *added_output(const edit_room_t *a, const aoth_graph_row_t *g) {
  aot_port_t out = g->outputs.at[g->outputs.n - 1];
  return keep_text(a, &out.name) ? put(a, &out, sizeof out) : NULL;
}

static const void *set_arg(const edit_room_t *a, const aot_prog_t *p, const aoth_edit_row_t *e) {
  aot_arg_t arg = p->nodes.at[e->u[0]].args[e->u[1]];
  return keep_arg(a, &arg) ? put(a, &arg, sizeof arg) : NULL;
}

static const void *set_type(const edit_room_t *a, const aot_prog_t *p, uint32_t value) {
  aot_type_t t = *value_type_of(p, value);
  return keep_type(a, &t) ? put(a, &t, sizeof t) : NULL;
}

static const void *leaf_of(const edit_room_t *a, const aot_prog_t *p, uint32_t leaf) {
  aot_leaf_info_t l = p->leaves.at[leaf];
  if (a->row) return put(a, &l, sizeof l);
  aot_str_t *names = kit_arena_alloc(a->arena, 8, (l.n_names + (size_t)1) * sizeof *names);
  if (!names || !keep_type(a, &l.type)) return NULL;
  for (uint32_t i = 0; i < l.n_names; i++) {
    names[i] = l.names[i];
    if (!keep_text(a, &names[i])) return NULL;
  }
  l.names = names;
  return put(a, &l, sizeof l);
}

static const void *added_rule(const edit_room_t *a, const aot_prog_t *p) {
  aot_rule_t r = p->rules.at[p->rules.n - 1];
  if (aoth_rule_has_geometry(r.kind)) {
    const size_t nbytes = (size_t)r.rank * sizeof *r.sizes;
    r.sizes = keep(a, r.sizes, nbytes);
    r.strides = keep(a, r.strides, nbytes);
    if (!r.sizes || !r.strides) return NULL;
  }
  return put(a, &r, sizeof r);
}

static const void *made_origin(const edit_room_t *a, const aot_prog_t *p) {
  aot_origin_info_t o = p->origins.at[p->origins.n - 1];
  if (!keep_text(a, &o.source_file) || !keep_text(a, &o.module_path) || !keep_text(a, &o.node_name)) return NULL;
  return put(a, &o, sizeof o);
}

static const void *made_symbol(const edit_room_t *a, const aot_prog_t *p) {
  aot_symbol_info_t s = p->symbols.at[p->symbols.n - 1];
  return keep_text(a, &s.name) ? put(a, &s, sizeof s) : NULL;
}

static const void *made_encoding(const edit_room_t *a, const aot_prog_t *p) {
  aot_encoding_info_t e = p->encodings.at[p->encodings.n - 1];
  return keep_text(a, &e.name) && keep_text(a, &e.value) ? put(a, &e, sizeof e) : NULL;
}

static const void *added_guard(const edit_room_t *a, const aot_prog_t *p) {
  aot_guard_info_t g = p->guards.at[p->guards.n - 1];
  return keep_text(a, &g.text) ? put(a, &g, sizeof g) : NULL;
}

/* The row that an edit makes, AOT_NO_ID: it makes none. */
static uint32_t next_id(const aot_prog_t *p, uint32_t kind) {
  switch (kind) {
    case EDIT_GRAPH_CREATE: return p->graphs.n;
    case EDIT_NODE_CREATE: return p->nodes.n;
    case EDIT_LEAF_CREATE: return p->leaves.n;
    case EDIT_ORIGIN_CREATE: return p->origins.n;
    case EDIT_ENCODING_CREATE: return p->encodings.n;
    case EDIT_GUARD_ADD: return p->guards.n;
    default: return NONE;
  }
}

/* The program is as it was right after the edit: a row that the edit made is the newest of its array. */
static int is_right_after(const aot_prog_t *p, const aoth_edit_row_t *e) {
  return next_id(p, e->kind) == NONE || next_id(p, e->kind) == e->u[0] + 1;
}

/* The edit as a row; the state is that right after it. 0: no memory. */
static int describe(const edit_room_t *a, const aot_prog_t *p, const aoth_edit_row_t *e, aoth_edit_t *out) {
  const aoth_graph_row_t *g = &p->graphs.at[e->kind <= EDIT_OUTPUTS_CLEAR ? e->u[0] : NONE];
  int needs_what = 1;
  AOT_ASSERT(e->kind >= EDIT_GRAPH_CREATE && e->kind <= EDIT_GUARD_ADD && is_right_after(p, e));
  *out = (aoth_edit_t){.kind = e->kind, .id = e->u[0]};
  switch (e->kind) {
    case EDIT_GRAPH_CREATE:
      out->at = (uint32_t)g->kind;
      out->what = text_of(a, g->name);
      break;
    case EDIT_INPUT_ADD: out->what = added_input(a, p, g); break;
    case EDIT_OUTPUT_ADD: out->what = added_output(a, g); break;
    case EDIT_NODE_CREATE:
      out->at = p->nodes.at[e->u[0]].graph;
      out->what = made_node(a, p, e);
      break;
    case EDIT_ARG_SET:
      out->at = e->u[1];
      out->what = set_arg(a, p, e);
      break;
    case EDIT_TYPE_SET: out->what = set_type(a, p, e->u[0]); break;
    case EDIT_NAME_SET: out->what = text_of(a, p->names.at[p->values.at[e->u[0]].name]); break;
    case EDIT_NOTE: out->what = text_of(a, (aot_str_t){e->p, strlen(e->p)}); break;
    case EDIT_LEAF_CREATE:
    case EDIT_LEAF_PART: out->what = leaf_of(a, p, e->u[0]); break;
    case EDIT_RULE_ADD: out->what = added_rule(a, p); break;
    case EDIT_ORIGIN_CREATE: out->what = made_origin(a, p); break;
    case EDIT_SYMBOL_CREATE: out->what = made_symbol(a, p); break;
    case EDIT_EXPR_CREATE: out->what = put(a, &p->exprs.at[e->u[0]].info, sizeof(aot_expr_info_t)); break;
    case EDIT_ENCODING_CREATE: out->what = made_encoding(a, p); break;
    case EDIT_GUARD_ADD: out->what = added_guard(a, p); break;
    default: needs_what = 0; break;
  }
  if (e->kind == EDIT_INPUT_ERASE || e->kind == EDIT_OUTPUT_SET || e->kind == EDIT_OPERAND_SET) out->at = e->u[1];
  if (e->kind == EDIT_OUTPUT_SET) out->value = g->outputs.at[e->u[1]].value.id;
  if (e->kind == EDIT_OPERAND_SET) out->value = p->nodes.at[e->u[0]].operands[e->u[1]];
  if (e->kind == EDIT_USES_REPLACE) out->value = e->u[1];
  if (e->kind == EDIT_FLAGS_SET) out->at = p->nodes.at[e->u[0]].flags;
  return !needs_what || out->what;
}

aot_status_t aoth_edits_take(aot_prog_t *p, aoth_edits_t *out) {
  const uint64_t n = aoth_journal_count(p);
  aoth_edits_t edits = {.arena = kit_arena_create(), .n = (uint32_t)n};
  int whole = edits.arena != NULL;
  if (whole) edits.at = kit_arena_alloc(edits.arena, 8, ((size_t)n + 1) * sizeof *edits.at);
  whole = whole && edits.at;
  const edit_room_t room = {edits.arena, NULL};
  for (uint32_t i = edits.n; aoth_journal_newest(p);) {
    AOT_ASSERT(!whole || i > 0);
    whole = whole && describe(&room, p, aoth_journal_newest(p), &edits.at[--i]);
    aoth_journal_undo_newest(p);
  }
  aoth_journal_undo(p);
  *out = whole ? edits : (aoth_edits_t){.n = 0};
  if (whole) return AOT_OK;
  kit_arena_destroy(edits.arena);
  return aoth_no_memory(p, "edits to be made again", n * sizeof *edits.at);
}

void aoth_edits_deinit(aoth_edits_t *edits) {
  kit_arena_destroy(edits->arena);
  *edits = (aoth_edits_t){.n = 0};
}

/* ---- back into a program ---- */

static aot_status_t make(aot_prog_t *p, const aoth_edit_t *e) {
  const aot_graph_t g = {e->id};
  const aot_node_t n = {e->id};
  const aot_value_t v = {e->id}, value = {e->value};
  const aoth_input_t *in = e->what;
  const aot_port_t *port = e->what;
  aot_graph_t graph;
  aot_node_t node;
  aot_value_t made;
  const aot_leaf_info_t *part = e->what;
  aot_leaf_t leaf;
  aot_origin_t origin;
  aot_encoding_t encoding;
  int64_t dim;
  switch (e->kind) {
    case EDIT_GRAPH_CREATE: return aoth_edit_graph_create(p, (int32_t)e->at, *(const aot_str_t *)e->what, &graph);
    case EDIT_GRAPH_ERASE: return aoth_edit_graph_erase(p, g);
    case EDIT_INPUT_ADD:
      return aoth_edit_input_add(p, g, in->port.role, in->port.index, &in->type, in->port.name, &made);
    case EDIT_INPUT_ERASE: return aoth_edit_input_erase(p, g, e->at);
    case EDIT_OUTPUT_ADD: return aoth_edit_output_add(p, g, port->role, port->index, port->value, port->name);
    case EDIT_OUTPUT_SET: return aoth_edit_output_set(p, g, e->at, value);
    case EDIT_OUTPUTS_CLEAR: return aoth_edit_outputs_clear(p, g);
    case EDIT_NODE_CREATE: return aoth_node_make_again(p, e->at, e->what, &node);
    case EDIT_NODE_ERASE: return aoth_edit_node_erase(p, n);
    case EDIT_OPERAND_SET: return aoth_edit_operand_set(p, n, e->at, value);
    case EDIT_ARG_SET: return aoth_edit_arg_set(p, n, e->at, e->what);
    case EDIT_USES_REPLACE: return aoth_edit_uses_replace(p, v, value);
    case EDIT_TYPE_SET: return aoth_edit_type_set(p, v, e->what);
    case EDIT_FLAGS_SET: return aoth_edit_flags_set(p, n, e->at);
    case EDIT_NAME_SET: return aoth_edit_name_set(p, v, *(const aot_str_t *)e->what);
    case EDIT_NOTE: return aoth_edit_note(p, n, *(const aot_str_t *)e->what);
    case EDIT_LEAF_CREATE: return aoth_edit_leaf_create(p, e->what, &leaf);
    case EDIT_LEAF_PART: return aoth_edit_leaf_part(p, (aot_leaf_t){e->id}, &part->type, part->data, part->nbytes);
    case EDIT_RULE_ADD: return aoth_edit_rule_add(p, e->what);
    case EDIT_ORIGIN_CREATE: return aoth_edit_origin_create(p, e->what, &origin);
    case EDIT_SYMBOL_CREATE: return aoth_edit_symbol_create(p, e->what, &dim);
    case EDIT_EXPR_CREATE: return aoth_expr_make_again(p, e->what);
    case EDIT_ENCODING_CREATE: return aoth_edit_encoding_create(p, e->what, &encoding);
    case EDIT_GUARD_ADD: return aoth_edit_guard_add(p, e->what);
    default: return aoth_diagnose(p, AOT_E_INVALID, "ir.bad-edit", "there is no edit of kind %u", e->kind);
  }
}

aot_status_t aoth_edit_replay(aot_prog_t *p, const aoth_edit_t *e) {
  const uint32_t id = next_id(p, e->kind);
  if (id == NONE || id == e->id) return make(p, e);
  return aoth_diagnose(p, AOT_E_PRECONDITION, "ir.replay",
                       "the edit %s made row %u and would make row %u here: this is another program",
                       aoth_edit_name(e->kind), e->id, id);
}

aot_status_t aoth_edits_replay(aot_prog_t *p, const aoth_edits_t *edits) {
  for (uint32_t i = 0; i < edits->n; i++) AOT_TRY(aoth_edit_replay(p, &edits->at[i]));
  return AOT_OK;
}

/* ---- heard of ---- */

static void tell(aot_prog_t *p) {
  for (; p->n_heard < p->edits.n; p->n_heard++) {
    const aoth_edit_listener_t *l = p->listener;
    borrowed_t row;
    const edit_room_t room = {l->arena, &row};
    aoth_edit_t edit;
    if (describe(&room, p, &p->edits.at[p->n_heard], &edit)) l->made(l->self, &edit);
    else p->lacked_memory = 1;
  }
}

void aoth_edits_hear(aot_prog_t *p, const aoth_edit_listener_t *listener) {
  p->listener = listener;
  p->tell = listener ? tell : NULL;
  p->n_heard = p->edits.n;
}

void aoth_edits_tell(aot_prog_t *p) {
  if (p->tell) p->tell(p);
}
