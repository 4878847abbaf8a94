/* Operators and their arguments: `ns.sum.dim %x, [0, 1], true, dtype=f32`.
 *
 * Positional arguments fill the schema from the left; `name=` finds its place by name; what is left out takes its
 * default. How an argument is written says its kind (1 is an int, 1.0 a float, f32 a dtype), and the store checks it
 * against the schema. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/text/parser.h>
#include <stdlib.h>
#include <string.h>

aot_status_t aoth_parse_op(aoth_parser_t *s, aot_op_t *out) {
  aoth_token_t t = s->token;
  aot_str_t name = t.text;
  if (t.kind == TOKEN_STRING) AOT_TRY(aoth_parse_string(s, &name));
  else if (t.kind == TOKEN_WORD) AOT_TRY(aoth_parse_next(s));
  else return aoth_parse_expected(s, "an operator");
  *out = aoth_ops_find(s->p->ops, name);
  return out->id != NONE ? AOT_OK : aoth_parse_unknown_op(s, &t, name);
}

static aot_status_t value_at(aoth_parser_t *s, uint32_t *out) {
  if (!aoth_labels_find(&s->values, s->token.text, out)) {
    aoth_parse_fail(s, &s->token, "there is no value %%%.*s before this line of the graph", STR_ARGS(s->token.text));
    return AOT_E_INVALID;
  }
  return aoth_parse_next(s);
}

/* ---- lists ---- */
#define ELEMENT_NONE 0 /* only `none` so far */

typedef struct list {
  int32_t kind; /* AOT_ARG_VALUES, .. */
  uint32_t n;
} list_t;

static aot_status_t add_element(aoth_parser_t *s, list_t *l, const aoth_token_t *t, int32_t kind, int64_t bits) {
  if (l->kind == AOT_ARG_INTS && kind == AOT_ARG_FLOATS) { /* [1, 2.5] */
    for (uint32_t i = 0; i < s->ints.n; i++) {
      double f = (double)s->ints.at[i];
      if (AOT_DIM_IS_SYM(s->ints.at[i])) return aoth_parse_fail(s, t, "a list mixes expressions and floats");
      memcpy(&s->ints.at[i], &f, sizeof f);
    }
    l->kind = kind;
  }
  if (l->kind == AOT_ARG_FLOATS && kind == AOT_ARG_INTS && !AOT_DIM_IS_SYM(bits)) {
    double f = (double)bits;
    memcpy(&bits, &f, sizeof f);
    kind = AOT_ARG_FLOATS;
  }
  if (l->n && l->kind != kind) return aoth_parse_fail(s, t, "a list holds things of one kind");
  if (!ROWS_ROOM(s->ints, 1)) return aoth_parse_memory(s);
  l->kind = kind;
  l->n++;
  s->ints.at[s->ints.n++] = bits;
  return AOT_OK;
}

static aot_status_t parse_element(aoth_parser_t *s, list_t *l) {
  aoth_token_t t = s->token;
  int64_t bits = 0;
  uint32_t value;
  double f;
  if (t.kind == TOKEN_VALUE) {
    AOT_TRY(value_at(s, &value));
    return add_element(s, l, &t, AOT_ARG_VALUES, (int64_t)value);
  }
  if (aoth_at_word(s, "none")) {
    AOT_TRY(aoth_parse_next(s));
    return add_element(s, l, &t, AOT_ARG_VALUES, (int64_t)NONE);
  }
  if (aoth_at_word(s, "true") || aoth_at_word(s, "false")) {
    bits = aoth_at_word(s, "true");
    AOT_TRY(aoth_parse_next(s));
    return add_element(s, l, &t, AOT_ARG_BOOLS, bits);
  }
  if (t.kind == TOKEN_FLOAT) {
    AOT_TRY(aoth_token_double(s, &t, &f));
    AOT_TRY(aoth_parse_next(s));
    memcpy(&bits, &f, sizeof f);
    return add_element(s, l, &t, AOT_ARG_FLOATS, bits);
  }
  AOT_TRY(aoth_parse_dim(s, &bits));
  return add_element(s, l, &t, AOT_ARG_INTS, bits);
}

static aot_status_t finish_list(aoth_parser_t *s, const list_t *l, aot_arg_t *out) {
  AOT_ASSERT(s->ints.n == l->n);
  out->kind = l->kind;
  out->n = l->n;
  if (l->kind == AOT_ARG_VALUES) {
    uint32_t *ids = kit_arena_alloc(s->scratch, 8, (l->n + (size_t)1) * sizeof *ids);
    if (!ids) return aoth_parse_memory(s);
    for (uint32_t i = 0; i < l->n; i++) ids[i] = (uint32_t)s->ints.at[i];
    out->u.ids = ids;
    return AOT_OK;
  }
  out->u.ints = kit_arena_copy(s->scratch, 8, s->ints.at, l->n * sizeof *s->ints.at); /* doubles by their bits */
  return out->u.ints ? AOT_OK : aoth_parse_memory(s);
}

static aot_status_t parse_list(aoth_parser_t *s, int32_t empty_kind, aot_arg_t *out) {
  list_t l = {empty_kind, 0};
  s->ints.n = 0;
  AOT_TRY(aoth_parse_punct(s, "["));
  while (!aoth_at_punct(s, "]")) {
    AOT_TRY(parse_element(s, &l));
    if (!aoth_at_punct(s, ",")) break;
    AOT_TRY(aoth_parse_next(s));
  }
  AOT_TRY(aoth_parse_punct(s, "]"));
  return finish_list(s, &l, out);
}

/* ---- single arguments ---- */
static aot_status_t parse_numbered(aoth_parser_t *s, int32_t kind, aot_arg_t *out) { /* dtype(99) */
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(aoth_parse_punct(s, "("));
  *out = aot_arg_int_kind(kind, 0);
  AOT_TRY(aoth_parse_i64(s, &out->u.i));
  return aoth_parse_punct(s, ")");
}

static aot_status_t parse_op_arg(aoth_parser_t *s, aot_arg_t *out) { /* op(NAME) */
  aot_op_t op;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(aoth_parse_punct(s, "("));
  AOT_TRY(aoth_parse_op(s, &op));
  *out = aot_arg_int_kind(AOT_ARG_OP, (int64_t)op.id);
  return aoth_parse_punct(s, ")");
}

static aot_status_t parse_empty(aoth_parser_t *s, int32_t kind, aot_arg_t *out) { /* int[] */
  aoth_token_t t = s->token;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_list(s, kind, out));
  return out->n ? aoth_parse_fail(s, &t, "only an empty list is named by its kind") : AOT_OK;
}

static aot_status_t parse_simple(aoth_parser_t *s, int32_t kind, int64_t value, aot_arg_t *out) {
  *out = aot_arg_int_kind(kind, value);
  return aoth_parse_next(s);
}

/* bool is a dtype, and bool[] an empty list. */
static aot_status_t parse_dtype(aoth_parser_t *s, int64_t dtype, aot_arg_t *out) {
  AOT_TRY(parse_simple(s, AOT_ARG_DTYPE, dtype, out));
  if (dtype != AOT_BOOL || !aoth_at_punct(s, "[")) return AOT_OK;
  return parse_list(s, AOT_ARG_BOOLS, out);
}

static aot_status_t parse_device_arg(aoth_parser_t *s, aot_arg_t *out) {
  int32_t kind, index;
  AOT_TRY(aoth_parse_device(s, &kind, &index));
  *out = aot_arg_device(kind, index);
  return AOT_OK;
}

static aot_status_t parse_word_arg(aoth_parser_t *s, aot_arg_t *out) {
  static const struct {
    const char *word;
    int32_t kind;
  } numbered[] = {{"dtype", AOT_ARG_DTYPE},
                  {"layout", AOT_ARG_LAYOUT},
                  {"device", AOT_ARG_DEVICE},
                  {"memory_format", AOT_ARG_MEMORY_FORMAT}},
    lists[] = {{"int", AOT_ARG_INTS}, {"float", AOT_ARG_FLOATS}, {"value", AOT_ARG_VALUES}};
  int64_t number;
  if (aoth_at_word(s, "none")) return parse_simple(s, AOT_ARG_NONE, 0, out);
  if (aoth_at_word(s, "true")) return parse_simple(s, AOT_ARG_BOOL, 1, out);
  if (aoth_at_word(s, "false")) return parse_simple(s, AOT_ARG_BOOL, 0, out);
  if (aoth_at_word(s, "op")) return parse_op_arg(s, out);
  for (int i = 0; i < 4; i++)
    if (aoth_at_word(s, numbered[i].word)) return parse_numbered(s, numbered[i].kind, out);
  for (int i = 0; i < 3; i++)
    if (aoth_at_word(s, lists[i].word)) return parse_empty(s, lists[i].kind, out);
  if (aoth_word_find(aoth_dtype_words, s->token.text, &number)) return parse_dtype(s, number, out);
  if (aoth_word_find(aoth_device_words, s->token.text, &number)) return parse_device_arg(s, out);
  if (aoth_word_find(aoth_layout_words, s->token.text, &number)) return parse_simple(s, AOT_ARG_LAYOUT, number, out);
  if (aoth_word_find(aoth_memory_words, s->token.text, &number))
    return parse_simple(s, AOT_ARG_MEMORY_FORMAT, number, out);
  *out = aot_arg_int_kind(AOT_ARG_INT, 0);
  return aoth_parse_dim(s, &out->u.i);
}

static aot_status_t parse_arg(aoth_parser_t *s, aot_arg_t *out) {
  uint32_t id;
  aot_str_t text;
  aoth_token_t t = s->token;
  *out = aot_arg_none();
  switch (t.kind) {
    case TOKEN_VALUE:
      AOT_TRY(value_at(s, &id));
      *out = aot_arg_int_kind(AOT_ARG_VALUE, (int64_t)id);
      return AOT_OK;
    case TOKEN_GRAPH:
      if (!aoth_labels_find(&s->graphs, t.text, &id))
        return aoth_parse_fail(s, &t, "there is no graph @%.*s", STR_ARGS(t.text));
      return parse_simple(s, AOT_ARG_GRAPH, (int64_t)id, out);
    case TOKEN_STRING:
      AOT_TRY(aoth_parse_string(s, &text));
      if (text.size > UINT32_MAX) return aoth_parse_fail(s, &t, "the string is too long");
      *out = aot_arg_str(text);
      return AOT_OK;
    case TOKEN_FLOAT:
      out->kind = AOT_ARG_FLOAT;
      AOT_TRY(aoth_token_double(s, &t, &out->u.f));
      return aoth_parse_next(s);
    case TOKEN_WORD: return parse_word_arg(s, out);
    default:
      if (aoth_at_punct(s, "[")) return parse_list(s, AOT_ARG_VALUES, out);
      *out = aot_arg_int_kind(AOT_ARG_INT, 0);
      return aoth_parse_dim(s, &out->u.i);
  }
}

/* ---- the argument list ---- */
static aot_status_t grow_args(aoth_parser_t *s, uint32_t n) {
  if (n > s->args.n && !ROWS_ROOM(s->args, n - s->args.n)) return aoth_parse_memory(s);
  for (; s->args.n < n; s->args.n++) memset(&s->args.at[s->args.n], 0, sizeof *s->args.at);
  return AOT_OK;
}

static uint32_t schema_position(const aot_op_desc_t *d, aot_str_t name) {
  for (uint32_t i = 0; i < d->n_args; i++)
    if (aot_str_eq(d->args[i].name, name)) return i;
  return AOT_NO_INDEX;
}

static aot_status_t unknown_keyword(aoth_parser_t *s, const aot_op_desc_t *d, const aoth_token_t *t) {
  aoth_parse_fail(s, t, "%.*s has no argument %.*s", STR_ARGS(d->name), STR_ARGS(t->text));
  if (d->schema.size) aoth_hint(s->p, "the schema is %.*s%.*s", STR_ARGS(d->name), STR_ARGS(d->schema));
  return AOT_E_INVALID;
}

/* Is `word =` at hand? The lexer is copied to look one token ahead. */
static int at_keyword(const aoth_parser_t *s) {
  aoth_lexer_t ahead = s->lexer;
  aoth_token_t t;
  if (s->token.kind != TOKEN_WORD) return 0;
  aoth_lexer_next(&ahead, &t);
  return t.kind == TOKEN_PUNCT && t.text.size == 1 && *t.text.data == '=';
}

static aot_status_t parse_one(aoth_parser_t *s, const aot_op_desc_t *d, uint32_t position, int *keyword) {
  aoth_token_t t = s->token;
  *keyword = at_keyword(s);
  if (*keyword) {
    position = schema_position(d, t.text);
    if (position == AOT_NO_INDEX) return unknown_keyword(s, d, &t);
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_next(s));
  }
  AOT_TRY(grow_args(s, position + 1));
  if (s->args.at[position].given)
    return aoth_parse_fail(s, &t, "argument %u of %.*s is given twice", position, STR_ARGS(d->name));
  aot_arg_t arg;
  aoth_token_t value = s->token;
  AOT_TRY(parse_arg(s, &arg));
  aoth_given_arg_t given = {arg, value, 1};
  s->args.at[position] = given;
  return AOT_OK;
}

/* Gaps before a keyword argument take their defaults; a required one has none. */
static aot_status_t fill_gaps(aoth_parser_t *s, const aot_op_desc_t *d, const aoth_token_t *op) {
  for (uint32_t i = 0; i < s->args.n; i++) {
    aoth_given_arg_t *g = &s->args.at[i];
    const aot_schema_arg_t *a = aoth_schema_arg(d, i);
    if (g->given || !a) continue;
    g->token = *op;
    if (a->flags & AOT_SARG_HAS_DEFAULT) g->arg = a->preset;
    else if (a->type != AOT_STYPE_GENERATOR)
      return aoth_parse_fail(s, op, "argument %u (%.*s) of %.*s is missing and has no default", i, STR_ARGS(a->name),
                             STR_ARGS(d->name));
  }
  return AOT_OK;
}

static int at_args_end(const aoth_parser_t *s) {
  return s->token.kind == TOKEN_LINE || s->token.kind == TOKEN_END || s->token.kind == TOKEN_ORIGIN ||
         aoth_at_punct(s, "{") || aoth_at_word(s, "region");
}

aot_status_t aoth_parse_args(aoth_parser_t *s, const aot_op_desc_t *d) {
  aoth_token_t op = s->focus;
  int keyword = 0;
  s->args.n = 0;
  for (uint32_t position = 0; !at_args_end(s); position++) {
    aoth_token_t t = s->token;
    int was_keyword = keyword;
    AOT_TRY(parse_one(s, d, position, &keyword));
    if (was_keyword && !keyword)
      return aoth_parse_fail(s, &t, "an argument without a name cannot follow one with a name");
    if (!aoth_at_punct(s, ",")) break;
    AOT_TRY(aoth_parse_next(s));
    if (at_args_end(s)) return aoth_parse_expected(s, "an argument");
  }
  return fill_gaps(s, d, &op);
}
