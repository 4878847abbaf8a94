/* Programs as text (docs/IR.md). The text is a function of the program's content alone: ids are renumbered in order of
 * appearance, from 0 on, so that equal programs print alike whatever edits led to them. A value, graph or symbol prints
 * as its name where that is a word and the only one of its kind, else as its position, with the name in quotes where it
 * is defined. Linear in the program. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/text/text_form.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct printer {
  aot_prog_t *p;
  kit_text_t *out; /* leaves, rules and graphs */
  aoth_dim_writer_t dims;
  uint32_t *positions;  /* of values in their graph; NULL: raw ids (one node for a message) */
  unsigned char *plain; /* by value: its name represents it */
  uint32_t *graph_positions;
  unsigned char *plain_graphs;
  uint32_t *origin_numbers; /* AOT_NO_INDEX: not referred to yet */
  uint32_t *origin_order;   /* numbered origins, in order */
  uint32_t n_origins;
  uint32_t *encoding_numbers; /* as of origins */
  uint32_t *encoding_order;
  uint32_t n_encodings;
} printer_t;

/* ---- small parts ---- */
static void put_word(printer_t *w, const aoth_word_t *words, const char *fallback, int64_t number) {
  const char *word = aoth_word_of(words, number);
  if (word) kit_text_z(w->out, word);
  else kit_text_f(w->out, "%s(%lld)", fallback, (long long)number);
}

static void put_flags(printer_t *w, const aoth_word_t *words, uint32_t flags) {
  const char *space = "";
  for (; words->word; words++)
    if (flags & (uint32_t)words->number) {
      kit_text_f(w->out, "%s%s", space, words->word);
      flags &= ~(uint32_t)words->number;
      space = " ";
    }
  if (flags) kit_text_f(w->out, "%sflags(%u)", space, flags);
}

static void put_float(printer_t *w, double f) {
  size_t begin = w->out->size;
  kit_text_double(w->out, f);
  if (w->out->failed || !isfinite(f)) return;
  if (strcspn(w->out->data + begin, ".e") == w->out->size - begin) kit_text_z(w->out, ".0"); /* 1.0 is not 1 */
}

static void put_device(printer_t *w, int32_t kind, int32_t index) {
  kit_text_z(w->out, aoth_word_of(aoth_device_words, kind));
  if (index) kit_text_f(w->out, ":%d", (int)index - 1);
}

static void put_dims(printer_t *w, const int64_t *dims, uint32_t n) {
  kit_text_z(w->out, "[");
  for (uint32_t i = 0; i < n; i++) {
    if (i) kit_text_z(w->out, ", ");
    aoth_dim_write(&w->dims, dims[i], w->out);
  }
  kit_text_z(w->out, "]");
}

static void put_geometry(printer_t *w, int32_t rank, const int64_t *sizes, const int64_t *strides, int64_t offset) {
  put_dims(w, sizes, (uint32_t)rank);
  if (!aoth_is_contiguous(w->p, rank, sizes, strides)) {
    kit_text_z(w->out, " strides ");
    put_dims(w, strides, (uint32_t)rank);
  }
  if (offset) {
    kit_text_z(w->out, " offset ");
    aoth_dim_write(&w->dims, offset, w->out);
  }
}

/* Numbered in order of appearance; raw ids in a message. */
static uint32_t number_encoding(printer_t *w, uint32_t encoding) {
  if (!w->encoding_numbers) return encoding;
  uint32_t *number = &w->encoding_numbers[encoding];
  if (*number == AOT_NO_INDEX) w->encoding_order[ *number = w->n_encodings++] = encoding;
  return *number;
}

static void put_type(printer_t *w, const aot_type_t *t) {
  static const char *const kinds[] = {"none", "", "symint", "symfloat", "symbool", "token"};
  AOT_ASSERT(t->kind >= 0 && (size_t)t->kind < sizeof kinds / sizeof *kinds);
  kit_text_z(w->out, kinds[t->kind]);
  if (t->kind == AOT_TYPE_TENSOR) {
    kit_text_z(w->out, aoth_word_of(aoth_dtype_words, t->dtype));
    put_geometry(w, t->rank, t->sizes, t->strides, t->offset);
    if (t->device != AOT_DEVICE_CPU) {
      kit_text_z(w->out, " ");
      put_device(w, t->device, t->device_index);
    }
    if (t->memory) kit_text_f(w->out, " memory %u", t->memory);
    if (t->encoding.id != NONE) kit_text_f(w->out, " encoding %u", number_encoding(w, t->encoding.id));
  }
  if (t->kind == AOT_TYPE_SYMINT || t->kind == AOT_TYPE_SYMBOOL) {
    kit_text_z(w->out, "(");
    aoth_dim_write(&w->dims, t->expr, w->out);
    kit_text_z(w->out, ")");
  }
  if (t->flags & AOT_TYPE_REQUIRES_GRAD) kit_text_z(w->out, " grad");
  if (t->flags & ~AOT_TYPE_REQUIRES_GRAD) kit_text_f(w->out, " flags(%u)", t->flags & ~AOT_TYPE_REQUIRES_GRAD);
}

static aot_str_t name_of_value(const printer_t *w, uint32_t value) {
  return w->p->names.at[w->p->values.at[value].name];
}

static void put_value(printer_t *w, uint32_t value) {
  if (value == NONE || value >= w->p->values.n) {
    kit_text_z(w->out, "none");
    return;
  }
  aot_str_t name = name_of_value(w, value);
  int plain = w->positions ? w->plain[value] : aoth_is_word(name);
  kit_text_z(w->out, "%");
  if (plain) kit_text_str(w->out, name);
  else kit_text_i64(w->out, w->positions ? w->positions[value] : value);
}

/* The label where it is defined: a name that is no label follows in quotes. */
static void put_definition(printer_t *w, uint32_t value) {
  aot_str_t name = name_of_value(w, value);
  put_value(w, value);
  if (!name.size || (w->positions ? w->plain[value] : aoth_is_word(name))) return;
  kit_text_z(w->out, " ");
  aoth_quoted(w->out, name);
}

static void put_graph_label(printer_t *w, uint32_t graph) {
  const aoth_graph_row_t *g = &w->p->graphs.at[graph];
  int plain = w->positions ? w->plain_graphs[graph] : aoth_is_word(g->name);
  kit_text_z(w->out, "@");
  if (plain) kit_text_str(w->out, g->name);
  else kit_text_f(w->out, "%u", w->positions ? w->graph_positions[graph] : graph);
}

static void put_op(printer_t *w, aot_str_t name) {
  if (aoth_is_word(name) && !(name.size == 2 && memcmp(name.data, "in", 2) == 0) &&
      !(name.size == 3 && memcmp(name.data, "out", 3) == 0))
    kit_text_str(w->out, name);
  else aoth_quoted(w->out, name);
}

/* ---- arguments ---- */
static void put_list(printer_t *w, const aot_arg_t *a) {
  kit_text_z(w->out, "[");
  for (uint32_t i = 0; i < a->n; i++) {
    if (i) kit_text_z(w->out, ", ");
    switch (a->kind) {
      case AOT_ARG_VALUES: put_value(w, a->u.ids[i]); break;
      case AOT_ARG_INTS: aoth_dim_write(&w->dims, a->u.ints[i], w->out); break;
      case AOT_ARG_BOOLS: kit_text_z(w->out, a->u.ints[i] ? "true" : "false"); break;
      default: put_float(w, a->u.floats[i]); break;
    }
  }
  kit_text_z(w->out, "]");
}

/* An empty list says of what, where the schema does not. */
static void put_empty_list(printer_t *w, const aot_arg_t *a, const aot_schema_arg_t *s) {
  const char *kind = a->kind == AOT_ARG_INTS ? "int" : a->kind == AOT_ARG_FLOATS ? "float" : "bool";
  if (s && s->type == AOT_STYPE_ANY && a->kind != AOT_ARG_VALUES) kit_text_z(w->out, kind);
  kit_text_z(w->out, "[]");
}

static void put_arg(printer_t *w, const aot_arg_t *a, const aot_schema_arg_t *s) {
  aot_str_t text = {a->u.chars, a->n};
  aot_op_t op = {(uint32_t)a->u.i};
  const aot_op_desc_t *d;
  switch (a->kind) {
    case AOT_ARG_VALUE: put_value(w, (uint32_t)a->u.i); break;
    case AOT_ARG_INT: aoth_dim_write(&w->dims, a->u.i, w->out); break;
    case AOT_ARG_FLOAT: put_float(w, a->u.f); break;
    case AOT_ARG_BOOL: kit_text_z(w->out, a->u.i ? "true" : "false"); break;
    case AOT_ARG_VALUES:
    case AOT_ARG_INTS:
    case AOT_ARG_FLOATS:
    case AOT_ARG_BOOLS:
      if (a->n) put_list(w, a);
      else put_empty_list(w, a, s);
      break;
    case AOT_ARG_STR: aoth_quoted(w->out, text); break;
    case AOT_ARG_DTYPE: put_word(w, aoth_dtype_words, "dtype", a->u.i); break;
    case AOT_ARG_LAYOUT: put_word(w, aoth_layout_words, "layout", a->u.i); break;
    case AOT_ARG_MEMORY_FORMAT: put_word(w, aoth_memory_words, "memory_format", a->u.i); break;
    case AOT_ARG_DEVICE:
      if (a->u.i >= 0 && aoth_word_of(aoth_device_words, aot_device_of(a->u.i)) && a->u.i < INT64_C(1) << 31)
        put_device(w, aot_device_of(a->u.i), aot_device_index_of(a->u.i));
      else kit_text_f(w->out, "device(%lld)", (long long)a->u.i);
      break;
    case AOT_ARG_GRAPH: put_graph_label(w, (uint32_t)a->u.i); break;
    case AOT_ARG_OP:
      d = aoth_ops_desc(w->p->ops, op);
      kit_text_z(w->out, "op(");
      if (d) put_op(w, d->name);
      kit_text_z(w->out, ")");
      break;
    default: kit_text_z(w->out, "none"); break;
  }
}

/* A keyword argument at its default says nothing. */
static int is_silent(printer_t *w, const aot_op_desc_t *d, uint32_t i, const aot_arg_t *a) {
  const aot_schema_arg_t *s = aoth_schema_arg(d, i);
  if (!s || !(s->flags & AOT_SARG_KWONLY) || (s->flags & AOT_SARG_VARIADIC) || !aoth_is_word(s->name)) return 0;
  if (!(s->flags & AOT_SARG_HAS_DEFAULT)) return s->type == AOT_STYPE_GENERATOR && a->kind == AOT_ARG_NONE;
  aot_arg_t preset = s->preset;
  if (aoth_arg_normalise(w->p, d, i, &preset) != AOT_OK) return 0;
  return aoth_arg_same(&preset, a);
}

static void put_args(printer_t *w, const aoth_node_row_t *n) {
  aot_op_t op = {n->op};
  const aot_op_desc_t *d = aoth_ops_desc(w->p->ops, op);
  const char *separator = " ";
  for (uint32_t i = 0; i < n->n_args; i++) {
    const aot_schema_arg_t *s = d ? aoth_schema_arg(d, i) : NULL;
    if (d && is_silent(w, d, i, &n->args[i])) continue;
    kit_text_z(w->out, separator);
    if (s && (s->flags & AOT_SARG_KWONLY) && !(s->flags & AOT_SARG_VARIADIC) && aoth_is_word(s->name)) {
      kit_text_str(w->out, s->name);
      kit_text_z(w->out, "=");
    }
    put_arg(w, &n->args[i], s);
    separator = ", ";
  }
}

/* ---- nodes and graphs ---- */
/* Numbers in order of appearance, parents before children: the unnumbered end of the chain is laid out in origin_order
 * and turned round. */
static uint32_t number_origin(printer_t *w, uint32_t origin) {
  uint32_t *order = w->origin_order + w->n_origins, n = 0;
  for (uint32_t o = origin; o != NONE && w->origin_numbers[o] == AOT_NO_INDEX; o = w->p->origins.at[o].parent.id)
    order[n++] = o;
  for (uint32_t i = 0; i < n / 2; i++) {
    uint32_t swap = order[i];
    order[i] = order[n - 1 - i];
    order[n - 1 - i] = swap;
  }
  for (uint32_t i = 0; i < n; i++) w->origin_numbers[order[i]] = w->n_origins++;
  AOT_ASSERT(w->n_origins <= w->p->origins.n);
  return w->origin_numbers[origin];
}

static void put_call(printer_t *w, const aoth_node_row_t *n) {
  put_op(w, op_name(w->p, n->op));
  put_args(w, n);
}

static void put_node(printer_t *w, uint32_t id) {
  const aoth_node_row_t *n = &w->p->nodes.at[id];
  for (uint32_t i = 0; i < n->n_results; i++) {
    if (i) kit_text_z(w->out, ", ");
    put_definition(w, n->first_result + i);
    kit_text_z(w->out, " : ");
    put_type(w, value_type_of(w->p, n->first_result + i));
  }
  if (n->n_results) kit_text_z(w->out, " = ");
  put_call(w, n);
  if (n->flags) {
    kit_text_z(w->out, " {");
    put_flags(w, aoth_node_flag_words, n->flags);
    kit_text_z(w->out, "}");
  }
  if (n->region_tag) kit_text_f(w->out, " region %u", n->region_tag);
  if (w->origin_numbers && n->origin != NONE) {
    kit_text_z(w->out, " !");
    kit_text_i64(w->out, number_origin(w, n->origin));
  }
}

static void put_graph(printer_t *w, uint32_t id) {
  const aoth_graph_row_t *g = &w->p->graphs.at[id];
  kit_text_z(w->out, "\ngraph ");
  put_graph_label(w, id);
  if (g->name.size && !w->plain_graphs[id]) {
    kit_text_z(w->out, " ");
    aoth_quoted(w->out, g->name);
  }
  kit_text_f(w->out, " %s {\n", aoth_graph_kind_name(g->kind));
  for (uint32_t i = 0; i < g->inputs.n; i++) {
    const aot_port_t *port = &g->inputs.at[i];
    kit_text_z(w->out, "  in ");
    put_definition(w, port->value.id);
    kit_text_f(w->out, " = %s %u : ", aoth_role_name(port->role), aoth_port_number(port->role, port->index));
    put_type(w, value_type_of(w->p, port->value.id));
    kit_text_z(w->out, "\n");
  }
  for (uint32_t n = g->first; n != NONE; n = w->p->nodes.at[n].next) {
    kit_text_z(w->out, "  ");
    put_node(w, n);
    kit_text_z(w->out, "\n");
  }
  for (uint32_t i = 0; i < g->outputs.n; i++) {
    const aot_port_t *port = &g->outputs.at[i];
    kit_text_f(w->out, "  out %s %u", aoth_role_name(port->role), aoth_port_number(port->role, port->index));
    if (port->name.size) {
      kit_text_z(w->out, " ");
      aoth_quoted(w->out, port->name);
    }
    kit_text_z(w->out, " = ");
    put_value(w, port->value.id);
    kit_text_z(w->out, "\n");
  }
  kit_text_z(w->out, "}\n");
}

/* ---- declarations ---- */
static void put_data(printer_t *w, const aot_leaf_info_t *l) {
  static const char hex[] = "0123456789abcdef";
  const unsigned char *bytes = l->data;
  if (!bytes || l->nbytes > DATA_SHOWN_MAX) return;
  kit_text_z(w->out, " data \"");
  for (uint64_t i = 0; i < l->nbytes; i++) {
    char two[2] = {hex[bytes[i] >> 4], hex[bytes[i] & 15]};
    kit_text_add(w->out, two, 2);
  }
  kit_text_z(w->out, "\"");
}

static void put_leaf(printer_t *w, uint32_t id) {
  const aot_leaf_info_t *l = &w->p->leaves.at[id];
  uint32_t flags = l->type.kind == AOT_TYPE_TENSOR ? l->flags & ~AOT_LEAF_REQUIRES_GRAD : l->flags;
  kit_text_f(w->out, "leaf %u %s", id - 1, aoth_role_name(l->role));
  if (l->role == AOT_ROLE_USER_INPUT) kit_text_f(w->out, " %u", l->ordinal);
  for (uint32_t i = 0; i < l->n_names; i++) {
    kit_text_z(w->out, " ");
    aoth_quoted(w->out, l->names[i]);
  }
  kit_text_z(w->out, " : ");
  put_type(w, &l->type); /* says `grad` for the leaf, too */
  if (flags) {
    kit_text_z(w->out, " {");
    put_flags(w, aoth_leaf_flag_words, flags);
    kit_text_z(w->out, "}");
  }
  put_data(w, l);
  kit_text_z(w->out, "\n");
}

static void put_rule(printer_t *w, const aot_rule_t *r) {
  kit_text_f(w->out, "rule %s %u", aoth_rule_name(r->kind), aoth_rule_a_number(r));
  if (aoth_rule_has_b(r->kind)) kit_text_f(w->out, " %u", aoth_rule_b_number(r));
  if (aoth_rule_has_geometry(r->kind)) {
    kit_text_z(w->out, " ");
    if (r->dtype) kit_text_f(w->out, "%s ", aoth_word_of(aoth_dtype_words, r->dtype));
    put_geometry(w, r->rank, r->sizes, r->strides, r->offset);
  }
  kit_text_z(w->out, "\n");
}

static void put_symbol(printer_t *w, uint32_t symbol, kit_text_t *out) {
  const aot_symbol_info_t *s = &w->p->symbols.at[symbol];
  kit_text_z(out, "symbol ");
  aoth_symbol_write(&w->dims, symbol, out);
  if (s->name.size && !w->dims.plain_symbols[symbol]) {
    kit_text_z(out, " ");
    aoth_quoted(out, s->name);
  }
  kit_text_f(out, " in [%lld, ", (long long)s->min);
  if (s->max == INT64_MAX) kit_text_z(out, "inf");
  else kit_text_i64(out, s->max);
  kit_text_f(out, "] hint %lld\n", (long long)s->hint);
}

/* Among the lets, before the body: an expression is read with the guards before it known, as it was made. */
static void put_guard(printer_t *w, const aot_guard_info_t *g) {
  kit_text_t line = {0};
  aoth_dim_write(&w->dims, g->condition, &line);
  if (g->text.size) kit_text_z(&line, " ");
  if (g->text.size) aoth_quoted(&line, g->text);
  kit_text_z(w->dims.lets, "guard ");
  kit_text_add(w->dims.lets, line.data, line.size);
  kit_text_z(w->dims.lets, "\n");
  w->dims.lets->failed |= line.failed;
  kit_text_deinit(&line);
}

static void put_origin(printer_t *w, uint32_t number, kit_text_t *out) {
  const aot_origin_info_t *o = &w->p->origins.at[w->origin_order[number]];
  kit_text_f(out, "origin %u", number);
  if (o->source_file.size || o->line) {
    kit_text_z(out, " ");
    aoth_quoted(out, o->source_file);
    kit_text_f(out, ":%u", o->line);
  }
  if (o->module_path.size) {
    kit_text_z(out, " module ");
    aoth_quoted(out, o->module_path);
  }
  if (o->node_name.size) {
    kit_text_z(out, " node ");
    aoth_quoted(out, o->node_name);
  }
  AOT_ASSERT(o->parent.id == NONE || w->origin_numbers[o->parent.id] < number);
  if (o->parent.id != NONE) kit_text_f(out, " from %u", w->origin_numbers[o->parent.id]);
  kit_text_z(out, "\n");
}

static void put_encoding(printer_t *w, uint32_t number, kit_text_t *out) {
  const aot_encoding_info_t *e = &w->p->encodings.at[w->encoding_order[number]];
  kit_text_f(out, "encoding %u ", number);
  aoth_quoted(out, e->name);
  if (e->value.size) kit_text_z(out, " ");
  if (e->value.size) aoth_quoted(out, e->value);
  kit_text_z(out, "\n");
}

/* ---- numbering ---- */
static int number_values(printer_t *w, uint32_t graph, aot_str_t *names, uint32_t *ids, unsigned char *plain) {
  const aoth_graph_row_t *g = &w->p->graphs.at[graph];
  uint32_t count = 0;
  for (uint32_t i = 0; i < g->inputs.n; i++) ids[count++] = g->inputs.at[i].value.id;
  for (uint32_t n = g->first; n != NONE; n = w->p->nodes.at[n].next)
    for (uint32_t i = 0; i < w->p->nodes.at[n].n_results; i++) ids[count++] = w->p->nodes.at[n].first_result + i;
  AOT_ASSERT(count < w->p->values.n); /* row 0 is no value */
  for (uint32_t i = 0; i < count; i++) {
    w->positions[ids[i]] = i;
    names[i] = name_of_value(w, ids[i]);
  }
  if (!aoth_plain_names(names, count, aoth_is_word, plain)) return 0;
  for (uint32_t i = 0; i < count; i++) w->plain[ids[i]] = plain[i];
  return 1;
}

static int number_graphs(printer_t *w, aot_str_t *names) {
  aot_prog_t *p = w->p;
  uint32_t position = 0;
  for (uint32_t g = 1; g < p->graphs.n; g++) {
    const aot_str_t none = {NULL, 0};
    names[g] = p->graphs.at[g].alive ? p->graphs.at[g].name : none;
    w->graph_positions[g] = p->graphs.at[g].alive ? position++ : AOT_NO_INDEX;
  }
  return aoth_plain_names(names, p->graphs.n, aoth_is_word, w->plain_graphs);
}

static int is_symbol_word(aot_str_t s) { return aoth_is_word(s) && !aoth_is_reserved(s); }

/* All tables of the printer come out of one arena, which lives as long as the printing. */
static int prepare(printer_t *w, kit_arena_t *a) {
  aot_prog_t *p = w->p;
  uint32_t most = p->values.n;
  if (p->graphs.n > most) most = p->graphs.n;
  if (p->symbols.n > most) most = p->symbols.n;
  aot_str_t *names = kit_arena_alloc(a, 8, (most + (size_t)1) * sizeof *names);
  uint32_t *ids = kit_arena_alloc(a, 8, (most + (size_t)1) * sizeof *ids);
  unsigned char *plain = kit_arena_alloc(a, 8, most + (size_t)1),
                *symbols = kit_arena_alloc(a, 8, p->symbols.n + (size_t)1);
  w->positions = kit_arena_alloc(a, 8, (p->values.n + (size_t)1) * sizeof(uint32_t));
  w->plain = kit_arena_alloc(a, 8, p->values.n + (size_t)1);
  w->graph_positions = kit_arena_alloc(a, 8, (p->graphs.n + (size_t)1) * sizeof(uint32_t));
  w->plain_graphs = kit_arena_alloc(a, 8, p->graphs.n + (size_t)1);
  w->origin_numbers = kit_arena_alloc(a, 8, (p->origins.n + (size_t)1) * sizeof(uint32_t));
  w->origin_order = kit_arena_alloc(a, 8, (p->origins.n + (size_t)1) * sizeof(uint32_t));
  w->encoding_numbers = kit_arena_alloc(a, 8, (p->encodings.n + (size_t)1) * sizeof(uint32_t));
  w->encoding_order = kit_arena_alloc(a, 8, (p->encodings.n + (size_t)1) * sizeof(uint32_t));
  w->dims.let_numbers = kit_arena_alloc(a, 8, (p->exprs.n + (size_t)1) * sizeof(uint32_t));
  if (!names || !ids || !plain || !symbols || !w->positions || !w->plain || !w->graph_positions || !w->plain_graphs ||
      !w->origin_numbers || !w->origin_order || !w->encoding_numbers || !w->encoding_order || !w->dims.let_numbers)
    return 0;
  memset(w->origin_numbers, 0xff, p->origins.n * sizeof(uint32_t));
  memset(w->encoding_numbers, 0xff, p->encodings.n * sizeof(uint32_t));
  memset(w->dims.let_numbers, 0xff, p->exprs.n * sizeof(uint32_t));
  for (uint32_t i = 0; i < p->symbols.n; i++) names[i] = p->symbols.at[i].name;
  if (!aoth_plain_names(names, p->symbols.n, is_symbol_word, symbols)) return 0;
  w->dims.plain_symbols = symbols;
  if (!number_graphs(w, names)) return 0;
  for (uint32_t g = 1; g < p->graphs.n; g++)
    if (p->graphs.at[g].alive && !number_values(w, g, names, ids, plain)) return 0;
  return 1;
}

static void put_body(printer_t *w) {
  aot_prog_t *p = w->p;
  if (p->leaves.n > 1) kit_text_z(w->out, "\n");
  for (uint32_t i = 1; i < p->leaves.n; i++) put_leaf(w, i);
  if (p->rules.n) kit_text_z(w->out, "\n");
  for (uint32_t i = 0; i < p->rules.n; i++) put_rule(w, &p->rules.at[i]);
  for (uint32_t g = 1; g < p->graphs.n; g++)
    if (p->graphs.at[g].alive) put_graph(w, g);
}

/* The head is put together last: only the body knows which expressions need a name and which encodings there are. */
static void put_program(printer_t *w, kit_text_t *out) {
  aot_prog_t *p = w->p;
  for (uint32_t i = 0; i < p->guards.n; i++) put_guard(w, &p->guards.at[i]);
  put_body(w);
  kit_text_z(out, "aot 1\n");
  if (!aoth_properties_are_none(p->properties)) {
    kit_text_t *body = w->out;
    w->out = out;
    kit_text_z(out, "properties");
    if (p->properties.known) kit_text_z(out, " ");
    put_flags(w, aoth_property_words, p->properties.known);
    for (uint32_t i = 0; i < p->properties.n_named; i++) {
      kit_text_z(out, " ");
      aoth_quoted(out, p->properties.named[i]);
    }
    kit_text_z(out, "\n");
    w->out = body;
  }
  if (p->symbols.n) kit_text_z(out, "\n");
  for (uint32_t i = 0; i < p->symbols.n; i++) put_symbol(w, i, out);
  kit_text_add(out, w->dims.lets->data, w->dims.lets->size);
  if (w->n_encodings) kit_text_z(out, "\n");
  for (uint32_t i = 0; i < w->n_encodings; i++) put_encoding(w, i, out);
  kit_text_add(out, w->out->data, w->out->size);
  if (w->n_origins) kit_text_z(out, "\n");
  for (uint32_t i = 0; i < w->n_origins; i++) put_origin(w, i, out);
  out->failed |= w->out->failed | w->dims.lets->failed;
}

void aoth_print(aot_prog_t *p, kit_text_t *out) {
  kit_text_t body = {0}, lets = {0};
  printer_t w = {.p = p, .out = &body, .dims = {.prog = p, .lets = &lets}};
  kit_arena_t *tables = kit_arena_create();
  if (tables && prepare(&w, tables)) {
    put_program(&w, out);
  } else {
    aoth_no_memory(p, "the text of the program", (uint64_t)p->values.n * 32);
    out->failed = 1;
  }
  kit_arena_destroy(tables);
  kit_text_deinit(&body);
  kit_text_deinit(&lets);
}

void aoth_print_node(aot_prog_t *p, aot_node_t n, kit_text_t *out) {
  printer_t w = {.p = p, .out = out, .dims = {.prog = p}};
  if (n.id && n.id < p->nodes.n) put_node(&w, n.id);
}

void aoth_print_call(aot_prog_t *p, const aoth_node_row_t *n, kit_text_t *out) {
  printer_t w = {.p = p, .out = out, .dims = {.prog = p}};
  put_call(&w, n);
}
