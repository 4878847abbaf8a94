/* Tokens of the text form. */
#ifndef AOTH_TEXT_LEXER_H
#define AOTH_TEXT_LEXER_H

#include <aot/base.h>
#include <stddef.h>

#define TOKEN_END 0
#define TOKEN_LINE 1   /* end of a line that holds something */
#define TOKEN_WORD 2   /* letters, digits, _ and . */
#define TOKEN_INT 3    /* digits, with a - where an operand is due */
#define TOKEN_FLOAT 4  /* 1.5, 1e9, inf, -inf, nan */
#define TOKEN_STRING 5 /* text: between the quotes, escapes as written */
#define TOKEN_VALUE 6  /* %label; text: the label */
#define TOKEN_GRAPH 7  /* @label */
#define TOKEN_DOLLAR 8 /* $label */
#define TOKEN_ORIGIN 9 /* !digits; text: the digits */
#define TOKEN_PUNCT 10 /* [ ] ( ) { } , : = + - * / // ** < <= == ; text: the characters */
#define TOKEN_BAD 11   /* text: what cannot be read; `why` of the lexer says why */

typedef struct token {
  int kind;
  uint32_t line;
  const char *at;         /* first byte, for the caret */
  const char *line_start; /* of its line */
  const char *end;
  aot_str_t text;
} aoth_token_t;

typedef struct lexer {
  const char *at, *end, *line_start;
  uint32_t line;
  int depth;   /* of brackets and parentheses: inside, line ends mean nothing */
  int operand; /* the last token ends an operand: a - is an operator */
  int fresh;   /* nothing but space on this line so far */
  const char *why;
} aoth_lexer_t;

void aoth_lexer_init(aoth_lexer_t *l, const char *text, size_t size);
void aoth_lexer_next(aoth_lexer_t *l, aoth_token_t *out);

#endif
