/* Value numbering: values get one number when the same operator makes them, with the same arguments, of values of one
 * number.
 *
 * Inputs are numbered by role and index, a saved slot as what `of_slot` says, an exact copy as what it copies (slots
 * may hold dense copies). An operator that draws hidden random numbers or acts is equal to another call of itself only
 * as the k-th with these operands, so that one which is left out or runs twice is seen. Regions count by what they
 * hold. Numbers are 128-bit hashes. Source: J. Cocke and J. T. Schwartz, Programming Languages and their Compilers,
 * 1970. */
#ifndef AOTH_VALUE_NUMBERS_H
#define AOTH_VALUE_NUMBERS_H

#include "kit/base/map.h"
#include <ir/program.h>

typedef struct aoth_value_number {
  uint64_t lo, hi; /* both 0: none */
} aoth_value_number_t;
int aoth_same_number(aoth_value_number_t a, aoth_value_number_t b);

typedef struct aoth_call_count { /* of an operator that is not pure, with these operands */
  aoth_value_number_t key;
  uint32_t n;
} aoth_call_count_t;

typedef struct aoth_numbering {
  aot_prog_t *p;
  aoth_value_number_t *of_value;  /* by value */
  aoth_value_number_t *of_region; /* by graph, once it is known */
  /* by saved slot, n_slots: what the forward saves; set by the caller, freed with the rest */
  aoth_value_number_t *of_slot;
  uint32_t n_slots;
  aoth_call_count_t *calls;
  kit_map_t call_map; /* by key */
  uint32_t n_calls, call_capacity;
  uint32_t *stack, *at; /* regions being numbered, and the node that each has come to */
  int failed;           /* no memory */
} aoth_numbering_t;

int aoth_numbering_init(aoth_numbering_t *n, aot_prog_t *p); /* 0: no memory; deinit is due either way */
void aoth_numbering_deinit(aoth_numbering_t *n);
/* The values of a graph and of the regions under it; those of several graphs one after another. O(nodes + operands). */
void aoth_number_graph(aoth_numbering_t *n, uint32_t graph);

/* kind, dtype, device, encoding and sizes: strides apart */
int aoth_same_shape(const aot_type_t *a, const aot_type_t *b);

#endif
