/* Recorded calls with a few arguments changed, to see that whatever is queried ends in a result or in an error that is
 * reported.
 *
 * A change is small and likely to be wrong: a dimension, size or number at an edge of its range, a list with an element
 * more or fewer, a tensor of another rank, of size 0, with other strides, or another tensor of the file; an argument
 * that is none; an element of a tensor that is NaN, an index out of range. Equal seeds give equal changes. */
#ifndef AOTH_OP_CASE_MUTATE_H
#define AOTH_OP_CASE_MUTATE_H

#include <jansson.h>
#include <cli/ops/op_case_text.h>
#include <trainer/tensors/random.h>

/* A copy of the case with one to three of its arguments changed, named "ID~number"; NULL: no memory. */
json_t *aoth_case_mutate(json_t *one, const aoth_st_t *data, uint64_t number, aoth_random_t *r);
/* Of half of the inputs, a copy with other elements takes the place of the data file's memory. copies[k] is the
 * caller's to free. */
void aoth_case_mutate_elements(aoth_case_program_t *p, void *copies[AOTH_CASE_TENSORS], aoth_random_t *r);

#endif
