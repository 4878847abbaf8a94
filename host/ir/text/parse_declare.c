/* Declarations of the text form: properties, symbols, lets, guards, encodings, leaves, rules, origins. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/text/parser.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of a vendor's, in quotes. */
static aot_status_t parse_vendor_property(aoth_parser_t *s) {
  const aoth_token_t t = s->token;
  aot_str_t name;
  AOT_TRY(aoth_parse_string(s, &name));
  if (!aoth_is_vendor_name(name)) return aoth_parse_fail(s, &t, "\"%.*s\" is no name for a property", STR_ARGS(name));
  const aoth_properties_t so_far = {0, s->property_names.n, s->property_names.at};
  if (aoth_properties_have(so_far, name)) return AOT_OK;
  if (!ROWS_ROOM(s->property_names, 1)) return aoth_parse_memory(s);
  name = aoth_store_text(s->p, name);
  if (!name.data) return aoth_parse_memory(s);
  s->property_names.at[s->property_names.n++] = name;
  return AOT_OK;
}

/* properties imported rng-explicit "vendor.tiled" */
static aot_status_t parse_properties(aoth_parser_t *s) {
  uint32_t properties = s->properties;
  AOT_TRY(aoth_parse_next(s));
  while (s->token.kind == TOKEN_WORD || s->token.kind == TOKEN_STRING) {
    aoth_token_t t = s->token;
    int64_t bit;
    if (s->token.kind == TOKEN_STRING) {
      AOT_TRY(parse_vendor_property(s));
      continue;
    }
    if (aoth_at_word(s, "flags")) {
      AOT_TRY(aoth_parse_flags(s, aoth_property_words, "a property", &properties));
      continue;
    }
    AOT_TRY(aoth_parse_next(s));
    while (aoth_at_punct(s, "-") && s->token.at == t.end) { /* a hyphen inside a word */
      AOT_TRY(aoth_parse_next(s));
      if (s->token.kind != TOKEN_WORD) return aoth_parse_expected(s, "the rest of a property");
      t.end = s->token.end;
      t.text.size = (uint64_t)(t.end - t.text.data);
      AOT_TRY(aoth_parse_next(s));
    }
    if (!aoth_word_find(aoth_property_words, t.text, &bit))
      return aoth_parse_fail(s, &t, "there is no property %.*s", STR_ARGS(t.text));
    properties |= (uint32_t)bit;
  }
  s->properties = properties;
  return aoth_parse_line_end(s);
}

static aot_status_t parse_range(aoth_parser_t *s, aot_symbol_info_t *out) {
  AOT_TRY(aoth_parse_punct(s, "["));
  AOT_TRY(aoth_parse_i64(s, &out->min));
  AOT_TRY(aoth_parse_punct(s, ","));
  if (s->token.kind == TOKEN_FLOAT && s->token.text.size == 3 && memcmp(s->token.text.data, "inf", 3) == 0) {
    out->max = INT64_MAX;
    AOT_TRY(aoth_parse_next(s));
  } else {
    AOT_TRY(aoth_parse_i64(s, &out->max));
  }
  return aoth_parse_punct(s, "]");
}

/* symbol s0 in [1, 64] hint 8        symbol $s1 "odd name" in [0, inf] hint 3 */
static aot_status_t parse_symbol(aoth_parser_t *s) {
  aot_symbol_info_t info = {.struct_size = (uint32_t)sizeof info};
  uint32_t other, id = s->symbol_dims.n;
  int64_t dim;
  AOT_TRY(aoth_parse_next(s));
  aoth_token_t t = s->token;
  int plain = t.kind == TOKEN_WORD;
  if (!plain && t.kind != TOKEN_DOLLAR) return aoth_parse_expected(s, "the name of a symbol");
  if (plain && aoth_is_reserved(t.text))
    return aoth_parse_fail(s, &t, "%.*s means something else in expressions", STR_ARGS(t.text));
  AOT_TRY(aoth_parse_next(s));
  if (plain) info.name = t.text;
  else if (s->token.kind == TOKEN_STRING) AOT_TRY(aoth_parse_string(s, &info.name));
  if (!aoth_at_word(s, "in")) return aoth_parse_expected(s, "`in`");
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_range(s, &info));
  if (!aoth_at_word(s, "hint")) return aoth_parse_expected(s, "`hint`");
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(aoth_parse_i64(s, &info.hint));
  if (plain && aoth_labels_find(&s->symbols, t.text, &other))
    return aoth_parse_fail(s, &t, "symbol %.*s is defined twice", STR_ARGS(t.text));
  s->focus = t;
  AOT_TRY(aoth_edit_symbol_create(s->p, &info, &dim));
  if (!ROWS_ROOM(s->symbol_dims, 1) || (plain && !aoth_labels_put(&s->symbols, t.text, id)))
    return aoth_parse_memory(s);
  s->symbol_dims.at[s->symbol_dims.n++] = dim;
  AOT_ASSERT(s->symbol_dims.n == s->p->symbols.n); /* $sN is symbol N of the program */
  return aoth_parse_line_end(s);
}

/* let $e0 = s0 * 2 */
static aot_status_t parse_let(aoth_parser_t *s) {
  int64_t dim;
  char expected[24];
  AOT_TRY(aoth_parse_next(s));
  int n = snprintf(expected, sizeof expected, "e%u", s->lets.n);
  if (s->token.kind != TOKEN_DOLLAR || s->token.text.size != (uint64_t)n ||
      memcmp(s->token.text.data, expected, (size_t)n) != 0)
    return aoth_parse_fail(s, &s->token, "lets are numbered in order: this one is $%s", expected);
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(aoth_parse_punct(s, "="));
  AOT_TRY(aoth_parse_dim(s, &dim));
  if (!ROWS_ROOM(s->lets, 1)) return aoth_parse_memory(s);
  s->lets.at[s->lets.n++] = dim;
  return aoth_parse_line_end(s);
}

/* guard mod(s0, 2) == 0 "L['x'].size()[0] % 2 == 0" */
static aot_status_t parse_guard(aoth_parser_t *s) {
  aot_guard_info_t g = {.struct_size = (uint32_t)sizeof g};
  AOT_TRY(aoth_parse_next(s));
  const aoth_token_t where = s->token;
  AOT_TRY(aoth_parse_dim(s, &g.condition));
  if (s->token.kind == TOKEN_STRING) AOT_TRY(aoth_parse_string(s, &g.text));
  s->focus = where;
  AOT_TRY(aoth_edit_guard_add(s->p, &g));
  return aoth_parse_line_end(s);
}

static aot_status_t parse_number(aoth_parser_t *s, uint32_t expected, const char *what) {
  aoth_token_t t = s->token;
  uint32_t number;
  AOT_TRY(aoth_parse_u32(s, &number));
  if (number == expected) return AOT_OK;
  return aoth_parse_fail(s, &t, "%s are numbered in order: this one is %u", what, expected);
}

/* encoding 0 "vendor.tiled" "16x16" */
static aot_status_t parse_encoding(aoth_parser_t *s) {
  aot_encoding_info_t e = {.struct_size = (uint32_t)sizeof e};
  aot_encoding_t id;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_number(s, s->encodings.n, "encodings"));
  s->focus = s->token;
  if (s->token.kind != TOKEN_STRING) return aoth_parse_expected(s, "the name of an encoding, in quotes");
  AOT_TRY(aoth_parse_string(s, &e.name));
  if (s->token.kind == TOKEN_STRING) AOT_TRY(aoth_parse_string(s, &e.value));
  AOT_TRY(aoth_edit_encoding_create(s->p, &e, &id));
  if (!ROWS_ROOM(s->encodings, 1)) return aoth_parse_memory(s);
  s->encodings.at[s->encodings.n++] = id;
  return aoth_parse_line_end(s);
}

static aot_status_t parse_leaf_names(aoth_parser_t *s, aot_leaf_info_t *l) {
  AOTH_ROWS(aot_str_t) names = {NULL, 0, 0};
  aot_status_t status = AOT_OK;
  while (s->token.kind == TOKEN_STRING && status == AOT_OK) {
    if (!ROWS_ROOM(names, 1)) status = aoth_parse_memory(s);
    else status = aoth_parse_string(s, &names.at[names.n++]);
  }
  l->n_names = names.n;
  if (status == AOT_OK) l->names = kit_arena_copy(s->scratch, 8, names.at, names.n * sizeof *names.at);
  free(names.at);
  return status;
}

/* leaf 0 user_input 1 "x" : f32[4] grad {persistent} data "00ff" */
static aot_status_t parse_leaf(aoth_parser_t *s) {
  aot_leaf_info_t l = {.struct_size = (uint32_t)sizeof l};
  aot_leaf_t leaf;
  int64_t role;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_number(s, s->p->leaves.n - 1, "leaves"));
  aoth_token_t where = s->token;
  AOT_TRY(aoth_parse_word_of(s, aoth_role_words, "the role of a leaf", &role));
  l.role = (int32_t)role;
  if (l.role == AOT_ROLE_USER_INPUT) AOT_TRY(aoth_parse_u32(s, &l.ordinal));
  AOT_TRY(parse_leaf_names(s, &l));
  AOT_TRY(aoth_parse_punct(s, ":"));
  AOT_TRY(aoth_parse_type(s, &l.type));
  if (aoth_at_punct(s, "{")) {
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_flags(s, aoth_leaf_flag_words, "a leaf flag", &l.flags));
    AOT_TRY(aoth_parse_punct(s, "}"));
  }
  if (aoth_at_word(s, "data")) {
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_bytes(s, &l.data, &l.nbytes));
  }
  s->focus = where;
  AOT_TRY(aoth_edit_leaf_create(s->p, &l, &leaf));
  return aoth_parse_line_end(s);
}

/* rule view_input 0 2 [4, 8] strides [1, 4] offset 2; rule view_input 0 2 i32 [4, 8] */
static aot_status_t parse_rule(aoth_parser_t *s) {
  aot_rule_t r = {0};
  aot_type_t geometry = {0};
  int64_t kind, dtype = 0;
  AOT_TRY(aoth_parse_next(s));
  aoth_token_t where = s->token;
  AOT_TRY(aoth_parse_word_of(s, aoth_rule_words, "a boundary rule", &kind));
  r.kind = (int32_t)kind;
  AOT_TRY(aoth_parse_number(s, aoth_rule_a_is_leaf(r.kind), &r.a));
  if (aoth_rule_has_b(r.kind)) AOT_TRY(aoth_parse_number(s, aoth_rule_b_is_leaf(r.kind), &r.b));
  if (aoth_rule_has_geometry(r.kind)) {
    if (s->token.kind == TOKEN_WORD) AOT_TRY(aoth_parse_word_of(s, aoth_dtype_words, "a dtype", &dtype));
    AOT_TRY(aoth_parse_geometry(s, &geometry));
  }
  r.rank = geometry.rank;
  r.dtype = (int32_t)dtype;
  r.sizes = geometry.sizes;
  r.strides = geometry.strides;
  r.offset = geometry.offset;
  s->focus = where;
  AOT_TRY(aoth_edit_rule_add(s->p, &r));
  return aoth_parse_line_end(s);
}

static aot_status_t parse_origin_place(aoth_parser_t *s, aot_origin_info_t *o) {
  if (s->token.kind != TOKEN_STRING) return AOT_OK;
  AOT_TRY(aoth_parse_string(s, &o->source_file));
  if (!aoth_at_punct(s, ":")) return AOT_OK;
  AOT_TRY(aoth_parse_next(s));
  return aoth_parse_u32(s, &o->line);
}

/* origin 3 "gpt.py":41 module "h.0.attn" node "add_3" from 1 */
aot_status_t aoth_parse_origin(aoth_parser_t *s) {
  aot_origin_info_t o = {.struct_size = (uint32_t)sizeof o, .parent = aot_no_origin()};
  aot_origin_t id;
  AOT_TRY(aoth_parse_next(s));
  s->focus = s->token;
  AOT_TRY(parse_number(s, s->origins.n, "origins"));
  AOT_TRY(parse_origin_place(s, &o));
  if (aoth_at_word(s, "module")) {
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_string(s, &o.module_path));
  }
  if (aoth_at_word(s, "node")) {
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_string(s, &o.node_name));
  }
  if (aoth_at_word(s, "from")) {
    uint32_t parent;
    AOT_TRY(aoth_parse_next(s));
    aoth_token_t t = s->token;
    AOT_TRY(aoth_parse_u32(s, &parent));
    if (parent >= s->origins.n) return aoth_parse_fail(s, &t, "origin %u comes later or not at all", parent);
    o.parent = s->origins.at[parent];
  }
  AOT_TRY(aoth_edit_origin_create(s->p, &o, &id));
  if (!ROWS_ROOM(s->origins, 1)) return aoth_parse_memory(s);
  s->origins.at[s->origins.n++] = id;
  return aoth_parse_line_end(s);
}

static aot_status_t skip_line(aoth_parser_t *s) { /* origins were read when the text was looked over */
  while (s->token.kind != TOKEN_LINE && s->token.kind != TOKEN_END) AOT_TRY(aoth_parse_next(s));
  return aoth_parse_line_end(s);
}

aot_status_t aoth_parse_declaration(aoth_parser_t *s) {
  static const struct {
    const char *word;
    aot_status_t (*parse)(aoth_parser_t *s);
  } forms[] = {
      {"properties", parse_properties}, {"symbol", parse_symbol}, {"encoding", parse_encoding}, {"let", parse_let},
      {"guard", parse_guard},           {"leaf", parse_leaf},     {"rule", parse_rule},         {"origin", skip_line},
      {"graph", aoth_parse_graph}};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (aoth_at_word(s, forms[i].word)) return forms[i].parse(s);
  return aoth_parse_expected(s, "properties, symbol, let, guard, encoding, leaf, rule, graph or origin");
}
