/* sympy_text.c - see sympy_text.h. Precedence climbing; the nesting of the text is bounded, so the recursion is. */
#include "sympy_text.h"
#include <aot/graph.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 100
#define MAX_ARGS 64

/* A value is num / den: num a dimension, den a positive constant. */
typedef struct quotient {
  int64_t num, den;
} quotient_t;

typedef struct parser {
  p2_env_t *e;
  const p2_expr_sink_t *sink;
  const char *text;
  uint64_t size, i;
  uint32_t depth;
} parser_t;

static aot_status_t relation(parser_t *p, quotient_t *out);

/* ---- messages and tokens ---- */

static aot_status_t bad(parser_t *p, const char *what) {
  aot_str_t all = {p->text, p->size};
  p2_fail(p->e, "import-pt2.bad-expression", "the symbolic expression '%.*s' cannot be read: %s at byte %llu",
          P2_SHOW(all), what, (unsigned long long)p->i);
  return AOT_E_INVALID;
}

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_word(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static void skip_space(parser_t *p) {
  while (p->i < p->size && (p->text[p->i] == ' ' || p->text[p->i] == '\n')) p->i++;
}

static int take(parser_t *p, const char *token) {
  size_t n = strlen(token);
  skip_space(p);
  if (p->size - p->i < n || memcmp(p->text + p->i, token, n) != 0) return 0;
  p->i += n;
  return 1;
}

static int peek(parser_t *p, const char *token) {
  uint64_t i;
  int found;
  skip_space(p);
  i = p->i;
  found = take(p, token);
  p->i = i;
  return found;
}

static aot_str_t take_word(parser_t *p) {
  aot_str_t word;
  skip_space(p);
  word.data = p->text + p->i;
  while (p->i < p->size && (is_word(p->text[p->i]) || p->text[p->i] == '.')) p->i++;
  word.size = (uint64_t)(p->text + p->i - word.data);
  return word;
}

static aot_status_t take_string(parser_t *p, aot_str_t *out) {
  char quote;
  skip_space(p);
  if (p->i >= p->size || (p->text[p->i] != '\'' && p->text[p->i] != '"')) return bad(p, "a quoted name is expected");
  quote = p->text[p->i++];
  out->data = p->text + p->i;
  while (p->i < p->size && p->text[p->i] != quote) p->i++;
  out->size = (uint64_t)(p->text + p->i - out->data);
  if (p->i >= p->size || !out->size) return bad(p, "a quoted name does not end");
  p->i++;
  return AOT_OK;
}

static aot_status_t take_integer(parser_t *p, int64_t *out) {
  uint64_t n = 0;
  skip_space(p);
  if (p->i >= p->size || !is_digit(p->text[p->i])) return bad(p, "an integer is expected");
  for (; p->i < p->size && is_digit(p->text[p->i]); p->i++) {
    if (n > (UINT64_MAX - 9) / 10) return bad(p, "the integer is too large");
    n = 10 * n + (uint64_t)(p->text[p->i] - '0');
  }
  if (n > INT64_MAX || AOT_DIM_IS_SYM((int64_t)n)) return bad(p, "the integer is too large");
  if (p->i < p->size && (p->text[p->i] == '.' || p->text[p->i] == 'e')) return bad(p, "fractions are not supported");
  *out = (int64_t)n;
  return AOT_OK;
}

/* ---- arithmetic on quotients ---- */

static int is_constant(int64_t d) { return !AOT_DIM_IS_SYM(d); }

static aot_status_t make(parser_t *p, int32_t op, int64_t a, int64_t b, int64_t c, int64_t *out) {
  return p->sink->make(p->sink->self, op, a, b, c, out);
}

static quotient_t whole(int64_t num) {
  quotient_t q = {num, 1};
  return q;
}

/* Keep denominators small: a constant numerator is reduced, and the product of two may not overflow. */
static aot_status_t reduce(parser_t *p, quotient_t *q) {
  int64_t a, b, t;
  if (q->den > (INT64_C(1) << 31)) return bad(p, "a denominator is too large");
  if (!is_constant(q->num) || q->den == 1) return AOT_OK;
  for (a = q->num < 0 ? -(q->num + 1) + 1 : q->num, b = q->den; b; t = a % b, a = b, b = t) {}
  if (a > 1) q->num /= a, q->den /= a;
  return AOT_OK;
}

/* Both over one denominator. */
static aot_status_t align(parser_t *p, quotient_t *a, quotient_t *b) {
  int64_t x, y;
  if (a->den == b->den) return AOT_OK;
  AOT_TRY(make(p, AOT_EXPR_MUL, a->num, b->den, 0, &x));
  AOT_TRY(make(p, AOT_EXPR_MUL, b->num, a->den, 0, &y));
  a->num = x, b->num = y;
  a->den = b->den = a->den * b->den;
  return AOT_OK;
}

/* ADD, SUB, MAX, MIN keep the denominator; EQ, LT, LE drop it. */
static aot_status_t linear(parser_t *p, int32_t op, quotient_t a, quotient_t b, quotient_t *out) {
  int compares = op == AOT_EXPR_EQ || op == AOT_EXPR_LT || op == AOT_EXPR_LE;
  AOT_TRY(align(p, &a, &b));
  AOT_TRY(make(p, op, a.num, b.num, 0, &out->num));
  out->den = compares ? 1 : a.den;
  return reduce(p, out);
}

static aot_status_t multiply(parser_t *p, quotient_t a, quotient_t b, quotient_t *out) {
  AOT_TRY(make(p, AOT_EXPR_MUL, a.num, b.num, 0, &out->num));
  out->den = a.den * b.den;
  return reduce(p, out);
}

static aot_status_t divide(parser_t *p, quotient_t a, quotient_t b, quotient_t *out) {
  if (!is_constant(b.num)) return bad(p, "a true division by a symbol is not supported");
  if (b.num == 0 || b.num == INT64_MIN) return bad(p, "a division by zero");
  if (b.num > (INT64_C(1) << 31) || b.num < -(INT64_C(1) << 31)) return bad(p, "a divisor is too large");
  AOT_TRY(make(p, AOT_EXPR_MUL, a.num, b.num < 0 ? -b.den : b.den, 0, &out->num));
  out->den = a.den * (b.num < 0 ? -b.num : b.num);
  return reduce(p, out);
}

/* floor(a / b): (an * bd) // (bn * ad). */
static aot_status_t floor_divide(parser_t *p, quotient_t a, quotient_t b, quotient_t *out) {
  int64_t x, y;
  AOT_TRY(make(p, AOT_EXPR_MUL, a.num, b.den, 0, &x));
  AOT_TRY(make(p, AOT_EXPR_MUL, b.num, a.den, 0, &y));
  if (y == 0) return bad(p, "a division by zero");
  out->den = 1;
  return make(p, AOT_EXPR_FLOORDIV, x, y, 0, &out->num);
}

static aot_status_t ceil_divide(parser_t *p, quotient_t a, quotient_t b, quotient_t *out) {
  quotient_t minus;
  AOT_TRY(linear(p, AOT_EXPR_SUB, whole(0), a, &minus));
  AOT_TRY(floor_divide(p, minus, b, &minus));
  return linear(p, AOT_EXPR_SUB, whole(0), minus, out);
}

static aot_status_t integers_only(parser_t *p, const quotient_t *args, uint32_t n) {
  uint32_t i;
  for (i = 0; i < n; i++)
    if (args[i].den != 1) return bad(p, "a fraction stands where an integer is needed");
  return AOT_OK;
}

static aot_status_t power(parser_t *p, quotient_t a, quotient_t b, quotient_t *out) {
  quotient_t both[2];
  both[0] = a, both[1] = b;
  if (b.den == 1 && b.num == -1) return divide(p, whole(1), a, out);
  AOT_TRY(integers_only(p, both, 2));
  if (is_constant(b.num) && b.num < 0) return bad(p, "a negative power is not supported");
  out->den = 1;
  return make(p, AOT_EXPR_POW, a.num, b.num, 0, &out->num);
}

/* ---- functions ---- */

enum {
  F_ADD,
  F_MUL,
  F_MAX,
  F_MIN,
  F_AND,
  F_OR,
  F_NOT,
  F_POW,
  F_FLOORDIV,
  F_CEILDIV,
  F_TRUEDIV,
  F_MOD,
  F_MODINDEX,
  F_WHERE,
  F_LSHIFT,
  F_RSHIFT,
  F_SAME,
  F_FLOOR,
  F_CEIL,
  F_EQ,
  F_NE,
  F_LT,
  F_LE,
  F_GT,
  F_GE,
  F_ABS,
  F_ROUND,
  F_RATIONAL
};

typedef struct function_row {
  const char *name;
  int32_t what;
  uint32_t n_min, n_max;
} function_row_t;

static const function_row_t functions[] = {
    {"Add", F_ADD, 1, MAX_ARGS},
    {"Mul", F_MUL, 1, MAX_ARGS},
    {"Max", F_MAX, 1, MAX_ARGS},
    {"Min", F_MIN, 1, MAX_ARGS},
    {"And", F_AND, 1, MAX_ARGS},
    {"Or", F_OR, 1, MAX_ARGS},
    {"Not", F_NOT, 1, 1},
    {"Pow", F_POW, 2, 2},
    {"PowByNatural", F_POW, 2, 2},
    {"FloorDiv", F_FLOORDIV, 2, 2},
    {"CleanDiv", F_FLOORDIV, 2, 2},
    {"CeilDiv", F_CEILDIV, 2, 2},
    {"IntTrueDiv", F_TRUEDIV, 2, 2},
    {"FloatTrueDiv", F_TRUEDIV, 2, 2},
    {"Rational", F_RATIONAL, 2, 2},
    {"Mod", F_MOD, 2, 2},
    {"PythonMod", F_MOD, 2, 2},
    {"ModularIndexing", F_MODINDEX, 3, 3},
    {"Where", F_WHERE, 3, 3},
    {"LShift", F_LSHIFT, 2, 2},
    {"RShift", F_RSHIFT, 2, 2},
    {"Identity", F_SAME, 1, 1},
    {"Integer", F_SAME, 1, 1},
    {"ToFloat", F_SAME, 1, 1},
    {"floor", F_FLOOR, 1, 1},
    {"FloorToInt", F_FLOOR, 1, 1},
    {"TruncToInt", F_FLOOR, 1, 1}, /* of a size, which is not negative */
    {"TruncToFloat", F_FLOOR, 1, 1},
    {"ceiling", F_CEIL, 1, 1},
    {"CeilToInt", F_CEIL, 1, 1},
    {"Eq", F_EQ, 2, 2},
    {"Equality", F_EQ, 2, 2},
    {"Ne", F_NE, 2, 2},
    {"Unequality", F_NE, 2, 2},
    {"StrictLessThan", F_LT, 2, 2},
    {"LessThan", F_LE, 2, 2},
    {"StrictGreaterThan", F_GT, 2, 2},
    {"GreaterThan", F_GE, 2, 2},
    {"Abs", F_ABS, 1, 1},
    {"RoundToInt", F_ROUND, 1, 1},
    /* as Python has them, in guards */
    {"max", F_MAX, 1, MAX_ARGS},
    {"min", F_MIN, 1, MAX_ARGS},
    {"torch.sym_max", F_MAX, 1, MAX_ARGS},
    {"torch.sym_min", F_MIN, 1, MAX_ARGS},
    {"abs", F_ABS, 1, 1},
    {"round", F_ROUND, 1, 1},
    {"math.floor", F_FLOOR, 1, 1},
    {"math.ceil", F_CEIL, 1, 1},
    {"math.trunc", F_FLOOR, 1, 1},
    {"torch.sym_float", F_SAME, 1, 1},
    {"float", F_SAME, 1, 1},
};

/* Left to right over all arguments. */
static aot_status_t fold(parser_t *p, int32_t op, const quotient_t *args, uint32_t n, quotient_t *out) {
  uint32_t i;
  *out = args[0];
  for (i = 1; i < n; i++) {
    quotient_t left = *out;
    AOT_TRY(op == AOT_EXPR_MUL ? multiply(p, left, args[i], out) : linear(p, op, left, args[i], out));
  }
  return AOT_OK;
}

static aot_status_t not_of(parser_t *p, quotient_t a, quotient_t *out) {
  return linear(p, AOT_EXPR_SUB, whole(1), a, out);
}

static aot_status_t apply_integers(parser_t *p, int32_t what, const quotient_t *a, uint32_t n, quotient_t *out) {
  int64_t t = 0;
  AOT_TRY(integers_only(p, a, n));
  out->den = 1;
  switch (what) {
    case F_MOD:
      if (a[1].num == 0) return bad(p, "a division by zero");
      return make(p, AOT_EXPR_MOD, a[0].num, a[1].num, 0, &out->num);
    case F_MODINDEX:
      if (a[1].num == 0 || a[2].num == 0) return bad(p, "a division by zero");
      AOT_TRY(make(p, AOT_EXPR_FLOORDIV, a[0].num, a[1].num, 0, &t));
      return make(p, AOT_EXPR_MOD, t, a[2].num, 0, &out->num);
    case F_WHERE: return make(p, AOT_EXPR_WHERE, a[0].num, a[1].num, a[2].num, &out->num);
    case F_LSHIFT:
    case F_RSHIFT:
      if (is_constant(a[1].num) && (a[1].num < 0 || a[1].num > 61)) return bad(p, "a shift is out of range");
      AOT_TRY(make(p, AOT_EXPR_POW, 2, a[1].num, 0, &t));
      return make(p, what == F_LSHIFT ? AOT_EXPR_MUL : AOT_EXPR_FLOORDIV, a[0].num, t, 0, &out->num);
    default:
      AOT_TRY(make(p, AOT_EXPR_SUB, 0, a[0].num, 0, &t)); /* F_ABS */
      return make(p, AOT_EXPR_MAX, a[0].num, t, 0, &out->num);
  }
}

/* To the nearest integer, a half to the even one: floor(x + 1/2), less 1 where that is odd and was a half. */
static aot_status_t round_half_even(parser_t *p, quotient_t a, quotient_t *out) {
  const quotient_t half = {1, 2};
  quotient_t up, rest, tie, odd;
  int64_t t;
  AOT_TRY(linear(p, AOT_EXPR_ADD, a, half, &up));
  AOT_TRY(floor_divide(p, up, whole(1), out));
  AOT_TRY(linear(p, AOT_EXPR_SUB, up, *out, &rest));
  AOT_TRY(linear(p, AOT_EXPR_EQ, rest, whole(0), &tie));
  AOT_TRY(make(p, AOT_EXPR_MOD, out->num, 2, 0, &t));
  AOT_TRY(multiply(p, tie, whole(t), &odd));
  return linear(p, AOT_EXPR_SUB, *out, odd, out);
}

static aot_status_t apply(parser_t *p, int32_t what, const quotient_t *a, uint32_t n, quotient_t *out) {
  quotient_t t;
  switch (what) {
    case F_ADD: return fold(p, AOT_EXPR_ADD, a, n, out);
    case F_MUL: return fold(p, AOT_EXPR_MUL, a, n, out);
    case F_MAX:
    case F_OR: return fold(p, AOT_EXPR_MAX, a, n, out);
    case F_MIN:
    case F_AND: return fold(p, AOT_EXPR_MIN, a, n, out);
    case F_NOT: return not_of(p, a[0], out);
    case F_POW: return power(p, a[0], a[1], out);
    case F_FLOORDIV: return floor_divide(p, a[0], a[1], out);
    case F_CEILDIV: return ceil_divide(p, a[0], a[1], out);
    case F_TRUEDIV:
    case F_RATIONAL: return divide(p, a[0], a[1], out);
    case F_SAME: *out = a[0]; return AOT_OK;
    case F_FLOOR: return floor_divide(p, a[0], whole(1), out);
    case F_CEIL: return ceil_divide(p, a[0], whole(1), out);
    case F_ROUND: return round_half_even(p, a[0], out);
    case F_EQ: return linear(p, AOT_EXPR_EQ, a[0], a[1], out);
    case F_NE: AOT_TRY(linear(p, AOT_EXPR_EQ, a[0], a[1], &t)); return not_of(p, t, out);
    case F_LT: return linear(p, AOT_EXPR_LT, a[0], a[1], out);
    case F_LE: return linear(p, AOT_EXPR_LE, a[0], a[1], out);
    case F_GT: return linear(p, AOT_EXPR_LT, a[1], a[0], out);
    case F_GE: return linear(p, AOT_EXPR_LE, a[1], a[0], out);
    default: return apply_integers(p, what, a, n, out);
  }
}

static aot_status_t call(parser_t *p, aot_str_t name, quotient_t *out) {
  quotient_t args[MAX_ARGS];
  uint32_t n = 0;
  size_t f;
  for (f = 0; f < sizeof functions / sizeof *functions && !p2_str_is(name, functions[f].name); f++) {}
  if (f == sizeof functions / sizeof *functions) {
    p2_fail(p->e, "import-pt2.bad-expression", "the function '%.*s' of a symbolic expression is not supported",
            P2_SHOW(name));
    return AOT_E_INVALID;
  }
  while (!take(p, ")")) {
    uint64_t at = p->i;
    aot_str_t word = take_word(p);
    if (word.size && peek(p, "=") && !peek(p, "==")) { /* evaluate=False and the like */
      take(p, "=");
      take_word(p);
    } else {
      p->i = at;
      if (n == MAX_ARGS) return bad(p, "a call has too many arguments");
      AOT_TRY(relation(p, &args[n]));
      n++;
    }
    if (!take(p, ",") && !peek(p, ")")) return bad(p, "',' or ')' is expected");
  }
  if (n < functions[f].n_min || n > functions[f].n_max) return bad(p, "a call has the wrong number of arguments");
  return apply(p, functions[f].what, args, n, out);
}

/* ---- grammar ---- */

static aot_status_t symbol(parser_t *p, aot_str_t name, quotient_t *out) {
  out->den = 1;
  return p->sink->symbol(p->sink->self, name, &out->num);
}

/* Symbol('s0', positive=True, integer=True): the assumptions say nothing that the ranges do not. */
static aot_status_t symbol_call(parser_t *p, quotient_t *out) {
  aot_str_t name;
  AOT_TRY(take_string(p, &name));
  while (take(p, ",")) {
    if (!take_word(p).size || !take(p, "=") || !take_word(p).size) return bad(p, "an assumption is expected");
  }
  if (!take(p, ")")) return bad(p, "')' is expected");
  return symbol(p, name, out);
}

/* A float, as a scale factor or a bound is written: exact, or refused. 1.7 times a size is rounded to a double before
 * its fraction is cut off, which no quotient of integers says. */
static aot_status_t exact_float(parser_t *p, aot_str_t text, quotient_t *out) {
  char digits[40], *end;
  double x;
  if (text.size >= sizeof digits) return bad(p, "a number is too long");
  memcpy(digits, text.data, text.size);
  digits[text.size] = '\0';
  x = strtod(digits, &end);
  if (*end != '\0') return bad(p, "a number is expected");
  if (!(fabs(x) < 9007199254740992.0)) return bad(p, "a number is too large");
  for (out->den = 1; x != floor(x) && out->den < (INT64_C(1) << 31); out->den *= 2) x *= 2;
  if (x != floor(x)) return bad(p, "a factor that is no multiple of a power of 1/2 is not supported");
  out->num = (int64_t)x;
  return reduce(p, out);
}

/* Float('0.5', precision=53) */
static aot_status_t float_call(parser_t *p, quotient_t *out) {
  aot_str_t text;
  AOT_TRY(take_string(p, &text));
  while (take(p, ",")) {
    if (!take_word(p).size || !take(p, "=") || !take_word(p).size) return bad(p, "a precision is expected");
  }
  return take(p, ")") ? exact_float(p, text, out) : bad(p, "a number and ')' are expected");
}

/* 12, 0.75, 3.0, 1e-3 */
static aot_status_t number(parser_t *p, quotient_t *out) {
  const uint64_t from = p->i;
  uint64_t end = from;
  while (end < p->size && is_digit(p->text[end])) end++;
  if (end == p->size || (p->text[end] != '.' && p->text[end] != 'e')) {
    out->den = 1;
    return take_integer(p, &out->num);
  }
  while (end < p->size && (is_digit(p->text[end]) || strchr(".e", p->text[end]) ||
                           (strchr("+-", p->text[end]) && p->text[end - 1] == 'e')))
    end++;
  p->i = end;
  return exact_float(p, (aot_str_t){p->text + from, end - from}, out);
}

/* ---- inputs ---- */

/* ['x'][0]["k"] into the spelling with single quotes; keys with escapes are not read. */
static aot_status_t source_path(parser_t *p, char *out, size_t size, size_t *out_n) {
  size_t n = 0;
  while (take(p, "[")) {
    aot_str_t key = {p->text + p->i, 0};
    const int is_number = p->i < p->size && is_digit(p->text[p->i]);
    if (!is_number) AOT_TRY(take_string(p, &key));
    while (is_number && p->i < p->size && is_digit(p->text[p->i])) p->i++, key.size++;
    if (memchr(key.data, '\\', key.size) || n + key.size + 5 > size) return bad(p, "a key is not supported");
    n += (size_t)snprintf(out + n, size - n, is_number ? "[%.*s]" : "['%.*s']", (int)key.size, key.data);
    if (!take(p, "]")) return bad(p, "']' is expected");
  }
  *out_n = n;
  return AOT_OK;
}

static aot_status_t subscript(parser_t *p, uint32_t *out) {
  int64_t index;
  if (!take(p, "[")) return bad(p, "'[' is expected");
  AOT_TRY(take_integer(p, &index));
  if (index > UINT32_MAX || !take(p, "]")) return bad(p, "a dimension and ']' are expected");
  *out = (uint32_t)index;
  return AOT_OK;
}

/* L['x'][0].size()[1], .shape[1], .stride()[1], .storage_offset(): L is read. */
static aot_status_t source(parser_t *p, quotient_t *out) {
  char path[1000];
  size_t n;
  uint32_t index = 0;
  int32_t what = 0;
  AOT_TRY(source_path(p, path, sizeof path, &n));
  const aot_str_t field = take_word(p);
  if (p2_str_is(field, ".size") || p2_str_is(field, ".shape")) what = P2_SOURCE_SIZE;
  else if (p2_str_is(field, ".stride")) what = P2_SOURCE_STRIDE;
  else if (p2_str_is(field, ".storage_offset")) what = P2_SOURCE_OFFSET;
  if (!what || (!p2_str_is(field, ".shape") && (!take(p, "(") || !take(p, ")"))))
    return bad(p, "a size, a stride or the storage offset of an input is expected");
  if (what != P2_SOURCE_OFFSET) AOT_TRY(subscript(p, &index));
  out->den = 1;
  const aot_status_t status = p->sink->source(p->sink->self, (aot_str_t){path, n}, what, index, &out->num);
  return status == AOT_E_NOT_FOUND ? bad(p, "there is no such input, or it has no such dimension") : status;
}

/* ---- operands ---- */

static aot_status_t primary(parser_t *p, quotient_t *out) {
  aot_str_t word;
  skip_space(p);
  if (p->i < p->size && is_digit(p->text[p->i])) return number(p, out);
  if (take(p, "(")) {
    AOT_TRY(relation(p, out));
    return take(p, ")") ? AOT_OK : bad(p, "')' is expected");
  }
  word = take_word(p);
  if (!word.size) return bad(p, "a number, a name or '(' is expected");
  if (take(p, "(")) {
    if (p2_str_is(word, "Symbol")) return symbol_call(p, out);
    return p2_str_is(word, "Float") ? float_call(p, out) : call(p, word, out);
  }
  if (p->sink->source && p2_str_is(word, "L") && peek(p, "[")) return source(p, out);
  if (p2_str_is(word, "true") || p2_str_is(word, "True")) return *out = whole(1), AOT_OK;
  if (p2_str_is(word, "false") || p2_str_is(word, "False")) return *out = whole(0), AOT_OK;
  return symbol(p, word, out);
}

static aot_status_t unary(parser_t *p, quotient_t *out) {
  quotient_t base, exponent;
  if (take(p, "-")) {
    if (++p->depth > MAX_DEPTH) return bad(p, "the expression is nested too deeply");
    AOT_TRY(unary(p, &base));
    p->depth--;
    return linear(p, AOT_EXPR_SUB, whole(0), base, out);
  }
  AOT_TRY(primary(p, out));
  if (!take(p, "**")) return AOT_OK;
  base = *out;
  if (++p->depth > MAX_DEPTH) return bad(p, "the expression is nested too deeply");
  AOT_TRY(unary(p, &exponent));
  p->depth--;
  return power(p, base, exponent, out);
}

static aot_status_t product(parser_t *p, quotient_t *out) {
  quotient_t left, right;
  AOT_TRY(unary(p, out));
  for (;;) {
    left = *out;
    if (take(p, "//")) {
      AOT_TRY(unary(p, &right));
      AOT_TRY(floor_divide(p, left, right, out));
    } else if (take(p, "/")) {
      AOT_TRY(unary(p, &right));
      AOT_TRY(divide(p, left, right, out));
    } else if (take(p, "%")) {
      quotient_t both[2];
      AOT_TRY(unary(p, &right));
      both[0] = left, both[1] = right;
      AOT_TRY(apply_integers(p, F_MOD, both, 2, out));
    } else if (take(p, "*")) {
      AOT_TRY(unary(p, &right));
      AOT_TRY(multiply(p, left, right, out));
    } else {
      return AOT_OK;
    }
  }
}

static aot_status_t sum(parser_t *p, quotient_t *out) {
  AOT_TRY(product(p, out));
  for (;;) {
    quotient_t left = *out, right;
    int32_t op = take(p, "+") ? AOT_EXPR_ADD : take(p, "-") ? AOT_EXPR_SUB : 0;
    if (!op) return AOT_OK;
    AOT_TRY(product(p, &right));
    AOT_TRY(linear(p, op, left, right, out));
  }
}

/* a < b <= c is a < b and b <= c */
static aot_status_t comparison(parser_t *p, quotient_t *out) {
  /* clang-format off */
  static const struct { const char *token; int32_t what; } rows[] = {{"<=", F_LE}, {">=", F_GE}, {"==", F_EQ},
                                                                      {"!=", F_NE}, {"<", F_LT},  {">", F_GT}};
  /* clang-format on */
  quotient_t both[2], so_far, one;
  uint32_t n = 0;
  size_t r;
  AOT_TRY(sum(p, &both[1]));
  *out = both[1];
  for (;;) {
    for (r = 0; r < sizeof rows / sizeof *rows && !take(p, rows[r].token); r++) {}
    if (r == sizeof rows / sizeof *rows) return AOT_OK;
    both[0] = both[1];
    so_far = *out;
    AOT_TRY(sum(p, &both[1]));
    AOT_TRY(apply(p, rows[r].what, both, 2, &one));
    if (n++ == 0) *out = one;
    else AOT_TRY(linear(p, AOT_EXPR_MIN, so_far, one, out));
  }
}

static int take_keyword(parser_t *p, const char *word) {
  const uint64_t from = p->i;
  if (take(p, word) && (p->i == p->size || !is_word(p->text[p->i]))) return 1;
  p->i = from;
  return 0;
}

static aot_status_t negation(parser_t *p, quotient_t *out) {
  uint32_t n = 0;
  while (take_keyword(p, "not")) n++;
  AOT_TRY(comparison(p, out));
  for (; n; n--) {
    const quotient_t inner = *out;
    AOT_TRY(not_of(p, inner, out));
  }
  return AOT_OK;
}

static aot_status_t conjunction(parser_t *p, quotient_t *out) {
  AOT_TRY(negation(p, out));
  while (take_keyword(p, "and")) {
    quotient_t left = *out, right;
    AOT_TRY(negation(p, &right));
    AOT_TRY(linear(p, AOT_EXPR_MIN, left, right, out));
  }
  return AOT_OK;
}

static aot_status_t disjunction(parser_t *p, quotient_t *out) {
  AOT_TRY(conjunction(p, out));
  while (take_keyword(p, "or")) {
    quotient_t left = *out, right;
    AOT_TRY(conjunction(p, &right));
    AOT_TRY(linear(p, AOT_EXPR_MAX, left, right, out));
  }
  return AOT_OK;
}

/* a if c else b */
static aot_status_t relation(parser_t *p, quotient_t *out) {
  if (++p->depth > MAX_DEPTH) return bad(p, "the expression is nested too deeply");
  AOT_TRY(disjunction(p, out));
  if (take_keyword(p, "if")) {
    quotient_t all[3];
    all[1] = *out;
    AOT_TRY(disjunction(p, &all[0]));
    if (!take_keyword(p, "else")) return bad(p, "'else' is expected");
    AOT_TRY(relation(p, &all[2]));
    AOT_TRY(apply_integers(p, F_WHERE, all, 3, out));
  }
  p->depth--;
  return AOT_OK;
}

aot_status_t p2_expr_read(p2_env_t *e, aot_str_t text, const p2_expr_sink_t *sink, int64_t *out) {
  parser_t p = {e, sink, text.data, text.size, 0, 0};
  quotient_t q;
  AOT_TRY(relation(&p, &q));
  skip_space(&p);
  if (p.i != p.size) return bad(&p, "text is left over");
  if (q.den == 1) {
    *out = q.num;
    return AOT_OK;
  }
  if (is_constant(q.num)) return bad(&p, "a fraction stands where an integer is needed");
  return make(&p, AOT_EXPR_FLOORDIV, q.num, q.den, 0, out);
}

int p2_expr_is_symbol(aot_str_t text, aot_str_t *out) {
  uint64_t i, end;
  if (p2_str_starts(text, "Symbol('")) {
    for (end = 8; end < text.size && text.data[end] != '\''; end++) {}
    for (i = end; i < text.size; i++) /* the call must end with the text: no second operand after it */
      if (text.data[i] == '(' || (text.data[i] == ')' && i + 1 != text.size)) return 0;
    out->data = text.data + 8;
    out->size = end - 8;
    return out->size > 0;
  }
  for (i = 0; i < text.size; i++)
    if (!is_word(text.data[i])) return 0;
  *out = text;
  return text.size > 0 && !is_digit(text.data[0]);
}
