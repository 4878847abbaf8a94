/* Templates of instructions, token by token. They are C, but for
 *
 *     a, b, .. h    arguments of the operator        name(    a helper for the computing type
 *     %0, %1, ..    its instructions before          T(       a constant of that type        #    the length of the row
 *                                                                                  @    the element's place in
 * it */
#include "loop.h"

#include <ctype.h>
#include <string.h>

int lp_token(const char **at, lp_token_t *out) {
  const char *c = *at;
  *out = (lp_token_t){.kind = LP_TK_TEXT, .text = c, .size = 1};
  if (!*c) return 0;
  if (*c == '#' || *c == '@') {
    out->kind = *c == '#' ? LP_TK_LENGTH : LP_TK_PLACE;
  } else if (*c == '%' && isdigit((unsigned char)c[1])) {
    out->kind = LP_TK_STEP;
    out->index = (uint32_t)(c[1] - '0');
    out->size = 2;
  } else if (isalnum((unsigned char)*c) || *c == '_') { /* a number's letters are not names */
    while (isalnum((unsigned char)c[out->size]) || c[out->size] == '_' ||
           (c[out->size] == '.' && isdigit((unsigned char)*c)))
      out->size++;
    if (isalpha((unsigned char)*c) && c[out->size] == '(') {
      out->kind = out->size == 1 && *c == 'T' ? LP_TK_CONSTANT : LP_TK_CALL;
    } else if (out->size == 1 && *c >= 'a' && *c < 'a' + LP_ARGS) {
      out->kind = LP_TK_ARG;
      out->index = (uint32_t)(*c - 'a');
    }
  }
  *at = c + out->size;
  return 1;
}

int lp_reads(const char *text, int32_t kind, uint32_t index) {
  lp_token_t t;
  while (lp_token(&text, &t))
    if (t.kind == kind && t.index == index) return 1;
  return 0;
}
