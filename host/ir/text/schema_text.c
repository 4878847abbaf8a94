#include <ir/text/schema_text.h>

#include <aot/inline.h>
#include <ctype.h>
#include <string.h>

/* A piece of the text between commas: "Tensor(a!)[] outs", "Scalar alpha=1". */
typedef struct piece {
  aot_str_t type, name;
  int has_default, is_list, is_marked, is_written;
} piece_t;

typedef struct cursor {
  const char *at, *end;
} cursor_t;

static aot_str_t trimmed(const char *begin, const char *end) {
  while (begin < end && isspace((unsigned char)*begin)) begin++;
  while (begin < end && isspace((unsigned char)end[-1])) end--;
  return (aot_str_t){begin, (uint64_t)(end - begin)};
}

/* The next piece of a list, commas inside of brackets and texts aside; 0: there is none. */
static int next_piece(cursor_t *c, aot_str_t *out) {
  int depth = 0;
  char quote = 0;
  const char *begin = c->at;
  if (begin >= c->end) return 0;
  for (; c->at < c->end; c->at++) {
    const char ch = *c->at;
    if (ch > ',' && ch != '[' && ch != ']') continue; /* of a word, which most are: no quote, bracket or comma */
    if (quote) {
      quote = ch == quote ? 0 : quote;
    } else if (ch == '"' || ch == '\'') {
      quote = ch;
    } else {
      depth += (ch == '(' || ch == '[') - (ch == ')' || ch == ']');
      if (ch == ',' && depth == 0) break;
    }
  }
  *out = trimmed(begin, c->at);
  c->at++;
  return 1;
}

static int has(aot_str_t s, char c) { return s.size && memchr(s.data, c, (size_t)s.size) != NULL; }

static int is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* has_name: its last word is a name, not a type. */
static piece_t read_piece(aot_str_t text, int has_name) {
  piece_t p = {.name = {NULL, 0}};
  const char *equals = text.size ? memchr(text.data, '=', (size_t)text.size) : NULL;
  const char *end = equals ? equals : text.data + text.size, *name;
  p.has_default = equals != NULL;
  p.type = trimmed(text.data, end);
  for (name = p.type.data + p.type.size; name > p.type.data && is_word(name[-1]);) name--;
  if (has_name && name > p.type.data && isspace((unsigned char)name[-1])) {
    p.name = trimmed(name, p.type.data + p.type.size);
    p.type = trimmed(p.type.data, name);
  }
  p.is_list = has(p.type, '[');
  p.is_marked = has(p.type, '(');
  p.is_written = has(p.type, '!');
  return p;
}

static int differ(kit_text_t *why, const char *kind, uint32_t i, const char *what, const char *text, const char *row) {
  kit_text_f(why, "%s %u %s %s in its schema's text, %s in its row", kind, i, what, text, row);
  return 0;
}

static const char *yes(int is) { return is ? "so" : "not so"; }

static int same_marks(const piece_t *p, const aot_schema_arg_t *row, const char *kind, uint32_t i, kit_text_t *why) {
  if (p->is_list != ((row->flags & AOT_SARG_LIST) != 0))
    return differ(why, kind, i, "is a list:", yes(p->is_list), yes(!p->is_list));
  if (row->write_if) return 1; /* a text has no word for that */
  if (*kind == 'a' && p->is_written != ((row->flags & AOT_SARG_WRITE) != 0))
    return differ(why, kind, i, "is written:", yes(p->is_written), yes(!p->is_written));
  if (p->is_marked != (row->alias_set != 0))
    return differ(why, kind, i, "shares memory:", yes(p->is_marked), yes(!p->is_marked));
  return 1;
}

static int same_argument(const piece_t *p, const aot_schema_arg_t *row, uint32_t i, kit_text_t *why) {
  if (!aot_str_eq(p->name, row->name)) {
    kit_text_f(why, "argument %u is called '%.*s' in its schema's text, '%.*s' in its row", i, (int)p->name.size,
               p->name.data, (int)row->name.size, row->name.data);
    return 0;
  }
  if (p->has_default != ((row->flags & AOT_SARG_HAS_DEFAULT) != 0))
    return differ(why, "argument", i, "has a default:", yes(p->has_default), yes(!p->has_default));
  return same_marks(p, row, "argument", i, why);
}

static int wrong_count(kit_text_t *why, const char *kind, uint32_t text, uint32_t rows) {
  kit_text_f(why, "it has %u %s in its schema's text, %u in its rows", text, kind, rows);
  return 0;
}

static int same_arguments(cursor_t c, const aot_op_desc_t *d, kit_text_t *why) {
  uint32_t n = 0;
  int is_kwonly = 0;
  for (aot_str_t text; next_piece(&c, &text);) {
    if (aot_str_eq(text, aot_str("*"))) {
      is_kwonly = 1;
      continue;
    }
    if (aot_str_eq(text, aot_str("..."))) return 1; /* and so on */
    if (text.size == 0) continue;
    const piece_t p = read_piece(text, 1);
    if (n < d->n_args && !same_argument(&p, &d->args[n], n, why)) return 0;
    if (n < d->n_args && is_kwonly != ((d->args[n].flags & AOT_SARG_KWONLY) != 0))
      return differ(why, "argument", n, "goes by name alone:", yes(is_kwonly), yes(!is_kwonly));
    n++;
  }
  return n == d->n_args ? 1 : wrong_count(why, "arguments", n, d->n_args);
}

static int same_results(aot_str_t text, const aot_op_desc_t *d, kit_text_t *why) {
  const int is_list = text.size >= 2 && text.data[0] == '(' && text.data[text.size - 1] == ')';
  cursor_t c = {text.data + is_list, text.data + text.size - is_list};
  uint32_t n = 0;
  if (aot_str_eq(text, aot_str("..."))) return 1;
  for (aot_str_t result; next_piece(&c, &result); n++) {
    const piece_t p = read_piece(result, 1);
    if (result.size == 0) break;
    if (n < d->n_results && !same_marks(&p, &d->results[n], "result", n, why)) return 0;
  }
  return n == d->n_results ? 1 : wrong_count(why, "results", n, d->n_results);
}

int aoth_schema_agrees(const aot_op_desc_t *d, kit_text_t *out_why) {
  const aot_str_t s = d->schema;
  if (s.size == 0) return 1;
  const char *open = memchr(s.data, '(', (size_t)s.size), *close = NULL;
  int depth = 0;
  for (const char *c = open; c && c < s.data + s.size && !close; c++) {
    depth += (*c == '(') - (*c == ')');
    if (depth == 0) close = c;
  }
  const aot_str_t rest = close ? trimmed(close + 1, s.data + s.size) : (aot_str_t){NULL, 0};
  if (rest.size < 2 || rest.data[0] != '-' || rest.data[1] != '>') {
    kit_text_f(out_why, "its schema's text is none: '%.*s'", (int)s.size, s.data);
    return 0;
  }
  return same_arguments((cursor_t){open + 1, close}, d, out_why) &&
         same_results(trimmed(rest.data + 2, rest.data + rest.size), d, out_why);
}
