/* Shared by the printer and the parser of the text form; included by host/ir only. docs/IR.md is the grammar. */
#ifndef AOTH_TEXT_FORM_H
#define AOTH_TEXT_FORM_H

#include <ir/program_store.h>

#define DATA_SHOWN_MAX 256u /* bytes of a leaf's data that are printed */
#define EXPR_INLINE_MAX 24u /* operations and symbols of an expression written in place; larger ones get a `let` */

/* ---- printing expressions (expr_text.c) ---- */
/* Where expressions go that are too large to be written in place. lets NULL: nowhere, they print as <expr N>. */
typedef struct dim_writer {
  aot_prog_t *prog;
  const unsigned char *plain_symbols; /* 1: the symbol's name is a word of its own; NULL: judge by the name alone */
  uint32_t *let_numbers;              /* by expression, AOT_NO_INDEX: has none yet */
  uint32_t n_lets;
  kit_text_t *lets;
} aoth_dim_writer_t;
void aoth_dim_write(aoth_dim_writer_t *w, int64_t dim, kit_text_t *out);
void aoth_symbol_write(aoth_dim_writer_t *w, uint32_t symbol, kit_text_t *out);

/* Which of n names are words and occur once; out[i] 1 or 0. 0: no memory. */
int aoth_plain_names(const aot_str_t *names, uint32_t n, int (*is_plain)(aot_str_t), unsigned char *out);
void aoth_quoted(kit_text_t *out, aot_str_t s);

#endif
