/* What a text says of opsets before it can be read: no operator is known then, so only words are looked at. A node's
 * operator and an operator among the arguments are words with a dot; what else has one (numbers, labels, strings) is
 * another token. */
#include <aot/inline.h>
#include <ir/program.h>
#include <ir/text/text_lexer.h>
#include <string.h>

aot_status_t aoth_text_namespaces(const char *text, size_t size, aot_status_t (*put)(void *self, aot_str_t name),
                                  void *self) {
  aoth_lexer_t lexer;
  aoth_token_t t;
  aoth_lexer_init(&lexer, text, size);
  for (aoth_lexer_next(&lexer, &t); t.kind != TOKEN_END && t.kind != TOKEN_BAD; aoth_lexer_next(&lexer, &t)) {
    const char *dot = t.kind == TOKEN_WORD ? memchr(t.text.data, '.', (size_t)t.text.size) : NULL;
    if (dot) AOT_TRY(put(self, (aot_str_t){t.text.data, (uint64_t)(dot - t.text.data)}));
  }
  return AOT_OK;
}
