/* Shape expressions: operator precedence with two explicit stacks (Dijkstra's shunting yard), so that depth costs
 * memory and nothing else. Every step goes through aoth_edit_dim_make: what is read is in normal form at once.
 *
 *   compare < sum < product < power (to the right) < number, symbol, $eN, ( ), max(a, b), min, mod, where(c, a, b) */
#include <aot/assert.h>
#include <ir/text/parser.h>
#include <string.h>

#define PAREN (-1)

typedef struct infix {
  const char *text;
  int32_t op;
  int prec;
} infix_t;

static const infix_t infixes[] = {{"==", AOT_EXPR_EQ, 1},       {"<", AOT_EXPR_LT, 1},  {"<=", AOT_EXPR_LE, 1},
                                  {"+", AOT_EXPR_ADD, 2},       {"-", AOT_EXPR_SUB, 2}, {"*", AOT_EXPR_MUL, 3},
                                  {"//", AOT_EXPR_FLOORDIV, 3}, {"**", AOT_EXPR_POW, 4}};

static int prec_of(const aoth_dim_op_t *o) {
  for (size_t i = 0; i < sizeof infixes / sizeof *infixes && !o->function; i++)
    if (infixes[i].op == o->op) return infixes[i].prec;
  return 0;
}

static const infix_t *infix_at(const aoth_parser_t *s) {
  for (size_t i = 0; i < sizeof infixes / sizeof *infixes; i++)
    if (aoth_at_punct(s, infixes[i].text)) return &infixes[i];
  return NULL;
}

static aot_status_t push_value(aoth_parser_t *s, int64_t value) {
  if (!ROWS_ROOM(s->dims.values, 1)) return aoth_parse_memory(s);
  s->dims.values.at[s->dims.values.n++] = value;
  return AOT_OK;
}

static aot_status_t push_op(aoth_parser_t *s, int32_t op, int function) {
  if (!ROWS_ROOM(s->dims.ops, 1)) return aoth_parse_memory(s);
  aoth_dim_op_t o = {.op = op, .function = function, .token = s->token};
  s->dims.ops.at[s->dims.ops.n++] = o;
  return AOT_OK;
}

/* Apply the operation on top to the values on top. */
static aot_status_t apply(aoth_parser_t *s, const aoth_dim_op_t *o) {
  uint32_t n = o->op == AOT_EXPR_WHERE ? 3 : 2;
  AOT_ASSERT(s->dims.values.n >= n);
  int64_t *v = s->dims.values.at + s->dims.values.n - n;
  s->focus = o->token;
  AOT_TRY(aoth_edit_dim_make(s->p, o->op, v[0], v[1], n == 3 ? v[2] : 0, &v[0]));
  s->dims.values.n -= n - 1;
  return AOT_OK;
}

/* Apply infix operations down to the innermost parenthesis, or to one that binds less than prec. */
static aot_status_t reduce(aoth_parser_t *s, uint32_t base, int prec) {
  while (s->dims.ops.n > base) {
    aoth_dim_op_t o = s->dims.ops.at[s->dims.ops.n - 1];
    if (o.op == PAREN || o.function || prec_of(&o) < prec) break;
    s->dims.ops.n--;
    AOT_TRY(apply(s, &o));
  }
  return AOT_OK;
}

static aot_status_t symbol_value(aoth_parser_t *s, int64_t *out) {
  uint32_t id;
  if (!aoth_labels_find(&s->symbols, s->token.text, &id))
    return aoth_parse_fail(s, &s->token, "there is no symbol %.*s", STR_ARGS(s->token.text));
  *out = s->symbol_dims.at[id];
  return AOT_OK;
}

/* $sN: a symbol by number; $eN: a let. */
static aot_status_t dollar_value(aoth_parser_t *s, int64_t *out) {
  aot_str_t t = s->token.text;
  uint64_t number = 0;
  for (uint64_t i = 1; i < t.size && number <= UINT32_MAX; i++)
    number = t.data[i] >= '0' && t.data[i] <= '9' ? number * 10 + (uint64_t)(t.data[i] - '0') : UINT64_C(1) << 40;
  if (t.size > 1 && t.data[0] == 's' && number < s->symbol_dims.n) *out = s->symbol_dims.at[number];
  else if (t.size > 1 && t.data[0] == 'e' && number < s->lets.n) *out = s->lets.at[number];
  else return aoth_parse_fail(s, &s->token, "there is no $%.*s", STR_ARGS(t));
  return AOT_OK;
}

/* One operand, or an opening. *done: an operand has been read. */
static aot_status_t parse_operand(aoth_parser_t *s, int *done_out) {
  int64_t value, function;
  *done_out = 1;
  if (aoth_at_punct(s, "(")) {
    *done_out = 0;
    AOT_TRY(push_op(s, PAREN, 0));
    return aoth_parse_next(s);
  }
  if (s->token.kind == TOKEN_INT) {
    AOT_TRY(aoth_parse_i64(s, &value));
    return push_value(s, value);
  }
  if (s->token.kind == TOKEN_DOLLAR) AOT_TRY(dollar_value(s, &value));
  else if (s->token.kind == TOKEN_WORD && aoth_word_find(aoth_expr_words, s->token.text, &function)) {
    *done_out = 0;
    AOT_TRY(push_op(s, (int32_t)function, 1));
    AOT_TRY(aoth_parse_next(s));
    return aoth_parse_punct(s, "(");
  } else if (s->token.kind == TOKEN_WORD) AOT_TRY(symbol_value(s, &value));
  else return aoth_parse_expected(s, "a dimension");
  AOT_TRY(aoth_parse_next(s));
  return push_value(s, value);
}

static aot_status_t close_paren(aoth_parser_t *s) {
  aoth_dim_op_t o = s->dims.ops.at[--s->dims.ops.n];
  uint32_t commas = o.op == AOT_EXPR_WHERE ? 2 : 1;
  if (o.op == PAREN) return AOT_OK;
  if (o.commas != commas)
    return aoth_parse_fail(s, &o.token, "%.*s takes %u arguments", STR_ARGS(o.token.text), commas + 1);
  return apply(s, &o);
}

/* What follows an operand. *more: another operand must follow; *end: the expression is over. */
static aot_status_t parse_operator(aoth_parser_t *s, uint32_t base, int *more, int *end) {
  const infix_t *infix = infix_at(s);
  *more = *end = 0;
  if (infix) {
    AOT_TRY(reduce(s, base, infix->op == AOT_EXPR_POW ? infix->prec + 1 : infix->prec));
    AOT_TRY(push_op(s, infix->op, 0));
    *more = 1;
    return aoth_parse_next(s);
  }
  int comma = aoth_at_punct(s, ","), close = aoth_at_punct(s, ")");
  AOT_TRY(reduce(s, base, 0));
  aoth_dim_op_t *top = s->dims.ops.n > base ? &s->dims.ops.at[s->dims.ops.n - 1] : NULL;
  if (!top) {
    *end = 1;
    return AOT_OK;
  }
  if (comma && top->function) {
    top->commas++;
    *more = 1;
    return aoth_parse_next(s);
  }
  if (!close) return aoth_parse_expected(s, "`)`");
  AOT_TRY(close_paren(s));
  return aoth_parse_next(s);
}

aot_status_t aoth_parse_dim(aoth_parser_t *s, int64_t *out) {
  uint32_t base = s->dims.ops.n, values = s->dims.values.n;
  int more = 1, end = 0;
  while (!end) {
    int operand = 0;
    while (more && !operand) AOT_TRY(parse_operand(s, &operand));
    AOT_TRY(parse_operator(s, base, &more, &end));
  }
  AOT_ASSERT(s->dims.ops.n == base && s->dims.values.n == values + 1);
  *out = s->dims.values.at[values];
  s->dims.values.n = values;
  return AOT_OK;
}

aot_status_t aoth_parse_dim_list(aoth_parser_t *s, const int64_t **out, uint32_t *n) {
  AOT_TRY(aoth_parse_punct(s, "["));
  s->ints.n = 0;
  while (!aoth_at_punct(s, "]")) {
    int64_t dim;
    AOT_TRY(aoth_parse_dim(s, &dim));
    if (!ROWS_ROOM(s->ints, 1)) return aoth_parse_memory(s);
    s->ints.at[s->ints.n++] = dim;
    if (!aoth_at_punct(s, ",")) break;
    AOT_TRY(aoth_parse_next(s));
  }
  AOT_TRY(aoth_parse_punct(s, "]"));
  *n = s->ints.n;
  *out = kit_arena_copy(s->scratch, 8, s->ints.at, s->ints.n * sizeof *s->ints.at);
  return *out ? AOT_OK : aoth_parse_memory(s);
}
