/* Graphs of the text form: ports and nodes, one a line. */
#include <aot/assert.h>
#include <aot/inline.h>
#include <ir/text/parser.h>
#include <string.h>

static aot_status_t define_value(aoth_parser_t *s, const aoth_token_t *label, uint32_t id) {
  uint32_t other;
  if (aoth_labels_find(&s->values, label->text, &other))
    return aoth_parse_fail(s, label, "value %%%.*s is defined twice", STR_ARGS(label->text));
  return aoth_labels_put(&s->values, label->text, id) ? AOT_OK : aoth_parse_memory(s);
}

/* The name that a label and an optional string after it give: %3 has none, %3 "x y" has that. */
static aot_status_t parse_name(aoth_parser_t *s, const aoth_token_t *label, aot_str_t *out) {
  const aot_str_t none = {NULL, 0};
  *out = aoth_is_word(label->text) ? label->text : none;
  return s->token.kind == TOKEN_STRING ? aoth_parse_string(s, out) : AOT_OK;
}

static aot_status_t parse_label(aoth_parser_t *s, aoth_token_t *label) {
  if (s->token.kind != TOKEN_VALUE) return aoth_parse_expected(s, "a value");
  *label = s->token;
  return aoth_parse_next(s);
}

static aot_status_t parse_role(aoth_parser_t *s, int32_t *role, uint32_t *index) {
  int64_t number;
  s->focus = s->token;
  AOT_TRY(aoth_parse_word_of(s, aoth_role_words, "a role", &number));
  *role = (int32_t)number;
  return aoth_parse_number(s, aoth_role_counts_from_one(*role), index);
}

/* in %x = parameter 0 : f32[4] */
static aot_status_t parse_input(aoth_parser_t *s, aot_graph_t g) {
  aoth_token_t label;
  aot_str_t name;
  int32_t role;
  uint32_t index;
  aot_type_t type;
  aot_value_t value;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_label(s, &label));
  AOT_TRY(parse_name(s, &label, &name));
  AOT_TRY(aoth_parse_punct(s, "="));
  AOT_TRY(parse_role(s, &role, &index));
  aoth_token_t where = s->focus;
  AOT_TRY(aoth_parse_punct(s, ":"));
  AOT_TRY(aoth_parse_type(s, &type));
  s->focus = where;
  AOT_TRY(aoth_edit_input_add(s->p, g, role, index, &type, name, &value));
  AOT_TRY(define_value(s, &label, value.id));
  return aoth_parse_line_end(s);
}

/* out loss 0 "name" = %x */
static aot_status_t parse_output(aoth_parser_t *s, aot_graph_t g) {
  aot_str_t name = {NULL, 0};
  int32_t role;
  uint32_t index;
  aot_value_t value = aot_no_value();
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_role(s, &role, &index));
  aoth_token_t where = s->focus;
  if (s->token.kind == TOKEN_STRING) AOT_TRY(aoth_parse_string(s, &name));
  AOT_TRY(aoth_parse_punct(s, "="));
  if (aoth_at_word(s, "none")) {
    AOT_TRY(aoth_parse_next(s));
  } else {
    aoth_token_t label;
    AOT_TRY(parse_label(s, &label));
    if (!aoth_labels_find(&s->values, label.text, &value.id))
      return aoth_parse_fail(s, &label, "there is no value %%%.*s before this line of the graph", STR_ARGS(label.text));
  }
  s->focus = where;
  AOT_TRY(aoth_edit_output_add(s->p, g, role, index, value, name));
  return aoth_parse_line_end(s);
}

/* %a : f32[2], %b "odd name" : i64[2] = */
static aot_status_t parse_results(aoth_parser_t *s) {
  s->results.n = s->result_names.n = s->result_types.n = 0;
  while (s->token.kind == TOKEN_VALUE) {
    aoth_token_t label = s->token;
    if (!ROWS_ROOM(s->results, 1) || !ROWS_ROOM(s->result_names, 1) || !ROWS_ROOM(s->result_types, 1))
      return aoth_parse_memory(s);
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(parse_name(s, &label, &s->result_names.at[s->result_names.n++]));
    s->results.at[s->results.n++] = label;
    if (aoth_at_punct(s, ":")) {
      AOT_TRY(aoth_parse_next(s));
      AOT_TRY(aoth_parse_type(s, &s->result_types.at[s->result_types.n++]));
    }
    if (!aoth_at_punct(s, ",")) break;
    AOT_TRY(aoth_parse_next(s));
    if (s->token.kind != TOKEN_VALUE) return aoth_parse_expected(s, "a value");
  }
  AOT_ASSERT(s->result_names.n == s->results.n);
  if (!s->results.n) return AOT_OK;
  if (s->result_types.n && s->result_types.n != s->results.n)
    return aoth_parse_fail(s, &s->results.at[0], "either every result has a type or none: %u results, %u types",
                           s->results.n, s->result_types.n);
  return aoth_parse_punct(s, "=");
}

/* {backward must_save} region 3 !4 */
static aot_status_t parse_node_tail(aoth_parser_t *s, aot_node_spec_t *spec) {
  if (aoth_at_punct(s, "{")) {
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_flags(s, aoth_node_flag_words, "a node flag", &spec->flags));
    AOT_TRY(aoth_parse_punct(s, "}"));
  }
  if (aoth_at_word(s, "region")) {
    AOT_TRY(aoth_parse_next(s));
    AOT_TRY(aoth_parse_u32(s, &spec->region_tag));
  }
  if (s->token.kind == TOKEN_ORIGIN) {
    uint64_t number = 0;
    for (uint64_t i = 0; i < s->token.text.size && number <= UINT32_MAX; i++)
      number = number * 10 + (uint64_t)(s->token.text.data[i] - '0');
    if (number >= s->origins.n)
      return aoth_parse_fail(s, &s->token, "there is no origin %.*s", STR_ARGS(s->token.text));
    spec->origin = s->origins.at[number];
    AOT_TRY(aoth_parse_next(s));
  }
  return aoth_parse_line_end(s);
}

static aot_status_t define_results(aoth_parser_t *s, aot_node_t node) {
  const aoth_node_row_t *r = &s->p->nodes.at[node.id];
  if (r->n_results != s->results.n)
    return aoth_parse_fail(s, &s->focus, "%.*s has %u results here, %u are named", STR_ARGS(op_name(s->p, r->op)),
                           r->n_results, s->results.n);
  uint32_t first = r->first_result;
  for (uint32_t i = 0; i < s->results.n; i++) {
    aot_value_t value = {first + i};
    AOT_TRY(define_value(s, &s->results.at[i], value.id));
    if (s->result_names.at[i].size) AOT_TRY(aoth_edit_name_set(s->p, value, s->result_names.at[i]));
  }
  return AOT_OK;
}

/* Where a node of a file stands that says nothing about its origin. */
static aot_status_t line_origin(aoth_parser_t *s, const aoth_token_t *op, aot_origin_t *out) {
  aoth_where_t where = {0};
  aoth_parse_where(s, op, &where);
  const aot_origin_info_t o = {
      .struct_size = (uint32_t)sizeof o,
      .line = where.line,
      .source_file = aot_str(s->file),
      .parent = aot_no_origin(),
  };
  return aoth_edit_origin_create(s->p, &o, out);
}

static aot_status_t parse_node(aoth_parser_t *s, aot_graph_t g) {
  aot_node_spec_t spec = {.struct_size = (uint32_t)sizeof spec, .origin = aot_no_origin()};
  aot_node_t node;
  AOT_TRY(parse_results(s));
  aoth_token_t op = s->token;
  AOT_TRY(aoth_parse_op(s, &spec.op));
  s->focus = op;
  AOT_TRY(aoth_parse_args(s, aoth_ops_desc(s->p->ops, spec.op)));
  aot_arg_t *args = kit_arena_alloc(s->scratch, 8, (s->args.n + (size_t)1) * sizeof *args);
  if (!args) return aoth_parse_memory(s);
  for (uint32_t i = 0; i < s->args.n; i++) args[i] = s->args.at[i].arg;
  spec.args = args;
  spec.n_args = s->args.n;
  spec.types = s->result_types.at;
  spec.n_types = s->result_types.n;
  AOT_TRY(parse_node_tail(s, &spec));
  if (s->lines && spec.origin.id == NONE) AOT_TRY(line_origin(s, &op, &spec.origin));
  s->focus = op;
  AOT_TRY(aoth_edit_node_create(s->p, g, &spec, aot_no_node(), &node));
  AOT_TRY(define_results(s, node));
  s->args.n = 0;
  kit_arena_reset(s->scratch);
  return AOT_OK;
}

static aot_status_t parse_body(aoth_parser_t *s, aot_graph_t g) {
  while (!aoth_at_punct(s, "}")) {
    if (s->token.kind == TOKEN_END) return aoth_parse_expected(s, "`}`");
    if (aoth_at_word(s, "in")) AOT_TRY(parse_input(s, g));
    else if (aoth_at_word(s, "out")) AOT_TRY(parse_output(s, g));
    else AOT_TRY(parse_node(s, g));
  }
  return aoth_parse_next(s);
}

/* The graphs were created, in order, when the text was looked over: nodes may name regions that come later. */
aot_status_t aoth_parse_graph(aoth_parser_t *s) {
  int64_t kind;
  aot_str_t name;
  aot_graph_t g = {++s->n_graphs_read};
  AOT_TRY(aoth_parse_next(s));
  if (s->token.kind != TOKEN_GRAPH) return aoth_parse_expected(s, "the name of a graph, @name");
  aoth_token_t label = s->token;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_name(s, &label, &name));
  AOT_TRY(aoth_parse_word_of(s, aoth_graph_kind_words, "a kind of graph", &kind));
  if (g.id >= s->p->graphs.n || s->p->graphs.at[g.id].kind != kind || !aot_str_eq(s->p->graphs.at[g.id].name, name))
    return aoth_parse_fail(s, &label, "a graph must start on a line of its own");
  AOT_TRY(aoth_parse_punct(s, "{"));
  if (s->token.kind == TOKEN_LINE) AOT_TRY(aoth_parse_next(s));
  aoth_labels_clear(&s->values);
  AOT_TRY(parse_body(s, g));
  return aoth_parse_line_end(s);
}

/* `graph @label ["name"] kind`, when the text is looked over. */
aot_status_t aoth_parse_graph_head(aoth_parser_t *s) {
  int64_t kind;
  uint32_t other;
  aot_str_t name;
  aot_graph_t g;
  AOT_TRY(aoth_parse_next(s));
  if (s->token.kind != TOKEN_GRAPH) return aoth_parse_expected(s, "the name of a graph, @name");
  aoth_token_t label = s->token;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(parse_name(s, &label, &name));
  AOT_TRY(aoth_parse_word_of(s, aoth_graph_kind_words, "a kind of graph", &kind));
  if (aoth_labels_find(&s->graphs, label.text, &other))
    return aoth_parse_fail(s, &label, "graph @%.*s is defined twice", STR_ARGS(label.text));
  s->focus = label;
  AOT_TRY(aoth_edit_graph_create(s->p, (int32_t)kind, name, &g));
  return aoth_labels_put(&s->graphs, label.text, g.id) ? AOT_OK : aoth_parse_memory(s);
}
