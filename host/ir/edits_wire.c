#include <ir/edits_wire.h>

#include "kit/base/vector.h"
#include <aot/assert.h>
#include <ir/program_store.h>
#include <stdlib.h>
#include <string.h>

#define HERE UINT32_MAX /* the bytes follow */
#define LEAF_ALIGNMENT 64

typedef struct edits_wire {
  kit_wire_t *w;
  aoth_known_t known;
  kit_arena_t *leaves;
} edits_wire_t;

/* Where contents of a leaf are. */
typedef struct wire_position {
  uint32_t span, reserved; /* counted from 1; 0: nowhere; HERE */
  uint64_t offset;
} wire_position_t;

static void wire_type(kit_wire_t *w, void *type) {
  aot_type_t *t = type;
  if (t->rank < 0 || t->rank > AOT_MAX_RANK) w->failed = 1;
  const uint64_t rank = w->failed ? 0 : (uint64_t)t->rank;
  t->sizes = kit_wire_block(w, t->sizes, rank, sizeof *t->sizes);
  t->strides = kit_wire_block(w, t->strides, rank, sizeof *t->strides);
}

static void wire_arg(kit_wire_t *w, void *row) {
  aot_arg_t *arg = row;
  switch (arg->kind) {
    case AOT_ARG_VALUES: arg->u.ids = kit_wire_block(w, arg->u.ids, arg->n, sizeof *arg->u.ids); break;
    case AOT_ARG_INTS:
    case AOT_ARG_BOOLS: arg->u.ints = kit_wire_block(w, arg->u.ints, arg->n, sizeof *arg->u.ints); break;
    case AOT_ARG_FLOATS: arg->u.floats = kit_wire_block(w, arg->u.floats, arg->n, sizeof *arg->u.floats); break;
    case AOT_ARG_STR: arg->u.chars = kit_wire_block(w, arg->u.chars, arg->n, 1); break;
    default: w->failed |= arg->kind < AOT_ARG_NONE || arg->kind > AOT_ARG_OP; break;
  }
}

static void wire_text_of(kit_wire_t *w, void *text) { kit_wire_text(w, text); }

/* An array, and what its rows point to: those of the reader are in the bytes. */
static const void *wire_rows(kit_wire_t *w, const void *at, uint32_t n, size_t size,
                             void (*wire_row)(kit_wire_t *w, void *row)) {
  union {
    aot_arg_t arg;
    aot_type_t type;
    aot_str_t text;
  } copy;
  AOT_ASSERT(size <= sizeof copy);
  char *rows = kit_wire_block(w, at, n, size);
  for (uint32_t i = 0; i < n && !w->failed; i++)
    wire_row(w, w->out ? memcpy(&copy, rows + i * size, size) : rows + i * size);
  return rows;
}

static wire_position_t place_of(const edits_wire_t *e, const void *at, uint64_t nbytes) {
  const uintptr_t first = (uintptr_t)at;
  if (!at) return (wire_position_t){0};
  for (uint32_t i = 0; i < e->known.n; i++) {
    const uintptr_t begin = (uintptr_t)e->known.at[i].at, size = (uintptr_t)e->known.at[i].nbytes;
    if (begin && first >= begin && nbytes <= size && first - begin <= size - nbytes)
      return (wire_position_t){.span = i + 1, .offset = first - begin};
  }
  return (wire_position_t){.span = HERE};
}

static const void *wire_contents(const edits_wire_t *e, const void *at, uint64_t nbytes) {
  wire_position_t copy, place = place_of(e, at, nbytes), *p = kit_wire_record(e->w, &place, &copy, sizeof copy);
  if (p->span == HERE) {
    const void *bytes = kit_wire_block(e->w, at, nbytes, 1);
    if (e->w->out || e->w->failed) return NULL;
    at = kit_arena_copy(e->leaves, LEAF_ALIGNMENT, bytes, nbytes ? (size_t)nbytes : 1);
    e->w->failed |= at == NULL;
    return at;
  }
  if (p->span == 0) return NULL;
  const aoth_span_t none = {NULL, 0}, *span = p->span <= e->known.n ? &e->known.at[p->span - 1] : &none;
  e->w->failed |= nbytes > span->nbytes || p->offset > span->nbytes - nbytes;
  return e->w->failed ? NULL : (const char *)span->at + p->offset;
}

static const void *wire_leaf(const edits_wire_t *e, const aot_leaf_info_t *at) {
  aot_leaf_info_t copy, *l = kit_wire_record(e->w, at, &copy, sizeof copy);
  wire_type(e->w, &l->type);
  l->names = wire_rows(e->w, l->names, l->n_names, sizeof *l->names, wire_text_of);
  l->data = wire_contents(e, l->data, l->nbytes);
  return l;
}

static const void *wire_text_row(kit_wire_t *w, const aot_str_t *at) {
  aot_str_t copy, *s = kit_wire_record(w, at, &copy, sizeof copy);
  kit_wire_text(w, s);
  return s;
}

static const void *wire_input(kit_wire_t *w, const aoth_input_t *at) {
  aoth_input_t copy, *in = kit_wire_record(w, at, &copy, sizeof copy);
  kit_wire_text(w, &in->port.name);
  wire_type(w, &in->type);
  return in;
}

static const void *wire_port(kit_wire_t *w, const aot_port_t *at) {
  aot_port_t copy, *port = kit_wire_record(w, at, &copy, sizeof copy);
  kit_wire_text(w, &port->name);
  return port;
}

/* ---- types by number: most of what nodes are made of, and a few thousand different ones of a program ---- */

#define IS_NEW 0x80000000u /* in a number: what it is follows */

aoth_type_numbers_t aoth_type_numbers(aot_prog_t *p) { return (aoth_type_numbers_t){.prog = p, .first = p->types.n}; }

void aoth_type_numbers_deinit(aoth_type_numbers_t *t) {
  free(t->at);
  t->at = NULL;
}

/* 0: no memory. Fresh ones are 0. */
static int room(aoth_type_numbers_t *t, uint32_t i) {
  const uint32_t before = t->capacity;
  uint32_t *at = kit_grow(t->at, &t->capacity, (uint64_t)i + 1, sizeof *at);
  if (!at) return 0;
  memset(at + before, 0, (t->capacity - before) * sizeof *at);
  t->at = at;
  return 1;
}

/* As the other side counts it. */
static uint32_t number_there(aoth_type_numbers_t *t, uint32_t number, int *failed) {
  AOT_ASSERT(number != NONE && number < t->prog->types.n);
  if (number < t->first) return number;
  const uint32_t i = number - t->first;
  *failed |= !room(t, i);
  if (*failed || t->at[i]) return *failed ? 0 : t->first + t->at[i] - 1;
  t->at[i] = ++t->n_sent;
  return (t->first + t->n_sent - 1) | IS_NEW;
}

static uint32_t number_here(const aoth_type_numbers_t *t, uint32_t number, int *failed) {
  if (number < t->first) return number;
  *failed |= number - t->first >= t->n_sent;
  return *failed ? 0 : t->at[number - t->first];
}

static void write_type(kit_wire_t *w, const aoth_type_numbers_t *t, uint32_t number) {
  aot_type_t copy;
  wire_type(w, kit_wire_record(w, &t->prog->types.at[number], &copy, sizeof copy));
}

static void read_type(kit_wire_t *w, aoth_type_numbers_t *t, uint32_t number) {
  aot_type_t none, *type = kit_wire_record(w, NULL, &none, sizeof none);
  wire_type(w, type);
  w->failed |= number - t->first != t->n_sent || !room(t, t->n_sent);
  if (!w->failed) w->failed = aoth_type_intern(t->prog, type, &t->at[t->n_sent]) != AOT_OK;
  t->n_sent += !w->failed;
}

static uint32_t *wire_numbers(const edits_wire_t *e, uint32_t *numbers, uint32_t n) {
  kit_wire_t *w = e->w;
  aoth_type_numbers_t *t = e->known.types;
  uint32_t here[8], *there = w->out && n > 8 ? malloc(n * sizeof *there) : here;
  w->failed |= !t || !there;
  for (uint32_t i = 0; i < n && w->out && !w->failed; i++) there[i] = number_there(t, numbers[i], &w->failed);
  uint32_t *at = kit_wire_block(w, there, n, sizeof *at);
  for (uint32_t i = 0; i < n && !w->failed; i++) {
    if (w->out && at[i] & IS_NEW) write_type(w, t, numbers[i]);
    if (!w->out && at[i] & IS_NEW) read_type(w, t, at[i] & ~IS_NEW);
    if (!w->out) at[i] = number_here(t, at[i] & ~IS_NEW, &w->failed);
  }
  if (there != here) free(there);
  return w->out ? NULL : at;
}

static const void *wire_node(const edits_wire_t *e, const aoth_made_node_t *at) {
  kit_wire_t *w = e->w;
  aoth_made_node_t copy, *made = kit_wire_record(w, at, &copy, sizeof copy);
  made->spec.args = wire_rows(w, made->spec.args, made->spec.n_args, sizeof *made->spec.args, wire_arg);
  if (made->types) {
    made->types = wire_numbers(e, made->types, made->n_types);
    made->spec.types = NULL;
    return made;
  }
  made->n_types = 0; /* whatever the bytes say */
  made->spec.types = wire_rows(w, made->spec.types, made->spec.n_types, sizeof *made->spec.types, wire_type);
  return made;
}

static const void *wire_rule(kit_wire_t *w, const aot_rule_t *at) {
  aot_rule_t copy, *r = kit_wire_record(w, at, &copy, sizeof copy);
  w->failed |= r->rank < 0 || r->rank > AOT_MAX_RANK;
  if (w->failed || !r->sizes) return r;
  r->sizes = kit_wire_block(w, r->sizes, (uint64_t)r->rank, sizeof *r->sizes);
  r->strides = kit_wire_block(w, r->strides, (uint64_t)r->rank, sizeof *r->strides);
  return r;
}

static const void *wire_origin(kit_wire_t *w, const aot_origin_info_t *at) {
  aot_origin_info_t copy, *o = kit_wire_record(w, at, &copy, sizeof copy);
  kit_wire_text(w, &o->source_file);
  kit_wire_text(w, &o->module_path);
  kit_wire_text(w, &o->node_name);
  return o;
}

static const void *wire_symbol(kit_wire_t *w, const aot_symbol_info_t *at) {
  aot_symbol_info_t copy, *s = kit_wire_record(w, at, &copy, sizeof copy);
  kit_wire_text(w, &s->name);
  return s;
}

static const void *wire_encoding(kit_wire_t *w, const aot_encoding_info_t *at) {
  aot_encoding_info_t copy, *x = kit_wire_record(w, at, &copy, sizeof copy);
  kit_wire_text(w, &x->name);
  kit_wire_text(w, &x->value);
  return x;
}

static const void *wire_guard(kit_wire_t *w, const aot_guard_info_t *at) {
  aot_guard_info_t copy, *g = kit_wire_record(w, at, &copy, sizeof copy);
  kit_wire_text(w, &g->text);
  return g;
}

static const void *wire_what(const edits_wire_t *e, uint32_t kind, const void *what) {
  kit_wire_t *w = e->w;
  aot_arg_t arg, *one_arg;
  aot_type_t type, *one_type;
  aot_expr_info_t expr;
  switch (kind) {
    case EDIT_GRAPH_CREATE:
    case EDIT_NAME_SET:
    case EDIT_NOTE: return wire_text_row(w, what);
    case EDIT_INPUT_ADD: return wire_input(w, what);
    case EDIT_OUTPUT_ADD: return wire_port(w, what);
    case EDIT_NODE_CREATE: return wire_node(e, what);
    case EDIT_ARG_SET: wire_arg(w, one_arg = kit_wire_record(w, what, &arg, sizeof arg)); return one_arg;
    case EDIT_TYPE_SET: wire_type(w, one_type = kit_wire_record(w, what, &type, sizeof type)); return one_type;
    case EDIT_LEAF_CREATE:
    case EDIT_LEAF_PART: return wire_leaf(e, what);
    case EDIT_RULE_ADD: return wire_rule(w, what);
    case EDIT_ORIGIN_CREATE: return wire_origin(w, what);
    case EDIT_SYMBOL_CREATE: return wire_symbol(w, what);
    case EDIT_EXPR_CREATE: return kit_wire_record(w, what, &expr, sizeof expr);
    case EDIT_ENCODING_CREATE: return wire_encoding(w, what);
    case EDIT_GUARD_ADD: return wire_guard(w, what);
    default: return NULL;
  }
}

const aoth_edit_t *aoth_wire_edit(kit_wire_t *w, const aoth_edit_t *edit, aoth_known_t known, kit_arena_t *leaves) {
  static const aoth_edit_t none;
  const edits_wire_t wire = {w, known, leaves};
  aoth_edit_t copy, *e = kit_wire_record(w, edit, &copy, sizeof copy);
  const void *what = wire_what(&wire, e->kind, e->what);
  if (w->out) return NULL;
  if (w->failed) return &none;
  e->what = what;
  return e;
}
