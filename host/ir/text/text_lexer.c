/* The lexer of the text form: one pass, no copies. Lines end statements, except inside brackets; a comment runs from
 * `;` to the end of its line. A `-` right before a digit belongs to the number when an operand is due there ("s0 -
 * 1", "[-1]"). */
#include <ir/text/text_lexer.h>

#include <aot/assert.h>
#include <string.h>

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_label(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

void aoth_lexer_init(aoth_lexer_t *l, const char *text, size_t size) {
  memset(l, 0, sizeof *l);
  l->at = l->line_start = text;
  l->end = text + size;
  l->line = 1;
  l->fresh = 1;
}

static char peek(const aoth_lexer_t *l, size_t ahead) { return (size_t)(l->end - l->at) > ahead ? l->at[ahead] : '\0'; }

static void new_line(aoth_lexer_t *l) {
  l->at++;
  l->line++;
  l->line_start = l->at;
  l->fresh = 1;
}

/* Skip blanks, comments and line ends that mean nothing; 1: a line end that means something is at hand. */
static int skip(aoth_lexer_t *l) {
  while (l->at < l->end) {
    char c = *l->at;
    if (c == ';') {
      const char *nl = memchr(l->at, '\n', (size_t)(l->end - l->at));
      l->at = nl ? nl : l->end;
    } else if (c == '\n') {
      if (!l->fresh && l->depth == 0) return 1;
      new_line(l);
    } else if (c == ' ' || c == '\t' || c == '\r') {
      l->at++;
    } else {
      return 0;
    }
  }
  return 0;
}

static void finish(aoth_lexer_t *l, aoth_token_t *t, int kind, const char *text, const char *text_end) {
  AOT_ASSERT(t->at <= text && text <= text_end && text_end <= l->at && l->at <= l->end);
  t->kind = kind;
  t->end = l->at;
  t->text.data = text;
  t->text.size = (uint64_t)(text_end - text);
}

static void bad(aoth_lexer_t *l, aoth_token_t *t, const char *why) {
  l->why = why;
  if (l->at == t->at && l->at < l->end) l->at++;
  finish(l, t, TOKEN_BAD, t->at, l->at);
}

static void lex_labelled(aoth_lexer_t *l, aoth_token_t *t, int kind) {
  const char *begin = ++l->at;
  while (l->at < l->end && is_label(*l->at)) l->at++;
  if (l->at == begin) bad(l, t, "a label must follow");
  else finish(l, t, kind, begin, l->at);
}

static void lex_origin(aoth_lexer_t *l, aoth_token_t *t) {
  const char *begin = ++l->at;
  while (l->at < l->end && is_digit(*l->at)) l->at++;
  if (l->at == begin) bad(l, t, "the number of an origin must follow");
  else finish(l, t, TOKEN_ORIGIN, begin, l->at);
}

static void lex_string(aoth_lexer_t *l, aoth_token_t *t) {
  const char *begin = ++l->at;
  while (l->at < l->end && *l->at != '"' && *l->at != '\n') {
    if (*l->at == '\\' && l->at + 1 < l->end && l->at[1] != '\n') l->at++;
    l->at++;
  }
  if (l->at >= l->end || *l->at != '"') {
    bad(l, t, "a string must end on its line");
    return;
  }
  l->at++;
  finish(l, t, TOKEN_STRING, begin, l->at - 1);
}

static void lex_number(aoth_lexer_t *l, aoth_token_t *t) {
  int kind = TOKEN_INT;
  if (*l->at == '-') l->at++;
  while (is_digit(peek(l, 0))) l->at++;
  if (peek(l, 0) == '.') {
    kind = TOKEN_FLOAT;
    l->at++;
    while (is_digit(peek(l, 0))) l->at++;
  }
  if (peek(l, 0) == 'e' || peek(l, 0) == 'E') {
    size_t sign = peek(l, 1) == '-' || peek(l, 1) == '+';
    if (is_digit(peek(l, 1 + sign))) {
      kind = TOKEN_FLOAT;
      l->at += 1 + sign;
      while (is_digit(peek(l, 0))) l->at++;
    }
  }
  if (is_label(peek(l, 0))) {
    while (is_label(peek(l, 0))) l->at++;
    bad(l, t, "not a number");
    return;
  }
  finish(l, t, kind, t->at, l->at);
}

static int is_text(const aoth_token_t *t, const char *word) {
  return t->text.size == strlen(word) && memcmp(t->text.data, word, (size_t)t->text.size) == 0;
}

static void lex_word(aoth_lexer_t *l, aoth_token_t *t) {
  while (l->at < l->end && is_label(*l->at)) l->at++;
  finish(l, t, TOKEN_WORD, t->at, l->at);
  if (is_text(t, "inf") || is_text(t, "nan")) t->kind = TOKEN_FLOAT;
}

static void lex_punct(aoth_lexer_t *l, aoth_token_t *t) {
  char c = *l->at, d = peek(l, 1);
  if (!strchr("[](){},:=+-*/<", c) || c == '\0') {
    bad(l, t, "a character that means nothing here");
    return;
  }
  if (c == '[' || c == '(') l->depth++;
  if ((c == ']' || c == ')') && l->depth) l->depth--;
  l->at += ((c == '*' || c == '/' || c == '=') && d == c) || (c == '<' && d == '=') ? 2 : 1;
  finish(l, t, TOKEN_PUNCT, t->at, l->at);
}

/* -inf, and - before a digit, where an operand is due. */
static int starts_negative(const aoth_lexer_t *l) {
  if (l->operand || *l->at != '-') return 0;
  return is_digit(peek(l, 1)) || (peek(l, 1) == 'i' && peek(l, 2) == 'n' && peek(l, 3) == 'f' && !is_label(peek(l, 4)));
}

/* After a word: a symbol ends an operand, the name of an operator (it has a dot) precedes its arguments. */
static int is_operator_name(const aoth_token_t *t) {
  return t->kind == TOKEN_WORD && memchr(t->at, '.', (size_t)(t->end - t->at)) != NULL;
}

void aoth_lexer_next(aoth_lexer_t *l, aoth_token_t *t) {
  int line_end = skip(l);
  memset(t, 0, sizeof *t);
  t->at = t->end = l->at;
  t->line = l->line;
  t->line_start = l->line_start;
  if (line_end) {
    new_line(l);
    t->kind = TOKEN_LINE;
    l->operand = 0;
    return;
  }
  if (l->at >= l->end) {
    t->kind = l->fresh ? TOKEN_END : TOKEN_LINE; /* the last line may lack its end */
    l->fresh = 1;
    return;
  }
  l->fresh = 0;
  char c = *l->at;
  if (c == '%') lex_labelled(l, t, TOKEN_VALUE);
  else if (c == '@') lex_labelled(l, t, TOKEN_GRAPH);
  else if (c == '$') lex_labelled(l, t, TOKEN_DOLLAR);
  else if (c == '!') lex_origin(l, t);
  else if (c == '"') lex_string(l, t);
  else if (starts_negative(l) && peek(l, 1) == 'i') {
    l->at += 4;
    finish(l, t, TOKEN_FLOAT, t->at, l->at);
  } else if (is_digit(c) || starts_negative(l)) lex_number(l, t);
  else if (is_letter(c)) lex_word(l, t);
  else lex_punct(l, t);
  AOT_ASSERT(l->at > t->at && l->depth >= 0); /* every token takes the lexer on */
  l->operand = t->kind == TOKEN_INT || t->kind == TOKEN_FLOAT || t->kind == TOKEN_DOLLAR || t->kind == TOKEN_VALUE ||
               (t->kind == TOKEN_WORD && !is_operator_name(t)) || (t->kind == TOKEN_PUNCT && (c == ')' || c == ']'));
}
