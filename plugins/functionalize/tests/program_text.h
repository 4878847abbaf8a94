/* A program of eager.h as text that the host parses. */
#ifndef PROGRAM_TEXT_H
#define PROGRAM_TEXT_H

#include "eager.h"
#include "kit/base/text.h"

/* w: after eg_run. symbolic: sizes of EG_SYMBOL become a symbol, and types of results are left to inference. */
#define EG_SYMBOL 3
void eg_print(const eg_program_t *p, const eg_world_t *w, int symbolic, kit_text_t *out);
extern const char *const eg_names[EG_N_OPS]; /* full operator names */

#endif
