/* The parser's smallest steps: tokens, numbers, strings, labels, and its one way to fail. */
#include "kit/base/vector.h"
#include <aot/assert.h>
#include <errno.h>
#include <ir/text/parser.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

/* The place of a token, with its line copied so that it ends. */
void aoth_parse_where(aoth_parser_t *s, const aoth_token_t *t, aoth_where_t *out) {
  AOT_ASSERT(t->line_start <= t->at && t->at <= t->end && t->end <= s->text_end);
  const char *nl = memchr(t->line_start, '\n', (size_t)(s->text_end - t->line_start));
  size_t size = (size_t)((nl ? nl : s->text_end) - t->line_start);
  out->file = s->file;
  out->line = t->line;
  out->column = (uint32_t)(t->at - t->line_start) + 1;
  out->end_column = (uint32_t)(t->end - t->line_start) + 1;
  out->source = kit_arena_text(s->p->store, t->line_start, size);
}

aot_status_t aoth_parse_fail(aoth_parser_t *s, const aoth_token_t *t, const char *format, ...) {
  aoth_where_t where;
  va_list args;
  aoth_parse_where(s, t, &where);
  va_start(args, format);
  s->p->ctx->n_diags++;
  aoth_sink_v(s->p->ctx->sink, AOT_SEVERITY_ERROR, &where, "ir.syntax", format, args);
  va_end(args);
  return AOT_E_INVALID;
}

aot_status_t aoth_parse_memory(aoth_parser_t *s) { return aoth_no_memory(s->p, "parsing", 0); }

aot_status_t aoth_parse_next(aoth_parser_t *s) {
  aoth_lexer_next(&s->lexer, &s->token);
  if (s->token.kind == TOKEN_BAD) return aoth_parse_fail(s, &s->token, "%s", s->lexer.why);
  return AOT_OK;
}

static int token_is(const aoth_token_t *t, int kind, const char *text) {
  return t->kind == kind && t->text.size == strlen(text) && memcmp(t->text.data, text, (size_t)t->text.size) == 0;
}

int aoth_at_punct(const aoth_parser_t *s, const char *text) { return token_is(&s->token, TOKEN_PUNCT, text); }
int aoth_at_word(const aoth_parser_t *s, const char *word) { return token_is(&s->token, TOKEN_WORD, word); }

static const char *token_name(const aoth_token_t *t) {
  return t->kind == TOKEN_END ? "the end of the text" : t->kind == TOKEN_LINE ? "the end of the line" : NULL;
}

/* "expected X, found Y" */
aot_status_t aoth_parse_expected(aoth_parser_t *s, const char *what) {
  const char *name = token_name(&s->token);
  if (name) return aoth_parse_fail(s, &s->token, "expected %s, found %s", what, name);
  return aoth_parse_fail(s, &s->token, "expected %s, found %.*s", what,
                         (int)(s->token.end - s->token.at > 60 ? 60 : s->token.end - s->token.at), s->token.at);
}

aot_status_t aoth_parse_punct(aoth_parser_t *s, const char *text) {
  char quoted[8] = "`";
  if (aoth_at_punct(s, text)) return aoth_parse_next(s);
  AOT_ASSERT(strlen(text) + 3 <= sizeof quoted);
  strcat(strcat(quoted, text), "`");
  return aoth_parse_expected(s, quoted);
}

aot_status_t aoth_parse_line_end(aoth_parser_t *s) {
  if (s->token.kind == TOKEN_END) return AOT_OK;
  if (s->token.kind != TOKEN_LINE) return aoth_parse_expected(s, "the end of the line");
  return aoth_parse_next(s);
}

aot_status_t aoth_token_i64(aoth_parser_t *s, const aoth_token_t *t, int64_t *out) {
  uint64_t magnitude = 0, limit = (uint64_t)INT64_MAX;
  const char *c = t->text.data, *end = c + t->text.size;
  int negative = c < end && *c == '-';
  limit += (uint64_t)negative;
  for (c += negative; c < end; c++) {
    AOT_ASSERT(*c >= '0' && *c <= '9'); /* the lexer's TOKEN_INT */
    if (__builtin_mul_overflow(magnitude, 10, &magnitude) ||
        __builtin_add_overflow(magnitude, (uint64_t)(*c - '0'), &magnitude) || magnitude > limit)
      return aoth_parse_fail(s, t, "the number does not fit into 64 bits");
  }
  *out = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
  if (AOT_DIM_IS_SYM(*out))
    return aoth_parse_fail(s, t, "numbers from 2^62 to 2^62 + 2^32 stand for expressions and cannot be written");
  return AOT_OK;
}

aot_status_t aoth_parse_i64(aoth_parser_t *s, int64_t *out) {
  if (s->token.kind != TOKEN_INT) return aoth_parse_expected(s, "an integer");
  AOT_TRY(aoth_token_i64(s, &s->token, out));
  return aoth_parse_next(s);
}

aot_status_t aoth_parse_u32(aoth_parser_t *s, uint32_t *out) {
  aoth_token_t t = s->token;
  int64_t i;
  AOT_TRY(aoth_parse_i64(s, &i));
  if (i < 0 || i > UINT32_MAX) return aoth_parse_fail(s, &t, "expected a number from 0 to 2^32 - 1");
  *out = (uint32_t)i;
  return AOT_OK;
}

aot_status_t aoth_parse_number(aoth_parser_t *s, int from_one, uint32_t *out) {
  aoth_token_t t = s->token;
  AOT_TRY(aoth_parse_u32(s, out));
  if (from_one && *out == UINT32_MAX) return aoth_parse_fail(s, &t, "the number is too large");
  *out += (uint32_t)from_one;
  return AOT_OK;
}

aot_status_t aoth_token_double(aoth_parser_t *s, const aoth_token_t *t, double *out) {
  char buffer[512];
  if (t->text.size >= sizeof buffer) return aoth_parse_fail(s, t, "the number has more than 500 characters");
  memcpy(buffer, t->text.data, (size_t)t->text.size);
  buffer[t->text.size] = 0;
  *out = strtod(buffer, NULL);
  return AOT_OK;
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

static int unescape(const char **at, const char *end, char *out) {
  const char *c = *at + 1;
  static const char letters[] = "nrt\"\\", bytes[] = "\n\r\t\"\\";
  const char *known = c < end ? strchr(letters, *c) : NULL;
  if (known && *known) {
    *out = bytes[known - letters];
    *at = c + 1;
    return 1;
  }
  if (end - c < 3 || *c != 'x' || hex_digit(c[1]) < 0 || hex_digit(c[2]) < 0) return 0;
  *out = (char)(hex_digit(c[1]) * 16 + hex_digit(c[2]));
  *at = c + 3;
  return 1;
}

aot_status_t aoth_parse_string(aoth_parser_t *s, aot_str_t *out) {
  if (s->token.kind != TOKEN_STRING) return aoth_parse_expected(s, "a string");
  *out = s->token.text;
  if (memchr(out->data, '\\', (size_t)out->size)) {
    char *copy = kit_arena_alloc(s->scratch, 1, (size_t)out->size + 1), *to = copy;
    if (!copy) return aoth_parse_memory(s);
    for (const char *c = out->data, *end = c + out->size; c < end;) {
      if (*c != '\\') *to++ = *c++;
      else if (!unescape(&c, end, to++))
        return aoth_parse_fail(s, &s->token, "a backslash in a string is followed by n r t \" \\ or xHH");
    }
    AOT_ASSERT((uint64_t)(to - copy) <= out->size);
    out->size = (uint64_t)(to - copy);
    out->data = copy;
  }
  return aoth_parse_next(s);
}

/* Bytes written as hexadecimal digits, copied into the program. */
aot_status_t aoth_parse_bytes(aoth_parser_t *s, const void **out, uint64_t *nbytes) {
  aoth_token_t t = s->token;
  if (t.kind != TOKEN_STRING) return aoth_parse_expected(s, "bytes as a string of hexadecimal digits");
  unsigned char *bytes = kit_arena_alloc(s->p->store, 16, (size_t)t.text.size / 2 + 1);
  if (!bytes) return aoth_parse_memory(s);
  for (uint64_t i = 0; i < t.text.size; i++)
    if (hex_digit(t.text.data[i]) < 0 || t.text.size % 2)
      return aoth_parse_fail(s, &t, "bytes are pairs of hexadecimal digits");
  for (uint64_t i = 0; i < t.text.size / 2; i++)
    bytes[i] = (unsigned char)(hex_digit(t.text.data[2 * i]) * 16 + hex_digit(t.text.data[2 * i + 1]));
  *out = bytes;
  *nbytes = t.text.size / 2;
  return aoth_parse_next(s);
}

aot_status_t aoth_parse_word_of(aoth_parser_t *s, const aoth_word_t *words, const char *what, int64_t *out) {
  aot_str_t known[32];
  size_t n = 0;
  if (s->token.kind == TOKEN_WORD && aoth_word_find(words, s->token.text, out)) return aoth_parse_next(s);
  aoth_parse_expected(s, what);
  for (; words->word && n < 32; words++) {
    known[n].data = words->word;
    known[n++].size = strlen(words->word);
  }
  int nearest = s->token.kind == TOKEN_WORD ? kit_nearest(s->token.text, known, n) : -1;
  if (nearest >= 0) aoth_hint(s->p, "did you mean %.*s?", (int)known[nearest].size, known[nearest].data);
  return AOT_E_INVALID;
}

/* flags(8): bits that have no word. */
static aot_status_t numbered_flags(aoth_parser_t *s, uint32_t *out) {
  uint32_t bits;
  AOT_TRY(aoth_parse_next(s));
  AOT_TRY(aoth_parse_punct(s, "("));
  AOT_TRY(aoth_parse_u32(s, &bits));
  *out |= bits;
  return aoth_parse_punct(s, ")");
}

aot_status_t aoth_parse_flags(aoth_parser_t *s, const aoth_word_t *words, const char *what, uint32_t *out) {
  while (s->token.kind == TOKEN_WORD) {
    int64_t bit;
    if (aoth_at_word(s, "flags")) {
      AOT_TRY(numbered_flags(s, out));
      continue;
    }
    AOT_TRY(aoth_parse_word_of(s, words, what, &bit));
    *out |= (uint32_t)bit;
  }
  return AOT_OK;
}

/* ---- labels ---- */
static int is_label(const void *owner, uint32_t item, const void *key) {
  const aoth_label_t *row = &((const aoth_labels_t *)owner)->rows[item];
  const aot_str_t *label = key;
  return row->size == label->size && memcmp(row->text, label->data, row->size) == 0;
}

static uint64_t label_hash(aot_str_t s) { return XXH3_64bits(s.data, (size_t)s.size); }

int aoth_labels_find(const aoth_labels_t *l, aot_str_t label, uint32_t *out) {
  const uint32_t row = kit_map_find(&l->map, label_hash(label), is_label, l, &label);
  if (row == KIT_MAP_NONE) return 0;
  *out = l->rows[row].id;
  return 1;
}

int aoth_labels_put(aoth_labels_t *l, aot_str_t label, uint32_t id) {
  aoth_label_t *rows = kit_grow(l->rows, &l->capacity, (uint64_t)l->n + 1, sizeof *rows);
  if (!rows) return 0;
  l->rows = rows;
  const uint32_t row = kit_map_find_or_add(&l->map, label_hash(label), is_label, l, &label, l->n);
  if (row == KIT_MAP_NONE) return 0;
  l->rows[row] = (aoth_label_t){label.data, (uint32_t)label.size, id};
  if (row == l->n) l->n++;
  return 1;
}

/* A table that is much larger than what was in it is made again: clearing costs as much as filling did. */
void aoth_labels_clear(aoth_labels_t *l) {
  if (l->map.capacity / 64 > l->n) kit_map_deinit(&l->map);
  else kit_map_clear(&l->map);
  l->n = 0;
}

void aoth_labels_deinit(aoth_labels_t *l) {
  kit_map_deinit(&l->map);
  free(l->rows);
  *l = (aoth_labels_t){0};
}
