/* How the user inputs of a call share memory, and a program that is made for it.
 *
 *     f(x, x)                     input 1 is input 0                                          entry_same
 *     f(s[0:4], s[2:6])           inputs 0 and 1 are views of a base of 6 elements            entry_view
 *
 * The base is a user input of its own, after those of the caller: the smallest run of elements in which the members
 * lie. Functionalization then sees one storage where there is one. After AOTAutograd's removal of duplicate arguments
 * and its synthetic bases (torch/_functorch/_aot_autograd/runtime_wrappers.py). */
#ifndef AOTH_ALIASING_H
#define AOTH_ALIASING_H

#include <aot/graph.h>
#include "kit/base/text.h"

typedef struct aoth_alias_base {
  int64_t n_elements;
  int32_t dtype;
} aoth_alias_base_t;

typedef struct aoth_alias_row {
  uint32_t input; /* number of the user input; each at most once, in ascending order for each kind of row */
  uint32_t of;    /* entry_same: the input that it is; entry_view: which base */
  int is_view;
  int as_declared; /* strides are those of the program's own type (which may be symbolic) */
  int32_t rank;    /* the rest: entry_view; numbers, in elements of the base */
  int64_t offset;
  int64_t sizes[AOT_MAX_RANK], strides[AOT_MAX_RANK];
} aoth_alias_row_t;

/* No rows: no input shares memory with another in a way that matters. */
typedef struct aoth_aliasing {
  aoth_alias_row_t *rows; /* views first */
  aoth_alias_base_t *bases;
  uint32_t n_rows, n_bases;
} aoth_aliasing_t;

/* One line, equal for equal patterns: "base.0 f32[6]: input.0 = [4], input.1 = [4] offset 2; input.2 = input.0". */
void aoth_aliasing_print(const aoth_aliasing_t *a, kit_text_t *out);

/* Adds the leaves of the bases and the entry rules to a program that was just read. */
aot_status_t aoth_aliasing_apply(aot_prog_t *p, const aoth_aliasing_t *a);

#endif
