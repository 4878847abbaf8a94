/* A recursive-descent parser of the schema grammar; one byte of look-ahead and no token array.
 *
 *   decl    := [name ['.' overload]] '(' [item {',' item}] ')' '->' returns
 *   item    := '*' | '...' | type name ['=' default]
 *   type    := base [mark] { '[' [NUMBER] ']' [mark] | '?' }
 *   mark    := '!' | '(' set ['!'] ['->' set] ')'
 *   returns := '...' | '(' [ret {',' ret}] ')' | ret          ret := '...' | type [name]
 *
 * Errors are sticky: the first one is stored with its byte, every later step does nothing. Arguments are parsed
 * into a small array and copied out; a schema with more goes over its text twice. Linear in the text.
 *
 * Source of the grammar: PyTorch 2.4, torch/csrc/jit/frontend/function_schema_parser.cpp and schema_type_parser.cpp. */
#include "schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16 /* nesting of types */
#define MAX_LIST 64  /* elements of a default list */
#define MOST_ARGS 48 /* arguments of nearly every schema */

typedef struct parser {
  const char *text;
  uint32_t size, at;
  const sch_memory_t *memory;
  sch_error_t *error;
  aot_status_t status;
  int lenient_names; /* aten:: and prim:: may name type variables */
} parser_t;

/* A parsed type, before it becomes an argument. */
typedef struct type_info {
  int32_t type, alias_set, list_size;
  uint32_t flags; /* AOT_SARG_OPTIONAL LIST OPTIONAL_ELEM WRITE */
} type_info_t;

static void fail(parser_t *p, uint32_t at, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void fail(parser_t *p, uint32_t at, const char *format, ...) {
  va_list list;
  if (p->status != AOT_OK) return;
  p->status = AOT_E_INVALID;
  p->error->at = at;
  va_start(list, format);
  vsnprintf(p->error->message, sizeof p->error->message, format, list);
  va_end(list);
}

static void *take(parser_t *p, uint64_t align, uint64_t nbytes) {
  void *memory = p->memory->alloc(p->memory->self, align, nbytes ? nbytes : 1);
  if (memory == NULL && p->status == AOT_OK) {
    fail(p, p->at, "no memory for %llu bytes", (unsigned long long)nbytes);
    p->status = AOT_E_EXHAUSTED;
  }
  return memory;
}

/* ---- characters and words ---- */

static int is_alpha(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

static void skip_space(parser_t *p) {
  while (p->at < p->size && (p->text[p->at] == ' ' || p->text[p->at] == '\t' || p->text[p->at] == '\n')) p->at++;
}

static char peek(parser_t *p) {
  skip_space(p);
  return p->status == AOT_OK && p->at < p->size ? p->text[p->at] : '\0';
}

/* A symbol is not empty. Its first character decides nearly always. */
static int has(parser_t *p, const char *symbol) {
  size_t n;
  if (peek(p) != symbol[0] || p->at >= p->size) return 0;
  n = strlen(symbol);
  return p->size - p->at >= n && memcmp(p->text + p->at, symbol, n) == 0;
}

static int accept(parser_t *p, const char *symbol) {
  if (!has(p, symbol)) return 0;
  p->at += (uint32_t)strlen(symbol);
  return 1;
}

static void expect(parser_t *p, const char *symbol) {
  if (p->status != AOT_OK || accept(p, symbol)) return;
  if (p->at >= p->size) fail(p, p->size, "the schema ends where '%s' is expected", symbol);
  else fail(p, p->at, "expected '%s', found '%c'", symbol, p->text[p->at]);
}

static aot_str_t word(parser_t *p, const char *what) {
  aot_str_t w = {p->text + p->at, 0};
  char c = peek(p);
  uint32_t begin = p->at;
  if (!is_alpha(c)) {
    if (c == '\0') fail(p, p->at, "the schema ends where %s is expected", what);
    else fail(p, p->at, "expected %s, found '%c'", what, c);
    return w;
  }
  while (p->at < p->size && (is_alpha(p->text[p->at]) || is_digit(p->text[p->at]))) p->at++;
  w.data = p->text + begin;
  w.size = p->at - begin;
  return w;
}

static int is_word(aot_str_t w, const char *s) { return strncmp(w.data, s, (size_t)w.size) == 0 && s[w.size] == 0; }

/* ---- types ---- */

typedef struct base_row {
  const char *name;
  int32_t type;
} base_row_t;

/* clang-format off */
static const base_row_t bases[] = {
    {"Tensor", AOT_STYPE_TENSOR},       {"Scalar", AOT_STYPE_SCALAR},       {"int", AOT_STYPE_INT},
    {"SymInt", AOT_STYPE_INT},          {"float", AOT_STYPE_FLOAT},         {"SymFloat", AOT_STYPE_FLOAT},
    {"bool", AOT_STYPE_BOOL},           {"SymBool", AOT_STYPE_BOOL},        {"str", AOT_STYPE_STR},
    {"Dimname", AOT_STYPE_STR},         {"ScalarType", AOT_STYPE_DTYPE},    {"Layout", AOT_STYPE_LAYOUT},
    {"Device", AOT_STYPE_DEVICE},       {"DeviceIndex", AOT_STYPE_INT},     {"MemoryFormat", AOT_STYPE_MEMORY_FORMAT},
    {"Generator", AOT_STYPE_GENERATOR}, {"Graph", AOT_STYPE_GRAPH},         {"Op", AOT_STYPE_OP},
    {"complex", AOT_STYPE_ANY},         {"Storage", AOT_STYPE_ANY},         {"Stream", AOT_STYPE_ANY},
    {"QScheme", AOT_STYPE_ANY},         {"Quantizer", AOT_STYPE_ANY},       {"Any", AOT_STYPE_ANY},
    {"None", AOT_STYPE_ANY},            {"NoneType", AOT_STYPE_ANY},        {"Capsule", AOT_STYPE_ANY},
    {"AnyClassType", AOT_STYPE_ANY},    {"AnyEnumType", AOT_STYPE_ANY},
};
/* clang-format on */

static type_info_t parse_type(parser_t *p, int depth);

static void type_list(parser_t *p, int depth) { /* after '(' */
  do parse_type(p, depth + 1);
  while (accept(p, ","));
  expect(p, ")");
}

static int32_t base_type(parser_t *p, int depth) {
  uint32_t begin;
  aot_str_t w;
  size_t i;
  if (accept(p, "(")) { /* a tuple type */
    type_list(p, depth);
    return AOT_STYPE_ANY;
  }
  peek(p);
  begin = p->at;
  w = word(p, "a type");
  if (p->status != AOT_OK) return AOT_STYPE_ANY;
  if (is_word(w, "Dict") || is_word(w, "Union") || is_word(w, "Future") || is_word(w, "Await") || is_word(w, "RRef")) {
    expect(p, "(");
    type_list(p, depth);
    return AOT_STYPE_ANY;
  }
  if (is_word(w, "__torch__")) { /* __torch__.torch.classes.ns.cls */
    while (accept(p, ".")) word(p, "a class name");
    return AOT_STYPE_ANY;
  }
  for (i = 0; i < sizeof bases / sizeof bases[0]; i++)
    if (is_word(w, bases[i].name)) return bases[i].type;
  if (is_word(w, "double")) fail(p, begin, "type 'double' is not a schema type: use float");
  else if (is_word(w, "int64_t")) fail(p, begin, "type 'int64_t' is not a schema type: use SymInt or int");
  else if (!(p->lenient_names && w.data[0] >= 'a' && w.data[0] <= 'z'))
    fail(p, begin, "unknown type '%.*s'", (int)(w.size > 60 ? 60 : w.size), w.data);
  return AOT_STYPE_ANY;
}

/* One set: its number, AOT_ALIAS_ANY for the wildcard and for unions. */
static int32_t alias_names(parser_t *p) {
  int32_t set = 0, n = 0;
  do {
    int32_t member = AOT_ALIAS_ANY;
    n++;
    if (!accept(p, "*")) {
      aot_str_t w = word(p, "an alias set");
      if (w.size == 1 && w.data[0] >= 'a' && w.data[0] <= 'z') member = w.data[0] - 'a' + 1;
    }
    set = n == 1 ? member : AOT_ALIAS_ANY;
  } while (p->status == AOT_OK && accept(p, "|"));
  return set;
}

static void alias_mark(parser_t *p, type_info_t *t) {
  int32_t set = 0;
  uint32_t begin;
  if (accept(p, "!")) {
    t->flags |= AOT_SARG_WRITE;
    return;
  }
  if (!has(p, "(")) return;
  begin = p->at;
  expect(p, "(");
  set = alias_names(p);
  if (accept(p, "!")) t->flags |= AOT_SARG_WRITE;
  if (accept(p, "->")) alias_names(p);
  if (p->status == AOT_OK && !accept(p, ")")) fail(p, begin, "alias mark is not closed");
  if (t->alias_set == 0) t->alias_set = set;
}

static int64_t number_of(parser_t *p) {
  int64_t n = 0;
  while (is_digit(peek(p)) && n < 1000) n = n * 10 + (p->text[p->at++] - '0');
  return n;
}

static type_info_t parse_type(parser_t *p, int depth) {
  type_info_t t = {AOT_STYPE_ANY, 0, 0, 0};
  uint32_t n_lists = 0;
  if (depth > MAX_DEPTH) {
    fail(p, p->at, "types are nested deeper than %d", MAX_DEPTH);
    return t;
  }
  t.type = base_type(p, depth);
  alias_mark(p, &t);
  while (p->status == AOT_OK) {
    if (accept(p, "?")) {
      t.flags |= AOT_SARG_OPTIONAL;
    } else if (accept(p, "[")) {
      if (t.flags & AOT_SARG_OPTIONAL) t.flags = (t.flags & ~AOT_SARG_OPTIONAL) | AOT_SARG_OPTIONAL_ELEM;
      t.flags |= AOT_SARG_LIST;
      if (is_digit(peek(p))) t.list_size = (int32_t)number_of(p);
      expect(p, "]");
      if (++n_lists > 1) t.type = AOT_STYPE_ANY; /* a list of lists */
      alias_mark(p, &t);
    } else {
      break;
    }
  }
  return t;
}

/* ---- defaults ---- */

typedef struct literal {
  int32_t kind; /* AOT_ARG_NONE INT FLOAT BOOL STR, or WORD */
  uint32_t at;
  int64_t i;
  double f;
  aot_str_t s;
} literal_t;
#define WORD 100

static void string_literal(parser_t *p, literal_t *l) {
  char quote = p->text[p->at];
  uint32_t begin = p->at++, end = p->at;
  char *copy;
  size_t n = 0;
  while (end < p->size && p->text[end] != quote) end += p->text[end] == '\\' ? 2 : 1;
  if (end >= p->size) {
    fail(p, begin, "string is not closed");
    return;
  }
  copy = take(p, 1, end - p->at + 1);
  if (copy == NULL) return;
  while (p->at < end) {
    char c = p->text[p->at++];
    if (c == '\\') {
      c = p->text[p->at++];
      if (c == 'n') c = '\n';
      else if (c == 't') c = '\t';
    }
    copy[n++] = c;
  }
  p->at = end + 1;
  l->kind = AOT_ARG_STR;
  l->s.data = copy;
  l->s.size = n;
}

static void number_literal(parser_t *p, literal_t *l) {
  char copy[64];
  size_t n = 0;
  int is_float = 0;
  char *end;
  while (p->at < p->size && n + 1 < sizeof copy) {
    char c = p->text[p->at];
    int sign = (c == '-' || c == '+') && (n == 0 || copy[n - 1] == 'e' || copy[n - 1] == 'E');
    if (!(is_digit(c) || c == '.' || c == 'e' || c == 'E' || sign)) break;
    if (c == '.' || c == 'e' || c == 'E') is_float = 1;
    copy[n++] = c;
    p->at++;
  }
  copy[n] = '\0';
  if (p->at < p->size && p->text[p->at] == 'j') { /* imaginary: stored as text */
    p->at++;
    l->kind = WORD;
    l->s.data = p->text + l->at;
    l->s.size = p->at - l->at;
    return;
  }
  l->f = strtod(copy, &end);
  if (end == copy || *end != '\0') fail(p, l->at, "'%s' is not a number", copy);
  l->kind = is_float ? AOT_ARG_FLOAT : AOT_ARG_INT;
  if (!is_float) {
    l->i = strtoll(copy, &end, 10);
    if (*end != '\0') fail(p, l->at, "'%s' is not an integer", copy);
  }
}

static literal_t parse_literal(parser_t *p) {
  literal_t l;
  char c = peek(p);
  memset(&l, 0, sizeof l);
  l.at = p->at;
  if (c == '"' || c == '\'') {
    string_literal(p, &l);
  } else if (is_digit(c) || c == '-' || c == '.') {
    number_literal(p, &l);
  } else {
    l.s = word(p, "a default");
    l.kind = WORD;
    if (is_word(l.s, "None")) l.kind = AOT_ARG_NONE;
    else if (is_word(l.s, "True")) l.kind = AOT_ARG_BOOL, l.i = 1;
    else if (is_word(l.s, "False")) l.kind = AOT_ARG_BOOL;
  }
  return l;
}

typedef struct word_row {
  const char *name;
  int32_t type;
  int64_t value;
} word_row_t;

/* Names that represent values, by the type that they are a default of. */
static const word_row_t words[] = {
    {"Mean", AOT_STYPE_INT, 1},
    {"Sum", AOT_STYPE_INT, 2},
    {"contiguous_format", AOT_STYPE_MEMORY_FORMAT, AOT_MEMORY_CONTIGUOUS},
    {"channels_last", AOT_STYPE_MEMORY_FORMAT, AOT_MEMORY_CHANNELS_LAST},
    {"channels_last_3d", AOT_STYPE_MEMORY_FORMAT, AOT_MEMORY_CHANNELS_LAST_3D},
    {"preserve_format", AOT_STYPE_MEMORY_FORMAT, AOT_MEMORY_PRESERVE},
    {"strided", AOT_STYPE_LAYOUT, AOT_LAYOUT_STRIDED},
    {"long", AOT_STYPE_DTYPE, AOT_I64},
    {"int", AOT_STYPE_DTYPE, AOT_I32},
    {"float", AOT_STYPE_DTYPE, AOT_F32},
    {"double", AOT_STYPE_DTYPE, AOT_F64},
    {"half", AOT_STYPE_DTYPE, AOT_F16},
    {"bool", AOT_STYPE_DTYPE, AOT_BOOL},
    {"complex", AOT_STYPE_DTYPE, AOT_C64},
    {"cpu", AOT_STYPE_DEVICE, AOT_DEVICE_CPU},
};

static aot_arg_t int_arg(int32_t kind, int64_t i) {
  aot_arg_t a;
  memset(&a, 0, sizeof a);
  a.kind = kind;
  a.u.i = i;
  return a;
}

static aot_arg_t text_arg(aot_str_t s) {
  aot_arg_t a = int_arg(AOT_ARG_STR, 0);
  a.n = (uint32_t)s.size;
  a.u.chars = s.data;
  return a;
}

static int32_t kind_of_word_type(int32_t type) {
  switch (type) {
    case AOT_STYPE_MEMORY_FORMAT: return AOT_ARG_MEMORY_FORMAT;
    case AOT_STYPE_LAYOUT: return AOT_ARG_LAYOUT;
    case AOT_STYPE_DTYPE: return AOT_ARG_DTYPE;
    case AOT_STYPE_DEVICE: return AOT_ARG_DEVICE;
    default: return AOT_ARG_INT;
  }
}

/* The argument that one literal is for a slot of this type. */
static aot_arg_t scalar_default(parser_t *p, int32_t type, const literal_t *l) {
  aot_arg_t a = int_arg(AOT_ARG_NONE, 0);
  size_t i;
  if (p->status != AOT_OK || l->kind == AOT_ARG_NONE) return a;
  if (l->kind == WORD) {
    for (i = 0; i < sizeof words / sizeof words[0]; i++)
      if (words[i].type == type && is_word(l->s, words[i].name))
        return int_arg(kind_of_word_type(type), words[i].value);
    if (type == AOT_STYPE_ANY) return text_arg(l->s);
  } else if (l->kind == AOT_ARG_BOOL) {
    if (type == AOT_STYPE_BOOL || type == AOT_STYPE_SCALAR) return int_arg(AOT_ARG_BOOL, l->i);
  } else if (l->kind == AOT_ARG_STR) {
    if (type == AOT_STYPE_STR || type == AOT_STYPE_ANY) return text_arg(l->s);
  } else if (type == AOT_STYPE_FLOAT || (l->kind == AOT_ARG_FLOAT && type == AOT_STYPE_SCALAR)) {
    a.kind = AOT_ARG_FLOAT;
    a.u.f = l->f;
    return a;
  } else if (l->kind == AOT_ARG_INT && (type == AOT_STYPE_INT || type == AOT_STYPE_SCALAR)) {
    return int_arg(AOT_ARG_INT, l->i);
  }
  if (type == AOT_STYPE_TENSOR) fail(p, l->at, "the default of a Tensor can only be None");
  else fail(p, l->at, "this default does not fit the argument's type");
  return a;
}

/* n equal-typed scalars as one list argument. */
static aot_arg_t pack_list(parser_t *p, int32_t type, const aot_arg_t *items, uint32_t n) {
  aot_arg_t a = int_arg(type == AOT_STYPE_BOOL ? AOT_ARG_BOOLS : AOT_ARG_INTS, 0);
  int64_t *ints;
  double *floats;
  uint32_t i;
  int any_float = type == AOT_STYPE_FLOAT;
  a.n = n;
  for (i = 0; i < n; i++) any_float |= items[i].kind == AOT_ARG_FLOAT;
  if (any_float) {
    a.kind = AOT_ARG_FLOATS;
    a.u.floats = floats = take(p, sizeof *floats, n * sizeof *floats);
    for (i = 0; floats && i < n; i++) floats[i] = items[i].kind == AOT_ARG_FLOAT ? items[i].u.f : (double)items[i].u.i;
  } else {
    a.u.ints = ints = take(p, sizeof *ints, n * sizeof *ints);
    for (i = 0; ints && i < n; i++) ints[i] = items[i].u.i;
  }
  return a;
}

/* A default whose elements have no argument kind (lists of strings, of lists): its text. */
static aot_arg_t raw_default(parser_t *p) {
  uint32_t begin, depth = 0;
  aot_str_t s;
  peek(p);
  begin = p->at;
  while (p->at < p->size && !(depth == 0 && (p->text[p->at] == ',' || p->text[p->at] == ')'))) {
    char c = p->text[p->at];
    depth += c == '[';
    depth -= c == ']' && depth > 0;
    p->at++;
  }
  s.data = p->text + begin;
  s.size = p->at - begin;
  if (s.size == 0) fail(p, begin, "expected a default");
  return is_word(s, "None") ? int_arg(AOT_ARG_NONE, 0) : text_arg(s);
}

static aot_arg_t parse_default(parser_t *p, const type_info_t *t) {
  aot_arg_t items[MAX_LIST];
  uint32_t n = 0;
  literal_t l;
  if (t->type == AOT_STYPE_ANY || ((t->flags & AOT_SARG_LIST) && t->type == AOT_STYPE_STR)) return raw_default(p);
  if (!(t->flags & AOT_SARG_LIST)) {
    l = parse_literal(p);
    return scalar_default(p, t->type, &l);
  }
  if (accept(p, "[")) {
    while (p->status == AOT_OK && !has(p, "]")) {
      if (n == MAX_LIST) {
        fail(p, p->at, "a default list has more than %d elements", MAX_LIST);
        break;
      }
      l = parse_literal(p);
      items[n++] = scalar_default(p, t->type, &l);
      if (!accept(p, ",")) break;
    }
    expect(p, "]");
  } else {
    l = parse_literal(p);
    if (p->status == AOT_OK && l.kind == AOT_ARG_NONE) return int_arg(AOT_ARG_NONE, 0);
    items[0] = scalar_default(p, t->type, &l);
    if (t->list_size == 0 || t->list_size > MAX_LIST)
      fail(p, l.at, "a list without a size needs a default in brackets");
    for (n = 1; p->status == AOT_OK && n < (uint32_t)t->list_size; n++) items[n] = items[0];
  }
  return p->status == AOT_OK ? pack_list(p, t->type, items, n) : int_arg(AOT_ARG_NONE, 0);
}

/* ---- declarations ---- */

static void put_type(aot_schema_arg_t *out, const type_info_t *t) {
  out->type = t->type;
  out->flags = t->flags;
  out->alias_set = t->alias_set;
  out->list_size = t->list_size;
}

static void put_variadic(aot_schema_arg_t *out) {
  type_info_t t = {AOT_STYPE_ANY, 0, 0, AOT_SARG_VARIADIC};
  put_type(out, &t);
  out->name.data = "args";
  out->name.size = 4;
}

/* Arguments up to ')'; those beyond capacity are only counted. */
static uint32_t parse_args(parser_t *p, aot_schema_arg_t *out, uint32_t capacity) {
  uint32_t n = 0;
  int kwonly = 0, any_default = 0;
  aot_schema_arg_t scratch;
  expect(p, "(");
  if (accept(p, ")")) return 0;
  do {
    uint32_t at;
    aot_schema_arg_t *arg = n < capacity ? &out[n] : &scratch;
    memset(arg, 0, sizeof *arg);
    peek(p);
    at = p->at;
    if (accept(p, "...")) {
      if (any_default) fail(p, at, "'...' cannot follow an argument with a default");
      if (!has(p, ")")) fail(p, at, "'...' must be the last argument");
      put_variadic(arg);
      n++;
      break;
    }
    if (accept(p, "*")) {
      if (kwonly) fail(p, at, "'*' stands twice");
      kwonly = 1;
      continue;
    }
    {
      type_info_t t = parse_type(p, 0);
      put_type(arg, &t);
      if (kwonly) arg->flags |= AOT_SARG_KWONLY;
      arg->name = word(p, "an argument name");
      if (accept(p, "=")) {
        any_default = 1;
        arg->flags |= AOT_SARG_HAS_DEFAULT;
        arg->preset = parse_default(p, &t);
      }
      n++;
    }
  } while (p->status == AOT_OK && accept(p, ","));
  expect(p, ")");
  return n;
}

static void parse_result(parser_t *p, aot_schema_arg_t *arg) {
  type_info_t t;
  memset(arg, 0, sizeof *arg);
  if (accept(p, "...")) {
    put_variadic(arg);
    arg->name.size = 0;
    return;
  }
  t = parse_type(p, 0);
  put_type(arg, &t);
  if (is_alpha(peek(p))) arg->name = word(p, "a result name");
}

static uint32_t parse_results(parser_t *p, aot_schema_arg_t *out, uint32_t capacity) {
  uint32_t n = 0;
  aot_schema_arg_t scratch;
  expect(p, "->");
  if (!accept(p, "(")) {
    parse_result(p, capacity ? out : &scratch);
    return 1;
  }
  if (accept(p, ")")) return 0;
  do {
    parse_result(p, n < capacity ? &out[n] : &scratch);
    n++;
  } while (p->status == AOT_OK && accept(p, ","));
  expect(p, ")");
  return n;
}

static void parse_name(parser_t *p, sch_schema_t *out) {
  uint32_t begin;
  if (!is_alpha(peek(p))) return;
  begin = p->at;
  word(p, "an operator name");
  while (accept(p, "::")) {
    p->lenient_names |= (p->at - begin == 6) &&
                        (memcmp(p->text + begin, "aten::", 6) == 0 || memcmp(p->text + begin, "prim::", 6) == 0);
    word(p, "an operator name");
  }
  out->name.data = p->text + begin;
  out->name.size = p->at - begin;
  if (accept(p, ".")) {
    uint32_t at = p->at;
    out->overload = word(p, "an overload name");
    if (is_word(out->overload, "default")) fail(p, at, "'default' is not an overload name: leave it out");
    if (out->overload.size > 1 && memcmp(out->overload.data, "__", 2) == 0)
      fail(p, at, "an overload name does not start with '__'");
  }
}

static aot_schema_arg_t *copy_args(parser_t *p, const aot_schema_arg_t *args, uint32_t n) {
  aot_schema_arg_t *out = take(p, sizeof(void *), n * sizeof *out);
  if (out != NULL && n <= MOST_ARGS) memcpy(out, args, n * sizeof *out);
  return out;
}

aot_status_t sch_parse(aot_str_t text, const sch_memory_t *memory, sch_schema_t *out, sch_error_t *out_error) {
  aot_schema_arg_t args[MOST_ARGS], results[MOST_ARGS];
  parser_t p;
  uint32_t begin;
  memset(&p, 0, sizeof p);
  memset(out, 0, sizeof *out);
  memset(out_error, 0, sizeof *out_error);
  p.text = text.data;
  p.size = (uint32_t)(text.size > UINT32_MAX ? UINT32_MAX : text.size);
  p.memory = memory;
  p.error = out_error;
  parse_name(&p, out);
  begin = p.at;
  out->n_args = parse_args(&p, args, MOST_ARGS);
  out->n_results = parse_results(&p, results, MOST_ARGS);
  if (peek(&p) != '\0') fail(&p, p.at, "text after the end of the schema");
  if (p.status != AOT_OK) return p.status;
  out->args = copy_args(&p, args, out->n_args);
  out->results = copy_args(&p, results, out->n_results);
  if (p.status != AOT_OK || (out->n_args <= MOST_ARGS && out->n_results <= MOST_ARGS)) return p.status;
  p.at = begin;
  parse_args(&p, out->args, out->n_args);
  parse_results(&p, out->results, out->n_results);
  return p.status;
}
